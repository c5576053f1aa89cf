"""Single cases as the paper's appendix shows them: a query, and what each kind of SEV would have changed.

Which cases: the first test rows of split 0 that both models decide against. Nobody picked them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fewest import datasets, references
from fewest.decision import Decision
from fewest.experiments.paper.data import Place, Rows, load_split
from fewest.experiments.paper.models import CLUSTER_WAYS, PROCEDURES, accepted, clusters_of, fit, ways_here
from fewest.experiments.paper.summary import aligned, markdown_rows
from fewest.explainer import Explainer
from fewest.results.explanation import Explanation, Status, show
from fewest.tables.saved_schema import plain

DATASETS = ("mimic_demo", "compas", "fico")  # those of the paper's appendix
MODEL = "L2LR"
DEPTH = 4
FLEXIBILITY = 0.05
COUNT, QUICK_COUNT, QUICK_ROWS = 5, 1, 400
KEPT = "----"  # as the paper prints a value that stays
WORDS = {Status.UNREACHABLE: "not possible", Status.BUDGET: "stopped"}


@dataclass(frozen=True)
class Answer:
    """What one kind of SEV says of a case: feature -> the value it would have had."""

    kind: str
    status: str
    changes: Mapping[str, Any]

    @property
    def size(self) -> str:
        """Number of features changed, or why there is none."""
        return str(len(self.changes)) if self.status == Status.EXPLAINED else WORDS.get(Status(self.status), "-")


@dataclass(frozen=True)
class PaperCase:
    """A query, its place in the whole table, and its answers."""

    row: int
    values: Mapping[str, Any]
    answers: tuple[Answer, ...]

    @property
    def features(self) -> tuple[str, ...]:
        """Those that at least one answer changes, in the table's order."""
        return tuple(name for name in self.values if any(name in answer.changes for answer in self.answers))

    def grid(self) -> list[list[str]]:
        """The paper's layout: a heading, the query, and one line per answer."""
        lines = [["", *self.features, "features changed"]]
        lines.append(["Query", *(_shown(self.values[name]) for name in self.features), ""])
        for answer in self.answers:
            cells = [_shown(answer.changes[name]) if name in answer.changes else KEPT for name in self.features]
            lines.append([answer.kind, *cells, answer.size])
        return lines


@dataclass(frozen=True)
class Examples:
    """Cases of one dataset."""

    dataset: str
    title: str
    cases: tuple[PaperCase, ...]
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """For a terminal: features below each other, because their names are long."""
        blocks = []
        for case in self.cases:
            (_, *corner), *rows = zip(*case.grid(), strict=True)
            lines = aligned([(f"row {case.row}", *corner), *rows])
            blocks.append("\n".join(line.rstrip() for line in lines))
        return "\n\n".join([self.title, *blocks, "\n".join(self.notes)])

    def as_markdown(self) -> str:
        """The paper's layout, a table for each case."""
        parts = [f"# {self.title}"]
        for case in self.cases:
            rows = markdown_rows([[cell.replace("|", "/") for cell in line] for line in case.grid()])
            parts.append("\n".join([f"Row {case.row}", "", *rows]))
        return "\n\n".join([*parts, "\n".join(f"- {note}" for note in self.notes)]) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """The cases as plain values."""
        return {
            "table": "examples",
            "dataset": self.dataset,
            "title": self.title,
            "cases": [
                {"row": case.row, "query": plain(case.values),
                 "answers": [{"kind": answer.kind, "status": answer.status, "changes": plain(answer.changes)}
                             for answer in case.answers]}
                for case in self.cases
            ],
            "notes": list(self.notes),
        }  # fmt: skip


def examples(dataset: str, folder: Place = None, quick: bool = False) -> Examples:
    """The first cases of one of the paper's datasets, explained in every way; one, from few training rows, if quick."""
    clusters = clusters_of(dataset, folder)
    rows = load_split(dataset, 0, folder)
    if quick:
        rows = rows.first(QUICK_ROWS)
    explainers = dict(_explainers(dataset, rows, clusters))
    queries = rows.X_test
    for explainer in explainers.values():
        queries = queries[explainer.decision.refuses(queries)]
    queries = queries[: QUICK_COUNT if quick else COUNT]
    answers = [[_answer(kind, one) for one in explainer.explain(queries)] for kind, explainer in explainers.items()]
    cases = [
        PaperCase(int(label), {name: queries.loc[label, name] for name in queries}, texts)
        for label, texts in zip(queries.index, zip(*answers, strict=True), strict=True)
    ]
    return Examples(dataset, f"Different SEV variants explanations: {dataset}", tuple(cases), _notes(dataset))


def _explainers(dataset: str, rows: Rows, clusters: tuple[int, float]) -> Iterator[tuple[str, Explainer]]:
    """One for each kind of SEV, on the paper's linear model and, for SEV-T, on a tree."""
    from fewest.models.trees import CARTClassifier

    X, y = rows.X_train, rows.y_train
    linear = Decision(fit(MODEL, dataset, X, y), positive=1)
    single = references.single(linear, X, y, on_positive="allow")
    kinds = {"SEV1": (linear, single), "SEV-F": (linear, single.flexible(FLEXIBILITY))}
    count, m = clusters
    for way in ways_here(PROCEDURES):
        whose, given = CLUSTER_WAYS[way]
        centres = accepted(references.clusters, linear, X, y, n_clusters=count, m=m, **given)
        if centres is not None:
            kinds[f"SEV-cluster, {whose}"] = (linear, centres)
            kinds[f"SEV-cluster+F, {whose}"] = (linear, centres.flexible(FLEXIBILITY))
    tree = Decision(CARTClassifier(max_depth=DEPTH).fit(X, y), positive=1)
    kinds["SEV-T"] = (tree, references.leaves(tree, X, y))
    for kind, (decision, refs) in kinds.items():
        yield kind, Explainer(decision, refs, n_jobs=1, unseen="allow")


def _answer(kind: str, one: Explanation) -> Answer:
    explained = one.status == Status.EXPLAINED
    changes = {change.feature: change.after for change in one.changes} if explained else {}
    return Answer(kind, one.status.value, changes)


def _notes(dataset: str) -> tuple[str, ...]:
    notes = (
        f"The first test rows of split 0 that the {MODEL} and the CART tree of depth {DEPTH} both decide against.",
        f"SEV-F moves numbers of the reference within {FLEXIBILITY:.0%} of the negatives' quantiles. SEV-T asks the "
        "tree, the others ask the linear model.",
        "SEV-cluster by the paper's procedure: clusters on a PaCMAP map, the mean of all rows of a cluster, the "
        "reference nearest on the map; ours (default): the median of accepted rows, and the reference that needs the "
        "fewest features.",
        "Values are typed as in the table and each answer was seen to turn its model.",
    )
    if dataset not in datasets.names():
        return notes
    special = "FICO: -9 no record, -8 no usable trades or inquiries, -7 condition not met; the paper prints Missing."
    return (
        *notes,
        "The paper does not say which rows or which model it shows, so its own cases cannot be found again. The "
        "authors' references have fractions of whole numbers; many of their tree explanations do not turn the tree.",
        f"Terms of these rows: {datasets.book(dataset).licence}.",
        *([special] if dataset == "fico" else []),
    )


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else show(value)
