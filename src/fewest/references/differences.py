"""What differs between two sets of references."""

from __future__ import annotations

from typing import Any

import pandas as pd

from fewest.references.audit import value_of
from fewest.references.file import Saved
from fewest.references.signatures import canonical
from fewest.tables.schema import Schema


def differences(first: Saved, second: Saved, *, signatures: bool = False) -> list[dict[str, Any]]:
    """What differs in two sets of references: those that only one has, and values; signatures where that is asked.

    Examples
    --------
    >>> one = Saved(("r1",), ({"age": 35},), (-1,), (0.1,))
    >>> two = Saved(("r1",), ({"age": 36},), (-1,), (0.1,))
    >>> differences(one, two)
    [{'reference': 'r1', 'feature': 'age', 'first': 35, 'second': 36}]
    """
    changes: list[dict[str, Any]] = []
    if first.assignment != second.assignment:
        changes.append({"feature": "assignment", "first": first.assignment, "second": second.assignment})
    schema = first.schema or second.schema or Schema.infer(pd.DataFrame([*first.values, *second.values]))
    for name in dict.fromkeys([*first.names, *second.names]):
        if name not in first.names or name not in second.names:
            changes.append({"reference": name, "only": "first" if name in first.names else "second"})
            continue
        sides = [_described(saved, name, schema, signatures) for saved in (first, second)]
        changes += [
            {"reference": name, "feature": what, "first": sides[0][what], "second": sides[1][what]}
            for what in sides[0]
            if sides[0][what] != sides[1][what]
        ]
    return changes


def _described(saved: Saved, name: str, schema: Schema, signatures: bool) -> dict[str, Any]:
    """Each feature of a reference in the form that is compared and printed, and who signed it."""
    number = saved.names.index(name)
    out = {}
    for feature in schema.features:
        value = value_of(feature, saved.values[number])
        is_group = isinstance(value, dict)
        out[feature.name] = {c: canonical(part) for c, part in value.items()} if is_group else canonical(value)
    if signatures:
        signature = saved.signatures[number] if saved.signatures else None
        out["signature"] = "not signed" if signature is None else str(signature)
    return out
