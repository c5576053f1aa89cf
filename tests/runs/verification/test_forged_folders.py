"""Folders that were forged with intent and sealed again: each lie is found, or what it hides is left unproved."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import fewest as fw
from fewest.models.trees import read_plain
from fewest.runs import explain_files, verify
from fewest.runs.parts import certificates, read_answers
from fewest.runs.run_files import MANIFEST, RunFiles, canonical, read_references, sealed
from fewest.runs.storage import digest, file_digest
from fewest.runs.verification.base import Scorer, changed
from fewest.runs.verification.claims import steps
from fewest.runs.verification.integrity import tally
from fewest.runs.verification.rules import differing
from fewest.tables.json_cells import moved_cells

pytest.importorskip("pyarrow")
FOUND, UNPROVED, HOLDS = 6, 8, 0


def wide(n: int, columns: int = 25, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.normal(size=(n, columns)).round(2), columns=[f"x{j:02d}" for j in range(columns)])
    X["x00"] = random.integers(0, 90, n)
    signal = X.to_numpy()[:, 1:] @ np.linspace(1.2, 0.1, columns - 1) + (X["x00"] - 45) / 25
    return X, np.where(signal > 0, "bad", "good")


@dataclass(frozen=True)
class Honest:
    """A run as it was written, with what it was made of."""

    explainer: fw.Explainer
    data: Path
    run: Path
    known: dict[str, Any] = field(default_factory=dict)  # what else the caller hands in

    def code(self, folder: Path | None = None, **more: Any) -> tuple[int, Any]:
        """How `fewest verify` ends, and the report."""
        options = {"read_tree": read_plain, "random_state": 7, **self.known, **more}
        report = verify(folder or self.run, self.data, options.pop("decision", self.explainer.decision), **options)
        return FOUND if not report.ok else HOLDS if report.complete else UNPROVED, report


def written(folder: Path, explainer: fw.Explainer, X: pd.DataFrame, **known: Any) -> Honest:
    X.to_csv(folder / "cases.csv", index=False)
    run = explain_files(explainer, folder / "cases.csv", folder / "run", n_jobs=1, part_rows=40, alternatives=3)
    return Honest(explainer, folder / "cases.csv", run.path, known)


def linear(columns: int = 25) -> tuple[fw.Decision, pd.DataFrame, np.ndarray]:
    X, y = wide(400, columns)
    return fw.Decision(LogisticRegression(C=0.5, max_iter=500).fit(X, y), positive="bad"), X, y


def make(name: str, folder: Path) -> Honest:
    folder.mkdir()
    columns = 25 if name in ("wide", "budget") else 6
    cases = wide(60, columns, seed=1)[0]
    if name in ("leaves", "tree"):
        X, y = wide(400, 6)
        decision = fw.Decision(DecisionTreeClassifier(max_depth=5, random_state=0).fit(X, y), positive="bad")
        refs = (fw.references.leaves if name == "leaves" else fw.references.single)(decision, X, y)
        return written(folder, fw.Explainer(decision, refs, n_jobs=1), cases)
    decision, X, y = linear(columns)
    one = fw.Explainer(decision, fw.references.single(decision, X, y), n_jobs=1)
    if name in ("floor", "floor, density known"):
        dense = fw.credibility.mixture(decision, X, y, quantile=0.4, n_components=2, random_state=0)
        known = {"credibility": dense} if "known" in name else {}
        return written(folder, one.with_(credibility=dense), cases, **known)
    if name == "any value":
        coarse = X.round(0)
        refs = fw.references.anyone(decision, coarse, y, within=(0.3, 0.7))
        return written(folder, fw.Explainer(decision, refs, n_jobs=1), cases)
    choices: dict[str, dict[str, Any]] = {
        "clusters": {"references": fw.references.clusters(decision, X, y, n_clusters=3, random_state=0)},
        "weights": {"weights": {"x00": 2.5, "x01": 0.5}},
        "plus": {"direction": "plus"},
        "held": {"constraints": fw.Constraints(fw.Immutable("x00"), fw.AtMost(2))},
        "budget": {"structure": "opaque", "max_nodes": 3},
    }
    return written(folder, one.with_(**choices.get(name, {})), cases)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Honest]:
    base, made = tmp_path_factory.mktemp("honest"), {}

    def get(name: str) -> Honest:
        if name not in made:
            made[name] = make(name, base / name.replace(" ", "-").replace(",", ""))
        return made[name]

    return get


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("points", HOLDS), ("wide", HOLDS), ("clusters", HOLDS), ("weights", HOLDS), ("plus", HOLDS), ("held", HOLDS),
        ("tree", HOLDS), ("leaves", HOLDS), ("budget", HOLDS), ("floor", UNPROVED), ("floor, density known", HOLDS),
        ("any value", HOLDS),
    ],
)  # fmt: skip
def test_an_honest_folder_holds_or_says_what_is_left(honest: Any, name: str, code: int) -> None:
    ended, report = honest(name).code()
    assert ended == code, str(report)
    assert report.claims > 15
    if code == HOLDS:
        assert report.share == 1.0


# -- how a folder is forged -----------------------------------------------------------------------------------------


def load(folder: Path, name: str = MANIFEST) -> Any:
    return json.loads((folder / name).read_text())


def seal(folder: Path, manifest: Any, recount: bool = True) -> None:
    """Make all checksums, counts and the seal fit."""
    manifest.pop("seal", None)
    totals: dict[str, Any] = {"counts": {}, "sev": {}, "features": {}}
    for part in manifest["parts"]:
        for role in ("table", "certificates", "cases"):
            if role in part:
                file = folder / part[role]["name"]
                part[role].update(bytes=file.stat().st_size, sha256=file_digest(file))
        if recount:
            part.update({k: dict(v) for k, v in tally(read_answers(folder / part["table"]["name"])).items()})
            for name, total in totals.items():
                for key, count in part[name].items():
                    total[key] = total.get(key, 0) + count
    if recount:
        manifest.update(totals)
    manifest["references"]["sha256"] = file_digest(folder / "references.json")
    if manifest.get("tree"):
        manifest["tree"]["sha256"] = file_digest(folder / "tree.json")
    described = {name: manifest["schema"][name] for name in ("features", "dtypes")}
    manifest["schema"]["sha256"] = digest(canonical(described))
    (folder / MANIFEST).write_text(json.dumps(sealed(manifest)))


def rows(lie: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Change every row of all tables, with the certificates."""

    def forge(folder: Path) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        manifest = load(folder)
        for part in manifest["parts"]:
            path, claimed = folder / part["table"]["name"], folder / part["certificates"]["name"]
            table = parquet.ParquetFile(path).read()
            records = table.to_pylist()
            for record in records:
                lie(record)
            forged = pa.Table.from_pylist(records, schema=table.schema)
            parquet.write_table(forged, path)
            parquet.write_table(certificates(forged), claimed)
        seal(folder, manifest)

    return forge


