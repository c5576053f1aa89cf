"""What a verification found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

MOST = 100
SHOWN = 10


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
        return {
            "ok": self.ok, "rows": self.rows, "rescored": self.rescored, "reproved": self.reproved,
            "sampled": self.sampled, "unproved": self.unproved, "problems": self.problems, "more": self.more,
        }  # fmt: skip

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
