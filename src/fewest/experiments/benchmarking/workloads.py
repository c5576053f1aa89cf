"""The workloads of the speed table, each a function that gives rows."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest import references
from fewest.constraints import Constraints, Immutable
from fewest.engine.model_reading import ModelReading
from fewest.engine.search import Found, Outcome, Problem, choose, first_answers
from fewest.engine.structure.base import Structure
from fewest.experiments.benchmarking import subjects
from fewest.experiments.benchmarking.growth_ladders import growth_ladders
from fewest.experiments.benchmarking.large_tables import files_boosted, files_linear, linear_million, model_files
from fewest.experiments.benchmarking.measure import Row, at_least, at_most, cpu, fresh, skipped, timed
from fewest.experiments.benchmarking.other_tools import other_tools
from fewest.experiments.benchmarking.service import under_load
from fewest.experiments.benchmarking.several_references import sparsest
from fewest.experiments.benchmarking.trees import growth, tree_million
from fewest.experiments.benchmarking.whole_domains import accepted_cases, any_value, enough
from fewest.experiments.paper.data import data_folder
from fewest.tables.schema import Schema

BFS_CAP = 20_000
ROUNDS = 15
LIMITS = {"logistic": 5.0, "mlp": 8.0}
WARM_UP, EPOCHS = 80, 20  # the paper's


def _needs_data(name: str, target: str) -> Row:
    """The row of a workload whose data are not here."""
    return skipped(name, target, "the paper's data are not here: set FEWEST_DATA to their folder")


def _here(dataset: str) -> bool:
    """Whether a dataset can be read here."""
    return dataset == "german" or data_folder() is not None


def _solve(structure: Structure, problem: Problem) -> Found:
    first_answers.READINESS.loaded.add(type(structure))  # what is measured is the compiled search, not the way to it
    return choose.solve(structure, problem, _no_model, 0.0, 1)


def _no_model(cubes: Any, moved: Any) -> Any:
    raise AssertionError("a structured search does not ask the model")


def _proved(found: Found) -> tuple[float, str]:
    """Share of the queries that are proved, and a line about all of them."""
    size = found.cost[found.outcome == Outcome.FOUND]
    proved = float((found.outcome != Outcome.STOPPED).mean())
    unreachable = (found.outcome == Outcome.NONE).mean()
    sizes = f"mean SEV {size.mean():.2f}, largest {size.max():.0f}"
    return proved, f"n {len(found.outcome)}, {sizes}, unreachable {unreachable:.1%}, proved {proved:.1%}"


def _against_predict(title: str, name: str, kind: str, limit: float) -> Row:
    """CPU of the search over CPU of the final model's predict_proba, same rows, both on one thread."""
    if not _here(name):
        return _needs_data(title, f"<= {limit:g}")
    subject = subjects.subject(name, kind)
    structure, problem = subject.problem()
    final, rows, _ = subject.prepared()
    search = cpu(lambda: _solve(structure, problem))
    predict = cpu(lambda: final.predict_proba(rows))
    whole = cpu(partial(subject.decision.model.predict_proba, subject.cases))
    detail = (
        f"{1e6 * search / problem.n_cubes:.2f} us/query against {1e6 * predict / len(rows):.2f} us/row "
        f"({search / whole:.2g} x the whole pipeline), {_proved(_solve(structure, problem))[1]}"
    )
    return at_most(title, search / predict, limit, "x predict_proba", detail)


def linear_search() -> Iterator[Row]:
    """Additive search against predict_proba."""
    for name in subjects.PAPER:
        yield _against_predict(f"LR search, {name}", name, "l2lr", 4)


def boosted_search() -> Iterator[Row]:
    """Gradient boosting 200 x 3: search and end to end."""
    for name in ("compas", "adult", "headline", "fico"):
        yield _against_predict(f"GBDT 200x3 search, {name}", name, "gbdt", 4)
        if not _here(name):
            continue
        subject = subjects.subject(name, "gbdt")
        explainer = subject.explainer(unseen="allow")
        explainer.explain(subject.cases.iloc[:50])
        whole = cpu(partial(explainer.explain, subject.cases))
        predict = cpu(partial(subject.decision.model.predict_proba, subject.cases))
        detail = f"{1e6 * whole / len(subject.cases):.1f} us/case"
        yield at_most(f"GBDT 200x3 end to end, {name}", whole / predict, 40, "x predict_proba", detail)


def other_boosters() -> Iterator[Row]:
    """HistGradientBoosting, XGBoost, LightGBM on FICO."""
    for kind in ("histgb", "xgboost", "lightgbm"):
        yield _against_predict(f"{kind} 200 trees search, fico", "fico", kind, 8)


