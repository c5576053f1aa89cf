"""`verify` finds nothing in a run folder as it was written, and every planted corruption."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewest as fw
from fewest.runs import explain_files, verify
from fewest.runs.parts import certificates
from fewest.runs.run_files import MANIFEST, sealed
from fewest.runs.storage import digest
from fewest.runs.verification.base import Scorer
from fewest.runs.verification.minimality import ClaimCubes, ClaimLimits, refute
from fewest.runs.verification.rules import StatedRules

pytest.importorskip("pyarrow")
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def held(subject: Any) -> fw.Explainer:
    """An explainer that may not change the age."""
    explainer: fw.Explainer = subject.explainer.with_(constraints=fw.Constraints(fw.Immutable("age")))
    return explainer


@pytest.fixture(scope="module")
def written(subject: Any, held: fw.Explainer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written") / "run"
    model = folder.with_name("model.bin")
    model.write_bytes(b"a model")
    explain_files(held, subject.csv, folder, n_jobs=1, part_rows=250, alternatives=3, model_file=model)
    return folder


@pytest.fixture
def copy(written: Path, tmp_path: Path) -> Path:
    shutil.copytree(written, tmp_path / "run")
    return tmp_path / "run"


def look(subject: Any, folder: Path, model: bytes = b"a model", data: Any = None) -> list[str]:
    file = folder.with_name("model.bin")
    file.write_bytes(model)
    report = verify(folder, subject.csv if data is None else data, subject.decision, model_file=file)
    return report.problems


def test_nothing_is_wrong_with_what_was_written(subject: Any, written: Path) -> None:
    report = verify(written, subject.csv, subject.decision)
    assert report.ok, str(report)
    assert report.rows == 700
    assert report.rescored > 700
    claimed = 700 - json.loads((written / MANIFEST).read_text())["counts"]["ALREADY_NEGATIVE"]
    assert report.reproved + report.sampled + report.unproved == claimed
    assert report.reproved > 100


VARIANTS: dict[str, Callable[[fw.Explainer], fw.Explainer]] = {
    "plain": lambda one: one,
    "plus": lambda one: one.with_(direction="plus"),
    "at most": lambda one: one.with_(constraints=fw.Constraints(fw.AtMost(1))),
    "weights": lambda one: one.with_(weights={"debt": 2.5, "age": 0.5, "code": 3}),
    "flexible": lambda one: one.with_(references=one.references.flexible(0.1)),
    "sparsest": lambda one: one.with_(references=several(one, "sparsest")),
    "nearest": lambda one: one.with_(references=several(one, "features")),
    "rules": lambda one: one.with_(
        constraints=fw.Constraints(
            fw.Linked("age", "home"), fw.Implies("rate", "code"), fw.Forbidden("debt", "rate"), fw.Only("debt", "down")
        )
    ),
    "ranges": lambda one: one.with_(
        constraints=fw.Constraints(fw.Range("debt", 0, 30), fw.OneOf("code", ["B10"]), fw.Only("age", "up"))
    ),
    "budget": lambda one: one.with_(structure="opaque", max_nodes=3),
}


def several(one: fw.Explainer, assignment: Any) -> fw.references.References:
    random = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "debt": random.integers(0, 30, 4), "age": random.integers(50, 80, 4), "rate": random.normal(-1, 0.3, 4),
            "code": ["B10", "C42", "B10", "A07"], "home": "rent, cheap",
        }
    )  # fmt: skip
    return fw.references.supplied(one.decision, frame, schema=one.schema, assignment=assignment)


@pytest.mark.parametrize("name", VARIANTS)
def test_nothing_is_wrong_whatever_is_asked(subject: Any, name: str, tmp_path: Path) -> None:
    explainer = VARIANTS[name](subject.explainer)
    run = explain_files(explainer, subject.parquet, tmp_path / "run", n_jobs=1, part_rows=300, alternatives=2)
    assert run.counts["ALREADY_NEGATIVE"] < 600
    report = verify(run.path, subject.parquet, subject.decision, sample=50)
    assert report.ok, str(report)
    assert report.reproved > 100
    if name == "at most":
        assert run.counts["UNREACHABLE"] > 10
    if name == "budget":
        assert run.counts["BUDGET"] > 10


def test_a_run_with_a_floor_is_scored_again_but_its_proofs_are_left(subject: Any, tmp_path: Path) -> None:
    """The density is not in the folder, so that only what the model says can be checked."""
    X, y = subject.cases, subject.decision.model.predict(subject.cases)
    dense = fw.credibility.mixture(subject.decision, X, y, quantile=0.4, n_components=2, random_state=0)
    run = explain_files(subject.explainer.with_(credibility=dense), subject.parquet, tmp_path / "run", n_jobs=1)
    assert run.counts["EXPLAINED"] > 100
    report = verify(run.path, subject.parquet, subject.decision)
    assert report.ok, str(report)
    assert report.reproved == 0
    assert report.unproved > 100


def test_features_of_all_kinds_are_verified(everything: Any, tmp_path: Path) -> None:
    """Missing values, dates, groups, one-hot columns and levels that are not plain text."""
    explainer, X = everything
    paths = [tmp_path / "cases.csv", tmp_path / "cases.parquet"]
    X.to_csv(paths[0], index=False)
    X.to_parquet(paths[1])
    tables = []
    for path in paths:
        run = explain_files(explainer, path, tmp_path / path.suffix[1:], n_jobs=1, part_rows=70)
        report = verify(run.path, path, explainer.decision)
        assert report.ok, str(report)
        assert run.counts["EXPLAINED"] > 50
        tables.append(run.table())
    pd.testing.assert_frame_equal(*tables)


# -- corruptions of files ------------------------------------------------------------------------------------------


def flip(file: Path, at: float = 0.5) -> None:
    data = bytearray(file.read_bytes())
    data[int(len(data) * at)] ^= 4
    file.write_bytes(data)


def edit_manifest(folder: Path, edit: Callable[[Any], None], seal: bool = True) -> None:
    content = json.loads((folder / MANIFEST).read_text())
    edit(content)
    content.pop("seal") if seal else None
    (folder / MANIFEST).write_text(json.dumps(sealed(content) if seal else content))


HELD = [{"kind": "Immutable", "name": "debt"}]
FILES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a bit of a table": (lambda f: flip(f / "part-00001.parquet"), "part-00001.parquet was changed"),
    "a bit at its start": (lambda f: flip(f / "part-00001.parquet", 0.0), "part-00001.parquet was changed"),
    "a bit of a certificate": (lambda f: flip(f / "part-00000.certificates.parquet"), "certificates.parquet was "),
    "a bit of the references": (lambda f: flip(f / "references.json", 0.2), "references.json was changed"),
    "a truncated table": (lambda f: cut(f / "part-00002.parquet"), "part-00002.parquet was changed"),
    "a truncated certificate": (lambda f: cut(f / "part-00002.certificates.parquet"), "was changed"),
    "a truncated manifest": (lambda f: cut(f / MANIFEST), "manifest.json cannot be read"),
    "a missing part": (lambda f: (f / "part-00001.parquet").unlink(), "part-00001.parquet is missing"),
    "a missing certificate": (lambda f: (f / "part-00001.certificates.parquet").unlink(), "is missing"),
    "missing references": (lambda f: (f / "references.json").unlink(), "references.json is missing"),
    "a part too many": (lambda f: (f / "part-00009.parquet").write_bytes(b""), "not in the manifest"),
    "two parts swapped": (lambda f: swap(f / "part-00000.parquet", f / "part-00001.parquet"), "was changed"),
    "a count": (lambda f: edit_manifest(f, lambda m: m["counts"].update(EXPLAINED=1), seal=False), "manifest.json was"),
    "a sealed count": (lambda f: edit_manifest(f, lambda m: m["counts"].update(EXPLAINED=1)), "by status are not"),
    "sealed rows": (lambda f: edit_manifest(f, lambda m: m.update(rows=699)), "the manifest says 699"),
    "a sealed threshold": (lambda f: edit_manifest(f, lambda m: m["settings"].update(threshold=0.6)), "threshold"),
    "a sealed schema": (lambda f: edit_manifest(f, lambda m: m["schema"]["features"].reverse()), "the schema"),
    "a part that is left out": (lambda f: edit_manifest(f, lambda m: m["parts"].pop()), "more rows than the run"),
    "sealed constraints": (lambda f: edit_manifest(f, lambda m: m["settings"].update(constraints=HELD)), "not allowed"),
}  # fmt: skip


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def swap(one: Path, two: Path) -> None:
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)


@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_is_found(subject: Any, copy: Path, name: str) -> None:
    corrupt, said = FILES[name]
    corrupt(copy)
    problems = look(subject, copy)
    assert any(said in problem for problem in problems), problems


def test_other_data_and_another_model_are_found(subject: Any, copy: Path, tmp_path: Path) -> None:
    assert look(subject, copy) == []
    assert any("the model has changed" in problem for problem in look(subject, copy, model=b"another"))
    other = tmp_path / "cases.csv"
    cases = subject.cases.copy()
    cases.loc[333, "debt"] += 1
    cases.to_csv(other, index=False)
    problems = look(subject, copy, data=other)
    assert any("the data have changed" in problem for problem in problems)
    assert any("row 333" in problem and "hash" in problem for problem in problems)
    cases.iloc[:600].to_csv(other, index=False)
    assert any("the data have 100" in problem for problem in look(subject, copy, data=other))


# -- lies that are sealed well: the files, their checksums and the certificates all agree ---------------------------


def forge(folder: Path, part: int, lie: Callable[[Rows], None]) -> None:
    """Rewrite a part with a lie in it, with certificates, checksums and seal to match."""
    import pyarrow as pa
    from pyarrow import parquet

    path = folder / f"part-{part:05d}.parquet"
    table = parquet.ParquetFile(path).read()
    rows = table.to_pylist()
    lie(rows)
    changed = pa.Table.from_pylist(rows, schema=table.schema)
    claimed = folder / f"part-{part:05d}.certificates.parquet"
    parquet.write_table(changed, path)
    parquet.write_table(certificates(changed), claimed)

    def update(manifest: Any) -> None:
        record = manifest["parts"][part]
        for name, file in (("table", path), ("certificates", claimed)):
            record[name] = {"name": file.name, "bytes": file.stat().st_size, "sha256": digest(file.read_bytes())}
        before = record["counts"]
        record["counts"] = {status: sum(row["status"] == status for row in rows) for status in before}
        for status in before:
            manifest["counts"][status] += record["counts"][status] - before[status]

    edit_manifest(folder, update)


def one(rows: Rows, size: int = 1) -> dict[str, Any]:
    """The first explained row with a set of this size."""
    return next(row for row in rows if row["sev"] == size)


def exchange(rows: Rows) -> None:
    explained = [k for k, row in enumerate(rows) if row["sev"]]
    a, b = explained[0], explained[5]
    rows[a], rows[b] = {**rows[b], "row": rows[a]["row"]}, {**rows[a], "row": rows[b]["row"]}


def grow(rows: Rows) -> None:
    """A set with one feature too many, with all its figures to match but its scores."""
    row = next(row for row in rows if row["sev"] == 1 and row["features"] == ["debt"])
    row.update(features=["debt", "rate"], sev=2, cost=2.0, lower_bound=2.0, alternatives=[])
    row["from"].append("0.0")
    row["to"].append("0.0")


def unreachable(rows: Rows) -> None:
    row = one(rows, 1)
    row.update(
        status="UNREACHABLE", sev=None, cost=None, features=[], score_after=None, margin=None, lower_bound=np.inf,
        l_inf=None, alternatives=[],
    )  # fmt: skip
    row["from"], row["to"] = [], []


def accepted(rows: Rows) -> None:
    unreachable(rows)
    row = next(row for row in rows if row["status"] == "UNREACHABLE")
    row.update(status="ALREADY_NEGATIVE", lower_bound=0.0, reference=None, proved=False)


def set_to(**changes: Any) -> Callable[[Rows], None]:
    return lambda rows: one(rows).update(changes)


def add(column: str, amount: float) -> Callable[[Rows], None]:
    return lambda rows: one(rows).update({column: one(rows)[column] + amount})


LIES: dict[str, tuple[Callable[[Rows], None], str]] = {
    "a value that is not the reference's": (lambda r: one(r)["to"].__setitem__(0, "1"), "is not the reference's"),
    "a value that is not the case's": (lambda r: one(r)["from"].__setitem__(0, "1"), "is not the case's"),
    "a value too few": (lambda r: one(r)["to"].pop(), "one value per feature"),
    "answers of two rows exchanged": (exchange, "hash differs"),
    "rows out of order": (lambda r: r.reverse(), "not its place"),
    "a row left out": (lambda r: r.pop(3), "rows"),
    "a bound that is too high": (add("lower_bound", 1.0), "does not meet its cost"),
    "a bound that is too low": (add("lower_bound", -1.0), "does not meet its cost"),
    "a SEV that is too high": (add("sev", 1), "not the size of its set"),
    "a cost that is too low": (add("cost", -0.5), "cost is not that of its set"),
    "a score": (add("score", 1e-6), "score of it is another"),
    "a score after": (add("score_after", 1e-6), "after the change is another"),
    "a margin": (add("margin", 1e-6), "its margin"),
    "a distance": (add("l_inf", 1e-6), "its l_inf"),
    "a hash": (add("hash", 1), "hash differs"),
    "not proved": (set_to(proved=False), "not proved"),
    "a status nobody knows": (set_to(status="FINE"), "not a known word"),
    "a feature nobody knows": (set_to(features=["luck"]), "names no features"),
    "a reference nobody knows": (set_to(reference="nobody"), "not one of the run"),
    "no reference": (set_to(reference=None), "or lacks it"),
    "a set that is too large": (grow, "a smaller set changes the outcome: debt"),
    "a set that may not change": (set_to(features=["age"]), "not allowed"),
    "a set that turns nothing": (set_to(features=["home"]), "does not change the outcome"),
    "not reachable": (unreachable, "a smaller set changes the outcome"),
    "accepted": (accepted, "decision on it is another"),
    "an alternative that costs more": (set_to(alternatives=['["debt"]', '["debt", "code"]']), "costs more or less"),
    "an alternative that turns nothing": (lambda r: dud(r), "an alternative does not change the outcome"),
    "an alternative with values of nobody": (lambda r: foreign(r), "leads to no reference"),
    "an alternative from values of nobody": (lambda r: mistaken(r), "in an alternative is not the case's"),
}  # fmt: skip


def dud(rows: Rows) -> None:
    row = one(rows)
    shown = json.dumps(row["features"])
    row["alternatives"] = [shown, json.dumps(["home"] if row["features"] != ["home"] else ["code"])]


def foreign(rows: Rows) -> None:
    row = one(rows)
    row["alternatives"] = [json.dumps(row["features"]), json.dumps(dict.fromkeys(row["features"], -77))]


def mistaken(rows: Rows) -> None:
    row = one(rows)
    shown = zip(row["features"], row["to"], strict=True)
    row["alternatives"] = [json.dumps([{"feature": name, "from": -77, "to": json.loads(to)} for name, to in shown])]


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_found_even_if_everything_else_agrees(subject: Any, copy: Path, name: str) -> None:
    lie, said = LIES[name]
    forge(copy, 1, lie)
    problems = look(subject, copy)
    assert any(said in problem for problem in problems), problems
    assert not any("was changed after" in problem for problem in problems)


def test_a_forgery_without_a_lie_is_not_found(subject: Any, copy: Path) -> None:
    """Negative control of the forger: it does not leave traces of its own."""
    forge(copy, 1, lambda rows: None)
    assert look(subject, copy) == []


def test_certificates_that_say_something_else_are_found(subject: Any, copy: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    path = copy / "part-00000.certificates.parquet"
    said = parquet.ParquetFile(path).read()
    rows = said.to_pylist()
    rows[3]["by"] = "magic"
    parquet.write_table(pa.Table.from_pylist(rows, schema=said.schema), path)

    def update(manifest: Any) -> None:
        data = path.read_bytes()
        manifest["parts"][0]["certificates"].update(bytes=len(data), sha256=digest(data))

    edit_manifest(copy, update)
    (problem,) = look(subject, copy)
    assert 'another "by"' in problem
    assert "row 3" in problem


def test_a_reference_that_was_moved_under_the_seal_is_found(subject: Any, copy: Path) -> None:
    content = json.loads((copy / "references.json").read_text())
    content["references"][0]["values"]["debt"] += 1
    (copy / "references.json").write_text(json.dumps(content))
    edit_manifest(copy, lambda m: m["references"].update(sha256=digest((copy / "references.json").read_bytes())))
    assert any("is not the reference's" in problem for problem in look(subject, copy))


def test_longer_proofs_are_drawn_by_the_seed(subject: Any, written: Path) -> None:
    options: dict[str, Any] = {"cheap": 0, "sample": 9}
    reports = [verify(written, subject.csv, subject.decision, random_state=seed, **options) for seed in (0, 0, 1)]
    assert [report.problems for report in reports] == [[], [], []]
    assert 9 <= reports[0].sampled <= 12, reports[0].to_dict()
    assert reports[0].rescored == reports[1].rescored
    assert reports[0].unproved > 0


def test_every_smaller_set_is_asked_about_and_no_other() -> None:
    """The enumeration against a table written by hand: three features, the pair (a, c) is the only one below three."""
    schema = fw.Schema.infer(pd.DataFrame({"a": [0, 1], "b": [0, 1], "c": [0, 1]}))
    asked: list[tuple[int, ...]] = []

    def score(rows: pd.DataFrame) -> Any:
        asked.extend(map(tuple, rows.to_numpy().tolist()))
        return 1.0 - ((rows["a"] == 0) & (rows["c"] == 0)).to_numpy()

    rules = StatedRules.read(schema, {"constraints": [], "weights": {}})
    case, reference = pd.DataFrame({"a": [1], "b": [1], "c": [1]}), pd.DataFrame({"a": [0], "b": [0], "c": [0]})
    scorer, draw, none = Scorer(fw.Decision(score)), np.random.default_rng(0), np.zeros((1, 3), dtype=bool)

    def claim(below: float, budget: int, shown: Any = none, listed: Any = None) -> Any:
        asked.clear()
        limit = np.array([below])
        limits = ClaimLimits(limit, limit, np.array([listed], dtype=object))
        proved, found = refute(ClaimCubes(rules, case, reference, limits, shown), scorer, budget, draw)
        return proved.tolist(), {k: one.tolist() for k, one in {**found.smaller, **found.unlisted}.items()}

    pair = [True, False, True]
    assert claim(2.0, 10) == ([True], {})
    assert sorted(asked) == [(0, 1, 1), (1, 0, 1), (1, 1, 0)]
    assert claim(3.0, 10) == ([False], {0: pair})
    assert claim(np.inf, 6)[1]
    assert not claim(np.inf, 6)[0][0]
    assert claim(2.0, 10, listed={np.array(pair).tobytes()}) == ([True], {})
    assert claim(2.0, 10, listed=set()) == ([False], {0: pair})
    assert claim(3.0, 0, shown=np.ones((1, 3), dtype=bool)) == ([False], {0: pair})
    assert claim(2.0, 0) == ([True], {})
    assert len(asked) == 3
