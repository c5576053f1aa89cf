"""What comes in from forms, and the fields they have: small, counted while it is read, a field for every feature."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from fewest.errors import DataError
from fewest.references.audit import impossible
from fewest.tables.schema import Feature, Schema
from fewest.tables.values import value_of

LARGEST = 64_000
MOST_FIELDS = 4_000
LONGEST = 200
MOST_LEVELS = 200


class NotThereError(DataError):
    """What an address names does not exist; the page says so with 404."""


async def read_body(request: Request) -> dict[str, str]:
    """The fields of a form that was sent; a name that comes twice counts once."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "Only plain forms are taken.")
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > LARGEST:
            raise HTTPException(413, "This form is too large.")
    try:
        return dict(parse_qsl(data.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError as error:
        raise HTTPException(400, "This form cannot be read.") from error


def is_row(text: str) -> bool:
    """Whether a text can be the number of a case."""
    return text.isdecimal() and text.isascii() and len(text) <= 12


@dataclass(frozen=True)
class FormField:
    """One field of a form: ``f`` and the feature's number, so that no feature's name becomes a parameter.

    ``kind`` is ``number``, ``choice`` (``value`` is the number of the option) or ``fixed`` (shown, not to be changed);
    ``hint`` is the range that was seen, ``error`` why what was typed cannot be.
    """

    name: str
    label: str
    kind: str
    value: str
    options: tuple[str, ...] = ()
    hint: str = ""
    error: str = ""


def fields(
    schema: Schema, values: Mapping[str, Any], typed: Mapping[str, str] | None = None, *, anywhere: bool = False
) -> list[FormField]:
    """A field for every feature, with the values given or typed; ``anywhere`` lets numbers leave the range seen."""
    out = []
    for j, feature in enumerate(schema.features):
        field = _field(f"f{j}", _anywhere(feature) if anywhere else feature, values, typed or {})
        known = feature.is_numeric and math.isfinite(feature.minimum) and math.isfinite(feature.maximum)
        hint = f"seen in training: {feature.minimum:g} to {feature.maximum:g}" if known else ""
        out.append(replace(field, hint=hint))
    return out


def read_form(
    schema: Schema, values: Mapping[str, Any], typed: Mapping[str, str], *, anywhere: bool = False
) -> dict[str, Any]:
    """The values with what was typed, column by column; a `DataError` names what cannot be."""
    out = dict(values)
    for j, feature in enumerate(schema.features):
        if f"f{j}" in typed and _is_open(feature):
            try:
                out.update(_read(_anywhere(feature) if anywhere else feature, values, typed[f"f{j}"]))
            except ValueError as error:
                raise DataError(f"{feature.title}: {error}", do="correct it") from error
    return schema.snap(out)


def _is_open(feature: Feature) -> bool:
    """Whether a form can hold the feature: a group of columns, a date and a thousand levels do not fit one field."""
    return feature.is_numeric or feature.kind == "boolean" or 0 < len(_levels(feature)) <= MOST_LEVELS


def _anywhere(feature: Feature) -> Feature:
    return replace(feature, minimum=-math.inf, maximum=math.inf)


def _field(name: str, feature: Feature, values: Mapping[str, Any], typed: Mapping[str, str]) -> FormField:
    value = value_of(feature, values)
    if not _is_open(feature):
        return FormField(name, feature.title, "fixed", str(value))
    error = ""
    if name in typed:
        try:
            _read(feature, values, typed[name])
        except ValueError as problem:
            error = str(problem)
    if feature.is_numeric:
        text = typed.get(name, "" if value is None else f"{value:g}" if isinstance(value, float) else str(value))
        return FormField(name, feature.heading, "number", text[:LONGEST], error=error)
    known = _levels(feature)
    present = str(known.index(value)) if value in known else ""
    options = tuple(("no", "yes")[level] if isinstance(level, bool) else str(level) for level in known)
    return FormField(name, feature.title, "choice", typed.get(name, present), options, error=error)


def _read(feature: Feature, values: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Columns of one feature from the text of its field."""
    text = text.strip()
    if not text:
        if value_of(feature, values) is None:
            return {}
        raise ValueError("there is no value")
    read = _number(feature, text) if feature.is_numeric else _choice(feature, text)
    problem = impossible(feature, read)
    if problem:
        raise ValueError(problem)
    return read


def _number(feature: Feature, text: str) -> dict[str, Any]:
    try:
        number = float(text[:LONGEST].replace(",", "").replace("\u2009", ""))
    except ValueError:
        raise ValueError("not a number") from None
    if not math.isfinite(number):
        raise ValueError("not a finite number")
    return {feature.columns[0]: int(number) if number.is_integer() and feature.kind == "integer" else number}


def _choice(feature: Feature, text: str) -> dict[str, Any]:
    known = _levels(feature)
    if not text.isdecimal() or int(text) >= len(known):
        raise ValueError("not one of the choices")
    level = known[int(text)]
    if feature.kind == "indicators":
        return {column: int(column == level) for column in feature.columns}
    return {feature.columns[0]: level}


def _levels(feature: Feature) -> list[Any]:
    if feature.kind == "boolean":
        return [False, True]
    if feature.kind == "indicators":
        return list(feature.columns)
    return list(feature.levels) if feature.kind == "category" else []