def _throughput(title: str, name: str, kind: str, target: float, all_proved: bool = False) -> Iterator[Row]:
    """Queries per core-second and, where asked for, the share proved."""
    if not _here(name):
        yield _needs_data(title, f">= {target:g}")
        return
    structure, problem = subjects.subject(name, kind).problem()
    _solve(structure, problem.take(np.arange(min(8, problem.n_cubes))))
    seconds = cpu(lambda: _solve(structure, problem), repeats=3)
    proved, detail = _proved(_solve(structure, problem))
    yield at_least(title, problem.n_cubes / seconds, target, "queries per core-second", detail)
    if all_proved:
        yield at_least(f"{title}, proved", proved, 1, "share")


def forests() -> Iterator[Row]:
    """Random forests on FICO."""
    for kind, title, target in (("forest8", "depth 8", 5000), ("forest", "full depth", 3000)):
        yield from _throughput(f"random forest 100 x {title}, fico", "fico", kind, target)


def networks() -> Iterator[Row]:
    """MLP 128-128 on the paper's data, all proved."""
    for name in subjects.PAPER:
        yield from _throughput(f"MLP 128-128, {name}", name, "mlp", 5000 if name == "fico" else 1000, all_proved=True)


def against_plain_bfs() -> Iterator[Row]:
    """Our search against one predict_proba per vertex, capped and extrapolated by the vertices it would still need.

    FICO is explained with the mean reference, which the model itself refuses: there the plain search walks
    whole hypercubes.
    """
    for name, sample, target in (("compas", 200, 400), ("adult", 60, 600), ("fico", 30, 1e6)):
        title = f"GBDT against plain BFS, {name}"
        if not _here(name):
            yield _needs_data(title, f">= {target:g}")
            continue
        subject = subjects.subject(name, "gbdt")
        if name == "fico":
            X_train, _, y_train, _ = subjects.load(name)
            mean = references.single(subject.decision, X_train, y_train, on_positive="allow")
            subject = subjects.Subject(subject.decision, mean, subject.cases)
        structure, problem = subject.problem()
        found = _solve(structure, problem)
        ours = cpu(partial(_solve, structure, problem), repeats=3)
        sizes = np.where(found.outcome == Outcome.FOUND, found.cost, np.inf)
        own, encoded, detail = _plain_seconds(subject, sizes, sample)
        ours /= problem.n_cubes
        detail = f"ours {1e6 * ours:.3g} us/query; {detail}; {encoded / ours:.3g} x on rows that are encoded already"
        yield at_least(title, own / ours, target, "x faster", detail)


def _plain_bfs(
    model: Any, query: npt.NDArray[Any], reference: npt.NDArray[Any], feature_of: npt.NDArray[Any], cap: int
) -> tuple[int | None, int]:
    """Breadth-first SEV of one encoded query and the vertices asked; None where the cap was reached first."""
    features = np.unique(feature_of[feature_of >= 0])
    asked = 0
    for size in range(1, len(features) + 1):
        for chosen in combinations(features, size):
            if asked >= cap:
                return None, asked
            vertex = np.where(np.isin(feature_of, chosen), reference, query)
            asked += 1
            if model.predict_proba(vertex.reshape(1, -1))[0, 1] < 0.5:
                return size, asked
    return None, asked


def _plain_seconds(subject: subjects.Subject, sizes: Any, sample: int) -> tuple[float, float, str]:
    """CPU per query of the plain search: on the user's model (raw row in), on encoded rows, and how it was found.

    A query on which the plain search reaches the cap is charged the vertices it would have walked: all smaller sets
    and half of its own level, or all sets there are where nothing is reachable.
    """
    final, rows, goal = subject.prepared()
    feature_of = subject.inside().encoding.feature_of
    assert feature_of is not None
    p = len(np.unique(feature_of))
    chosen = np.random.default_rng(0).choice(len(rows), min(sample, len(rows)), replace=False)
    vertices = 0.0
    for cube in chosen:
        size, seen = _plain_bfs(final, rows[cube], goal[0], feature_of, BFS_CAP)
        vertices += seen
        if size is None:
            need = int(min(sizes[cube], p + 1))
            walk = sum(comb(p, k) for k in range(1, min(need, p + 1))) + (comb(p, need) / 2 if need <= p else 0)
            vertices += max(0.0, walk - seen)
    vertices /= len(chosen)
    per_raw = cpu(lambda: subject.decision.model.predict_proba(subject.cases.iloc[:1]))
    per_encoded = cpu(lambda: final.predict_proba(rows[:1]))
    detail = f"plain {vertices:.3g} vertices/query at {1e3 * per_raw:.2f} ms, mean of {len(chosen)} queries"
    return vertices * per_raw, vertices * per_encoded, detail


