"""Bodies of requests: strict JSON, then pydantic types made from the model's schema; what they refuse, they name.

One type per column says both what is taken and how OpenAPI describes it. The JSON text is parsed here and not by
pydantic, whose parser lets a name stand twice in one object.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Annotated, Any, NamedTuple, NotRequired

import numpy as np
import pandas as pd
from pydantic import BeforeValidator, ConfigDict, FailFast, Field, TypeAdapter, ValidationError, WithJsonSchema
from typing_extensions import TypedDict

from fewest.apps.serving.refusals import RefusedError
from fewest.tables.saved_schema import plain
from fewest.tables.schema import Feature, Schema

LARGEST_NUMBER = 1e30
LARGEST_WHOLE = 2**53 - 1
ID_LENGTH = 200  # characters of a case's name
DAY = r"^[12][0-9]{3}-(0[1-9]|1[0-2])-([01][0-9]|2[0-8])(T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])?$"
NO_NULL = "a missing value is not taken here"
SHAPE = 'send {"instances": [{...}], "parameters": {...}}'
# pydantic's kinds of errors in the words of this service; its own words for the rest.
WORDS = {
    "dict_type": "an object is expected",
    "list_type": "a list is expected",
    "string_type": "a text is expected",
    "string_too_long": "the limit is {max_length:,} characters",
    "bool_type": "true or false is expected",
    "float_type": "a number that 64 bits can hold is expected",
    "less_than_equal": "the limit is {le:,}",
    "greater_than_equal": "it must be at least {ge:,}",
    "greater_than": "it must be above {gt:,}",
    "too_short": "there is nothing to answer",
    "too_long": "there are {actual_length:,}, the limit is {max_length:,}",
    "value_error": "{error}",
}


def parse(body: bytes) -> Any:
    """The value of a JSON text in UTF-8: no NaN, no name twice, no number or nesting beyond what can be held."""
    try:
        value = json.loads(
            body.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite
        )
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # half a surrogate pair is not a text
    except RecursionError:
        why = "it is nested too deeply"
    except UnicodeDecodeError:
        why = "it is not UTF-8"
    except UnicodeEncodeError:
        why = "a text holds half a surrogate pair"
    except json.JSONDecodeError as error:
        why = f"{error.msg} at line {error.lineno}, column {error.colno}"
    except ValueError as error:
        why = str(error).split(";")[0]
    else:
        return value
    do = "send one JSON object in UTF-8; a missing value is null"
    raise RefusedError(400, "the body is not JSON", "body", why, do) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the name {twice[:60]!r} stands twice in one object")
    return out


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:30]} is too large")
    return number


def _whole(value: Any) -> int:
    """A whole number, also one written as 30.0, but neither text nor true."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise ValueError("a whole number is expected")
    return int(value)


def _single(value: Any) -> Any:
    if type(value) in (list, dict):
        raise ValueError("a single value is expected")
    return value


def _level_of(levels: tuple[Any, ...]) -> Callable[[Any], Any]:
    """Finds the level that a JSON value means: true is not 1, and "1" is not either."""

    def level(value: Any) -> Any:
        for known in levels:
            if isinstance(known, bool) == isinstance(value, bool) and plain(known) == value:
                return known
        shown = ", ".join(str(known) for known in levels[:8]) + (" ..." if len(levels) > 8 else "")
        raise ValueError(f"the known values ({len(levels)}) are {shown}")

    return level


def _time_of(zone: bool) -> Callable[[Any], pd.Timestamp]:
    def time(value: Any) -> pd.Timestamp:
        try:
            moment = pd.Timestamp(datetime.fromisoformat(value))
        except (TypeError, ValueError, OverflowError):
            raise ValueError("a day or time in ISO 8601 is expected, such as 2026-01-31") from None
        if (moment.tzinfo is not None) != zone:
            raise ValueError("the time needs an offset" if zone else "the time must not have an offset")
        return moment.tz_convert("UTC") if zone else moment  # offsets may differ from row to row

    return time


def _any(read: Callable[[Any], Any], schema: dict[str, Any]) -> Any:
    def given(value: Any) -> Any:
        if value is None:
            raise ValueError(NO_NULL)
        return read(value)

    return Annotated[Any, BeforeValidator(given), WithJsonSchema(schema)]


def _between(kind: type, least: float, most: float, *more: Any) -> Any:
    return Annotated[kind, Field(ge=least, le=most, strict=True), *more]


