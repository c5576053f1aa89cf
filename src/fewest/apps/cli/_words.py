"""The user's words: names of outcomes, of cases and of features, from options and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from fewest.apps.cli._files import read_table
from fewest.apps.cli._sources import Source, class_of
from fewest.decision import Decision
from fewest.errors import DataError, UsageError
from fewest.explainer import Explainer
from fewest.tables.schema import Schema

WORDS = ("label", "unit", "reason_code")
COLUMNS = ("name", *WORDS, "protected", "better", "direction")
TRUE, FALSE = ("yes", "true", "1"), ("no", "false", "0", "")


def named(decision: Decision, pairs: Sequence[str]) -> Decision:
    """The decision with names for its outcomes, from ``CLASS=WORD`` pairs."""
    names = {}
    for pair in pairs:
        label, sign, word = pair.partition("=")
        if not (sign and label and word):
            raise UsageError(f"--names {pair}: this is not CLASS=WORD", do="e.g. --names 0=approved --names 1=refused")
        if not decision.classes and label in ("0", "1"):  # 1 is the outcome that is explained
            names[int(label)] = word
        else:
            names[class_of(decision.model, label, "--names")] = word
    return replace(decision, names=names) if names else decision


def described(schema: Schema, file: Path | None) -> Schema:
    """The schema with the words of a CSV file: a row per feature, columns as in `COLUMNS`."""
    if file is None:
        return schema
    for row in _rows(file):
        changes: dict[str, object] = {word: row[word] for word in WORDS if row.get(word)}
        mark = str(row.get("protected", "")).strip().lower()
        if mark not in TRUE + FALSE:
            raise DataError(f'{file.name}, "{row["name"]}": protected is {mark!r}', do="write yes or no")
        if mark in TRUE:
            changes["protected"] = True
        if row.get("better"):
            changes["better"] = _way(file, row, "better")
        schema = schema.with_(str(row["name"]), **changes)
    return schema


def directions(file: Path | None) -> dict[str, str]:
    """The way that features may go, up or down, where the same file says it."""
    rows = [] if file is None else _rows(file)
    return {str(row["name"]): _way(file, row, "direction") for row in rows if row.get("direction")}


def _way(file: Path | None, row: dict[Any, Any], column: str) -> str:
    way = str(row[column])
    if way not in ("up", "down"):
        raise DataError(f'{file and file.name}, "{row["name"]}": {column} is {way!r}', do="write up, down or nothing")
    return way


def _rows(file: Path) -> list[dict[Any, Any]]:
    table = read_table(file, text=COLUMNS)
    if "name" not in table.columns:
        raise DataError(f'{file.name} has no column "name"', do="name the feature of each row")
    unknown = [column for column in table.columns if column not in COLUMNS]
    if unknown:
        raise DataError(f'{file.name}: the column "{unknown[0]}" is not known', do=f"use {', '.join(COLUMNS)}")
    rows: list[dict[Any, Any]] = table.fillna("").to_dict("records")
    return rows


def with_words(source: Source, names: Sequence[str], features: Path | None) -> Source:
    """A source with the words for its outcomes and features."""
    return replace(source, decision=named(source.decision, names), schema=described(source.schema, features))


def explainer_with_words(explainer: Explainer, names: Sequence[str], features: Path | None) -> Explainer:
    """The same for an explainer from a file."""
    if not names and features is None:
        return explainer
    schema = described(explainer.schema, features)
    references = replace(explainer.references, schema=schema)
    return explainer.with_(decision=named(explainer.decision, names), references=references)


def identified(cases: pd.DataFrame, column: str | None) -> pd.DataFrame:
    """The cases, each called by what stands in a column."""
    if column is None:
        return cases
    if column not in cases.columns:
        raise UsageError(f'--id {column}: the table has no column "{column}"', do="check the name")
    identifiers = cases[column]
    wrong = identifiers.isna() | identifiers.duplicated(keep=False)
    if wrong.any():
        row = int(wrong.to_numpy().argmax())
        what = (
            "is empty" if pd.isna(identifiers.iloc[row]) else f"{identifiers.iloc[row]!r} stands there more than once"
        )
        raise DataError(f'row {row}, column "{column}": {what}', do="give each case an identifier of its own")
    return cases.set_index(column, drop=False)
