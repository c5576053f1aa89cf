import json
import math
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

import fewest.experiments.paper.models as models_module
import fewest.experiments.paper.runner as runner_module
from fewest import references
from fewest.errors import DataError, FewestError, UsageError
from fewest.experiments.paper import (
    FileStore,
    Printed,
    Record,
    Store,
    TableColumn,
    Unit,
    as_markdown,
    as_text,
    find,
    run_table,
    summarise,
)
from fewest.experiments.paper import find as paper_find
from fewest.experiments.paper.base import Published, Table, Tell, fingerprint
from fewest.experiments.paper.runner import compute_unit
from fewest.references.clusters import DEFAULTS


@dataclass(frozen=True)
class Sums(Table):
    """A table that can be computed in one's head, and stops where it is told to."""

    name: ClassVar[str] = "sums"
    stored_as: ClassVar[str] = "sums"
    title: ClassVar[str] = "Sums"
    datasets: ClassVar[tuple[str, ...]] = ("german", "mimic_demo")
    methods: ClassVar[tuple[str, ...]] = ("plus", "times")
    columns: ClassVar[tuple[TableColumn, ...]] = (TableColumn("value", "value", 2), TableColumn("none", "none"))
    published: ClassVar[Published] = {("german", "plus"): {"value": Printed(12.0, 0.5)}}
    notes: ClassVar[tuple[str, ...]] = ("A note.",)

    step: int = 10
    stop_at: int | None = None
    seen: list[Unit] = field(default_factory=list, compare=False)

    def settings(self, dataset: str) -> Mapping[str, Any]:
        return {"step": self.step}

    def cells(self, dataset: str, split: int, tell: Tell) -> list[Record]:
        if len(self.seen) == self.stop_at:
            raise KeyboardInterrupt
        self.seen.append(Unit(dataset, split))
        tell(f"summing {split}")
        return [
            Record(dataset, "plus", {"value": float(split + self.step), "none": float("nan")}),
            Record(dataset, "times", {"value": float(split * self.step)}),
        ]


def measure(table: Sums, folder: Path, splits: int = 5) -> list[Record]:
    return run_table(table, ["german"], splits, FileStore(folder, table.name))


def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        measure(Sums(stop_at=2), tmp_path / "killed")
    finished = (tmp_path / "killed" / "sums.jsonl").read_bytes()
    assert finished.count(b"\n") == 2
    resumed = Sums()
    records = measure(resumed, tmp_path / "killed")
    assert resumed.seen == [Unit("german", split) for split in (2, 3, 4)]
    whole = measure(Sums(), tmp_path / "whole")
    assert (tmp_path / "killed" / "sums.jsonl").read_bytes() == (tmp_path / "whole" / "sums.jsonl").read_bytes()
    assert (tmp_path / "killed" / "sums.jsonl").read_bytes().startswith(finished)
    assert repr(records) == repr(whole)


def test_a_finished_run_computes_nothing_again(tmp_path: Path) -> None:
    first = measure(Sums(), tmp_path)
    again = Sums(stop_at=0)
    assert repr(measure(again, tmp_path)) == repr(first)
    assert again.seen == []
    more = Sums()
    measure(more, tmp_path, splits=7)
    assert more.seen == [Unit("german", 5), Unit("german", 6)]


@pytest.mark.parametrize("change", [{"step": 11}, {"quick": True}])
def test_other_settings_do_not_take_over_records(tmp_path: Path, change: dict[str, Any]) -> None:
    measure(Sums(), tmp_path)
    other = Sums(**change)
    assert measure(other, tmp_path)[0].figures["value"] == other.step
    assert len(other.seen) == 5
    assert fingerprint(other, "german") != fingerprint(Sums(), "german")
    back = Sums()
    measure(back, tmp_path)
    assert back.seen == []


