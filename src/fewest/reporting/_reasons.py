"""Reasons of a decision, from ALL smallest sets: what is in every one is necessary, the rest are alternatives.

One set is one way among several; a reason drawn from it alone would depend on which of equal answers was shown.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.errors import DataError, UsageError
from fewest.results.drawing import percent
from fewest.results.explanation import Change, Explanation, Status
from fewest.results.explanations import Explanations
from fewest.tables.cards import Rows, ShownAsCard
from fewest.tables.schema import Schema
from fewest.tables.values import written

Effects = Mapping[str, float]
Kind = Literal["necessary", "alternative"]
Direction = Literal["up", "down", "level"]
DIRECTIONS = ("up", "down", "level", "any")
COLUMNS = ("feature", "direction", "code", "text")
REASON_COLUMNS = ("case", "rank", "feature", "kind", "effect", "share", "value", "typical", "direction", "code")
SHOWN = 5
AT_MOST = 4  # the commentary on Regulation B finds more than four reasons of little use
SAME = 9  # decimals to which effects are compared


@dataclass(frozen=True)
class Code:
    """One line of a table of reason codes: what a lender calls a feature that stood in the way, and says of it."""

    feature: str
    direction: str
    code: str
    text: str


@dataclass(frozen=True)
class Codes:
    """A table of reason codes.

    Attributes
    ----------
    codes : mapping
        Feature and direction -> `Code`. A direction is that of the change that would have changed the outcome: ``up``
        (a higher number), ``down`` (a lower one), ``level`` (another level, or a value where one is missing), or
        ``any``.

    Examples
    --------
    >>> codes = Codes.of([Code("income", "up", "R03", "Income is too low"), Code("job", "any", "R05", "Kind of work")])
    >>> codes.find("income", "up").code, codes.find("job", "level").code, codes.find("income", "down")
    ('R03', 'R05', None)
    """

    codes: Mapping[tuple[str, str], Code]

    @classmethod
    def of(cls, lines: Iterable[Code]) -> Codes:
        """The table of some lines; refused where two speak of the same change."""
        codes: dict[tuple[str, str], Code] = {}
        for line in lines:
            if line.direction not in DIRECTIONS:
                raise DataError(
                    f'the reason code of "{line.feature}" has the direction "{line.direction}"',
                    do=f"use one of {', '.join(DIRECTIONS)}",
                )
            if (line.feature, line.direction) in codes:
                raise DataError(f'"{line.feature}" has two codes for "{line.direction}"', do="keep one of them")
            codes[line.feature, line.direction] = line
        return cls(codes)

    @classmethod
    def read(cls, path: str | Path) -> Codes:
        """Read a CSV file with the columns feature, direction, code and text.

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "codes.csv"
        >>> _ = path.write_text("feature,direction,code,text\\nincome,up,R03,Income is too low\\n")
        >>> Codes.read(path).find("income", "up").text
        'Income is too low'
        """
        path = Path(path)
        if not path.is_file():
            raise DataError(f"there is no file {path.name}", do="check the path of the reason codes")
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                rows = list(csv.DictReader(file, strict=True))
        except (UnicodeDecodeError, csv.Error) as error:
            raise DataError(f"{path.name} cannot be read as a table: {error}", do="save it as CSV in UTF-8") from error
        return cls.of(_line(path.name, number, row) for number, row in enumerate(rows, start=2))

    def with_defaults(self, schema: Schema) -> Codes:
        """This table, with the ``reason_code`` of a feature for every change that it has no line for.

        Examples
        --------
        >>> from fewest.tables.schema import Feature
        >>> schema = Schema((Feature("job", "category", ("job",), label="Kind of work", reason_code="R05"),))
        >>> Codes({}).with_defaults(schema).find("job", "level").text
        'Kind of work'
        """
        own = [Code(f.name, "any", f.reason_code, f.title) for f in schema.features if f.reason_code]
        return Codes({**Codes.of(own).codes, **self.codes})

    def find(self, feature: str, direction: Direction) -> Code | None:
        """The code of a change: that of its direction, else the one for any."""
        return self.codes.get((feature, direction)) or self.codes.get((feature, "any"))


def _line(name: str, number: int, row: Mapping[str, Any]) -> Code:
    lacking = [column for column in COLUMNS if not isinstance(row.get(column), str)]
    if lacking:
        raise DataError(
            f'{name}, line {number}: there is no "{lacking[0]}"', do=f"write the columns {', '.join(COLUMNS)}"
        )
    feature, direction, code, text = (str(row[column]).strip() for column in COLUMNS)
    if not (feature and code and text):
        raise DataError(f"{name}, line {number}: feature, code or text is empty", do="fill it in")
    return Code(feature, direction.lower() or "any", code, text)


def direction_of(before: Any, after: Any) -> Direction:
    """Where a change leads."""
    if any(isinstance(value, bool) or not isinstance(value, Real) for value in (before, after)):
        return "level"
    return "up" if after > before else "down"


@dataclass(frozen=True)
class Reason:
    """One feature that stood in the way."""

    feature: str
    kind: Kind  # "necessary" where it is in every smallest set
    # Its share of what changes the outcome, 0 to 1; the effects of all reasons add up to 1. None without the model.
    effect: float | None
    share: float  # of the smallest sets, those it is in
    case: Any  # the value of the case
    typical: Any  # the value that would have helped to change the outcome
    direction: Direction  # where the change leads
    code: Code | None = None  # what the table of codes calls it


@dataclass(frozen=True, repr=False)
class Reasons(ShownAsCard):
    """The reasons of one decision, most important first; prints as a line."""

    row: int
    label: Any
    given: tuple[Reason, ...]  # as many as were asked for
    left_out: tuple[Reason, ...]  # all others
    tied: tuple[Reason, ...]  # those left out that weigh as much as the last one given
    sets: int  # how many smallest sets there are

    def __repr__(self) -> str:
        parts = [
            reason.feature if reason.effect is None else f"{reason.feature} {percent(reason.effect)}"
            for reason in self.given
        ]
        return f"<reasons of case {self.label}: {', '.join(parts)}>"

    def _card_rows(self) -> tuple[Sequence[str], Rows]:
        return REASON_COLUMNS[2:], (row[2:] for row in _rows_of(self))


class CasesReasons(tuple[Reasons, ...], ShownAsCard):
    """The reasons of several cases, one `Reasons` for each."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = "".join(f"\n  {found!r}" for found in self[:SHOWN])
        return f"<reasons of {len(self)} cases>{shown}" + ("\n  ..." if len(self) > SHOWN else "")

    def _card_rows(self) -> tuple[Sequence[str], Rows]:
        return REASON_COLUMNS, (row for found in self for row in _rows_of(found))

    def to_frame(self) -> pd.DataFrame:
        """One row for each reason given: whose it is, which in order, and what is known of it."""
        rows = [row for found in self for row in _rows_of(found)]
        return pd.DataFrame(rows, columns=list(REASON_COLUMNS))


