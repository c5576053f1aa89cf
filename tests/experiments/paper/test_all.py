"""Everything in one run: shared tables once, resumable, gaps said, failures told after the rest is done."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

from fewest.errors import DataError, MissingExtraError, UsageError
from fewest.experiments import paper
from fewest.experiments.paper import Record, TableColumn, everything, figures, runner
from fewest.experiments.paper.base import Published, Table, Tell, Unit
from fewest.experiments.paper.everything import Plan, Results
from fewest.experiments.paper.runner import compute_unit

pytest.importorskip("matplotlib")


class Plain(Table):
    """A table that costs nothing; units do what `DOES` says."""

    name: ClassVar[str] = "first"
    stored_as: ClassVar[str] = "shared"
    title: ClassVar[str] = "First"
    datasets: ClassVar[tuple[str, ...]] = ("german", "fico")
    methods: ClassVar[tuple[str, ...]] = ("L2LR", "L2LR clusters")
    columns: ClassVar[tuple[TableColumn, ...]] = (TableColumn("sev", "mean SEV"), TableColumn("l_inf", "mean l_inf"))
    published: ClassVar[Published] = {}
    notes: ClassVar[tuple[str, ...]] = ()
    seen: ClassVar[list[tuple[str, str, int]]] = []
    does: ClassVar[dict[tuple[str, str, int], BaseException]] = {}

    def settings(self, dataset: str) -> Mapping[str, Any]:
        return {}

    def cells(self, dataset: str, split: int, tell: Tell) -> list[Record]:
        Plain.seen.append((self.stored_as, dataset, split))
        error = Plain.does.get((self.stored_as, dataset, split))
        if error is not None:
            raise error
        return [Record(dataset, method, {"sev": 1.0 + split, "l_inf": 0.5}) for method in self.methods]


class Second(Plain):
    name: ClassVar[str] = "second"
    title: ClassVar[str] = "Second"


class Third(Plain):
    name: ClassVar[str] = "third"
    stored_as: ClassVar[str] = "alone"
    datasets: ClassVar[tuple[str, ...]] = ("german",)


TABLES = {"first": Plain, "second": Second, "third": Third}


@pytest.fixture(autouse=True)
def _instant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three instant tables, no figures unless a test asks for them."""
    monkeypatch.setattr(paper, "names", lambda: tuple(TABLES))
    monkeypatch.setattr(
        paper, "find", lambda name, folder=None, quick=False, preset=None: TABLES[name](folder, quick, preset)
    )
    monkeypatch.setattr(figures, "names", lambda: ())
    monkeypatch.setattr(everything, "EXAMPLES", "fewest.experiments.paper.no_such_module")
    monkeypatch.setattr(Plain, "seen", [])
    monkeypatch.setattr(Plain, "does", {})


def go(out: Path, datasets: tuple[str, ...] | None = ("german",), **more: Any) -> tuple[Results, list[str]]:
    told: list[str] = []
    results = everything.everything(Plan(out, datasets, **{"splits": 2, **more}), told.append)
    return results, told


def test_every_table_is_measured_and_shared_units_once(tmp_path: Path) -> None:
    results, told = go(tmp_path)
    assert [made.table.name for made in results.tables] == ["first", "second", "third"]
    assert Plain.seen == [
        ("shared", "german", 0),
        ("shared", "german", 1),
        ("alone", "german", 0),
        ("alone", "german", 1),
    ]
    assert results.exit_code == 0
    assert told[0] == "table first (1 of 3)"
    files = {path.name for path in tmp_path.iterdir()}
    assert files == {f"{name}.{kind}" for name in TABLES for kind in ("json", "md")} | {"shared.jsonl", "alone.jsonl"}
    assert json.loads((tmp_path / "first.json").read_text())["lines"][0]["figures"]["sev"]["mean"] == 1.5


def test_a_stopped_run_goes_on_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    Plain.does["shared", "german", 1] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "stopped")
    assert len((tmp_path / "stopped" / "shared.jsonl").read_text().splitlines()) == 1
    Plain.does.clear()
    Plain.seen.clear()
    go(tmp_path / "stopped")
    assert ("shared", "german", 0) not in Plain.seen
    go(tmp_path / "whole")
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (tmp_path / "stopped" / path.name).read_bytes()