def test_another_version_or_edition_of_the_data_does_not_take_over_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure(Sums(), tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(runner_module, "__version__", "0.0.0")
        older = Sums()
        measure(older, tmp_path)
        assert len(older.seen) == 5
    monkeypatch.setattr("fewest.experiments.paper.base.checksum", lambda name, folder: "other bytes")
    changed = Sums()
    measure(changed, tmp_path)
    assert len(changed.seen) == 5


def test_half_a_line_at_the_end_is_cut_off_and_computed_again(tmp_path: Path) -> None:
    measure(Sums(), tmp_path / "whole")
    whole = (tmp_path / "whole" / "sums.jsonl").read_bytes()
    torn = tmp_path / "torn" / "sums.jsonl"
    torn.parent.mkdir()
    torn.write_bytes(whole[:-7])
    resumed = Sums()
    measure(resumed, torn.parent)
    assert resumed.seen == [Unit("german", 4)]
    assert torn.read_bytes() == whole


def test_a_line_that_is_no_record_is_named(tmp_path: Path) -> None:
    measure(Sums(), tmp_path, splits=1)
    with (tmp_path / "sums.jsonl").open("a") as file:
        file.write('{"dataset": "german"}\n')
    with pytest.raises(DataError, match=r"sums\.jsonl, line 2"):
        FileStore(tmp_path, "sums")


def test_what_is_not_a_number_is_null_in_the_file_and_missing_in_the_table(tmp_path: Path) -> None:
    records = measure(Sums(), tmp_path, splits=1)
    entry = json.loads((tmp_path / "sums.jsonl").read_text())
    assert entry["records"][0] == {"method": "plus", "figures": {"value": 10.0, "none": None}}
    assert set(entry) == {"dataset", "split", "fingerprint", "version", "records", "seconds"}
    lines = summarise(Sums(), records)
    assert lines[0].cells["none"].count == 0


def test_a_units_seconds_are_those_computed_by_it_and_its_processes_not_those_waited() -> None:
    class Waiting(Sums):
        def cells(self, dataset: str, split: int, tell: Tell) -> list[Record]:
            time.sleep(0.4)
            return []

    class Starting(Sums):
        def cells(self, dataset: str, split: int, tell: Tell) -> list[Record]:
            code = "import time\nwhile time.process_time() < 0.4: pass"
            subprocess.run([sys.executable, "-c", code], check=True)
            return []

    idle, busy = (compute_unit(table, Unit("german", 0), print, False)[1] for table in (Waiting(), Starting()))
    assert idle < 0.2 < busy


@pytest.mark.slow
def test_nets_of_a_unit_are_trained_on_one_thread() -> None:
    """In a process of its own: torch counts its threads when it is imported, which it may have been here."""
    pytest.importorskip("torch")
    code = """
from types import SimpleNamespace
from fewest.experiments.paper.base import Unit
from fewest.experiments.paper.runner import compute_unit
def cells(dataset, split, tell):
    import torch
    print(torch.get_num_threads())
    return []
compute_unit(SimpleNamespace(cells=cells), Unit("german", 0), print, False)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"]


def test_a_unit_of_before_that_does_not_say_its_seconds_is_read(tmp_path: Path) -> None:
    records = measure(Sums(), tmp_path, splits=1)
    path, unit = tmp_path / "sums.jsonl", Unit("german", 0)
    assert FileStore(tmp_path, "sums").seconds(Sums(), unit) == 0
    entry = json.loads(path.read_text())
    del entry["seconds"]
    path.write_text(json.dumps(entry) + "\n")
    store = FileStore(tmp_path, "sums")
    assert [record.method for record in store.get(Sums(), unit) or ()] == [record.method for record in records]
    assert math.isnan(store.seconds(Sums(), unit))


def test_progress_names_every_unit_and_how_many_were_there_before(tmp_path: Path) -> None:
    told: list[str] = []
    measure(Sums(), tmp_path, splits=1)
    run_table(Sums(), ["german"], 2, FileStore(tmp_path, "sums"), tell=told.append)
    assert told[0] == "1 of 2 units are finished already"
    assert told[1] == "summing 1"
    assert told[2].startswith("sums  1/1  german, split 1: ")


def test_a_dataset_that_is_not_here_is_told_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FEWEST_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    table = Sums()
    with pytest.raises(DataError, match="FEWEST_DATA"):
        run_table(table, ["german", "mimic_demo"], 1, Store())
    assert table.seen == []


@pytest.mark.parametrize(
    ("datasets", "splits", "jobs", "said"),
    [(["atlantis"], 1, 1, "no dataset"), (["german"], 0, 1, "0 splits"), (["german"], 1, 0, "0 jobs")],
)
def test_runs_that_make_no_sense_are_refused(datasets: list[str], splits: int, jobs: int, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        run_table(Sums(), datasets, splits, Store(), n_jobs=jobs)


def test_each_dataset_may_have_its_own_number_of_splits() -> None:
    class ByUnit(Store):
        """Asks no data for their checksum."""

        def __init__(self) -> None:
            self.kept: dict[Unit, tuple[Record, ...]] = {}

        def get(self, table: Table, unit: Unit) -> tuple[Record, ...] | None:
            return self.kept.get(unit)

        def put(self, table: Table, unit: Unit, records: Sequence[Record]) -> None:
            self.kept[unit] = tuple(records)

    table, wanted = Sums(), {"german": 1, "mimic_demo": 2}
    records = run_table(table, list(wanted), wanted, ByUnit())
    assert table.seen == [Unit("german", 0), Unit("mimic_demo", 0), Unit("mimic_demo", 1)]
    assert len(records) == 2 * len(table.seen)
    with pytest.raises(UsageError, match="make no run"):
        run_table(table, ["german"], {"german": 0}, ByUnit())


def test_a_place_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="a folder cannot be made here"):
        FileStore(tmp_path / "file", "sums")


@pytest.mark.slow
def test_two_jobs_give_the_records_of_one(tmp_path: Path) -> None:
    pytest.importorskip("gosdt")
    pytest.importorskip("praxis")
    table = find("trees", quick=True)
    alone = run_table(table, ["german"], 2, FileStore(tmp_path / "one", "trees"))
    together = run_table(table, ["german"], 2, FileStore(tmp_path / "two", "trees"), n_jobs=2)
    assert repr(together) == repr(alone)
    texts = [(tmp_path / name / "trees.jsonl").read_text() for name in ("one", "two")]
    one, two = (sorted(line.partition(', "seconds"')[0] for line in text.splitlines()) for text in texts)
    assert one == two


DYING = """
import os, sys
sys.path.insert(0, {folder!r})
from dying import Dying
from fewest.errors import FewestError
from fewest.experiments.paper import Store, run_table
if __name__ == "__main__":
    try:
        run_table(Dying(), ["german"], 2, Store(), n_jobs=2)
    except FewestError as error:
        print(error)
"""


@pytest.mark.slow
def test_a_process_killed_from_outside_is_an_error_and_not_a_wait(tmp_path: Path) -> None:
    (tmp_path / "dying.py").write_text(
        "import os\nfrom fewest.experiments.paper.trees import TreesTable\n"
        "class Dying(TreesTable):\n    def cells(self, dataset, split, tell):\n        os._exit(9)\n"
    )
    script = tmp_path / "main.py"
    script.write_text(DYING.format(folder=str(tmp_path)))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert "a process was killed from outside" in done.stdout
    assert FewestError.exit_code == 1


def test_means_spreads_and_differences_are_those_of_the_splits() -> None:
    lines = summarise(Sums(), run_table(Sums(), ["german"], 3, Store()))
    assert [(line.method, line.splits) for line in lines] == [("plus", 3), ("times", 3)]
    cell = lines[0].cells["value"]
    assert (cell.mean, cell.sd, cell.count, cell.difference) == (11.0, 1.0, 3, -1.0)
    assert lines[1].cells["value"].paper is None
    text = as_text(Sums(), lines).splitlines()
    assert text[2].split() == ["dataset", "method", "splits", "value", "printed", "diff", "none"]
    assert text[4].split() == ["german", "plus", "3", "11.00", "±", "1.00", "12.00", "-1.00", "-"]
    assert text[5].split() == ["german", "times", "3", "10.00", "±", "10.00", "-", "-", "-"]
    assert "A note." in text
    assert text[-1].startswith("Settings, german: ")
    assert "12.00 ± 0.50 | -1.00" in as_markdown(Sums(), lines)


UNITS = Path(__file__).parents[3] / "docs" / "benchmarks" / "units"


@pytest.mark.parametrize("name", ["sev1", "sevc", "sevcf", "alloptc", "counterfactuals", "expo"])
@pytest.mark.parametrize(
    ("kind", "choice"), [("clusters", "assignment"), ("clusters", "embedding"), ("single", "centre")]
)
def test_a_changed_default_of_the_references_makes_new_units(
    name: str, kind: str, choice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = find(name)
    before = fingerprint(table, "german")
    defaults = DEFAULTS if kind == "clusters" else references.single.__kwdefaults__
    monkeypatch.setitem(defaults, choice, "other")
    assert fingerprint(table, "german") != before


@pytest.mark.parametrize("name", ["allopt1", "alloptc", "expo"])
def test_the_published_units_are_still_those_of_the_settings(name: str) -> None:
    lines = [json.loads(line) for line in (UNITS / f"{name}.jsonl").read_text().splitlines()]
    assert {line["fingerprint"] for line in lines if line["dataset"] == "german"} == {fingerprint(find(name), "german")}


@pytest.mark.parametrize("name", ["C", "share"])
def test_a_changed_model_or_share_of_test_rows_makes_new_units(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [paper_find(table) for table in ("sevc", "allopt1", "counterfactuals", "expo", "floors", "expo_curve")]
    before = [fingerprint(table, "german") for table in tables]
    if name == "C":
        made = models_module.estimator

        def stronger(kind: str, dataset: str, quick: bool = False) -> Any:
            model = made(kind, dataset, quick)
            return model.set_params(C=1.0) if kind == "L2LR" else model

        monkeypatch.setattr(models_module, "estimator", stronger)
    else:
        monkeypatch.setattr(models_module, "TEST_SHARE", 0.3)
    assert all(old != fingerprint(table, "german") for old, table in zip(before, tables, strict=True))
