"""Figure "SEV hypercube": one case, its reference, and every vertex between them that matters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pandas as pd

from fewest import references
from fewest.decision import Decision
from fewest.engine.verification import Vertices
from fewest.experiments.paper.base import Tell
from fewest.experiments.paper.data import Rows, load_split
from fewest.experiments.paper.figures.base import Bound, Drawing, Records, blank
from fewest.experiments.paper.models import fit
from fewest.explainer import Explainer
from fewest.reporting.plots import HypercubeDisplay
from fewest.results.explanations import Explanations

MODEL = "L2LR"
SPAN = 4  # features that span the cube: sixteen vertices can still be read
CASES, QUICK_ROWS = 300, 400


class HypercubeFigure(Bound):
    """The cube of the first test case that needs two features, or the most where none does.

    Examples
    --------
    >>> HypercubeFigure().title
    'The SEV hypercube of one case'
    """

    name: ClassVar[str] = "hypercube"
    title: ClassVar[str] = "The SEV hypercube of one case"
    caption: ClassVar[str] = (
        "Digits say which features have the case's values (1) and which the reference's (0). Squares are decided "
        "against, circles accepted; the ring marks the explanation. Shown are the features of the answer and those "
        "that lower the score most by themselves; the others keep the case's values."
    )

    def draw(self, datasets: Sequence[str], records: Records, tell: Tell) -> Drawing:
        """A panel per dataset."""
        picture, axes = blank(len(datasets), across=2, height=4.6)
        picture.set_size_inches(picture.get_figwidth() * 1.5, picture.get_figheight())
        tables = []
        for panel, dataset in zip(axes, datasets, strict=True):
            tell(f"    {self.name}: {dataset}")
            rows = load_split(dataset, 0, self.folder)
            if self.quick:
                rows = Rows(*(part[:QUICK_ROWS] for part in rows))
            decision = Decision(fit(MODEL, dataset, rows.X_train, rows.y_train, self.quick), positive=1)
            refs = references.single(decision, rows.X_train, rows.y_train)
            out = Explainer(decision, refs, n_jobs=1, unseen="allow").explain(rows.X_test[:CASES])
            row = _case(out)
            display = HypercubeDisplay.from_explanations(out, row, _span(out, row)).plot(panel)
            panel.set_title(f"{dataset}: case {out.frame.index[row]}, SEV {out[row].sev}")
            tables.append(display.table.assign(dataset=dataset, features=", ".join(display.features)))
        numbers = pd.concat(tables, ignore_index=True)
        return Drawing(picture, numbers[["dataset", "features", "vertex", "aligned", "score", "accepted", "answer"]])


def _case(out: Explanations) -> int:
    size = out.answers.moved.sum(axis=1)
    size[size > SPAN] = 0
    wanted = size == 2 if (size == 2).any() else size == size.max()
    return int(np.flatnonzero(wanted)[0])


def _span(out: Explanations, row: int) -> list[str]:
    """The features of the answer, then those that lower the score most alone; in column order."""
    singles = np.eye(len(out.schema), dtype=bool)
    goal_of = out.answers.reference[[row]]
    cube = Vertices(out.references.decision, out.schema, out.frame.iloc[[row]], out.references.frame, goal_of)
    score = cube.verdicts(np.zeros(len(singles), dtype=np.int64), singles).score
    score[score >= out.answers.score[row]] = np.inf  # these do not help, or have the reference's value already
    score[out.answers.moved[row]] = -np.inf
    best = [int(j) for j in np.argsort(score, kind="stable")[:SPAN] if score[j] < np.inf]
    return [out.schema.names[j] for j in sorted(best)]
