"""What is shown of a run is what is in it: every list, figure and draw against a plain count over the whole table."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewest as fw
from fewest.errors import DataError, UsageError
from fewest.references.audit import audit
from fewest.references.file import read_saved
from fewest.reporting import html
from fewest.reporting.audit_page import lines
from fewest.reporting.views._groups import often
from fewest.reporting.views._index import SURVEYED, Survey, distances, tickets
from fewest.reporting.views._view import CSV_COLUMNS
from fewest.results.drawing import Bar
from fewest.results.explanation import Status
from fewest.runs import Run, explain_files
from fewest.runs.views import SORTS, Filter, as_csv, defused, open_run, report
from fewest.tables.closeness import feature_distances

OLD = Path(__file__).parent / "run-format-1"


def test_counts_and_bars_are_those_of_the_table(told: Any) -> None:
    view, table = told.view, told.view.population.table()
    explained = table[table["status"] == "EXPLAINED"]
    assert view.explained == len(explained) > 50
    assert view.against == (table["status"] != "ALREADY_NEGATIVE").sum()
    sizes = explained["sev"].value_counts().sort_index()
    assert [bar.count for bar in view.sev_bars().bars] == sizes.tolist()
    assert sum(bar.share for bar in view.sev_bars().bars) == pytest.approx(1)
    used = explained["features"].explode().value_counts()
    bars = {bar.name: bar for bar in view.feature_bars().bars}
    assert bars["Debt, in thousands"].count == used["debt"]
    assert bars["sex"].note == "protected"
    assert {name: bar.count for name, bar in bars.items()} == {
        view.titles[str(name)]: count for name, count in used.items()
    }
    assert view.figures()["mean features changed"] == pytest.approx(explained["sev"].astype(float).mean())


@pytest.mark.parametrize(
    "wanted",
    [
        Filter(), Filter(status="EXPLAINED"), Filter(status="AGAINST"), Filter(sev=2), Filter(feature="home"),
        Filter(feature="home", sev=1), Filter(reference="r1"), Filter(feature="no such"), Filter(status="BUDGET"),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("sort", ["row", "-sev", "score", "-closeness", "margin"])
def test_lists_hold_what_fits_in_the_order_asked_for(told: Any, wanted: Filter, sort: str) -> None:
    table = told.view.population.table()
    fits = np.ones(len(table), dtype=bool)
    if wanted.status == "AGAINST":
        fits &= table["status"] != "ALREADY_NEGATIVE"
    elif wanted.status:
        fits &= table["status"] == wanted.status
    if wanted.sev is not None:
        fits &= table["sev"].fillna(0) == wanted.sev
    if wanted.feature:
        fits &= np.array([wanted.feature in names for names in table["features"]])
    if wanted.reference:
        fits &= table["reference"] == wanted.reference
    column = {"closeness": "l_inf"}.get(sort.removeprefix("-"), sort.removeprefix("-"))
    figures = table[column].astype(float).fillna(0 if column == "sev" else np.nan)
    kept = table.assign(figure=-figures if sort.startswith("-") else figures)[fits]
    expected = kept.sort_values(["figure", "row"], na_position="last")["row"].tolist()
    pages = [told.view.cases(wanted, sort, page, size=40) for page in range(1, 10)]
    assert [line.row for page in pages for line in page] == expected
    assert told.view.count(wanted) == len(expected)
    for line in pages[0][:5]:
        known = table.iloc[line.row]
        assert line.status == known["status"]
        assert line.features == tuple(told.view.titles[name] for name in known["features"])


def test_orders_and_pages_that_do_not_exist_are_refused(told: Any) -> None:
    with pytest.raises(UsageError, match="no order"):
        told.view.cases(sort="name; drop table")
    with pytest.raises(UsageError, match="page 0"):
        told.view.cases(page=0)
    assert told.view.cases(page=10_000) == []
    for sort in SORTS:
        assert len(told.view.cases(sort=sort)) == 50


def test_neighbours_are_the_cases_decided_against(told: Any) -> None:
    against = [line.row for line in told.view.cases(Filter(status="AGAINST"), size=1000)]
    for row in range(0, 300, 7):
        before = [other for other in against if other < row]
        after = [other for other in against if other > row]
        assert told.view.neighbours(row) == (before[-1] if before else None, after[0] if after else None)


def test_draws_depend_on_the_seed_and_not_on_how_the_table_was_cut(make: Any, told: Any) -> None:
    whole = make(part_rows=1000, alternatives=3, title="Debts").view
    assert whole.survey.examples() == told.view.survey.examples()
    assert whole.survey.drawn["row"].tolist() == told.view.survey.drawn["row"].tolist()
    assert whole.closeness_points(50) == told.view.closeness_points(50)
    other = Survey.of(told.view.population.tables(SURVEYED), random_state=1)
    assert other.examples() != told.view.survey.examples()


def test_examples_are_five_drawn_and_the_five_hardest_of_the_rest(told: Any) -> None:
    table = told.view.population.table().set_index("row")
    chosen = told.view.survey.examples()
    rows = [row for row, _ in chosen]
    assert len(set(rows)) == 10
    assert [why for _, why in chosen] == ["drawn at random"] * 5 + ["most features changed"] * 5
    rest = table[(table["status"] == "EXPLAINED") & ~table.index.isin(rows[:5])]
    hardest = rest.sort_values("sev", ascending=False, kind="stable").index[:5]
    assert rows[5:] == hardest.tolist()


def test_a_draw_takes_every_row_as_often_as_any_other() -> None:
    """A thousand draws of five among sixty: each row comes up about 83 times."""
    counts = np.zeros(60)
    for seed in range(1000):
        counts[np.argsort(tickets(np.arange(60), seed))[:5]] += 1
    assert 40 < counts.min() <= counts.max() < 130


def test_points_are_as_far_as_the_changes_say(told: Any) -> None:
    scale = {feature.name: feature.scale for feature in told.view.population.schema.features if feature.is_numeric}
    for point in told.view.closeness_points(30):
        answer = told.view.population.explanation(int(point.label.removeprefix("case ")))
        far = sum(
            abs(change.after - change.before) / scale[change.feature]
            if change.feature in scale and change.before is not None
            else 1.0
            for change in answer.changes
        )
        assert point.x == pytest.approx(far)
        assert point.y == answer.margin
        assert point.group.startswith(str(answer.sev))


@pytest.mark.parametrize("direction", ["minus", "plus"])
def test_distances_are_those_the_explainer_measures_by(tmp_path: Path, direction: Any) -> None:
    """Dates, numbers, levels, groups of columns and missing values; the oracle is `feature_distances`."""
    random = np.random.default_rng(0)
    cases = pd.DataFrame(
        {
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(random.integers(0, 900, 120), "D"),
            "debt": np.where(random.random(120) < 0.2, np.nan, random.integers(0, 100, 120)),
            "home": random.choice(["own", "rent"], 120),
            "own": random.integers(0, 2, 120),
            "x": random.integers(0, 9, 120),
            "y": random.integers(0, 9, 120),
        }
    ).assign(rent=lambda rows: 1 - rows["own"])
    cases.to_parquet(tmp_path / "cases.parquet")
    start = pd.Timestamp("2026-01-01")

    def score(rows: pd.DataFrame) -> np.ndarray:
        days = (rows["day"] - start) / pd.Timedelta(days=900)
        parts = days + rows["debt"].fillna(90) / 100 + 0.3 * (rows["home"] == "rent") + 0.3 * rows["rent"]
        return np.asarray(parts + (rows["x"] + rows["y"]) / 20, dtype=float)

    decision = fw.Decision(score, positive="refused", threshold=1.2)
    schema = fw.Schema.infer(cases, groups={"flat": ["own", "rent"], "place": ["x", "y"]})
    goal = {"day": [start], "debt": [5.0], "home": ["own"], "own": [1], "rent": [0], "x": [1], "y": [2]}
    refs = fw.references.supplied(decision, pd.DataFrame(goal), schema=schema)
    explainer = fw.Explainer(decision, refs, n_jobs=1, direction=direction)
    run = explain_files(explainer, tmp_path / "cases.parquet", tmp_path / "run", n_jobs=1)
    out = explainer.explain(cases)
    moved = out.answers.moved
    steps = feature_distances(schema, out.frame, refs.frame, np.zeros(len(cases), dtype=int))
    rows = np.flatnonzero(moved.any(axis=1)).tolist()
    assert moved.any(axis=0).all()
    far = distances(run, rows)
    assert [far[row] for row in rows] == pytest.approx((steps * moved).sum(axis=1)[rows].tolist())


@pytest.mark.parametrize("column", ["home", "sex"])
def test_groups_are_those_of_a_plain_count(told: Any, column: str) -> None:
    table = told.view.population.table()
    lines = {line.name: line for line in told.view.groups(column)}
    assert set(lines) == set(told.cases[column])
    for level, line in lines.items():
        mine = table[(told.cases[column] == level).to_numpy()]
        sev = mine.loc[mine["status"] == "EXPLAINED", "sev"].astype(float)
        assert (line.cases, line.explained) == (len(mine), len(sev))
        assert line.mean_sev == pytest.approx(sev.mean())
        assert line.high - line.low == pytest.approx(2 * 1.96 * sev.std() / np.sqrt(len(sev)))


def test_numbers_are_grouped_by_quarters_and_nobody_is_lost(told: Any) -> None:
    lines = told.view.groups("age")
    assert [line.name for line in lines][-1] == "missing"
    assert sum(line.cases for line in lines) == 300
    assert len(lines) == 5
    assert lines[0].name.startswith("up to ")
    with pytest.raises(UsageError, match="no feature"):
        told.view.groups("<script>")


def test_a_level_that_looks_like_a_number_is_quoted_as_it_is_in_a_notebook(tmp_path: Path) -> None:
    decision = fw.Decision(lambda rows: (rows["code"] == "48").to_numpy(dtype=float), positive="bad")
    refs = fw.references.supplied(decision, {"code": ["missing"]}, X=pd.DataFrame({"code": ["48", "missing"]}))
    cases = pd.DataFrame({"code": ["48"]})
    cases.to_parquet(tmp_path / "cases.parquet")
    explainer = fw.Explainer(decision, refs, n_jobs=1)
    out = explainer.explain(cases)
    view = open_run(explain_files(explainer, tmp_path / "cases.parquet", tmp_path / "run", n_jobs=1).path)
    for page in (out[0]._repr_html_(), html(out), report(view), str(view.case(0).table())):
        assert "&#39;48&#39;" in page.partition("<table")[2]
        assert "&#39;missing&#39;" in page.partition("<table")[2]
        assert "<td>48</td>" not in page
        assert "<td>missing</td>" not in page
    assert view.references()[0].rows == (("code", "'missing'"),)
    assert lines(audit(refs.saved()), refs.names[0])[0].value == "'missing'"


def test_a_case_shows_all_features_and_withholds_protected_ways(told: Any) -> None:
    seen = 0
    for row in range(0, 300, 3):
        view = told.view.case(row)
        assert [line.feature for line in view.rows] == ["Debt, in thousands (DM)", *list(told.view.titles.values())[1:]]
        assert sum(line.changed for line in view.rows) == len(view.answer.changes)
        assert all("sex" not in {change.feature for change in changes} for changes in view.others)
        listed = len(view.answer.alternatives)
        assert len(view.others) + view.withheld == max(0, listed - 1)
        seen += view.withheld
        assert view.protected == tuple(c.feature for c in view.answer.changes if c.feature == "sex")
    assert seen > 0


def test_the_cube_is_drawn_only_where_the_proof_covers_it(make: Any, told: Any) -> None:
    rows = [line.row for line in told.view.cases(Filter(sev=2))]
    assert "<svg" in str(told.view.case(rows[0]).cube())
    one = told.view.cases(Filter(sev=1))[0].row
    assert told.view.case(one).cube() is None
    linked = make(n=80, choices={"constraints": fw.Constraints(fw.Linked("debt", "rate"))}).view
    assert all(not linked.case(line.row).has_cube for line in linked.cases(Filter(status="EXPLAINED")))


def test_the_cube_says_what_the_model_does(told: Any) -> None:
    """Every subset of a drawn set, asked of the model itself."""
    from itertools import combinations

    typical = told.explainer.references.frame.iloc[0]
    for line in told.view.cases(Filter(sev=2))[:10] + told.view.cases(Filter(sev=3))[:10]:
        answer = told.view.case(line.row).answer
        names = [change.feature for change in answer.changes]
        for size in range(len(names) + 1):
            for subset in combinations(names, size):
                row = told.cases.iloc[[line.row]].copy()
                for name in subset:
                    row[name] = typical[name]
                turned = told.explainer.decision.score(row)[0] < told.explainer.decision.cut
                assert turned == (len(subset) == len(names))


def test_warnings_name_what_is_used_too_often_and_what_is_protected(told: Any) -> None:
    said = told.view.warnings()
    assert sum("protected feature" in text and '"sex"' in text for text in said) == 1
    assert any("Nobody has signed off" in text for text in said)
    shares = {bar.name: bar.share for bar in told.view.feature_bars().bars}
    for name, share in shares.items():
        assert any(text.startswith(f'"{name}" is in') for text in said) == (share > 0.5)
    assert often([Bar("a", 50, 0.5)], 100) == []
    assert len(often([Bar("a", 51, 0.51)], 100)) == 1


def test_a_run_that_needs_no_warning_has_none(make: Any) -> None:
    """Negative control: with the protected feature fixed, and references signed, only frequency is left."""
    told = make(n=60, choices={"constraints": fw.Constraints(fw.Immutable("sex"))})
    references = told.explainer.references.sign_off("Credit Risk", note="looked at")
    explainer = told.explainer.with_(references=references)
    folder = told.view.population.path.parent
    view = open_run(explain_files(explainer, folder / "cases.parquet", folder / "signed", n_jobs=1).path)
    assert all("is in" in text for text in view.warnings())
    (reference,) = view.references()
    assert reference.is_signed
    assert reference.signature.startswith("signed by Credit Risk on ")
    assert reference.note == "looked at"
    assert reference.used == view.against


def test_a_signature_is_void_when_a_value_was_changed(make: Any) -> None:
    told = make(n=40)
    path = told.view.population.path / "references.json"
    read_saved(path).sign("Risk").write(path)
    content = json.loads(path.read_text())
    assert open_run(told.view.population.path).references()[0].is_signed
    content["references"][0]["values"]["debt"] = 31
    path.write_text(json.dumps(content))
    (reference,) = open_run(told.view.population.path).references()
    assert not reference.is_signed
    assert reference.broken == ("debt",)


@pytest.mark.parametrize(
    ("text", "safe"),
    [("=1+1", False), ("+1", True), ("-3.5e-7", True), ("-", False), ("@sum(a)", False), ("\tx", False),
     ("\rx", False), ("-1+1", False), ("+49 30 1", False), ("rent", True), ("", True), ("a=b", True),
     ("--1", False), ("-1|calc", False), ("-inf", False), ("\uff1d1", False)],
)  # fmt: skip
def test_cells_that_begin_a_formula_are_defused_and_numbers_are_not(text: str, safe: bool) -> None:
    assert defused(text) == (text if safe else f"'{text}")


def test_csv_parsed_back_holds_the_answers(told: Any) -> None:
    text = told.view.csv().decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    table = told.view.population.table()
    assert tuple(rows[0]) == tuple(name for name in CSV_COLUMNS if name != "label")
    assert len(rows) == len(table)
    for row, known in zip(rows, table.to_dict("records"), strict=True):
        assert int(row["row"]) == known["row"]
        assert row["status"] == known["status"]
        assert json.loads(row["features"]) == known["features"]
        assert json.loads(row["to"]) == known["to"]
        assert float(row["score"]) == known["score"]
        if known["features"]:
            assert float(row["margin"]) == known["margin"]
    some = list(csv.DictReader(io.StringIO(told.view.csv(Filter(sev=2)).decode())))
    assert [int(row["row"]) for row in some] == table.loc[(table["sev"] == 2).fillna(False), "row"].tolist()
    assert told.view.csv(Filter(feature="none")).decode().count("\n") == 1


def test_no_cell_of_a_hostile_run_begins_a_formula(hostile: Path) -> None:
    text = open_run(hostile).csv().decode()
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert not [cell for cell in cells if cell != defused(cell)]
    table = pd.DataFrame({"row": [1], "margin": [-0.25], "reference": ["=cmd()"], "features": [["=a"]]})
    assert as_csv(table, header=False) == b'1,-0.25,\'=cmd(),"[""=a""]"\n'


def test_a_run_without_cases_shows_what_changed(make: Any) -> None:
    told = make(n=60, keep_cases=False)
    line = told.view.cases(Filter(status="EXPLAINED"))[0]
    view = told.view.case(line.row)
    assert [row.changed for row in view.rows] == [True] * len(view.answer.changes)
    assert told.view.groups("home") == []


def test_a_folder_of_the_first_format_is_still_read() -> None:
    view = open_run(OLD)
    assert view.population.manifest["format"] == 1
    assert view.rows == 4
    assert view.summary == "3 of 4 cases were predicted bad; for 33 % one feature changes the outcome."
    answer = view.population.explanation(1)
    assert str(answer) == (
        "If debt had been 70 instead of 90 and home had been 'own' instead of 'rent', "
        "the model would have predicted not bad (bad: 0.700 instead of 1.000)."
    )
    assert [fact.feature for fact in answer.facts] == ["debt", "home"]
    assert view.case(2).answer.status is Status.EXPLAINED
    assert view.title == "run-format-1"


def test_a_folder_of_a_later_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"kind": "fewest run", "format": 99}))
    with pytest.raises(DataError, match="not the manifest of a run this version reads"):
        open_run(tmp_path)


def test_fingerprints_are_those_of_the_files(told: Any) -> None:
    from fewest.runs.storage import file_digest

    known = dict(told.view.population.origin.fingerprints)
    assert known["references"] == file_digest(told.view.population.path / "references.json")
    assert known["data"].startswith(file_digest(told.view.population.path.parent / "cases.parquet"))
    assert known["version of fewest"] == fw.__version__
    assert known["settings"] != dict(open_run(OLD).population.origin.fingerprints)["settings"]


def test_a_part_that_cannot_be_read_is_named(make: Any) -> None:
    told = make(n=30)
    for path in told.view.population.path.glob("part-*.parquet"):
        path.write_bytes(b"rotten")
    with pytest.raises(DataError, match=r"part-00000\.(cases\.)?parquet cannot be read"):
        Run.open(told.view.population.path).explanation(3)