def _column_type(feature: Feature, dtype: Any, any_level: bool) -> tuple[Any, Any]:
    """What a raw column takes, as a pydantic type, and the dtype of its cells (None: as pandas finds it)."""
    if feature.kind == "indicators":
        return _between(int, 0, 1, BeforeValidator(_whole)), np.int64
    if feature.kind == "category" and feature.levels and (isinstance(dtype, pd.CategoricalDtype) or not any_level):
        return _any(_level_of(feature.levels), {"enum": [plain(level) for level in feature.levels]}), object
    if feature.kind == "datetime":
        zone = isinstance(dtype, pd.DatetimeTZDtype)
        return _any(_time_of(zone), {"type": "string", **({} if zone else {"pattern": DAY})}), None
    if feature.kind != "category":
        if dtype is not None and pd.api.types.is_bool_dtype(dtype):
            return Annotated[bool, Field(strict=True)], None
        if dtype is not None and pd.api.types.is_integer_dtype(dtype):
            return _between(int, -LARGEST_WHOLE, LARGEST_WHOLE, BeforeValidator(_whole)), np.int64
        if dtype is None or pd.api.types.is_numeric_dtype(dtype):
            return _between(float, -LARGEST_NUMBER, LARGEST_NUMBER), np.float64
    return _any(_single, {"type": ["string", "number", "boolean"]}), object


def _record(name: str, parts: dict[str, Any]) -> Any:
    """A JSON object with these members and no others; unlike a model's fields, they may have any name."""
    make: Any = TypedDict
    kind = make(name, parts)
    kind.__pydantic_config__ = ConfigDict(extra="forbid")
    return kind


class Request(NamedTuple):
    """A request as read: typed cells column by column, smallest sets to list per case, seconds, names of the cases."""

    cells: list[list[Any]]
    alternatives: int
    time_limit: float
    ids: list[str | None]


