"""Every page, state and file of the explorer, asked directly."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("starlette", reason='pip install "fewest[explore]"')
pytest.importorskip("uvicorn", reason='pip install "fewest[explore]"')
pytest.importorskip("pyarrow", reason='pip install "fewest[runs]"')

from explorer_runs import PAYLOADS, Subject, people, problems_of

import fewest as fw
from fewest.apps.explorer import Live, _app, create_app
from fewest.apps.explorer._pages_of_run import static_files
from fewest.errors import DataError, UsageError
from fewest.reporting.views import PopulationView
from fewest.runs import Run, explain_files

PAGES = ("/", "/population", "/decision/2", "/references", "/compare", "/tree")
Ask = Callable[..., Any]
States = tuple[Path, dict[str, int]]


@pytest.mark.parametrize("path", PAGES)
def test_every_page_opens_and_asks_a_question_under_its_heading(ask: Ask, subject: Subject, path: str) -> None:
    answer = ask(subject.run, other=subject.other).get(path)
    assert answer.status == 200
    assert answer.text.count("<h1>") == 1
    assert 'class="question"' in answer.text
    assert "Loans of the north" in answer.text


def test_the_way_to_a_decision_leads_to_a_case_that_was_decided_against(ask: Ask, subject: Subject) -> None:
    browser = ask(subject.run)
    answer = browser.follow(browser.get("/decision"))
    assert 'id="sentence"' in answer.text
    assert "would have predicted good" in answer.text


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("ALREADY_NEGATIVE", "The model accepted this case"),
        ("UNREACHABLE", "Not possible with this reference"),
        ("NOT_CREDIBLE", "Not credible"),
        ("BUDGET", "Stopped early (at least 4)"),
        ("NOTHING", "The search stopped before it found an answer"),
        ("EXPLAINED", "proved: no smaller set does it"),
    ],
)
def test_every_state_is_drawn(ask: Ask, states: States, state: str, said: str) -> None:
    run, rows = states
    answer = ask(run).get(f"/decision/{rows[state]}")
    assert answer.status == 200
    assert said in answer.text


@pytest.mark.parametrize("kept", [True, False])
def test_a_case_compared_with_none_of_several_references_shows_its_own_facts(
    ask: Ask, tmp_path: Path, kept: bool
) -> None:
    decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100 + rows["fixed"].to_numpy(), positive="bad")
    refs = fw.references.supplied(decision, {"debt": [20, 10], "home": ["own", "rent"], "fixed": [0, 0]})
    cases = pd.DataFrame({"debt": [30, 90, 90], "home": ["rent", "own", "rent"], "fixed": [0, 0, 1]})
    cases.to_csv(tmp_path / "cases.csv", index=False)
    explainer = fw.Explainer(decision, refs, n_jobs=1, constraints=fw.Constraints(fw.Immutable("fixed")))
    run = explain_files(explainer, tmp_path / "cases.csv", tmp_path / "run", n_jobs=1, keep_cases=kept)
    assert run.table()["status"].tolist() == ["ALREADY_NEGATIVE", "EXPLAINED", "UNREACHABLE"]
    assert run.table()["reference"][0] is None
    for row in (0, 2):
        page = ask(run.path).get(f"/decision/{row}").text
        assert ("The run did not keep the cases" in page) is not kept
        assert ('<th scope="row">home</th><td>rent</td>' in page) is kept


@pytest.mark.parametrize("state", ["UNREACHABLE", "NOT_CREDIBLE", "BUDGET"])
def test_the_population_lists_cases_of_every_state(ask: Ask, states: States, state: str) -> None:
    run, rows = states
    answer = ask(run).get(f"/population?status={state}")
    assert f'href="/decision/{rows[state]}"' in answer.text


def test_a_set_with_a_protected_feature_is_withheld_everywhere(ask: Ask, subject: Subject) -> None:
    table = Run.open(subject.run).table()
    uses = table[table["features"].map(lambda names: "months" in names)]["row"].tolist()
    assert uses
    browser = ask(subject.run, protected=["months"])
    page = browser.get(f"/decision/{uses[0]}").text
    assert "Withheld: it uses a protected feature" in page
    assert "withheld: " in page
    assert "months had been" not in page
    assert "withheld: uses a protected feature" in browser.get("/population?feature=months").text
    assert "months had been" in ask(subject.run).get(f"/decision/{uses[0]}").text


def test_a_search_for_what_is_not_there_says_so(ask: Ask, subject: Subject) -> None:
    browser = ask(subject.run)
    page = browser.follow(browser.get("/find?q=%3Cb%3Emoths")).text
    assert "Nothing here is called &#39;&lt;b&gt;moths&#39;. Cases are found by their row, from 0 to 119" in page
    for known in ("months", "credit", ""):
        assert "Nothing here is called" not in browser.follow(browser.get(f"/find?q={known}")).text


def test_a_run_in_which_nobody_was_refused_says_so_and_shows_everybody(ask: Ask, tmp_path: Path) -> None:
    decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100, positive="bad", threshold=2.0)
    pd.DataFrame({"debt": [30, 90]}).to_csv(tmp_path / "cases.csv", index=False)
    refs = fw.references.supplied(decision, {"debt": [20]})
    run = explain_files(fw.Explainer(decision, refs, n_jobs=1), tmp_path / "cases.csv", tmp_path / "run", n_jobs=1)
    browser = ask(run.path)
    page = browser.get("/population").text
    assert "Nobody was refused, so there is nothing to explain." in page
    assert "Show all that were refused" not in page
    assert 'href="/population?status=#cases"' in page
    assert 'href="/decision/1"' in browser.get("/population?status=").text


def test_an_unknown_protected_feature_is_refused(subject: Subject) -> None:
    with pytest.raises(UsageError, match="there is no feature"):
        create_app(subject.run, protected=["month"])


def test_other_ways_that_use_a_protected_feature_are_counted(ask: Ask, subject: Subject) -> None:
    table = Run.open(subject.run).table()
    rows = [
        row
        for row, sets, own in zip(table["row"], table["alternatives"], table["features"], strict=True)
        if "sex" not in own and any(change["feature"] == "sex" for changes in sets for change in changes)
    ]
    if not rows:
        pytest.skip("no case has such another way")
    assert "withheld: " in ask(subject.run).get(f"/decision/{rows[0]}").text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/decision/999999", 404),
        ("/decision/-1", 404),
        ("/decision/x", 404),
        ("/nowhere", 404),
        ("/docs", 404),
        ("/openapi.json", 404),
        ("/static/nothing.css", 404),
        ("/population?sort=x", 400),
        ("/population?sev=x", 400),
        ("/population?status=x", 400),
        ("/references?version=9", 404),
        ("/references?number=99", 404),
        ("/references?version=x", 400),
        ("/live/1", 404),
    ],
)
def test_what_is_not_there_is_said_in_plain_words(ask: Ask, subject: Subject, path: str, status: int) -> None:
    answer = ask(subject.run).get(path)
    assert answer.status == status
    assert "That did not work" in answer.text
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/../manifest.json", "/static/../manifest.json", "/static/..%2fmanifest.json", "/static/%2e%2e/manifest.json",
        "/manifest.json", "/references.json", "/part-00000.parquet", "/static//etc/passwd", "/static/%2fetc%2fpasswd",
        "//etc/passwd", "/references/version-0002.json", "/static/..\\manifest.json", "/static/explorer.css%00.txt",
    ],
)  # fmt: skip
def test_no_address_leads_to_a_file(ask: Ask, subject: Subject, path: str) -> None:
    answer = ask(subject.run).get(path)
    assert answer.status == 404
    assert "sha256" not in answer.text
    assert "root:" not in answer.text


def test_the_static_files_are_served_with_their_types(ask: Ask, subject: Subject) -> None:
    """Negative control of the test above: the files that are meant to be there are."""
    browser = ask(subject.run)
    for name, (data, kind) in static_files().items():
        answer = browser.get(f"/static/{name}")
        assert (answer.status, answer.body) == (200, data)
        assert answer.headers["content-type"] == kind


def test_there_is_little_script(subject: Subject) -> None:
    assert sum(len(data) for name, (data, _) in static_files().items() if name.endswith(".js")) <= 15_000


def test_the_csv_holds_the_filtered_cases_and_is_defused(ask: Ask, hostile: Path, subject: Subject) -> None:
    answer = ask(subject.run).get("/cases.csv?status=EXPLAINED&sev=1")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert answer.headers["content-type"].startswith("text/csv")
    assert {row["sev"] for row in rows} == {"1"}
    assert len(rows) == Run.open(subject.run).manifest["sev"]["1"]
    for row in csv.reader(io.StringIO(ask(hostile).get("/cases.csv?status=").text)):
        assert not [
            cell for cell in row if cell.startswith(("=", "+", "@")) or (cell.startswith("-") and cell[1:2].isalpha())
        ]


def test_a_search_leads_to_the_case_or_to_the_feature(ask: Ask, subject: Subject) -> None:
    browser = ask(subject.run)
    assert browser.get("/find?q=95").headers["location"] == "/decision/95"
    assert browser.get("/find?q=credit+amount").headers["location"] == "/population?feature=amount#cases"
    assert browser.get("/find?q=MONTH").headers["location"] == "/population?feature=months#cases"
    assert browser.get("/find?q=//evil.example").headers["location"] == "/population?missed=%2F%2Fevil.example"


def test_pages_of_the_list_can_be_turned(ask: Ask, subject: Subject) -> None:
    browser = ask(subject.run)
    first, second = (browser.get(f"/population?status=&page={page}").text for page in (1, 2))
    assert 'href="/decision/0"' in first
    assert 'href="/decision/50"' in second
    assert browser.get("/population?status=&page=999").status == 200


def test_groups_are_those_of_the_column_asked_for(ask: Ask, subject: Subject) -> None:
    page = ask(subject.run).get("/population?by=account").text
    assert all(level in page for level in ("below 0", "0 to 200", "above 200"))


def test_one_run_alone_says_how_to_compare(ask: Ask, subject: Subject) -> None:
    page = ask(subject.run).get("/compare").text
    assert "--with OTHER" in page
    assert "mean features changed" in page


def test_two_runs_list_the_decisions_that_changed(ask: Ask, subject: Subject) -> None:
    ours, theirs = (Run.open(path).table() for path in (subject.run, subject.other))
    turned = ours[(ours["status"] == "ALREADY_NEGATIVE") != (theirs["status"] == "ALREADY_NEGATIVE")]["row"].tolist()
    page = ask(subject.run, other=subject.other).get("/compare").text
    assert f"{len(turned)} of {len(ours)} cases have another outcome" in page
    listed = page.partition('id="changed"')[2]
    assert all(f'href="/decision/{row}"' in listed for row in turned)


def test_a_run_without_a_tree_says_so(ask: Ask, subject: Subject) -> None:
    page = ask(subject.run).get("/tree").text
    assert "No tree in this run" in page
    assert "there is no <code>front.csv</code>" in page.lower()


def test_a_page_that_breaks_tells_nothing_of_the_inside(
    ask: Ask, subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fewest.apps.explorer import _app

    def broken(_: Any) -> None:
        raise ZeroDivisionError("the secret")

    monkeypatch.setattr(_app, "_start", broken)
    answer = ask(subject.run).get("/")
    assert answer.status == 500
    assert isinstance(answer.error, ZeroDivisionError)
    assert "The explorer made a mistake" in answer.text
    assert "secret" not in answer.text
    assert answer.headers["content-security-policy"]


@pytest.mark.parametrize("path", [*PAGES, "/decision/0", "/find?q=" + "%3Cscript%3E", "/population?by=%3Cscript%3E"])
def test_no_name_of_the_hostile_run_becomes_markup(ask: Ask, hostile: Path, path: str) -> None:
    browser = ask(hostile, other=hostile)
    answer = browser.get(path)
    page = (browser.follow(answer) if answer.status == 303 else answer).text
    assert problems_of(page) == []


@pytest.mark.parametrize("payload", [payload for payload in PAYLOADS if "<" in payload and "&lt;" not in payload])
def test_a_template_that_does_not_escape_is_caught(payload: str) -> None:
    """Negative control of the test above."""
    from jinja2 import Environment

    careless = Environment(autoescape=True).from_string("<p>{{ name|safe }}</p><p title='{{ name|safe }}'>x</p>")
    careful = Environment(autoescape=True).from_string("<p>{{ name }}</p><p title='{{ name }}'>x</p>")
    assert problems_of(careless.render(name=payload))
    assert problems_of(careful.render(name=payload)) == []


def test_the_explorer_loads_neither_scikit_learn_nor_numba(subject: Subject) -> None:
    code = f"""