def manifest(lie: Callable[[Any], Any], recount: bool = True) -> Callable[[Path], None]:
    def forge(folder: Path) -> None:
        content = load(folder)
        lie(content)
        seal(folder, content, recount)

    return forge


def file(name: str, lie: Callable[[Any], Any]) -> Callable[[Path], None]:
    def forge(folder: Path) -> None:
        content = load(folder, name)
        lie(content)
        (folder / name).write_text(json.dumps(content))
        seal(folder, load(folder))

    return forge


def then(*lies: Callable[[Path], None]) -> Callable[[Path], None]:
    def forge(folder: Path) -> None:
        for lie in lies:
            lie(folder)

    return forge


# -- the lies -------------------------------------------------------------------------------------------------------


def headline(m: Any) -> None:
    for one in (*m["parts"], m):
        n = sum(one["sev"].values())
        one["sev"], one["features"] = {"1": n}, {"x00": n}


def none_at_all(record: dict[str, Any]) -> None:
    if record["status"] in ("EXPLAINED", "BUDGET"):
        record.update(
            status="UNREACHABLE", sev=None, features=[], cost=None, lower_bound=np.inf, score_after=None, margin=None,
            l_inf=None, log_density=None, proved=True, alternatives=[], all_listed=False,
        )  # fmt: skip
        record["from"], record["to"] = [], []


