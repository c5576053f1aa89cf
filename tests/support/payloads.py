"""Texts that try to leave the place they are shown in, and a reader that says whether one of them did."""

from __future__ import annotations

from html.parser import HTMLParser

PAYLOADS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg onload=alert(1)>",
    "</td></tr></table><script>alert(1)</script>",
    "</title></svg><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "<!--<script>-->",
    "javascript:alert(1)",
    '" onmouseover="alert(1)" x="',
    "{{ 7 * 7 }}{% print 1 %}",
    "{row} {0.__class__} %s %(x)s",
    "&lt;script&gt;&#60;script&#62;",
    "\u2028<iframe srcdoc='<script>alert(1)</script>'>\x85",
    '=HYPERLINK("http://example.org";"x")',
    "<a href=javascript:alert(1)>x</a>",
    "<details open ontoggle=alert(1)>",
    "\ud800<b>lone surrogate</b>",
)
STORABLE = [text for text in PAYLOADS if "\ud800" not in text]  # what a UTF-8 file can hold
VOID = {"meta", "br", "img", "link", "input"}
HARMLESS = {
    "a", "article", "blockquote", "body", "caption", "circle", "code", "desc", "details", "div", "figcaption", "figure",
    "footer", "h1", "h2", "h3", "head", "header", "html", "li", "line", "main", "meta", "p", "path", "rect", "section",
    "span", "strong", "style", "summary", "svg", "table", "tbody", "td", "text", "th", "thead", "title", "tr", "ul",
}  # fmt: skip


class Reader(HTMLParser):
    """Tags and attributes of a page or a piece of one; complains where they do not nest."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in HARMLESS:
            self.wrong.append(f"<{tag}>")
        for name, value in attrs:
            away = name in ("href", "src", "action") and not (value or "").startswith(("/", "#", "?"))
            if name.startswith("on") or name in ("style", "srcdoc") or away:
                self.wrong.append(f"<{tag} {name}={value}>")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}>")

    def handle_comment(self, data: str) -> None:
        self.wrong.append(f"<!--{data}-->")


def escapes(page: str) -> list[str]:
    """What does not belong into a page without script: foreign tags, handlers, inline styles, tags that do not nest."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader.wrong + [f"<{tag}> is not closed" for tag in reader.open]