@pytest.mark.parametrize("error", [DataError("no rows", do="add some"), ValueError("odd")])
def test_a_unit_that_breaks_is_told_and_the_rest_is_done(tmp_path: Path, error: Exception) -> None:
    Plain.does["shared", "german", 0] = error
    results, told = go(tmp_path)
    assert [what for what, _ in results.failed] == ["table first, german, split 0"]
    assert results.exit_code == getattr(error, "exit_code", 1)
    assert any(line.startswith("german, split 0 failed") for line in told)
    assert [made.lines[0].splits for made in results.tables] == [1, 1, 2]
    assert Plain.seen.count(("shared", "german", 0)) == 1, "what failed in one table is not tried again for its twin"
    Plain.does.clear()
    again, _ = go(tmp_path)
    assert again.exit_code == 0
    assert [made.lines[0].splits for made in again.tables] == [2, 2, 2]
    assert Plain.seen[-1] == ("shared", "german", 0)


def test_a_failed_unit_is_never_stored_as_finished(tmp_path: Path) -> None:
    Plain.does["alone", "german", 1] = ValueError("odd")
    go(tmp_path)
    stored = [json.loads(line) for line in (tmp_path / "alone.jsonl").read_text().splitlines()]
    assert [entry["split"] for entry in stored] == [0]


def test_a_table_of_which_nothing_was_measured_is_not_written(tmp_path: Path) -> None:
    Plain.does["alone", "german", 0] = ValueError("odd")
    results, _ = go(tmp_path, splits=1)
    assert [made.table.name for made in results.tables] == ["first", "second"]
    assert not (tmp_path / "third.md").exists()


def test_a_missing_extra_leaves_the_table_out_and_the_run_ends_well(tmp_path: Path) -> None:
    missing = MissingExtraError("trees need gosdt", do='pip install "fewest[trees]"')
    Plain.does["shared", "german", 0] = missing
    results, told = go(tmp_path)
    assert results.left_out == [
        ("table first", 'trees need gosdt: pip install "fewest[trees]"'),
        ("table second", 'trees need gosdt: pip install "fewest[trees]"'),
    ]
    assert results.exit_code == 0
    assert 'table first is left out: trees need gosdt: pip install "fewest[trees]"' in told
    assert [made.table.name for made in results.tables] == ["third"]


def test_a_table_travels_to_other_processes_and_its_failures_come_home() -> None:
    import pickle

    table = pickle.loads(pickle.dumps(Third()))
    assert table.name == "third"
    Plain.does["alone", "german", 0] = DataError("no rows", do="add some")
    failure = pickle.loads(pickle.dumps(compute_unit(table, Unit("german", 0), print, forgiving=True)[0]))
    assert list(failure) == []
    assert (failure.error.message, failure.error.do, failure.error.exit_code) == ("no rows", "add some", 3)


def test_splits_are_ten_but_few_where_models_are_trained_and_one_when_quick() -> None:
    assert [Plan("x").splits_of(name) for name in ("german", "diabetes")] == [10, 3]
    assert [Plan("x", quick=True).splits_of(name) for name in ("german", "diabetes")] == [1, 1]
    assert [Plan("x", splits=5).splits_of(name) for name in ("german", "diabetes")] == [5, 5]
    for table in ("allopt1", "alloptc", "expo", "counterfactuals"):
        assert [Plan("x").splits_of(name, table) for name in ("german", "diabetes", "mimic")] == [3, 1, 10]
    assert {Plan("x").splits_of("diabetes", name) for name in ("sev1", "sevcf", "trees")} == {3}
    assert Plan("x").splits_of("diabetes", "sevc") == 10  # as on its page line by line


def test_datasets_that_are_not_here_are_left_out_unless_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FEWEST_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    results, _ = go(tmp_path / "run", None)
    assert [what for what, _ in results.left_out] == ["dataset fico"]
    assert {dataset for _, dataset, _ in Plain.seen} == {"german"}
    with pytest.raises(DataError, match="fico"):
        go(tmp_path / "run", ("fico",))
    with pytest.raises(UsageError, match="atlantis"):
        go(tmp_path / "run", ("atlantis",))


def test_a_place_that_is_a_file_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="a folder cannot be made here"):
        go(tmp_path / "file")
    assert Plain.seen == []


