"""From the ``instances`` of a request to a typed table, or to a refusal that names the instance and the column."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd

from fewest.apps.serving.columns import Column
from fewest.apps.serving.refusals import RefusedError, body_refusal, instance_refusal
from fewest.apps.serving.strict_json import parse
from fewest.tables.schema import Feature, Schema

NAMES = {"instances", "parameters"}
SHAPE = 'send {"instances": [{...}], "parameters": {...}}'


class Asked(NamedTuple):
    """A request as read: its instances, and what it wishes.

    Attributes
    ----------
    instances : list of dict
    alternatives : int
        Smallest sets to list per case.
    time_limit : float
        Seconds.
    """

    instances: list[Any]
    alternatives: int
    time_limit: float


def read_request(body: bytes, *, max_instances: int, max_alternatives: int, time_limit: float) -> Asked:
    """Parse a body and check its shape; the instances themselves are checked by `cells_of`.

    Examples
    --------
    >>> limits = {"max_instances": 5, "max_alternatives": 3, "time_limit": 10.0}
    >>> read_request(b'{"instances": [{"age": 3}], "parameters": {"time_limit": 1}}', **limits)
    Asked(instances=[{'age': 3}], alternatives=0, time_limit=1.0)
    """
    content = parse(body)
    if not isinstance(content, dict) or "instances" not in content:
        raise body_refusal("the body has no instances", "body", "it must be an object that holds them", SHAPE)
    strange = sorted(set(content) - NAMES)
    if strange:
        raise body_refusal(f"{strange[0][:60]!r} is unknown", "body", "a misspelt wish would be ignored", SHAPE)
    instances = content["instances"]
    if not isinstance(instances, list) or not instances:
        raise body_refusal("instances is not a list of at least one", "instances", "there is nothing to answer", SHAPE)
    if len(instances) > max_instances:
        raise body_refusal(
            f"there are {len(instances):,} instances", "instances", f"the limit is {max_instances:,}",
            "send them in several requests",
        )  # fmt: skip
    wishes = content.get("parameters", {})
    return Asked(instances, *_read_parameters(wishes, max_alternatives, time_limit))


def _read_parameters(wishes: Any, max_alternatives: int, time_limit: float) -> tuple[int, float]:
    do = f"use alternatives from 0 to {max_alternatives} and time_limit above 0, up to {time_limit:g} seconds"
    if not isinstance(wishes, dict) or not set(wishes) <= {"alternatives", "time_limit"}:
        raise body_refusal("parameters are not understood", "parameters", "alternatives and time_limit are known", do)
    alternatives, seconds = wishes.get("alternatives", 0), wishes.get("time_limit", time_limit)
    for name, value in (("alternatives", alternatives), ("time_limit", seconds)):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise body_refusal("it is not a number", f"parameters.{name}", "it limits the search", do)
    if alternatives != int(alternatives) or not 0 <= alternatives <= max_alternatives:
        raise body_refusal("it is out of range", "parameters.alternatives", "each set takes time", do)
    if not 0 < seconds <= time_limit:
        raise body_refusal("it is out of range", "parameters.time_limit", "others wait for the worker", do)
    return int(alternatives), float(seconds)


def cells_of(schema: Schema, columns: tuple[Column, ...], instances: list[Any]) -> list[list[Any]]:
    """The typed cells of instances, column by column; a `RefusedError` names what does not fit.

    Parameters
    ----------
    schema : Schema
    columns : tuple of Column
        As `columns_of` gives them.
    instances : list of dict
        Column -> value, all columns and no others.

    Examples
    --------
    >>> from fewest.apps.serving.columns import columns_of
    >>> schema = Schema.infer(pd.DataFrame({"age": [30, 40], "home": ["own", "rent"]}))
    >>> cells_of(schema, columns_of(schema, any_level=False, missing=()), [{"home": "own", "age": 20.0}])
    [[20], ['own']]
    """
    names = [column.name for column in columns]
    wanted = set(names)
    for row, instance in enumerate(instances):
        if not isinstance(instance, dict) or instance.keys() != wanted:
            raise _wrong_columns(instance, names, row)
    cells = [column.cells([case[column.name] for case in instances]) for column in columns]
    for feature in schema.features:
        if feature.kind == "indicators":
            _check_one_set(feature, [cells[names.index(name)] for name in feature.columns])
    return cells


def table(schema: Schema, columns: tuple[Column, ...], cells: list[list[Any]]) -> pd.DataFrame:
    """Typed cells as a table in the schema's columns and dtypes.

    Examples
    --------
    >>> from fewest.apps.serving.columns import columns_of
    >>> schema = Schema.infer(pd.DataFrame({"age": [30, 40], "home": ["own", "rent"]}))
    >>> table(schema, columns_of(schema, any_level=False, missing=()), [[20], ["own"]]).to_dict("records")
    [{'age': 20, 'home': 'own'}]
    """
    frame = pd.DataFrame({column.name: column.series(part) for column, part in zip(columns, cells, strict=True)})
    # Levels have been checked against the schema, and matched by type, before.
    return schema.conform(frame, unseen="allow")


def _wrong_columns(instance: Any, names: list[str], row: int) -> RefusedError:
    where = f"instances[{row}]"
    if not isinstance(instance, dict):
        return instance_refusal("it is not an object", where, "values are given by column name", SHAPE)
    lacking = [name for name in names if name not in instance]
    if lacking:
        shown = ", ".join(lacking[:5]) + (" ..." if len(lacking) > 5 else "")
        why = f"{len(lacking)} of {len(names)} columns lack: {shown}"
        return instance_refusal("columns are missing", where, why, "add them; GET the model for its columns")
    extra = next(name for name in instance if name not in names)
    return instance_refusal(
        f"the model has no column {extra[:60]!r}", where, "a misspelt column would be ignored", "leave it out"
    )


def _check_one_set(feature: Feature, cells: list[list[int]]) -> None:
    for row, values in enumerate(zip(*cells, strict=True)):
        if sum(values) != 1:
            raise instance_refusal(
                f"{sum(values)} of its columns are 1", f"instances[{row}].{feature.name}",
                "exactly one level of a feature holds", "set one of the columns to 1, the others to 0",
            )  # fmt: skip