def everything(folder: Path) -> None:
    """Every answer claims that all features which differ are the smallest set, with all its figures to match."""
    run = RunFiles.open(folder)
    schema, (_, goals) = run.schema, read_references(run.references())
    cases = pd.concat(list(run.cases()))
    goal = goals.iloc[[0] * len(cases)]
    moved = differing(schema, cases, goal)
    decision = linear(len(schema))[0]
    after = Scorer(decision).score(changed(schema, cases, goal, moved, plus=False)).round(9)
    far = np.where(moved, steps(schema, cases, goal), 0).max(axis=1)
    ends = np.cumsum(moved.sum(axis=1))
    cells = [list(moved_cells(schema, frame, moved)) for frame in (cases, goal)]

    def lie(record: dict[str, Any]) -> None:
        if record["status"] != "EXPLAINED":
            return
        k = record["row"]
        size = int(moved[k].sum())
        record["from"], record["to"] = (side[ends[k] - size : ends[k]] for side in cells)
        record.update(
            features=[name for name, moves in zip(schema.names, moved[k], strict=True) if moves], sev=size,
            cost=float(size), lower_bound=float(size), score_after=float(after[k]), l_inf=float(far[k]),
            margin=float(decision.cut - after[k]), alternatives=[], all_listed=False,
        )  # fmt: skip

    rows(lie)(folder)


def raised(record: dict[str, Any]) -> None:
    """A search that was stopped claims that its answer is almost the smallest one."""
    if record["status"] == "EXPLAINED":
        bound = record["cost"] - 1
        record.update(status="BUDGET", sev=None, cost=None, proved=False, lower_bound=bound)


def ended(record: dict[str, Any]) -> None:
    """A search that was stopped claims to have ended."""
    if record["status"] == "BUDGET":
        record.update(proved=True)


def withheld(record: dict[str, Any]) -> None:
    if record["sev"]:
        record.update(alternatives=record["alternatives"][:1], all_listed=True)


def invented(record: dict[str, Any]) -> None:
    if record["sev"]:
        change = json.loads(record["alternatives"][0])[0]
        record["alternatives"] = [record["alternatives"][0], json.dumps([{**change, "feature": "x05"}])]


def dense(record: dict[str, Any]) -> None:
    if record["features"]:
        record["log_density"] = -1.0


def narrowed(content: Any) -> None:
    """The values that features may take are fewer than those that answers lead to."""
    for said in content["provenance"]["values"].values():
        said.update(low=said["high"])


def kept(folder: Path) -> None:
    path = folder / "part-00000.cases.parquet"
    frame = pd.read_parquet(path)
    frame.loc[3, "x01"] += 1
    frame.to_parquet(path)
    seal(folder, load(folder))


def setting(**changes: Any) -> Callable[[Path], None]:
    return manifest(lambda m: m["settings"].update(changes))


def swapped(names: tuple[str, str]) -> Callable[[Any], None]:
    def swap(node: Any) -> None:
        if "feature" in node:
            node["feature"] = dict([names, names[::-1]]).get(node["feature"], node["feature"])
            swap(node["yes"])
            swap(node["no"])

    return lambda content: swap(content["tree"])


def about(**words: Any) -> Callable[[Path], None]:
    return manifest(lambda m: m["about"].update(words))


def renamed(m: Any) -> None:
    """Data of another name, and the title that every run with such data begins with."""
    m["data"]["files"][0]["name"] = "approved.csv"
    m["data"]["sha256"] = digest(canonical(m["data"]["files"]))
    m["about"]["title"] = "Which facts decided? approved.csv"


