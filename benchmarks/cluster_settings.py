"""Which settings of `references.clusters` bring explanations closer than one reference for all (SEV1), at what SEV.

Settings are compared on training rows only: models and references come from three quarters of them, cases from the
rest. The chosen settings are then measured on the test rows, with two more models, and written to docs/benchmarks.
All figures are over the cases that both SEV1 and the setting explain; the share that has no explanation stands apart.

    FEWEST_DATA=... python benchmarks/cluster_settings.py
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import train_test_split

import fewest as fw
from fewest.experiments.benchmarking import subjects
from fewest.references import clusters, single
from fewest.references.clustering.embedding import Embedding, Fitted, named
from fewest.tables.closeness import feature_distances

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks"
DATASETS = ("compas", "fico", "german", "adult", "headline", "diabetes")
CHOOSING, REPORTED = ("l2lr", "gbdt"), ("l2lr", "l1lr", "gbdt", "mlp")
COUNTS, CENTRES = (5, 8, 12), ("mean", "median", "medoid")
EMBEDDINGS, ASSIGNMENTS = ("pacmap", "pca", "identity"), ("embedding", "features", "sparsest")
AUTHORS = {"adult": 7, "german": 3, "compas": 5, "diabetes": 4, "fico": 4, "headline": 2}
CASES = {"choose": 150, "report": 400}
ROWS = {"choose": 10_000, "report": 20_000}
MORE_SEV = 0.2  # how many more features than SEV1 a setting may need on average
AS_CLOSE = 1.05  # settings this much less close than the best are as good


@dataclass(frozen=True)
class Setting:
    """One way to make references."""

    n_clusters: int
    centre: str
    embedding: str
    assignment: str

    def __str__(self) -> str:
        return f"{self.n_clusters} {self.centre} {self.embedding} {self.assignment}"


@dataclass(frozen=True)
class Measured:
    """Figures of each case, NaN where it has no explanation."""

    sev: np.ndarray
    l_inf: np.ndarray
    gower: np.ndarray

    @property
    def unreachable(self) -> float:
        return float(np.isnan(self.sev).mean())

    def beside(self, base: Measured) -> np.ndarray:
        """Means over the cases both explain: SEV, l_inf, Gower of this one, then of the other."""
        both = ~np.isnan(self.sev) & ~np.isnan(base.sev)
        return np.array([values[both].mean() for one in (self, base) for values in (one.sev, one.l_inf, one.gower)])


@dataclass(frozen=True)
class Once:
    """An embedding that is fitted once: the rows of one bench are always the same."""

    embedding: Embedding
    fitted: list[Fitted]

    def fit(self, Z: np.ndarray) -> Fitted:
        if not self.fitted:
            self.fitted.append(self.embedding.fit(Z))
        return self.fitted[0]


@dataclass(frozen=True)
class Bench:
    """A model, the rows its references are made of, and cases it decides against."""

    decision: fw.Decision
    explainer: fw.Explainer
    X: pd.DataFrame
    y: pd.Series
    cases: pd.DataFrame
    max_rows: int
    embeddings: dict[str, Once]

    @classmethod
    def make(cls, name: str, kind: str, stage: str) -> Bench:
        X, X_test, y, _ = subjects.load(name)
        if stage == "choose":
            X, X_test, y, _ = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
        decision = fw.Decision(clone(subjects.subject(name, kind).decision.model).fit(X, y), positive=1)
        refs = single(decision, X, y, on_positive="allow")
        cases = refs.schema.conform(X_test, unseen="allow")
        cases = cases[decision.refuses(cases)].iloc[: CASES[stage]]
        explainer = fw.Explainer(decision, refs, n_jobs=1, unseen="allow")
        explainer.look_inside(cases)
        return cls(decision, explainer, X, y, cases, ROWS[stage], {word: Once(named(word), []) for word in EMBEDDINGS})

    def references(self, n_clusters: int, centre: Any, embedding: str) -> fw.references.References | None:
        """Cluster references; None where the model accepts no centre."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fw.FewestWarning)
            try:
                return clusters(
                    self.decision, self.X, self.y, n_clusters=n_clusters, centre=centre,
                    embedding=self.embeddings[embedding],
                    schema=self.explainer.schema, max_rows=self.max_rows,
                )  # fmt: skip
            except fw.FewestError:
                return None

    def measure(self, refs: fw.references.References | None = None) -> Measured:
        """Explain the cases; without references given, with SEV1's."""
        explainer = self.explainer if refs is None else self.explainer.with_(references=refs)
        explainer._inside, explainer._band = self.explainer._inside, self.explainer._band  # read once per model
        out = explainer.explain(self.cases)
        explained = out.answers.status == list(fw.Status).index(fw.Status.EXPLAINED)
        figures = (out.answers.moved.sum(axis=1), out.answers.l_inf, gower(out))
        return Measured(*(np.where(explained, values, np.nan) for values in figures))


