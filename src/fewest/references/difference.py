"""What differs between two files of references: those that only one has, and values; one place for every reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fewest.references.file import Saved
from fewest.references.signatures import canonical
from fewest.tables.schema import Feature, Schema
from fewest.tables.values import value_of


@dataclass(frozen=True)
class Difference:
    """One value that differs, or one reference that only one file has: then there is no feature.

    Attributes
    ----------
    reference : str
    feature : Feature or None
    before, after : value
        In the form that is compared: 35.0 is 35, and what is missing is None. For a whole reference its values, None
        where it is absent.
    """

    reference: str
    feature: Feature | None
    before: Any
    after: Any


def differences(before: Saved, after: Saved) -> list[Difference]:
    """References and values that differ; assignment and signatures do not count.

    Examples
    --------
    >>> one, two = (Saved(("r1",), ({"age": age},), (-1,), (0.1,)) for age in (35, 36))
    >>> [(found.reference, found.feature.name, found.before, found.after) for found in differences(one, two)]
    [('r1', 'age', 35, 36)]
    """
    ours, theirs = (dict(zip(saved.names, saved.values, strict=True)) for saved in (before, after))
    schema = before.schema or after.schema or Schema.infer(pd.DataFrame([*before.values, *after.values]))
    found = []
    for name in dict.fromkeys([*ours, *theirs]):
        if name not in ours or name not in theirs:
            found.append(Difference(name, None, ours.get(name), theirs.get(name)))
            continue
        for feature in schema.features:
            was, now = (canonical_value(feature, side[name]) for side in (ours, theirs))
            if was != now:
                found.append(Difference(name, feature, was, now))
    return found


def canonical_value(feature: Feature, values: Mapping[str, Any]) -> Any:
    """A feature's value in the form that is compared and printed."""
    value = value_of(feature, values)
    return {name: canonical(part) for name, part in value.items()} if isinstance(value, dict) else canonical(value)
