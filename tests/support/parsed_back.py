"""What is printed, read again: sentences, tables, CSV, letters. It shares no code with the printer."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from typing import Any

import pandas as pd

from fewest.tables.schema import Feature, Schema

QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
DATE = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d(?:\.\d+)?(?:[+-]\d\d:\d\d)?)?")
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf)")
WORDS = {"yes": True, "no": False, "missing": None}
VERB, INSTEAD = " had been ", " instead of "
Change = tuple[str, Any, Any]  # feature, after, before


class Reader:
    """Reads a text from left to right; what does not fit raises."""

    def __init__(self, text: str, names: Iterable[str]) -> None:
        self.text, self.at = text, 0
        self.names = sorted(names, key=len, reverse=True)

    def take(self, word: str) -> bool:
        if not self.text.startswith(word, self.at):
            return False
        self.at += len(word)
        return True

    def need(self, word: str) -> None:
        if not self.take(word):
            raise ValueError(f"{word!r} is not at {self.at} of {self.text!r}")

    def name(self, before: str) -> str:
        match = QUOTED.match(self.text, self.at)
        if match and ast.literal_eval(match[0]) in self.names:
            self.at = match.end()
            self.need(before)
            return str(ast.literal_eval(match[0]))
        for name in self.names:
            if self.take(name + before):
                return name
        raise ValueError(f"no feature is named at {self.at} of {self.text!r}")

    def measured(self, unit: str | None) -> Any:
        """A value; the unit stands behind every number, and behind nothing else."""
        value = self.value()
        if unit and isinstance(value, int | float) and not isinstance(value, bool):
            self.need(f" {unit}")
        return value

    def value(self) -> Any:
        if self.take("("):
            parts = {}
            while not self.take(")"):
                end = self.text.index(" ", self.at)
                column = self.text[self.at : end]
                self.at = end + 1
                parts[column] = self.value()
                self.take(", ")
            return parts
        for word, value in WORDS.items():
            if self.take(word):
                return value
        for pattern, read in ((QUOTED, ast.literal_eval), (DATE, pd.Timestamp), (NUMBER, number)):
            match = pattern.match(self.text, self.at)
            if match:
                self.at = match.end()
                return read(match[0])
        raise ValueError(f"no value at {self.at} of {self.text!r}")


def number(text: str) -> int | float:
    return int(text) if text.lstrip("+-").isdigit() else float(text)


def of_sentence(text: str, schema: Schema) -> list[Change]:
    """The changes a sentence names."""
    titles = {feature.title: feature for feature in schema.features}
    reader = Reader(text, titles)
    reader.need("If ")
    changes = []
    while True:
        changes.append(_change(reader, titles, VERB))
        if reader.take(", the model would have predicted "):
            return changes
        if not reader.take(" and "):
            reader.need(", ")


def of_letter(text: str, schema: Schema) -> list[Change]:
    """The changes a letter names, from its text."""
    lines = text.split("\n")
    first = next(k for k, line in enumerate(lines) if line.startswith("What would have changed the outcome")) + 1
    last = next(k for k in range(first, len(lines)) if not lines[k].startswith("  "))
    return [_line(line.strip(), schema) for line in lines[first:last]]


def _line(line: str, schema: Schema) -> Change:
    """A line of a letter: text is bare where it cannot be taken for anything else."""
    titles = {feature.title: feature for feature in schema.features}
    reader = Reader(line, titles)
    feature = titles[reader.name(": ")]
    values = line[reader.at :]
    if feature.kind in ("category", "indicators") and values.count(INSTEAD) == 1:
        after, before = (_cell(value, feature) for value in values.split(INSTEAD))
        return feature.name, after, before
    return _change(Reader(line, titles), titles, ": ")


def _change(reader: Reader, titles: Mapping[str, Feature], verb: str) -> Change:
    feature = titles[reader.name(verb)]
    after = reader.measured(feature.unit)
    reader.need(INSTEAD)
    return feature.name, after, reader.measured(feature.unit)


class _Items(HTMLParser):
    """Items of the list of changes of an HTML letter, and rows of the case tables of a block."""

    def __init__(self) -> None:
        super().__init__()
        self.items: list[str] = []
        self.rows: list[list[str]] = []
        self.inside: list[str] = []
        self.listing = False
        self.skip = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kind = dict(attrs).get("class") or ""
        if tag == "ul":
            self.listing = kind == "changes"
        if tag == "li" and self.listing:
            self.items.append("")
        if tag == "tr" and kind in ("fw-changed", "fw-same"):
            self.rows.append([])
        if tag in ("th", "td") and "tr" in self.inside and self.rows and "tbody" in self.inside:
            self.rows[-1].append("")
        if tag == "span":
            self.skip += 1
        self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop() != tag:
            pass
        self.listing = self.listing and tag != "ul"
        self.skip -= tag == "span"

    def handle_data(self, data: str) -> None:
        if self.skip:
            return
        if self.listing and "li" in self.inside:
            self.items[-1] += data
        elif self.rows and self.rows[-1] and self.inside[-1:] in (["th"], ["td"]) and "tbody" in self.inside:
            self.rows[-1][-1] += data


def of_html_letter(page: str, schema: Schema) -> list[Change]:
    """The changes a letter names, from its HTML."""
    items = _Items()
    items.feed(page)
    return [_line(item, schema) for item in items.items]


def of_table(page: str, schema: Schema, column: int = 3) -> dict[str, Any]:
    """A column of the case table in a block of HTML, by default the last: the whole row as it would have been."""
    items = _Items()
    items.feed(page.split("<figure")[0])
    titles = {f"{f.title} ({f.unit})" if f.unit else f.title: f for f in schema.features}
    return {titles[row[0].strip()].name: _cell(row[column], titles[row[0].strip()]) for row in items.rows}


def _cell(text: str, feature: Feature) -> Any:
    """A cell of a table: bare text is a level."""
    levels = {str(level): level for level in feature.levels}
    if text[:1] in ("'", '"'):
        return ast.literal_eval(text)
    if feature.kind in ("category", "indicators") and text != "missing":
        return levels.get(text, text)
    return Reader(text, ()).value()


def of_csv(text: str, schema: Schema) -> list[list[Change]]:
    """The changes of each row of a CSV of answers."""
    rows = csv.DictReader(io.StringIO(text, newline=""))
    lists = [[json.loads(row[name]) for name in ("features", "to", "from")] for row in rows]
    return [list(zip(*parts, strict=True)) for parts in lists]


def cells_of(feature: Feature, value: Any) -> dict[str, Any]:
    """Cells of a feature's columns."""
    if feature.kind == "indicators":
        return {column: int(column == value) for column in feature.columns}
    if isinstance(value, Mapping):
        return dict(value)
    return {feature.columns[0]: value}


def turned_row(case: Mapping[str, Any], changes: Iterable[Change], schema: Schema) -> dict[str, Any]:
    """A case with the values of some changes written in."""
    row = dict(case)
    for name, after, _ in changes:
        row.update(cells_of(schema.features[schema.names.index(name)], after))
    return row


def as_frame(rows: list[dict[str, Any]], schema: Schema) -> pd.DataFrame:
    """Rows of read values as a table in the model's dtypes."""
    return schema.conform(pd.DataFrame(rows, columns=list(schema.columns)), unseen="allow")
