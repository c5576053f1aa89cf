"""Who has looked at a reference and found it fit to compare people with; void as soon as a value changes.

A signature is a record, not a lock: it shows that values were changed after somebody looked at them, not that nobody
could have written the name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from fewest.errors import DataError, UsageError
from fewest.tables.saved_schema import plain
from fewest.tables.schema import Schema

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Signature:
    """One person's word for one reference.

    Attributes
    ----------
    by : str
        Who signed.
    at : str
        When, in UTC.
    note : str
    fingerprint : str
        SHA-256 of the reference's name and values and of what its features are.
    values : mapping
        The values that were signed, so that one can see which have changed.

    Examples
    --------
    >>> import pandas as pd
    >>> schema = Schema.infer(pd.DataFrame({"age": [20, 40]}))
    >>> clock = lambda: datetime(2026, 11, 12, 9, 30, tzinfo=UTC)
    >>> signature = sign("r1", {"age": 35}, schema, by="Credit Risk", clock=clock)
    >>> str(signature)
    'signed by Credit Risk on 2026-11-12'
    >>> signature.changes("r1", {"age": 35}, schema), signature.changes("r1", {"age": 36}, schema)
    ((), ('age',))
    """

    by: str
    at: str
    note: str
    fingerprint: str
    values: Mapping[str, Any]

    def __str__(self) -> str:
        return f"signed by {self.by} on {self.at[:10]}"

    def holds(self, name: str, values: Mapping[str, Any], schema: Schema) -> bool:
        """Whether this is what was signed."""
        return self.fingerprint == fingerprint(name, values, schema)

    def changes(self, name: str, values: Mapping[str, Any], schema: Schema) -> tuple[str, ...]:
        """Columns whose value is another than the signed one, or what else has changed; nothing if it holds."""
        if self.holds(name, values, schema):
            return ()
        columns = dict.fromkeys([*self.values, *values])
        changed = tuple(c for c in columns if canonical(self.values.get(c)) != canonical(values.get(c)))
        return changed or ("its name, or what its features are",)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "values": dict(self.values)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Signature:
        """The signature that `to_dict` wrote."""
        try:
            words = {name: str(content[name]) for name in ("by", "at", "note", "fingerprint")}
            return cls(**words, values=dict(content["values"]))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"a signature cannot be read ({error})", do="remove it, and sign again") from error


def sign(
    name: str, values: Mapping[str, Any], schema: Schema, *, by: str, note: str = "", clock: Clock = utc_now
) -> Signature:
    """A signature of one reference, as it is now."""
    if not isinstance(by, str) or not by.strip():
        raise UsageError("nobody is named who signs", do="pass a name")
    signed = {column: canonical(value) for column, value in values.items()}
    at = clock().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Signature(by.strip(), at, note, fingerprint(name, values, schema), signed)


def fingerprint(name: str, values: Mapping[str, Any], schema: Schema) -> str:
    """SHA-256 over canonical JSON of a reference's name and values and of what its features are.

    Known levels, ranges and scales are left out: they change with the training table, what a value means does not.
    """
    document = {
        "name": name,
        "values": {column: canonical(value) for column, value in values.items()},
        "features": [[f.name, f.kind, list(f.columns), f.unit] for f in schema.features],
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def canonical(value: Any) -> Any:
    """A value as it is fingerprinted: 35.0 is 35, and what is missing is null."""
    value = plain(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value