def opaque_models() -> Iterator[Row]:
    """Models whose inside is not read: batched levels against one predict per vertex."""
    for kind, name in (("bayes", "adult"), ("gbdt", "adult"), ("kernel", "compas"), ("neighbours", "compas")):
        title = f"{kind} as a closed box against plain BFS, {name}"
        if not _here(name):
            yield _needs_data(title, ">= 50")
            continue
        subject = subjects.subject(name, kind)
        explainer = subject.explainer(unseen="allow", structure="opaque" if kind == "gbdt" else "auto")
        out = explainer.explain(subject.cases)
        ours = cpu(partial(explainer.explain, subject.cases), repeats=3) / len(subject.cases)
        sizes = np.where(out.answers.status == 0, out.answers.cost, out.answers.lower)
        own, encoded, detail = _plain_seconds(subject, sizes, 40)
        counts = {status: count for status, count in out.counts().items() if count}
        detail += f"; ours {1e3 * ours:.3g} ms/case end to end; {encoded / ours:.3g} x on encoded rows; {counts}"
        yield at_least(title, own / ours, 50, "x faster", detail)
        bounded = float((out.answers.lower >= 1).mean())
        yield at_least(f"{kind}, {name}: always a lower bound", bounded, 1, "share")


def variants() -> Iterator[Row]:
    """All minimal sets, ten references, costs and immutables against the plain search."""
    targets = {"all minimal sets": 4, "10 references": 10, "costs": 6, "immutables": 1.5}
    if not _here("fico"):
        for name, target in targets.items():
            yield _needs_data(f"{name} against plain", f"<= {target:g}")
        return
    subject = subjects.subject("fico", "gbdt")
    structure, problem = subject.problem()
    plain = cpu(partial(_solve, structure, problem))

    def ratio(changed: Problem) -> float:
        return cpu(partial(_solve, structure, changed)) / plain

    yield at_most("all minimal sets against plain", ratio(replace(problem, all_sets=1000)), 4, "x")
    weights = {name: 1.0 + (k % 4) for k, name in enumerate(subject.references.schema.names)}
    _, weighted = subject.problem(weights=weights)
    yield at_most("costs against plain", ratio(weighted), 6, "x")
    held = Constraints(*(Immutable(name) for name in subject.references.schema.names[:3]))
    _, immutable = subject.problem(constraints=held)
    yield at_most("immutables against plain", ratio(immutable), 1.5, "x")
    yield at_most("10 references against plain", _ten_references(subject), 10, "x", "end to end, sparsest of ten")


def _ten_references(subject: subjects.Subject) -> float:
    """End to end with ten accepted test rows as references against one of them."""
    _, X_test, _, _ = subjects.load("fico")
    schema = subject.references.schema
    accepted = schema.conform(X_test)[~subject.decision.refuses(schema.conform(X_test))].iloc[:10]
    explainers = [
        subject.explainer().with_(
            references=references.supplied(subject.decision, accepted.iloc[:k], schema=schema, assignment="sparsest")
        )
        for k in (1, 10)
    ]
    one, ten = (cpu(partial(explainer.explain, subject.cases), repeats=3) for explainer in explainers)
    return ten / one


def first_call() -> Iterator[Row]:
    """Import, first explain with an empty kernel cache, and later ones, each in a fresh process."""
    script = "import time; a = time.process_time(); import fewest; print(time.process_time() - a)"
    fresh(["-c", script], {})
    yield at_most("import fewest", min(float(fresh(["-c", script], {})) for _ in range(3)), 1.5, "s CPU")
    explain = (
        "import time, warnings; import fewest.experiments.benchmarking.subjects as s; one = s.subject('german', KIND);"
        "a = time.perf_counter(); one.explainer(unseen='allow').explain(one.cases); print(time.perf_counter() - a)"
    )
    with tempfile.TemporaryDirectory() as cache:
        for kind in ("l2lr", "gbdt", "mlp"):
            code = explain.replace("KIND", repr(kind))
            cold = float(fresh(["-c", code], {"NUMBA_CACHE_DIR": cache}))
            warm = float(fresh(["-c", code], {"NUMBA_CACHE_DIR": cache}))
            yield at_most(f"first explain after install, {kind}", cold, 20, "s")
            yield at_most(f"first explain in a new process, {kind}", warm, 1, "s")


@dataclass(frozen=True)
class Blind(ModelReading):
    """What was read of a model, believed without any comparison: for measurements alone."""

    def check_decisions(self, prepared: npt.NDArray[np.float64], positive: npt.NDArray[np.bool_]) -> None:
        """Believe it."""

    def check_part(
        self, schema: Schema, cases: pd.DataFrame, goals: pd.DataFrame, absent: npt.NDArray[np.bool_]
    ) -> None:
        """Believe it."""

    def drawn(self, cubes: int) -> int:
        """No vertices are drawn."""
        return 0


