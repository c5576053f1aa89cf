// Everything works without this file; it only saves steps.
"use strict";
(() => {
  const follow = (rel) => {
    const link = document.querySelector(`a[rel="${rel}"]`);
    if (link) link.click();
  };

  // Previous and next case by arrow keys or j and k, "/" to find; never while something is typed or chosen.
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (event.target.closest("input, textarea, select, summary, [contenteditable], .wide")) return;
    const find = document.querySelector("#find");
    if (event.key === "ArrowLeft" || event.key === "k") follow("prev");
    else if (event.key === "ArrowRight" || event.key === "j") follow("next");
    else if (event.key === "/" && find) {
      event.preventDefault();
      find.focus();
    }
  });

  const say = (text) => {
    const place = document.querySelector("#said");
    if (place) place.textContent = text;
  };

  // The button is only there where it can work.
  for (const button of document.querySelectorAll("button[data-copy]")) {
    const text = document.getElementById(button.dataset.copy);
    if (!navigator.clipboard || !text) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text.textContent.trim());
        say("Copied.");
      } catch {
        say("The browser did not allow it; select the sentence and copy it.");
      }
    });
  }

  // A select that leads somewhere needs no button of its own.
  for (const select of document.querySelectorAll("select[data-go]")) {
    select.addEventListener("change", () => select.form.requestSubmit());
  }

  // The live score follows what is typed, a moment after the last key.
  const form = document.querySelector("form[data-live]");
  const score = document.querySelector("#live-score");
  if (form && score) {
    let timer = 0;
    let latest = 0;
    form.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(async () => {
        const asked = ++latest;
        const query = new URLSearchParams(new FormData(form));
        try {
          const answer = await fetch(`${form.dataset.live}?${query}`, { headers: { accept: "text/plain" } });
          const text = await answer.text();
          if (asked === latest) score.textContent = text;
        } catch {
          if (asked === latest) score.textContent = "The explorer does not answer; is it still running?";
        }
      }, 250);
    });
  }
})();