class BodyReader:
    """Reads bodies of requests to one model.

    Missing values are taken in the columns named; levels that were never seen, where the model takes any level.
    """

    def __init__(
        self, schema: Schema, *, any_level: bool = False, missing: Iterable[str] = (),
        max_instances: int = 1_000, max_alternatives: int = 20, time_limit: float = 10.0,
    ) -> None:  # fmt: skip
        self.schema = schema
        self.time_limit = time_limit
        self.do = f"use alternatives from 0 to {max_alternatives} and time_limit above 0, up to {time_limit:g} seconds"
        nullable, types = frozenset(missing), {}
        self.dtypes: dict[str, Any] = {}
        for feature in schema.features:
            for name in feature.columns:
                kind, self.dtypes[name] = _column_type(feature, schema.dtypes.get(name), any_level)
                types[name] = kind | None if name in nullable and feature.kind != "indicators" else kind
        self.groups = [feature for feature in schema.features if feature.kind == "indicators"]
        # A name of the case may stand beside its columns, unless one of them is called so.
        self.takes_ids = "id" not in types
        called = Field(max_length=ID_LENGTH, strict=True, description="What the case is called; answers repeat it.")
        instance = _record(
            "Instance", {**({"id": NotRequired[Annotated[str, called]]} if self.takes_ids else {}), **types}
        )
        many: Any = Annotated[list[instance], FailFast()]  # type: ignore[valid-type]
        self._instance, self._instances = TypeAdapter(instance), TypeAdapter(many)
        alternatives = Field(description="List up to this many smallest sets per case.")
        seconds = Field(gt=0, description="Seconds; cases that are not done by then end as BUDGET.")
        wishes = {
            "alternatives": NotRequired[_between(int, 0, max_alternatives, BeforeValidator(_whole), alternatives)],
            "time_limit": NotRequired[Annotated[float, Field(le=time_limit, strict=True), seconds]],
        }
        parts = {
            "instances": Annotated[list[Any], Field(min_length=1, max_length=max_instances)],
            "parameters": NotRequired[_record("Parameters", wishes)],
        }
        self._body = TypeAdapter(_record("Request", parts))

    def read(self, body: bytes) -> Request:
        """The request of a body, or a `RefusedError` that names what does not fit, where, and what to do."""
        content = parse(body)
        try:
            content = self._body.validate_python(content)
        except ValidationError as error:
            raise self._not_a_request(error) from None
        wishes = content.get("parameters", {})
        cells = self.cells(content["instances"])
        ids = [one.get("id") for one in content["instances"]] if self.takes_ids else [None] * len(cells[0])
        return Request(cells, wishes.get("alternatives", 0), wishes.get("time_limit", self.time_limit), ids)

    def cells(self, instances: list[Any]) -> list[list[Any]]:
        """The typed cells of instances, column by column."""
        try:
            rows = self._instances.validate_python(instances)
        except ValidationError as error:
            raise self._not_an_instance(error) from None
        for feature in self.groups:
            for row, instance in enumerate(rows):
                ones = sum(instance[column] for column in feature.columns)
                if ones != 1:
                    raise RefusedError(
                        422, f"{ones} of its columns are 1", f"instances[{row}].{feature.name}",
                        "exactly one level of a feature holds", "set one of the columns to 1, the others to 0",
                    )  # fmt: skip
        return [[instance[name] for instance in rows] for name in self.dtypes]

    def table(self, cells: list[list[Any]]) -> pd.DataFrame:
        """Typed cells as a table in the schema's columns and dtypes."""
        named = zip(self.dtypes.items(), cells, strict=True)
        frame = pd.DataFrame({name: self._array(name, dtype, column) for (name, dtype), column in named}, copy=False)
        # Levels have been checked against the schema, and matched by type, before.
        return self.schema.conform(frame, unseen="allow")

    def _array(self, name: str, dtype: Any, column: list[Any]) -> Any:
        """Typed cells of a column; texts in the schema's dtype already, where all are texts."""
        if dtype in (np.float64, np.int64):
            return np.array(column, dtype=np.float64 if None in column else dtype)
        wanted = self.schema.dtypes.get(name)
        if isinstance(wanted, pd.StringDtype) and all(type(cell) is str for cell in column):
            return pd.array(column, dtype=wanted)
        return pd.Series(column, dtype=dtype)

    def instance_schema(self) -> dict[str, Any]:
        """What an instance must be, as JSON Schema."""
        out = self._instance.json_schema()
        if self.groups:
            out["allOf"] = [{"oneOf": [_only(level, feature) for level in feature.columns]} for feature in self.groups]
        return out

    def request_schema(self) -> dict[str, Any]:
        """What a request must be, as JSON Schema with nothing left to look up elsewhere."""
        out = self._body.json_schema()
        out["properties"]["instances"]["items"] = self.instance_schema()
        out["properties"]["parameters"] = out.pop("$defs")["Parameters"]
        return out

    def _not_a_request(self, error: ValidationError) -> RefusedError:
        first = error.errors(include_url=False)[0]
        *place, last = first["loc"] or ("body",)
        do = self.do if "parameters" in (*place, last) else SHAPE
        if first["type"] == "missing":
            return RefusedError(400, f"the body has no {last}", "body", "it must be an object that holds them", do)
        if first["type"] == "extra_forbidden":
            where = ".".join(map(str, place)) or "body"
            return RefusedError(400, f"{_short(last)} is unknown", where, "a misspelt wish would be ignored", do)
        where = ".".join(map(str, (*place, last)))
        return RefusedError(400, f"{_short(first['input'])} does not fit", where, _why(first), do)

    def _not_an_instance(self, error: ValidationError) -> RefusedError:
        errors = error.errors(include_url=False)
        first = errors[0]
        row, *column = first["loc"]
        where = f"instances[{row}]"
        lacking = [str(found["loc"][-1]) for found in errors if found["type"] == "missing"]
        extra = next((found["loc"][-1] for found in errors if found["type"] == "extra_forbidden"), None)
        if lacking:
            shown = ", ".join(lacking[:5]) + (" ..." if len(lacking) > 5 else "")
            why = f"{len(lacking)} of {len(self.dtypes)} columns lack: {shown}"
            return RefusedError(422, "columns are missing", where, why, "add them; GET the model for its columns")
        if extra is not None:
            what = f"the model has no column {_short(extra)}"
            return RefusedError(422, what, where, "a misspelt column would be ignored", "leave it out")
        if not column:
            return RefusedError(422, "it is not an object", where, "values are given by column name", SHAPE)
        what = f"{_short(first['input'])} does not fit"
        return RefusedError(422, what, f"{where}.{column[0]}", _why(first), "correct this value")


def _only(level: str, feature: Feature) -> dict[str, Any]:
    """That one level of a group holds, and no other."""
    return {"properties": {column: {"const": int(column == level)} for column in feature.columns}}


def _why(found: Any) -> str:
    if found["input"] is None:
        return NO_NULL
    return WORDS[found["type"]].format(**found.get("ctx", {})) if found["type"] in WORDS else str(found["msg"])


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