def gower(out: fw.Explanations) -> np.ndarray:
    """Gower distance between each case and its explanation: numbers by their range, the rest 0 or 1, mean over all."""
    reference = np.maximum(out.answers.reference, 0)
    steps = feature_distances(out.schema, out.frame, out.references.frame, reference)
    for j, feature in enumerate(out.schema.features):
        span = feature.maximum - feature.minimum
        if feature.is_numeric and span > 0:
            steps[:, j] = np.minimum(steps[:, j] * feature.scale / span, 1.0)
    return np.where(out.answers.moved, steps, 0.0).mean(axis=1)


def choose() -> dict[Setting, dict[str, np.ndarray]]:
    """Figures of every setting on held-out training rows, averaged over the models, by dataset."""
    found: dict[Setting, dict[str, list[np.ndarray]]] = {}
    for name, kind in itertools.product(DATASETS, CHOOSING):
        began = time.monotonic()
        bench = Bench.make(name, kind, "choose")
        base = bench.measure()
        for count, centre, embedding in itertools.product(COUNTS, CENTRES, EMBEDDINGS):
            refs = bench.references(count, centre, embedding)
            for assignment in ASSIGNMENTS if refs is not None else ():
                figures = bench.measure(refs.with_assignment(assignment)).beside(base)  # type: ignore[union-attr, arg-type]
                setting = Setting(count, centre, embedding, assignment)
                found.setdefault(setting, {}).setdefault(name, []).append(figures)
        print(f"compared on {name} {kind} in {time.monotonic() - began:.0f} s", flush=True)
    return {
        setting: {name: np.mean(parts, axis=0) for name, parts in by_name.items()}
        for setting, by_name in found.items()
        if all(len(parts) == len(CHOOSING) for parts in by_name.values()) and len(by_name) == len(DATASETS)
    }


def passes(figures: np.ndarray) -> bool:
    """Closer by both measures, for at most `MORE_SEV` more features."""
    sev, l_inf, near, sev1, l_inf1, near1 = figures
    return bool(sev <= sev1 + MORE_SEV and l_inf < l_inf1 and near < near1)


def rank(by_name: dict[str, np.ndarray]) -> tuple[int, float]:
    """Datasets on which a setting passes, then how much closer it is on all of them (geometric mean)."""
    table = np.array(list(by_name.values()))
    closer = float(np.log(table[:, [1, 2]] / table[:, [4, 5]]).mean())
    return sum(passes(row) for row in table), -closer


def chosen(compared: dict[Setting, dict[str, np.ndarray]]) -> Setting:
    """The default: as many datasets passed as any, and as close, with the fewest references for somebody to check.

    Medoids are compared but not chosen: they are rows of real people.
    """
    ranks = {setting: rank(by_name) for setting, by_name in compared.items() if setting.centre != "medoid"}
    most, closest = max(ranks.values())
    good = [s for s, (passed, closer) in ranks.items() if passed == most and closer >= closest - np.log(AS_CLOSE)]
    return min(good, key=lambda setting: (setting.n_clusters, -ranks[setting][1]))


def report(setting: Setting) -> Iterator[tuple[str, str, str, Measured, Measured]]:
    """The chosen setting and the authors' on test rows: dataset, model, method, its figures, SEV1's."""
    for name, kind in itertools.product(DATASETS, REPORTED):
        bench = Bench.make(name, kind, "report")
        base = bench.measure()
        for method, one in (("chosen", setting), ("paper", Setting(AUTHORS[name], "mean", "pacmap", "embedding"))):
            refs = bench.references(one.n_clusters, one.centre, one.embedding)
            if refs is not None:
                yield name, kind, method, bench.measure(refs.with_assignment(one.assignment)), base  # type: ignore[arg-type]


def ratio_line(label: str, figures: np.ndarray) -> str:
    sev, l_inf, near, sev1, l_inf1, near1 = figures
    mark = "yes" if passes(figures) else "no"
    return f"| {label} | {sev1:.2f} -> {sev:.2f} | {l_inf1:.3f} -> {l_inf:.3f} | {near1:.4f} -> {near:.4f} | {mark} |"


HEAD = "mean SEV | mean l_inf, sd | mean Gower distance | closer, SEV at most 0.2 more |"