FLOOR = {"name": "mixture", "floor": -100.0, "quantile": 0.01, "sha256": "0" * 64}
LEAVES = file("references.json", lambda c: c["provenance"].update(kind="leaves"))
EMBEDDING = file("references.json", lambda c: c.update(assignment="embedding"))
LIES: dict[str, tuple[str, Callable[[Path], None], int]] = {
    "headline figures": ("points", manifest(headline, recount=False), FOUND),
    "features of a part": ("points", manifest(lambda m: m["parts"][0]["features"].clear(), recount=False), FOUND),
    "sums of the manifest": ("points", manifest(lambda m: m["counts"].update(EXPLAINED=99), recount=False), FOUND),
    "rows": ("points", manifest(lambda m: m.update(rows=61)), FOUND),
    "outcomes exchanged in sentences": ("points", about(positive="good", outcome="bad"), FOUND),
    "outcomes exchanged": ("points", setting(positive="good", outcome="bad"), FOUND),
    "scores as chances": ("points", about(percent=False), FOUND),
    "threshold": ("points", setting(threshold=0.4), FOUND),
    "direction": ("points", setting(direction="plus"), FOUND),
    "another kind of score": ("points", setting(score="decision"), FOUND),
    "tree with features exchanged": ("tree", file("tree.json", swapped(("x00", "x01"))), FOUND),
    "tree with outcomes exchanged": ("tree", file("tree.json", lambda c: c["names"].reverse()), FOUND),
    "all features, 6 of them": ("points", everything, FOUND),
    "all features, 25 of them": ("wide", everything, FOUND),
    "not possible, 25 features": ("wide", rows(none_at_all), FOUND),
    "not possible, where little may change": ("held", rows(none_at_all), FOUND),
    "not possible, in leaves": ("leaves", then(rows(none_at_all), rows(lambda r: r.update(reference=None))), FOUND),
    "a floor is claimed": ("points", then(everything, setting(credibility=FLOOR)), FOUND),
    "a floor is claimed, with densities": (
        "points", then(everything, rows(dense), setting(credibility=FLOOR)), UNPROVED,
    ),
    "leaves are claimed": ("points", then(everything, LEAVES), FOUND),
    "leaves of another tree": ("leaves", file("tree.json", swapped(("x00", "x01"))), FOUND),
    "an embedding is claimed": (
        "points", then(setting(assignment="embedding"), EMBEDDING), UNPROVED,
    ),
    "a constraint is added": ("points", setting(constraints=[{"kind": "Immutable", "name": "x01"}]), FOUND),
    "a constraint nobody knows": ("points", setting(constraints=[{"kind": "Sealed", "name": "x01"}]), FOUND),
    "a constraint that no answer keeps": ("points", setting(constraints=[{"kind": "AtMost", "most": 0}]), FOUND),
    "weights of nothing": ("points", setting(weights={"luck": 2.0}), FOUND),
    "weights below zero": ("points", setting(weights={"x05": -1.0}), FOUND),
    "weights": ("points", setting(weights={"x01": 3.0}), FOUND),
    "weights are left out": ("weights", setting(weights={}), FOUND),
    "values of a reference": (
        "points", file("references.json", lambda c: c["references"][0]["values"].update(x01=-3.0)), FOUND,
    ),
    "score of a reference": ("points", file("references.json", lambda c: c["references"][0].update(score=0.01)), FOUND),
    "kept cases": ("points", kept, FOUND),
    "invented alternatives": ("points", rows(invented), FOUND),
    "alternatives withheld": ("points", rows(withheld), FOUND),
    "alternatives withheld, in leaves": ("leaves", rows(withheld), FOUND),
    "alternatives withheld, any value": ("any value", rows(withheld), FOUND),
    "not possible, any value": ("any value", rows(none_at_all), FOUND),
    "other values are allowed": ("any value", file("references.json", narrowed), FOUND),
    "any value is claimed": ("points", file("references.json", lambda c: c["provenance"].update(kind="anyone")), FOUND),
    "title": ("points", about(title="Approved by the regulator"), UNPROVED),
    "name of the model": ("points", about(model="Certified model 7"), UNPROVED),
    "labels": ("points", manifest(lambda m: m["schema"]["features"][0].update(label="fairness")), FOUND),
    "labels everywhere": (
        "points",
        then(
            file("references.json", lambda c: c["schema"]["features"][0].update(label="fairness")),
            manifest(lambda m: m["schema"]["features"][0].update(label="fairness")),
        ),
        UNPROVED,
    ),
    "spreads": ("points", manifest(lambda m: m["schema"]["features"][1].update(scale=99.0)), FOUND),
    "bounds are raised": ("wide", then(everything, rows(raised)), FOUND),
    "stopped searches are hidden": ("budget", rows(none_at_all), FOUND),
    "stopped searches are proved": ("budget", rows(ended), FOUND),
    "version": ("points", manifest(lambda m: m.update(version="9.9")), UNPROVED),
    "format": ("points", manifest(lambda m: m.update(format=2)), UNPROVED),
    "an older format, without names": ("points", manifest(lambda m: (m.update(format=1), m.pop("about"))), UNPROVED),
    "name of the data": ("points", manifest(renamed), UNPROVED),
    "fingerprint of the model": ("points", manifest(lambda m: m["model"].update(sha256="0" * 64)), UNPROVED),
    "whether cases are kept": ("points", setting(keep_cases=False), FOUND),
    "parts of no rows": ("points", setting(part_rows=0), FOUND),
    "model": ("points", manifest(lambda m: m["model"].update({"class": "Oracle"})), UNPROVED),
    "densities": ("floor, density known", rows(dense), FOUND),
    "a lower floor": ("floor, density known", setting(credibility={**FLOOR, "floor": -99.0}), FOUND),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
def test_a_forged_folder_is_found_or_left_unproved(honest: Any, name: str, tmp_path: Path) -> None:
    kind, forge, code = LIES[name]
    shutil.copytree(honest(kind).run, tmp_path / "run")
    forge(tmp_path / "run")
    ended, report = honest(kind).code(tmp_path / "run")
    assert ended == code, str(report)
    assert not any("was changed after" in problem for problem in report.problems), "the forger is not good enough"
    assert len({str(problem).split("(")[0] for problem in report.problems}) == len(report.problems)


@pytest.mark.parametrize("name", ["points", "leaves", "floor, density known", "budget", "any value"])
def test_a_forgery_without_a_lie_is_not_found(honest: Any, name: str, tmp_path: Path) -> None:
    """Negative control of the forger: it does not leave traces of its own."""
    shutil.copytree(honest(name).run, tmp_path / "run")
    rows(lambda record: None)(tmp_path / "run")
    assert honest(name).code(tmp_path / "run")[0] == honest(name).code()[0]


def test_what_the_caller_states_decides(honest: Any) -> None:
    """A run of other choices is honest in itself: it is found once the caller states what they should be."""
    points = honest("points")
    decision, refs = points.explainer.decision, points.explainer.references
    known = refs.frame.set_axis(pd.Index(refs.names, dtype=object), axis=0)
    assert points.code(references=known, schema=refs.schema)[0] == HOLDS
    others = {
        "the threshold is 0.45": {"decision": fw.Decision(decision.model, positive="bad", threshold=0.45)},
        "the class is 'good'": {"decision": fw.Decision(decision.model, positive="good")},
        "not the one that is stated": {"references": known.assign(x01=0.1)},
        "reference mean is not": {"references": known.set_axis(pd.Index(["typical"], dtype=object), axis=0)},
        "2 are stated": {"references": pd.concat([known, known])},
    }
    for said, stated in others.items():
        code, report = points.code(**stated)
        assert code == FOUND
        assert any(said in problem for problem in report.problems), report.problems


def test_leaves_are_left_unproved_without_the_tree(honest: Any) -> None:
    code, report = honest("leaves").code(read_tree=None)
    assert (code, report.share) == (UNPROVED, 0.0)
    code, report = honest("leaves").code(read_tree=lambda *_: load(honest("tree").run, "tree.json") | {"names": []})
    assert code == FOUND


@pytest.mark.parametrize("side", ["number", "last bit"])
def test_a_tree_that_was_read_wrongly_proves_nothing(honest: Any, side: str) -> None:
    """Negative control of the trial: a tree with one threshold moved does not decide as the model does."""

    def misread(*given: Any) -> Any:
        tree = read_plain(*given)
        node = tree["tree"] if side == "number" else tree["tree"]["yes"]
        node["at_most"] = node["at_most"] - 1 if side == "number" else np.nextafter(node["at_most"], -np.inf)
        return tree

    _, report = honest("leaves").code(read_tree=misread)
    assert "what was read of the model's tree does not decide as the model does" in report.left
    assert report.share == 0.0


def test_odd_values_under_the_seal_are_an_ending_of_ours(honest: Any, tmp_path: Path) -> None:
    """Whatever a manifest or a references file holds, there is a report or one of our errors."""
    random = np.random.default_rng(0)
    odd = [None, True, -1, 0, 1e300, "", "x", [], {}, [1], {"a": 1}, 2**70]

    def places(node: Any, path: tuple[Any, ...] = ()) -> Any:
        for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            yield (*path, key)
            yield from places(node[key], (*path, key))

    points, codes = honest("points"), []
    for number in range(20):
        folder = tmp_path / str(number)
        shutil.copytree(points.run, folder)
        name = MANIFEST if number % 3 else "references.json"
        content = load(folder, name)
        content.pop("quantiles", None)
        all_places = list(places(content))
        *path, last = all_places[random.integers(len(all_places))]
        node = content
        for key in path:
            node = node[key]
        node[last] = odd[random.integers(len(odd))]
        content.pop("seal", None)
        (folder / name).write_text(json.dumps(sealed(content) if name == MANIFEST else content))
        try:
            codes.append(points.code(folder)[0])
        except fw.FewestError as error:
            codes.append(error.exit_code)
    assert set(codes) <= {0, 2, 3, 4, 6, 8}
    assert codes.count(FOUND) > 10