def test_figures_are_drawn_from_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fewest.experiments.paper.figures.table_figures import ClosenessFigure, CredibilityFigure

    class Shown(ClosenessFigure):
        tables: ClassVar[tuple[str, ...]] = ("first",)

    kinds = {"closeness": Shown, "credibility": CredibilityFigure}
    monkeypatch.setattr(figures, "names", lambda: tuple(kinds))
    monkeypatch.setattr(figures, "find", lambda name, folder=None, quick=False: kinds[name](folder, quick))
    results, _ = go(tmp_path)
    assert [made.figure.name for made in results.drawn] == ["closeness"]
    assert results.drawn[0].drawing.numbers["sev"].tolist() == [1.5, 1.5]
    assert results.left_out == [("figure credibility", "it shows sev1, sevc, sevcf, which were not measured")]
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {f"closeness.{k}" for k in ("svg", "png", "csv")}


def test_without_matplotlib_figures_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fewest.experiments.paper.figures.model_figures import RegionsFigure

    monkeypatch.setattr(figures, "names", lambda: ("regions",))
    monkeypatch.setattr(figures, "find", lambda name, folder=None, quick=False: RegionsFigure(folder, quick))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    results, _ = go(tmp_path)
    assert results.left_out == [("figure regions", 'figures need matplotlib: pip install "fewest[plots]"')]
    assert results.exit_code == 0


def test_single_cases_are_written_where_their_module_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("fewest.experiments.paper.cases_for_tests")
    module.__spec__ = SimpleNamespace()  # type: ignore[assignment]
    made = SimpleNamespace(text=lambda: "case 7", as_markdown=lambda: "# case 7\n", as_dict=lambda: {"case": 7})
    module.examples = lambda dataset, folder, quick: made  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(everything, "EXAMPLES", module.__name__)
    results, _ = go(tmp_path)
    assert results.shown[0].text == "case 7"
    assert json.loads((tmp_path / "examples-german.json").read_text()) == {"case": 7}


def test_something_happens_after_each_step(tmp_path: Path) -> None:
    seen: list[int] = []
    everything.everything(Plan(tmp_path, ("german",), 1), after_each=lambda so_far: seen.append(len(so_far.tables)))
    assert seen == [1, 2, 3]


class Beside(Third):
    """A table whose lines of the paper's procedure are measured apart."""

    presets: ClassVar[tuple[str, ...]] = ("paper",)
    beside: ClassVar[tuple[str, ...]] = ("paper",)

    def settings(self, dataset: str) -> Mapping[str, Any]:
        return {"preset": self.preset}

    def cells(self, dataset: str, split: int, tell: Tell) -> list[Record]:
        if self.preset == "paper" and Plain.does:
            raise MissingExtraError("maps need a package", do="get it")
        method = "L2LR clusters" if self.preset == "paper" else "L2LR"
        Plain.seen.append((method, dataset, split))
        return [Record(dataset, method, {"sev": 2.0})]


def test_lines_that_a_preset_alone_measures_are_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLES, "third", Beside)
    results, _ = go(tmp_path)
    assert [(line.method, line.splits) for line in results.tables[2].lines] == [("L2LR", 2), ("L2LR clusters", 2)]
    seen = list(Plain.seen)
    go(tmp_path)
    assert Plain.seen == seen, "their units are kept as well"


def test_a_package_that_a_preset_alone_needs_leaves_the_other_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TABLES, "third", Beside)
    monkeypatch.setattr(Plain, "does", {("no", "unit", 0): KeyError()})
    results, _ = go(tmp_path)
    assert [line.method for line in results.tables[2].lines] == ["L2LR"]
    assert results.left_out == [("table third, paper's procedure", "maps need a package: get it")]
    assert results.failed == []


def test_the_page_says_what_takes_longest_and_a_resumed_run_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter(range(0, 100_000, 120))
    monkeypatch.setattr(runner.os, "times", lambda: (float(next(ticks)), 0.0, 0.0, 0.0, 0.0))
    results, _ = go(tmp_path)
    assert results.seconds == {"shared": 240.0, "alone": 240.0}, "two units each, and shared ones once"
    assert go(tmp_path)[0].seconds == results.seconds
    results.seconds["figure small"] = 20.0
    results.seconds["alone"] = 60.0
    assert everything.time_sentence(results) == "Minutes of one core, in all 5: shared 4, alone 1"
    assert everything.time_sentence(Results()) == "Minutes of one core: less than one each"
