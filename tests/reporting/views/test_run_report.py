"""The report of a run: one page that stands alone, says what must be said, and runs nothing."""

from __future__ import annotations

import base64
import hashlib
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from payloads import STORABLE, escapes

import fewest as fw
from fewest.runs.views import Filter, open_run, report

OLD = Path(__file__).parent / "run-format-1"


@pytest.fixture(scope="module")
def page(told: Any) -> str:
    return report(told.view)


def test_the_page_stands_alone(page: str) -> None:
    assert escapes(page) == []
    assert "<script" not in page
    assert "url(" not in page
    assert not re.search(r"https?://", page)
    assert "prefers-color-scheme: dark" in page


def test_the_policy_allows_the_one_stylesheet_and_nothing_else(page: str) -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", page, flags=re.S)
    known = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{known}'" in page
    assert " style=" not in page


def test_the_page_can_be_printed(page: str) -> None:
    assert "@media print" in page
    assert "break-before: page" in page
    assert page.count('<section class="page">') == 4


def test_everything_that_must_be_said_is_there(told: Any, page: str) -> None:
    for heading in ("What is promised", "Figures", "All explained cases", "By group", "Example decisions",
                    "Who are cases compared with, and who approved it?", "How the cases ended",
                    "What this does not say", "About this run"):  # fmt: skip
        assert f"<h2>{heading}</h2>" in page
    assert told.view.summary in page
    assert page.count("<article>") == 10
    assert "up to 5 drawn at random (seed 0), then up to 5 of the rest with the most features changed" in page
    for row, _ in told.view.survey.examples():
        assert f"<h3>Case {row} " in page
    for name, value in told.view.population.origin.fingerprints:
        assert f'<th scope="row">{name}</th><td><code>{value}' in page
    assert "not signed" in page
    assert page.count("It is not advice and not a cause.") == 2


def test_every_chart_has_its_table(page: str) -> None:
    charts = re.findall(r'<figure class="fw fw-chart">.*?</figure>', page, flags=re.S)
    assert len(charts) == 3
    for chart in charts:
        assert chart.count("<svg") == 1
        assert chart.count("<table") == 1


def test_sentences_of_the_examples_are_those_of_the_run(told: Any, page: str) -> None:
    from markupsafe import escape

    for row, _ in told.view.survey.examples():
        assert f"<blockquote>{escape(str(told.view.population.explanation(row)))}</blockquote>" in page


def test_warnings_come_first(told: Any, page: str) -> None:
    head = page[: page.index("<main>")]
    assert head.count('<p class="warn">') == len(told.view.warnings()) >= 2
    assert "the protected feature &#34;sex&#34;" in head
    answers = [told.view.population.explanation(row) for row, _ in told.view.survey.examples()]
    used = {change.feature for answer in answers for change in answer.changes}
    assert "this set uses a protected feature (sex)" in page or "sex" not in used


def test_hostile_names_levels_titles_and_notes_stay_text(hostile: Path) -> None:
    view = open_run(hostile)
    assert view.explained > 20
    page = report(view)
    assert escapes(page) == []
    assert "<script>" not in page
    for text in STORABLE:
        assert text not in page or not re.search(r"[<>\"']", text), text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "{{ 7 * 7 }}" in page
    assert escapes(report(view, title=STORABLE[1])) == []


def test_statuses_are_listed_with_what_is_known(make: Any) -> None:
    rules = fw.Constraints(*(fw.Immutable(name) for name in ("debt", "rate", "home")))
    view = make(n=100, choices={"constraints": rules}).view
    page = report(view)
    count = view.tally.counts["UNREACHABLE"]
    assert count > 20
    assert "Cases without a proved answer" in page
    assert f"{count - 20} more are among the answers" in page
    assert "Immutable(debt), Immutable(rate), Immutable(home)" in page


def test_nobody_refused_is_said_and_not_drawn(make: Any) -> None:
    told = make(n=40)
    decision = fw.Decision(lambda rows: rows["debt"].to_numpy() * 0.0, positive="refused", threshold=0.6)
    from fewest.runs import explain_files

    folder = told.view.population.path.parent
    explainer = told.explainer.with_(decision=decision)
    run = explain_files(explainer, folder / "cases.parquet", folder / "none", n_jobs=1)
    page = report(open_run(run.path))
    assert "0 of 40 cases were refused: there is nothing to explain." in page
    assert "<svg" not in page
    assert escapes(page) == []


@pytest.mark.parametrize("choices", [{"direction": "plus"}, {"weights": {"debt": 0.5}}], ids=str)
def test_other_questions_are_answered_in_their_own_words(make: Any, choices: dict[str, Any]) -> None:
    view = make(n=80, choices=choices, alternatives=2).view
    page = report(view)
    assert escapes(page) == []
    if "direction" in choices:
        assert "one value alone is enough for the outcome" in page
        assert "(kept)" in page
        assert "Would have been enough" in page
    else:
        assert "no cheaper set does it" in page
        assert "the cheapest set was found" in page
        assert "no smaller" not in page
        assert "smallest set" not in page