import sys
sys.path.insert(0, "tests/support")
from asgi_asking import Browser
from fewest.apps.explorer import create_app
browser = Browser(create_app({str(subject.run)!r}, other={str(subject.other)!r}), "x")
assert all(browser.get(path).status == 200 for path in {PAGES!r})
heavy = ("sklearn", "numba", "scipy", "torch", "matplotlib", "fastapi", "pydantic")
print([name for name in heavy if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a run folder"):
        create_app(tmp_path)


def test_a_run_that_kept_no_cases_still_shows_what_changes(ask: Ask, subject: Subject, tmp_path: Path) -> None:
    from fewest.runs import explain_files

    people(30)[0].to_csv(tmp_path / "cases.csv", index=False)
    explain_files(subject.explainer, tmp_path / "cases.csv", tmp_path / "run", n_jobs=1, keep_cases=False)
    browser = ask(tmp_path / "run")
    row = int(Run.open(tmp_path / "run").table().query("status == 'EXPLAINED'")["row"].iloc[0])
    assert 'id="sentence"' in browser.get(f"/decision/{row}").text
    assert "nothing is known of groups" in browser.get("/population").text


def test_a_run_where_nobody_is_refused_is_not_an_empty_page(ask: Ask, subject: Subject, tmp_path: Path) -> None:
    from fewest.runs import explain_files

    cases, _ = people(400, 1)
    scores = subject.decision.score(cases)
    cases[scores < 0.2][:5].to_csv(tmp_path / "cases.csv", index=False)
    explain_files(subject.explainer, tmp_path / "cases.csv", tmp_path / "run", n_jobs=1)
    browser = ask(tmp_path / "run")
    for path in (*PAGES[:2], "/decision/0", *PAGES[3:]):
        assert browser.get(path).status == 200
    assert "The model accepted this case" in browser.follow(browser.get("/decision")).text


def test_live_scores_what_is_typed(ask: Ask, subject: Subject, live_of: Callable[[Path], Live]) -> None:
    browser = ask(subject.run, live=live_of(subject.run))
    row = int(Run.open(subject.run).table().query("status == 'EXPLAINED'")["row"].iloc[0])
    page = browser.get(f"/decision/{row}").text
    assert "The model predicts bad" in page
    assert page.partition('id="how-much"')[2].partition("</section>")[0].count("<tr>") > 1
    assert browser.get(f"/live/{row}?f0=250&f1=4&f2=75").text.startswith("The model predicts good")
    assert browser.get(f"/live/{row}?f0=lots").text == "credit amount: not a number"
    assert "not a whole number" in browser.get(f"/decision/{row}?f1=3.5").text
    assert browser.get(f"/live/{row}?f1=400").text.startswith("The model predicts bad")


def test_live_explains_again_with_a_feature_held(ask: Ask, subject: Subject, live_of: Callable[[Path], Live]) -> None:
    table = Run.open(subject.run).table().query("status == 'EXPLAINED'")
    row, names = int(table["row"].iloc[0]), table["features"].iloc[0]
    page = ask(subject.run, live=live_of(subject.run)).get(f"/decision/{row}?hold={names[0]}").text
    again = page.partition('id="try"')[2].partition('class="sentence"')[2].partition("</p>")[0]
    assert again
    assert f"{names[0]} had been" not in again


def test_a_model_that_raises_is_named_and_nothing_breaks(ask: Ask, subject: Subject) -> None:
    from dataclasses import replace

    settings = Run.open(subject.run).manifest["settings"]
    live = Live.open(subject.decision, subject.run, settings, "model.skops")

    class Broken:
        def __getattr__(self, name: str) -> Any:
            raise OSError("the disk went away")

    broken = replace(live, explainer=type("E", (), {"decision": Broken(), "schema": live.explainer.schema})())
    answer = ask(subject.run, live=broken).get("/decision/2")
    assert answer.status == 200
    assert "the model cannot score this: OSError: the disk went away" in answer.text


def test_the_manifest_cannot_name_another_kind_of_constraint(subject: Subject) -> None:
    settings = json.loads(json.dumps(Run.open(subject.run).manifest["settings"]))
    settings["constraints"] = [{"kind": "__import__", "name": "os"}]
    with pytest.raises(DataError, match="unknown kind"):
        Live.open(subject.decision, subject.run, settings, "model.skops")


@pytest.mark.parametrize("whole", [True, False])
def test_pages_are_made_while_a_long_download_is(
    ask: Ask, subject: Subject, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    """Three downloads; a page that is asked for meanwhile waits for none of their parts."""

    def slow_parts(view: PopulationView, wanted: Any = None) -> Iterator[bytes]:
        for _ in range(2):
            time.sleep(0.5)
            yield b"part\n"

    monkeypatch.setattr(PopulationView, "csv_parts", slow_parts)
    monkeypatch.setattr(PopulationView, "csv", lambda view, wanted=None: b"".join(slow_parts(view, wanted)))
    monkeypatch.setattr(_app, "WHOLE", 10**6 if whole else 0)
    browser = ask(subject.run)
    browser.get("/population")

    async def both() -> tuple[float, list[bytes]]:
        began = time.monotonic()
        downloads = [asyncio.create_task(browser.asked("GET", "/cases.csv")) for _ in range(3)]
        await asyncio.sleep(0.1)
        assert (await browser.asked("GET", "/population")).status == 200
        seconds = time.monotonic() - began
        return seconds, [(await download).body for download in downloads]

    seconds, bodies = asyncio.run(both())
    assert seconds < 1.2
    assert bodies == [b"part\n" * 2] * 3


def test_a_bar_leads_to_the_cases_it_counts(ask: Any, subject: Subject) -> None:
    browser = ask(subject.run)
    page = browser.get("/population").text
    link = r'<th scope="row"><a href="(/population\?[^"#]*)#cases">([^<]*)</a></th><td class="n">([\d,]+)'
    links = re.findall(link, page)
    assert len(links) >= 3
    for to, name, count in links:
        shown = browser.get(to.replace("&amp;", "&")).text
        assert f"<p>{count} case" in shown, name


def test_the_gauge_says_the_score_the_cut_off_and_where_the_changes_lead(ask: Any, subject: Subject) -> None:
    browser = ask(subject.run)
    page = browser.follow(browser.get("/decision")).text
    (words,) = re.findall(r"<title>The score on its scale</title><desc>([^<]*)</desc>", page)
    assert re.fullmatch(r"this case [\d.]+ %, cut-off 50 %, after the changes [\d.]+ %", words)
