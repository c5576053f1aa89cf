"""What all checks share: the report, the user's model, and rows put together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.tables.arrays import Bools, Floats
from fewest.tables.cards import ShownAsCard
from fewest.tables.schema import Schema
from fewest.tables.scores import SINGLE
from fewest.tables.values import written

SHOWN, FIRST = 10, 5
CLOSE, CLOSE_SINGLE = 1e-7, 1e-4


@dataclass
class Finding:
    """One kind of problem, with how often it was found and the first places."""

    what: str  # {} stands for the first place
    detail: str = ""
    count: int = 0
    first: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        said = self.what.replace("{}", self.first[0] if self.first else "") + self.detail
        if self.count < 2:
            return said
        more = ", ..." if self.count > len(self.first) else ""
        return f"{said} ({self.count:,} in all: {', '.join(self.first)}{more})"


@dataclass(repr=False)
class Report(ShownAsCard):
    """What was looked at, what is wrong, and what is left unproved.

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
        Claims that were not proved again: some of the smaller sets were asked about, not all.
    random_state : int
        Seed of what was drawn; with it the same is drawn again.
    claimed : dict of str
        What the run says it was made with: threshold, class, direction, constraints, weights, references.
    left : list of str
        What else could not be checked.
    findings : dict of Finding
        What is wrong, each kind once.

    Examples
    --------
    >>> report = Report()
    >>> report.rows_wrong(np.array([5, 6, 7]), np.array([False, True, True]), "the score is another")
    >>> report.problems, report.ok
    (['row 6: the score is another (2 in all: 6, 7)'], False)
    """

    rows: int = 0
    rescored: int = 0
    reproved: int = 0
    sampled: int = 0
    unproved: int = 0
    random_state: int = 0
    claimed: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    findings: dict[str, Finding] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    @property
    def complete(self) -> bool:
        """Whether nothing is wrong and nothing is left unproved."""
        return self.ok and not self.left and self.unproved == 0

    @property
    def claims(self) -> int:
        """Claims that nothing smaller exists."""
        return self.reproved + self.sampled + self.unproved

    @property
    def share(self) -> float:
        """Share of them that was proved again."""
        return 1 - self.unproved / self.claims if self.claims else 1.0

    @property
    def problems(self) -> list[str]:
        """What is wrong, each kind once, in words."""
        return [str(finding) for finding in self.findings.values()]

    def add(self, what: str, places: Iterable[object] = (), detail: str = "") -> None:
        """Note something that is wrong, in some places; {} stands for the first of them."""
        finding = self.findings.setdefault(what, Finding(what, detail))
        for place in places:
            finding.count += 1
            if len(finding.first) < FIRST:
                finding.first.append(str(place))

    def rows_wrong(
        self, rows: npt.NDArray[np.int64], wrong: npt.NDArray[np.bool_], what: str, detail: str = ""
    ) -> None:
        """Note what is wrong with some rows."""
        if wrong.any():
            self.add(f"row {{}}: {what}", rows[wrong].tolist(), detail)

    def leave(self, what: str) -> None:
        """Note something that cannot be checked."""
        if what not in self.left:
            self.left.append(what)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        figures = {"ok": self.ok, "complete": self.complete, "share_proved": self.share, "problems": self.problems}
        return {**figures, **asdict(self), "findings": [asdict(one) for one in self.findings.values()]}

    def __str__(self) -> str:
        share = math.floor(1000 * self.share) / 10  # never rounded up to all
        lines = [
            f"{self.rows:,} answers checked, {self.rescored:,} rows scored again.",
            f"{self.claims - self.unproved:,} of {self.claims:,} claims that nothing smaller exists are proved again "
            f"({share:g} %; {self.sampled:,} drawn, random state {self.random_state}).",
        ]
        if self.claimed:
            lines += ["The run claims:", *(f"- {name}: {value}" for name, value in self.claimed.items())]
        left = [*self.left, *([f"{self.unproved:,} claims that nothing smaller exists"] if self.unproved else [])]
        if left:
            lines += ["Left unproved:", *(f"- {what}" for what in left)]
        if self.ok:
            return "\n".join([*lines, "Nothing is wrong."])
        shown, more = self.problems[:SHOWN], len(self.findings) - SHOWN
        rest = [f"... and {more:,} more"] if more > 0 else []
        return "\n".join([*lines, "Wrong:", *(f"- {problem}" for problem in shown), *rest])

    __repr__ = __str__


class KnownDensity(Protocol):
    """How dense accepted cases lie, and the least density that counts, as the caller knows them."""

    @property
    def floor(self) -> float:
        """Least log-density."""

    def log_density(self, X: Any) -> Floats:
        """Of each row of a table."""


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

    def turned(self, scores: Floats, plus: bool = False) -> Bools:
        """Which rows the change turned, by their scores after it."""
        cut = self.decision.cut
        return np.asarray(scores >= cut if plus else scores < cut)

    def same(self, stated: Floats, scored: Floats) -> Bools:
        """Whether stated scores are those of the model."""
        return np.abs(stated - scored) <= self.tolerance * np.maximum(1.0, np.abs(scored))


def changed(schema: Schema, case: pd.DataFrame, goal: pd.DataFrame, moved: Bools, plus: bool) -> pd.DataFrame:
    """Cases whose moved features have the goal's values; SEV+: goals whose moved features have the case's."""
    start, end = (goal, case) if plus else (case, goal)
    out: dict[str, Any] = {}
    for j, feature in enumerate(schema.features):
        for column in feature.columns:
            a, b = start[column].reset_index(drop=True), end[column].reset_index(drop=True)
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
