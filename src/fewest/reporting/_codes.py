"""Reason codes: what a lender calls a feature that stood in the way, and the words it uses for it."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, Literal

from fewest.errors import DataError
from fewest.tables.schema import Schema

Direction = Literal["up", "down", "level"]
DIRECTIONS = ("up", "down", "level", "any")
COLUMNS = ("feature", "direction", "code", "text")


@dataclass(frozen=True)
class Code:
    """One line of a table of reason codes.

    Examples
    --------
    >>> Code("income", "up", "R03", "Income is too low").code
    'R03'
    """

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
    """Where a change leads.

    Examples
    --------
    >>> direction_of(48, 18), direction_of(1, 2), direction_of("rent", "own"), direction_of(None, 3)
    ('down', 'up', 'level', 'level')
    """
    if any(isinstance(value, bool) or not isinstance(value, Real) for value in (before, after)):
        return "level"
    return "up" if after > before else "down"