def write(compared: dict[Setting, dict[str, np.ndarray]], best: Setting, measured: list[Any]) -> None:
    """The page and its picture."""
    order = sorted(compared, key=lambda setting: rank(compared[setting]), reverse=True)
    lines = [
        "# Clusters or one reference: measured",
        "",
        "Written by `benchmarks/cluster_settings.py`. Arrows go from SEV1 (mean/mode reference) to clusters, over the",
        "cases both explain. *l_inf*: largest change of a number in standard deviations, 0 where only levels change.",
        "*Gower*: mean over all features of the change, numbers by their range, levels 0 or 1.",
        "",
        f"Compared were {len(compared)} settings (clusters, centre, embedding, assignment) on held-out training rows",
        f"with {' and '.join(CHOOSING)}. Chosen, and the default: **{best}**: of the settings that are closest on most",
        "datasets, and within 5 % as close as the best, the one with the fewest references to check.",
        "",
        "![Mean SEV against distance](clusters.svg)",
        "",
        "## On test rows, averaged over the models",
        "",
        f"| dataset | {HEAD}",
        "|---|---|---|---|---|",
        *[ratio_line(name, average(measured, "chosen", name)) for name in DATASETS],
        "",
        "The authors' settings (their number of clusters, PaCMAP, mean, assigned by the embedding):",
        "",
        f"| dataset | {HEAD}",
        "|---|---|---|---|---|",
        *[ratio_line(name, average(measured, "paper", name)) for name in DATASETS],
        "",
        "## On test rows, model by model",
        "",
        f"| dataset | model | unreachable | {HEAD}",
        "|---|---|---|---|---|---|---|",
        *[
            ratio_line(f"{name} | {kind} | {base.unreachable:.1%} -> {own.unreachable:.1%}", own.beside(base))
            for name, kind, method, own, base in measured
            if method == "chosen"
        ],
        "",
        "## The settings compared",
        "",
        "On held-out training rows: datasets on which a setting passes, then change in SEV and ratios of distances.",
        "",
        "| setting | passes | SEV | l_inf | Gower |",
        "|---|---|---|---|---|",
        *[setting_line(setting, compared[setting]) for setting in order],
    ]
    (PAGE / "clusters.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    draw(compared, best)


def average(measured: Iterable[Any], method: str, name: str) -> np.ndarray:
    parts = [own.beside(base) for n, _, m, own, base in measured if (n, m) == (name, method)]
    return np.asarray(np.mean(parts, axis=0))


def setting_line(setting: Setting, by_name: dict[str, np.ndarray]) -> str:
    table = np.array(list(by_name.values()))
    ratios = np.exp(np.log(table[:, 1:3] / table[:, 4:6]).mean(axis=0))
    step = (table[:, 0] - table[:, 3]).mean()
    return f"| {setting} | {rank(by_name)[0]} of {len(table)} | {step:+.2f} | x {ratios[0]:.2f} | x {ratios[1]:.2f} |"


def draw(compared: dict[Setting, dict[str, np.ndarray]], best: Setting) -> None:
    """Mean SEV against the mean Gower distance, one panel per dataset, one mark per setting."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "fewest"
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    colours = dict(zip(ASSIGNMENTS, ("#0072b2", "#e69f00", "#009e73"), strict=True))
    for axes, name in zip(figure.subplots(2, 3).ravel(), DATASETS, strict=True):
        for setting, by_name in compared.items():
            axes.plot(by_name[name][0], by_name[name][2], ".", color=colours[setting.assignment], alpha=0.6)
        base = compared[best][name]
        axes.plot(base[3], base[5], "k*", markersize=13)
        axes.plot(base[0], base[2], "o", markersize=12, markerfacecolor="none", markeredgecolor="black")
        axes.set(title=name, xlabel="mean SEV", ylabel="mean Gower distance")
    handles = [mpl.lines.Line2D([], [], marker=".", linestyle="", color=colours[word]) for word in ASSIGNMENTS]
    handles.append(mpl.lines.Line2D([], [], marker="*", linestyle="", color="black", markersize=11))
    handles.append(mpl.lines.Line2D([], [], marker="o", linestyle="", color="black", fillstyle="none", markersize=10))
    names = [*(f"clusters, {word}" for word in ASSIGNMENTS), "SEV1", "default"]
    figure.legend(handles, names, loc="outside lower center", ncols=5)
    figure.savefig(PAGE / "clusters.svg", metadata={"Date": None})


def main() -> None:
    compared = choose()
    best = chosen(compared)
    for setting in sorted(compared, key=lambda one: rank(compared[one]), reverse=True)[:25]:
        print(setting_line(setting, compared[setting]))
    measured = []
    for name, kind, method, own, base in report(best):
        measured.append((name, kind, method, own, base))
        print(ratio_line(f"{name} | {kind} | {method}", own.beside(base)), flush=True)
    write(compared, best, measured)


if __name__ == "__main__":
    main()