def _rows_of(found: Reasons) -> list[tuple[Any, ...]]:
    """The reasons given in one case, as rows of a table."""
    return [
        (found.label, rank, one.feature, one.kind, one.effect, one.share, one.case, one.typical, one.direction,
         None if one.code is None else one.code.code)
        for rank, one in enumerate(found.given, start=1)
    ]  # fmt: skip


def reasons(
    answers: Explanations | Explanation,
    max_reasons: int = AT_MOST,
    codes: Codes | None = None,
    *,
    decision: Decision | None = None,
    schema: Schema | None = None,
) -> CasesReasons:
    """The reasons of each explained case, drawn from all its smallest sets.

    The effect of a feature in a set is what the score gains when this feature alone is left as it was, as a share of
    the sum over the set's features: by minimality each of them, left as it was, undoes the change. A reason's effect is
    the mean over all smallest sets, zero for those it is not in. Reasons come by effect; equal ones, necessary first,
    then in column order. Without a model (an `Explanation` alone): by the share of sets they are in.

    Parameters
    ----------
    answers : Explanations or Explanation
        Explained with ``alternatives``, as many as it takes to list all.
    max_reasons : int
        Reasons given per case.
    codes : Codes, optional
        What the features are called; default: by the schema's ``reason_code`` and label.
    decision, schema : Decision and Schema, optional
        For an `Explanation` alone: what decides and what its features are, to weigh the reasons.

    Returns
    -------
    tuple of Reasons
        One for each case that is EXPLAINED; its ``to_frame()`` is a table with a row for each reason.

    Examples
    --------
    >>> import fewest as fw
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100 + rows["late"].to_numpy() / 10)
    >>> refs = fw.references.supplied(decision, {"debt": [10], "late": [0]})
    >>> out = fw.Explainer(decision, refs).explain({"debt": [80], "late": [6]}, alternatives=10)
    >>> (found,) = reasons(out)
    >>> [(reason.feature, reason.kind, round(reason.effect, 2)) for reason in found.given]
    [('debt', 'necessary', 0.54), ('late', 'necessary', 0.46)]
    >>> found
    <reasons of case 0: debt 54 %, late 46 %>
    >>> reasons(out).to_frame()[["case", "rank", "feature", "value", "typical"]].to_numpy().tolist()
    [[0, 1, 'debt', 80, 10], [0, 2, 'late', 6, 0]]
    """
    if max_reasons < 1:
        raise UsageError(f"max_reasons is {max_reasons}", do="ask for at least one reason")
    if isinstance(answers, Explanation):
        chosen = [answers]
    else:
        chosen = [answer for answer in answers if answer.status == Status.EXPLAINED]
        decision, schema = answers.references.decision, answers.schema
    for answer in chosen:
        _check(answer)
    if decision is None or schema is None:
        weights: Sequence[Effects | None] = [None] * len(chosen)
    else:
        weights = effects(chosen, decision, schema)
    if schema is not None:
        codes = (codes or Codes({})).with_defaults(schema)
    order = () if schema is None else schema.names
    return CasesReasons(
        _of_one(answer, weight, max_reasons, codes, order) for answer, weight in zip(chosen, weights, strict=True)
    )


