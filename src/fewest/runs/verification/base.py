"""What all checks share: the report, the user's model, and rows put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.tables.arrays import Bools, Floats
from fewest.tables.schema import Schema
from fewest.tables.scores import SINGLE
from fewest.tables.values import written

MOST = 100
SHOWN = 10
CLOSE, CLOSE_SINGLE = 1e-7, 1e-4


@dataclass
class Report:
    """What was looked at, and what is wrong.

    Attributes
    ----------
    rows : int
        Cases whose answers were checked.
    rescored : int
        Rows that were scored by the model: cases, and what their answers turn them into.
    reproved : int
        Claims that nothing smaller exists, proved again by enumeration: all cheap ones.
    sampled : int
        Of the others, those that were drawn and proved again.
    unproved : int
        Claims that were left alone: not drawn, or too many smaller sets.
    problems : list of str
        The first hundred; a text shows ten.
    more : int
        How many further ones there are.

    Examples
    --------
    >>> report = Report()
    >>> report.rows_wrong(np.array([5, 6, 7]), np.array([False, True, True]), "the score is another")
    >>> report.problems, report.ok
    (['row 6 and 1 more: the score is another'], False)
    """

    rows: int = 0
    rescored: int = 0
    reproved: int = 0
    sampled: int = 0
    unproved: int = 0
    problems: list[str] = field(default_factory=list)
    more: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def add(self, problem: str) -> None:
        """Note something that is wrong; beyond a hundred they are only counted."""
        if len(self.problems) < MOST:
            self.problems.append(problem)
        else:
            self.more += 1

    def rows_wrong(self, rows: npt.NDArray[np.int64], wrong: npt.NDArray[np.bool_], what: str) -> None:
        """Note what is wrong with some rows, under the first one's number."""
        bad = np.flatnonzero(wrong)
        if len(bad):
            others = f" and {len(bad) - 1:,} more" if len(bad) > 1 else ""
            self.add(f"row {rows[bad[0]]}{others}: {what}")

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"ok": self.ok, **asdict(self)}

    def __str__(self) -> str:
        head = (
            f"{self.rows:,} answers checked, {self.rescored:,} rows scored again, {self.reproved:,} proofs done again, "
            f"{self.sampled:,} of the longer ones drawn, {self.unproved:,} left"
        )
        if self.ok:
            return f"{head}. Nothing is wrong."
        left = len(self.problems[SHOWN:]) + self.more
        more = [f"... and {left:,} more"] if left else []
        return "\n".join([f"{head}. Wrong:", *(f"- {problem}" for problem in self.problems[:SHOWN]), *more])


@dataclass
class Scorer:
    """A decision that is asked about rows, and a count of them."""

    decision: Decision
    rows: int = 0
    tolerance: float = 1e-8

    def score(self, frame: pd.DataFrame) -> Floats:
        """Score of each row (n,); where one is close to the threshold, its score is that of the row alone."""
        self.rows += len(frame)
        scores, precision = self.decision.call(self.decision.arrange(frame), frame)
        single = precision == SINGLE
        self.tolerance = 2 * 10.0**-precision.decimals
        cut = self.decision.cut
        close = np.abs(scores - cut) <= (CLOSE_SINGLE if single else CLOSE) * max(1.0, abs(cut))
        scores = np.array(scores, dtype=np.float64)
        for row in np.flatnonzero(close):
            scores[row] = self.decision.score(frame.iloc[[row]])[0]
        return scores

    def after(
        self, schema: Schema, case: pd.DataFrame, goal: pd.DataFrame, moved: Bools, plus: bool
    ) -> tuple[Floats, Bools]:
        """Scores of cases whose moved features have the goal's values (SEV+: the reverse), and which are turned."""
        start, end = (goal, case) if plus else (case, goal)
        scores, cut = self.score(replaced(schema, start, end, moved)), self.decision.cut
        return scores, np.asarray(scores >= cut if plus else scores < cut)

    def same(self, stated: Floats, scored: Floats) -> Bools:
        """Whether stated scores are those of the model."""
        return np.abs(stated - scored) <= self.tolerance * np.maximum(1.0, np.abs(scored))


def replaced(schema: Schema, start: pd.DataFrame, goal: pd.DataFrame, moved: Bools) -> pd.DataFrame:
    """Rows of ``start`` in which the moved features have the values of the row of ``goal`` beside them."""
    out: dict[str, Any] = {}
    for j, feature in enumerate(schema.features):
        for column in feature.columns:
            a, b = start[column].reset_index(drop=True), goal[column].reset_index(drop=True)
            mixed = a.dtype != b.dtype
            if mixed:
                a, b = a.astype(object), b.astype(object)
            taken = b.where(moved[:, j], a)
            out[column] = taken.infer_objects() if mixed else taken
    return pd.DataFrame(out)


def entered(schema: Schema, frame: pd.DataFrame, values: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows with the values they are said to have: for each, feature -> its new value as JSON holds it."""
    out = {column: frame[column].astype(object).to_numpy(copy=True) for column in schema.columns}
    for row, stated in enumerate(values):
        for name, value in stated.items():
            for column, cell in written(schema, name, value).items():
                out[column][row] = cell
    return schema.conform(pd.DataFrame(out, index=frame.index).infer_objects(), unseen="allow")
