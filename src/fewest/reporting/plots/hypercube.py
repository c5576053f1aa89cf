"""The SEV hypercube of one case: every vertex between the case and its reference, with the turning one marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from textwrap import fill
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.engine.cubes import Vertices
from fewest.errors import UsageError
from fewest.reporting.plots.display import Display
from fewest.results.explanations import Explanations

MOST = 5  # 32 vertices; more cannot be read
LINE = 60  # characters
KINDS = (("refused", "0.45", "s"), ("accepted", "white", "o"))


@dataclass
class HypercubeDisplay(Display):
    """Vertices by the number of features aligned with the reference, from the case (left) to the reference (right).

    A vertex is named as in the paper: 1 where a feature has the case's value, 0 where it has the reference's. Squares
    are refused, circles are accepted; a thick ring marks the explanation, thick edges a way to it.

    Parameters
    ----------
    table : DataFrame
        One row per vertex: ``vertex``, ``aligned`` (features, with commas between), ``level``, ``score``,
        ``accepted``, ``answer``.
    features : tuple of str
        In the order of the digits.

    Examples
    --------
    >>> import fewest as fw
    >>> loans = pd.DataFrame({"amount": [1, 2, 9], "years": [1, 2, 5]})
    >>> decision = fw.Decision(lambda rows: (rows["amount"] + rows["years"]).to_numpy() / 20, positive=True)
    >>> refs = fw.references.single(decision, loans, [0, 0, 1])
    >>> display = HypercubeDisplay.from_explanations(fw.Explainer(decision, refs, n_jobs=1).explain(loans), row=2)
    >>> display.table["vertex"].tolist(), display.table.loc[display.table["answer"], "aligned"].tolist()
    (['11', '10', '01', '00'], ['amount'])
    """

    headline: ClassVar[str] = "Which of the changes are needed?"
    features: tuple[str, ...] = ()

    @classmethod
    def from_explanations(cls, explanations: Explanations, row: int, features: Sequence[str] | None = None) -> Self:
        """Of one case with an answer, towards a reference that is a point.

        ``features`` are at most five, those of the answer among them; the others keep the case's values. Default: all
        that differ from the reference, and those of the answer alone where these are more than five.
        """
        if explanations.plus or explanations.reach is not None:
            raise UsageError("the cube is drawn from a case to a reference that is a point", do="use SEV- of points")
        answer = explanations[row]
        if not explanations.answers.moved[row].any():
            raise UsageError(f"case {row} has no answer: {answer.status}", do="choose an explained one")
        chosen = _chosen(explanations, row, features)
        bits = np.array(list(product((False, True), repeat=len(chosen))))
        table = _vertices(explanations, row, chosen, bits)
        return cls(table, features=tuple(explanations.schema.features[j].title for j in chosen))

    def _draw(self, ax: Any) -> None:
        place = _places(self.table)
        self._edges(ax, place)
        for accepted, (word, grey, marker) in enumerate(KINDS):
            face = grey if self.style == "paper" else self.face(1 - accepted)
            own = self.table.index[self.table["accepted"] == bool(accepted)]
            ax.scatter(
                place[own, 0], place[own, 1], s=90, marker=marker, facecolors=face, edgecolors="black", zorder=3,
                label=word,
            )  # fmt: skip
        mark = self.table.index[self.table["answer"]]
        ax.scatter(
            place[mark, 0], place[mark, 1], s=330, facecolors="none", edgecolors="black", linewidths=2.2, zorder=4,
            label="explanation",
        )  # fmt: skip
        for number, vertex in enumerate(self.table.itertuples()):
            # One line under the mark, on white: in a full column the next mark is close, and edges cross.
            text = f"{vertex.vertex}: {vertex.score:.2f}"
            ax.annotate(
                text, place[number], (0, -11), textcoords="offset points", ha="center", va="top", fontsize=7, zorder=5,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.8},
            )  # fmt: skip
        ax.set_xticks(range(len(self.features) + 1))
        ax.set_yticks([])
        ax.margins(0.08, 0.16)
        digits = fill(f"(digits: {', '.join(self.features)})", LINE, break_long_words=False)
        ax.set_xlabel(f"features set to the reference's values\n{digits}")
        ax.legend(frameon=False, fontsize="small", loc="upper left", markerscale=0.6)

    def _edges(self, ax: Any, place: npt.NDArray[np.float64]) -> None:
        bits = np.array([[digit == "0" for digit in vertex] for vertex in self.table["vertex"]])
        way = _way(bits, int(np.flatnonzero(self.table["answer"])[0]))
        near = (bits[:, None] != bits[None, :]).sum(axis=2) == 1
        for a, b in zip(*np.nonzero(np.triu(near)), strict=True):
            thick = {int(a), int(b)} in way
            ax.plot(*place[[a, b]].T, color="black" if thick else "0.8", linewidth=2.2 if thick else 0.8, zorder=1)


def _chosen(out: Explanations, row: int, features: Sequence[str] | None) -> list[int]:
    """Positions of the features that span the cube."""
    moved = out.answers.moved[row]
    if features is None:
        reference = out.references.frame.iloc[int(out.answers.reference[row])]
        differs = out.frame.iloc[row].astype(object) != reference.astype(object)
        owner = out.schema.feature_of
        chosen = sorted({owner[column] for column in out.schema.columns if differs[column]})
        if len(chosen) > MOST:
            chosen = np.flatnonzero(moved).tolist()
    else:
        chosen = [out.schema.index(name) for name in dict.fromkeys(features)]
    left = [out.schema.names[j] for j in np.flatnonzero(moved) if j not in chosen]
    if left:
        raise UsageError(f'the answer also changes "{left[0]}"', do="name it among the features")
    if len(chosen) > MOST:
        names = ", ".join(f'"{out.schema.names[j]}"' for j in np.flatnonzero(moved))
        do = f"pass at most {MOST}, those of the answer among them: features=[{names}]"
        raise UsageError(
            f"{len(chosen)} features span {2 ** len(chosen)} vertices, too many to be read",
            do=do if moved.sum() <= MOST else f"choose a case whose answer changes at most {MOST} features",
        )
    return chosen


def _vertices(out: Explanations, row: int, chosen: list[int], bits: npt.NDArray[np.bool_]) -> pd.DataFrame:
    """Every vertex, scored by the model itself; ``bits`` says which features are aligned."""
    features = np.zeros((len(bits), len(out.schema)), dtype=bool)
    features[:, chosen] = bits
    goal_of = np.array([int(out.answers.reference[row])])
    cube = Vertices(out.references.decision, out.schema, out.frame.iloc[[row]], out.references.frame, goal_of)
    verdicts = cube.verdicts(np.zeros(len(bits), dtype=np.int64), features)
    names = [out.schema.features[j].title for j in chosen]
    return pd.DataFrame({
        "vertex": ["".join("0" if bit else "1" for bit in vertex) for vertex in bits],
        "aligned": [", ".join(name for name, bit in zip(names, vertex, strict=True) if bit) for vertex in bits],
        "level": bits.sum(axis=1),
        "score": verdicts.score,
        "accepted": ~verdicts.positive,
        "answer": (features == out.answers.moved[row]).all(axis=1),
    })  # fmt: skip


def _places(table: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Levels side by side, the vertices of each spread evenly around the middle."""
    within = table.groupby("level").cumcount().to_numpy()
    size = table.groupby("level")["level"].transform("size").to_numpy()
    return np.column_stack([table["level"].to_numpy(dtype=float), (size - 1) / 2.0 - within])


def _way(bits: npt.NDArray[np.bool_], answer: int) -> list[set[int]]:
    """Edges of a shortest way from the case to the answer, its features taken in order."""
    moved = np.flatnonzero(bits[answer])
    corners = [np.isin(np.arange(bits.shape[1]), moved[:count]) for count in range(len(moved) + 1)]
    places = [int(np.flatnonzero((bits == corner).all(axis=1))[0]) for corner in corners]
    return [set(edge) for edge in pairwise(places)]