def _check(answer: Explanation) -> None:
    """Refuse what reasons cannot be drawn from."""
    where = f"case {answer.label}"
    if answer.status != Status.EXPLAINED:
        raise UsageError(f"{where} is {answer.status.words}: it has no reasons", do="ask for explained cases only")
    if answer.plus:
        raise UsageError("reasons are drawn from what changes an outcome, not from SEV+", do='use direction="minus"')
    if not answer.alternatives:
        raise UsageError(
            f"{where}: its smallest sets were not listed, and reasons are drawn from all of them",
            do="explain with alternatives=1000",
        )
    if not answer.all_listed:
        listed = len(answer.alternatives)
        raise UsageError(
            f"{where}: {listed} of its smallest sets are listed, perhaps not all, and reasons need all of them",
            do=f"explain with alternatives={max(1000, 10 * listed)}; where that lists no more, with more nodes",
        )


def _of_one(
    answer: Explanation, weight: Effects | None, max_reasons: int, codes: Codes | None, order: Sequence[str]
) -> Reasons:
    sets = answer.alternatives
    first: dict[str, Change] = {}
    counts: dict[str, int] = {}
    for changes in sets:
        for change in changes:
            first.setdefault(change.feature, change)
            counts[change.feature] = counts.get(change.feature, 0) + 1
    found = []
    for name, change in first.items():
        direction = direction_of(change.before, change.after)
        code = None if codes is None else codes.find(name, direction)
        kind: Kind = "necessary" if counts[name] == len(sets) else "alternative"
        share, effect = counts[name] / len(sets), None if weight is None else weight[name]
        found.append(Reason(name, kind, effect, share, change.before, change.after, direction, code))
    names = order or [fact.name for fact in answer.facts]
    place = {name: number for number, name in enumerate(names)}
    found.sort(key=lambda reason: (*_weight(reason), place.get(reason.feature, len(place))))
    given, rest = tuple(found[:max_reasons]), tuple(found[max_reasons:])
    tied = tuple(reason for reason in rest if _weight(reason)[0] == _weight(given[-1])[0])
    return Reasons(answer.row, answer.label, given, rest, tied, len(sets))


def _weight(reason: Reason) -> tuple[float, bool]:
    """What reasons are ordered by, most important first."""
    weight = reason.share if reason.effect is None else reason.effect
    return -round(weight, SAME), reason.kind != "necessary"


def effects(answers: Sequence[Explanation], decision: Decision, schema: Schema) -> list[Effects]:
    """For each answer, feature -> mean share over all its smallest sets; the model is called once."""
    rows = [row for answer in answers for row in _vertices(answer, schema)]
    if not rows:
        return [{} for _ in answers]
    frame = schema.conform(pd.DataFrame(rows, columns=list(schema.columns)), unseen="allow")
    score = decision.verdicts(frame).score
    out: list[Effects] = []
    place = 0
    for answer in answers:
        total: dict[str, float] = {}
        for changes in answer.alternatives:
            shares = _shares(score[place : place + 1 + len(changes)])
            place += 1 + len(changes)
            for change, share in zip(changes, shares.tolist(), strict=True):
                total[change.feature] = total.get(change.feature, 0.0) + share / len(answer.alternatives)
        out.append(total)
    return out


def _shares(score: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Shares of a set's features, from the score of the whole set and of the set without each."""
    # Rules between features can make a smaller set change the outcome too and not be allowed: then no effect is lost.
    lost = np.maximum(score[1:] - score[0], 0.0)
    whole = lost.sum()
    return lost / whole if whole > 0 else np.full(len(lost), 1.0 / len(lost))


def _vertices(answer: Explanation, schema: Schema) -> list[dict[str, Any]]:
    """For each smallest set: the case changed by it, then by it without each of its features."""
    if len(answer.facts) != len(schema):
        raise DataError(
            f"case {answer.label}: not all its values are known, so reasons cannot be weighed",
            do="keep the cases in the run folder, or leave out the model",
        )
    case: dict[str, Any] = {}
    for feature, fact in zip(schema.features, answer.facts, strict=True):
        case.update(written(schema, feature.name, fact.case))
    rows = []
    for changes in answer.alternatives:
        rows.append(_turned(case, changes, schema))
        rows += [_turned(case, [c for c in changes if c is not left], schema) for left in changes]
    return rows


def _turned(case: Mapping[str, Any], changes: Sequence[Change], schema: Schema) -> dict[str, Any]:
    row = dict(case)
    for change in changes:
        row.update(written(schema, change.feature, change.after))
    return row