def test_with_a_floor_only_credible_sets_are_proved_not_to_do_it(make: Any) -> None:
    known = make(n=60)
    decision, schema = known.explainer.decision, known.explainer.schema
    floor = fw.credibility.supplied(
        decision, known.cases, ["no"] * 60, lambda rows: np.zeros(len(rows)), quantile=0.05, schema=schema
    )
    page = report(make(n=60, choices={"credibility": floor}).view)
    assert "proved: no smaller credible set does it" in page
    assert "no smaller credible set of features does it" in page
    assert "no smaller set" not in page


def test_runs_without_cases_and_of_the_first_format_have_a_report(make: Any) -> None:
    page = report(make(n=60, keep_cases=False).view)
    assert "The cases themselves were not kept" in page
    assert escapes(page) == []
    old = report(open_run(OLD))
    assert escapes(old) == []
    assert "instead of 90" in old


def test_the_page_of_a_wide_table_stays_small(tmp_path: Path) -> None:
    import numpy as np
    import pandas as pd

    from fewest.runs import explain_files

    random = np.random.default_rng(0)
    names = [f"{'<&>' * 60}{j}" for j in range(200)]
    pd.DataFrame(random.normal(size=(20, 200)).round(2), columns=names).to_parquet(tmp_path / "cases.parquet")
    decision = fw.Decision(lambda rows: rows[names[0]].to_numpy() + rows[names[1]].to_numpy(), threshold=0.0)
    refs = fw.references.supplied(decision, pd.DataFrame([[-1.0] * 200], columns=names))
    run = explain_files(fw.Explainer(decision, refs), tmp_path / "cases.parquet", tmp_path / "run", n_jobs=1)
    page = report(open_run(run.path))
    assert escapes(page) == []
    assert len(page.encode()) < 1_500_000


MILLION = """
import resource, sys
from fewest.runs.views import open_run, report
view = open_run(sys.argv[1])
page = report(view)
print(len(page), view.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def repeated(view: Any, times: int, folder: Path) -> Path:
    """A run of many parts that all have the same answers: the reader cannot know that."""
    import json

    from fewest.runs.run_files import MANIFEST, canonical, sealed

    pq = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    folder.mkdir()
    manifest = {name: value for name, value in view.population.manifest.items() if name != "seal"}
    (part,) = manifest["parts"]
    table, rows = pq.read_table(view.population.path / part["table"]["name"]), part["rows"]
    parts = []
    for k in range(times):
        numbers = pa.array(range(k * rows, (k + 1) * rows), pa.int64())
        name = f"part-{k:05d}.parquet"
        pq.write_table(
            table.set_column(table.column_names.index("row"), "row", numbers), folder / name, row_group_size=rows
        )
        (folder / f"part-{k:05d}.cases.parquet").hardlink_to(view.population.path / part["cases"]["name"])
        parts.append(
            {**part, "first": k * rows, "table": {**part["table"], "name": name},
             "cases": {**part["cases"], "name": f"part-{k:05d}.cases.parquet"}}
        )  # fmt: skip
    for name in ("counts", "sev", "features"):
        manifest[name] = {key: count * times for key, count in manifest[name].items()}
    manifest |= {"rows": rows * times, "parts": parts}
    (folder / MANIFEST).write_bytes(canonical(sealed(json.loads(json.dumps(manifest)))))
    (folder / "references.json").hardlink_to(view.population.path / "references.json")
    return folder


def report_in_a_process(folder: Path) -> tuple[int, int, int]:
    """Size of the page, rows of the run, and peak memory in MB."""
    done = subprocess.run([sys.executable, "-c", MILLION, str(folder)], capture_output=True, text=True, check=True)
    size, rows, megabytes = map(int, done.stdout.split())
    return size, rows, megabytes


def test_many_parts_make_one_report(make: Any, tmp_path: Path) -> None:
    view = make(n=500, part_rows=500).view
    folder = repeated(view, 6, tmp_path / "many")
    many = open_run(folder)
    page = report(many)
    assert many.rows == 3000
    assert many.count(Filter(status="EXPLAINED")) == 6 * view.explained
    assert f"{6 * view.against:,} of 3,000 cases" in page
    assert [line.cases for line in many.groups("home")] == [6 * line.cases for line in view.groups("home")]
    assert many.population.explanation(2999).changes == view.population.explanation(499).changes
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 0


@pytest.mark.slow
def test_a_million_cases_take_no_more_memory_than_a_part(make: Any, tmp_path: Path) -> None:
    view = make(n=20_000, part_rows=20_000).view
    _, _, little = report_in_a_process(view.population.path)
    size, rows, much = report_in_a_process(repeated(view, 50, tmp_path / "million"))
    print(f"a report of {rows:,} cases: {size:,} bytes, {much} MB (of one part: {little} MB)")
    assert rows == 1_000_000
    assert size < 400_000
    assert much < little + 100