def comparison() -> Iterator[Row]:
    """CPU of explain with the comparison over that without, in turns: for a table, and for one case after another."""
    for name in ("german", "fico"):
        for kind in ("l2lr", "gbdt", "histgb", "forest8", "mlp"):
            title = f"comparing what was read with the model, {kind}, {name}"
            if not _here(name):
                yield _needs_data(title, "<= 1.05")
                continue
            subject = subjects.subject(name, kind)
            whole, alone = (_ratio(subject, cases) for cases in (subject.cases, subject.cases.iloc[:1]))
            detail = f"{len(subject.cases)} cases at once; one case alone {alone:.3f}"
            yield at_most(title, whole, 1.05, "x explain without it", detail)


def _ratio(subject: subjects.Subject, cases: pd.DataFrame) -> float:
    sighted, blind = (subject.explainer(unseen="allow") for _ in range(2))
    inside = blind.look_inside(subject.cases)
    sighted.look_inside(subject.cases)
    blind.reader.reading = Blind(**{part.name: getattr(inside, part.name) for part in fields(ModelReading)})
    # Both are measured in turns, so that they see the same machine.
    first, second = partial(sighted.explain, cases), partial(blind.explain, cases)
    first(), second()  # compiled
    loops = max(1, int(0.05 / max(timed(first)[1], 1e-6)))
    return statistics.median(timed(first, loops)[1] / timed(second, loops)[1] for _ in range(ROUNDS))


def one_case() -> Iterator[Row]:
    """One case of German Credit after another, each asked about in turn with the pipeline's own predict_proba."""
    rows = subjects.load("german")
    for kind in ("l2lr", "gbdt", "histgb"):
        subject = subjects.subject("german", kind)
        eight = references.clusters(subject.decision, rows.X_train, rows.y_train, n_clusters=8, assignment="sparsest")
        for goals, limit, what in ((subject.references, 2.2, "one reference"), (eight, 3.0, "sparsest of 8 clusters")):
            explainer = replace(subject, references=goals).explainer(unseen="allow")
            cases = [subject.cases.iloc[[k % len(subject.cases)]] for k in range(60)]
            explainer.explain(subject.cases)
            predict: Any = subject.decision.model.predict_proba
            both = [(timed(partial(explainer.explain, case))[1], timed(partial(predict, case))[1]) for case in cases]
            mine, own = (statistics.median(seconds) for seconds in zip(*both, strict=True))
            detail = f"explain {1e3 * mine:.2f} ms, predict_proba {1e3 * own:.2f} ms, medians of {len(cases)} in turn"
            yield at_most(f"one case, {kind}, {what}, german", mine / own, limit, "x predict_proba", detail)


def training() -> Iterator[Row]:
    """FICO: 80 epochs of cross-entropy against the same 80 and 20 more with the SEV loss."""
    for model, limit in LIMITS.items():
        name = f"All-Opt-1 {model}, fico"
        if not _here("fico"):
            yield _needs_data(name, f"<= {limit:g}")
            continue
        try:
            plain, whole = _training_seconds(model, 0), _training_seconds(model, EPOCHS)
        except ImportError:
            yield skipped(name, f"<= {limit:g}", 'torch is not installed: pip install "fewest[train]"')
            continue
        detail = f"{whole:.1f} s CPU against {plain:.1f} s, {WARM_UP} + {EPOCHS} epochs, batches of 128"
        yield at_most(name, whole / plain, limit, "x plain training", detail)


def _training_seconds(model: Any, epochs: int) -> float:
    """CPU seconds from raw rows to the trained model."""
    from fewest.models.training import AllOptClassifier

    rows = subjects.load("fico")
    estimator = AllOptClassifier(model, warmup_epochs=WARM_UP, epochs=epochs, positive=1, device="cpu")
    return timed(lambda: estimator.fit(rows.X_train, rows.y_train))[1]


WORKLOADS: dict[str, Callable[[], Iterator[Row]]] = {
    "linear": linear_search,
    "million": linear_million,
    "boosted": boosted_search,
    "boosters": other_boosters,
    "forests": forests,
    "networks": networks,
    "bfs": against_plain_bfs,
    "opaque": opaque_models,
    "variants": variants,
    "sparsest": sparsest,
    "first": first_call,
    "one-case": one_case,
    "comparison": comparison,
    "growth": growth,
    "ladders": growth_ladders,
    "trees": tree_million,
    "files-linear": files_linear,
    "files-boosted": files_boosted,
    "service": under_load,
    "training": training,
    "model-files": model_files,
    "any-value": any_value,
    "enough": enough,
    "accepted": accepted_cases,
    "other-tools": other_tools,
}
QUICK = ("linear", "opaque", "first")
