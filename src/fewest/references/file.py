"""References as a file: values, names, provenance and signatures; neither the model nor a row of its training table.

Format 2 adds the schema, the decision in words, quantiles of the accepted cases' numbers, ranges, flexible references
and signatures. Format 3 adds the rule that sends cases to references on a map; a file is written in it only where it
has one, so that a version that does not know the rule refuses it. Files of formats 1 and 2 stay readable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewest.errors import DataError, FewestError, UsageError
from fewest.references.signatures import Clock, Signature, canonical, fingerprint, sign, utc_now
from fewest.references.spread import Spread
from fewest.tables.files import write_text
from fewest.tables.saved_schema import schema_from_json, schema_to_json
from fewest.tables.schema import Feature, Schema
from fewest.tables.values import value_of

FORMAT, WITH_RULE = 2, 3
READABLE = (1, FORMAT, WITH_RULE)
UNKNOWN_SUPPORT = -1


@dataclass(frozen=True, eq=False)
class Saved:
    """What a file of references holds."""

    names: tuple[str, ...]
    values: tuple[Mapping[str, Any], ...]  # Column -> value of each reference, as JSON holds it
    support: tuple[int, ...]  # Rows each stands for; -1 where not known
    # The model's score of each when it was saved; NaN where not known, or where values were changed in the file
    score: tuple[float, ...]
    schema: Schema | None = None  # None in files of format 1
    # ``positive`` (None where the model has no classes), ``outcome`` and ``threshold``; empty in files of format 1
    decision: Mapping[str, Any] = field(default_factory=dict)
    assignment: str = "features"
    provenance: Mapping[str, Any] = field(default_factory=dict)
    spread: Spread = field(default_factory=Spread)
    # For each reference the one it is the flexible twin of, -1 for none; empty where there are no twins
    flexible_of: tuple[int, ...] = ()
    signatures: tuple[Signature | None, ...] = ()  # As they stand in the file, whether they hold or not
    rule: Mapping[str, Any] | None = None  # what assignment by embedding needs, see `by_embedding`

    def __len__(self) -> int:
        return len(self.names)

    @property
    def frame(self) -> pd.DataFrame:
        """The values as a table, not typed."""
        return pd.DataFrame(list(self.values))

    def broken(self, number: int) -> tuple[str, ...]:
        """What has changed since a reference was signed; nothing where it was not, or where the signature holds."""
        signature = self.signatures[number] if self.signatures else None
        if signature is None or self.schema is None:
            return ()
        return signature.changes(self.names[number], self.values[number], self.schema)

    def sign(self, by: str, note: str = "", which: str | Sequence[str] | None = None, clock: Clock = utc_now) -> Saved:
        """The same with new signatures."""
        if self.schema is None:
            raise UsageError("a file of format 1 does not say what its features are", do="load it, and save it again")
        chosen = choose(self.names, which)
        old = self.signatures or (None,) * len(self)
        signatures = tuple(
            sign(self.names[k], self.values[k], self.schema, by=by, note=note, clock=clock) if k in chosen else old[k]
            for k in range(len(self))
        )
        return replace(self, signatures=signatures)

    def to_dict(self, whole: bool = True) -> dict[str, Any]:
        """Plain values; without the schema and the quantiles unless ``whole``."""
        entries = [self._entry(k) for k in range(len(self))]
        short: dict[str, Any] = {"format": FORMAT if self.rule is None else WITH_RULE, "assignment": self.assignment,
                                 "provenance": dict(self.provenance), "references": entries}  # fmt: skip
        if not whole:
            return short
        described = {} if self.schema is None else schema_to_json(self.schema)
        rule = {} if self.rule is None else {"rule": dict(self.rule)}
        return {
            **short,
            "decision": dict(self.decision),
            "schema": described,
            "quantiles": self.spread.to_dict(),
            **rule,
        }

    def _entry(self, number: int) -> dict[str, Any]:
        """One reference; what is not known of it is left out."""
        score, flexible_of = self.score[number], self.flexible_of[number] if self.flexible_of else -1
        signature = self.signatures[number] if self.signatures else None
        entry: dict[str, Any] = {
            "name": self.names[number],
            "support": self.support[number],
            "score": score if np.isfinite(score) else None,
            "values": dict(self.values[number]),
        }
        if self.schema is not None and np.isfinite(score):
            entry["scored"] = fingerprint(self.names[number], self.values[number], self.schema)
        if flexible_of >= 0:
            entry["twin_of"] = self.names[flexible_of]
        if self.spread.ranges and self.spread.ranges[number]:
            entry["ranges"] = {column: list(ends) for column, ends in self.spread.ranges[number].items()}
        if signature is not None:
            entry["signature"] = signature.to_dict()
        return entry

    def write(self, path: str | Path) -> None:
        """Write the file; the quantiles come last and on one line each, out of the way of people."""
        parts = [
            f"{json.dumps(key)}: {_inline(value) if key == 'quantiles' else _indented(value)}"
            for key, value in self.to_dict().items()
        ]
        write_text(path, "{\n  " + ",\n  ".join(parts) + "\n}\n")


def read_saved(path: str | Path) -> Saved:
    """Read a references file of any format there was."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"there is no file {path.name}", do="check the path of the references")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.get("format") not in READABLE:
            raise DataError(f"{path.name} is not a references file of format 1, 2 or 3", do="save it again")
        if (content["format"] == WITH_RULE) != ("rule" in content):
            raise DataError(f"{path.name} lacks the rule that sends cases to references", do="save it again")
        return from_dict(content)
    except FewestError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise DataError(f"{path.name} is not a references file ({error})", do="save the references again") from error


def plain_rows(frame: pd.DataFrame) -> tuple[dict[str, Any], ...]:
    """Rows of a typed table as JSON holds them."""
    text = frame.to_json(orient="records", date_format="iso", default_handler=str, double_precision=15)
    return tuple(json.loads(str(text)))


def choose(names: Sequence[str], which: str | Sequence[str] | None) -> set[int]:
    """Numbers of the references that are named; all for None."""
    if which is None:
        return set(range(len(names)))
    wanted = [which] if isinstance(which, str) else list(which)
    for name in wanted:
        if name not in names:
            raise UsageError(f'there is no reference "{name}"', do=f"choose from {', '.join(names)}")
    return {number for number, name in enumerate(names) if name in wanted}


def from_dict(content: Mapping[str, Any]) -> Saved:
    """The references of a file that was read as plain values; what is odd there raises a lookup or value error."""
    # Flexible twins come after all others, whatever order a person left them in.
    entries = sorted(content["references"], key=lambda entry: "twin_of" in entry)
    described = content.get("schema") or {}
    schema = schema_from_json(described["features"], described["dtypes"]) if described else None
    names = tuple(str(entry["name"]) for entry in entries)
    signatures = [entry.get("signature") for entry in entries]
    return Saved(
        names=names,
        values=tuple(dict(entry["values"]) for entry in entries),
        support=tuple(int(entry.get("support", UNKNOWN_SUPPORT)) for entry in entries),
        score=tuple(_score(entry, schema) for entry in entries),
        schema=schema,
        decision=dict(content.get("decision") or {}),
        assignment=str(content.get("assignment")),
        provenance=dict(content.get("provenance") or {}),
        spread=_spread(content, entries),
        flexible_of=_twins(entries, names),
        signatures=tuple(None if signature is None else Signature.from_dict(signature) for signature in signatures),
        rule=None if content.get("rule") is None else dict(content["rule"]),
    )


@dataclass(frozen=True)
class Difference:
    """One value that differs, or one reference that only one file has: then there is no feature.

    Values are in the form that is compared: 35.0 is 35, and what is missing is None.
    """

    reference: str
    feature: Feature | None
    before: Any  # for a whole reference its values, None where it is absent
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
            was, now = (_compared(value_of(feature, side[name])) for side in (ours, theirs))
            if was != now:
                found.append(Difference(name, feature, was, now))
    return found


def _compared(value: Any) -> Any:
    return {name: canonical(part) for name, part in value.items()} if isinstance(value, dict) else canonical(value)


def _score(entry: Mapping[str, Any], schema: Schema | None) -> float:
    """The score in the file, where it is that of the values beside it."""
    changed = schema is not None and entry.get("scored") != fingerprint(str(entry["name"]), entry["values"], schema)
    return np.nan if changed or entry.get("score") is None else float(entry["score"])


def _spread(content: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> Spread:
    kept = content.get("quantiles") or {}
    quantiles = {str(column): np.asarray(values, dtype=np.float64) for column, values in kept.items()}
    ranges = tuple(
        {str(column): (float(low), float(high)) for column, (low, high) in entry.get("ranges", {}).items()}
        for entry in entries
    )
    return Spread(quantiles, ranges if any(ranges) else ())


def _twins(entries: Sequence[Mapping[str, Any]], names: Sequence[str]) -> tuple[int, ...]:
    """Numbers of the references that flexible ones were moved from."""
    if not any("twin_of" in entry for entry in entries):
        return ()
    plain = [name for name, entry in zip(names, entries, strict=True) if "twin_of" not in entry]
    return tuple(plain.index(str(entry["twin_of"])) if "twin_of" in entry else -1 for entry in entries)


def _indented(value: Any) -> str:
    """Indented JSON with pairs of numbers on one line; a line break is never inside a text."""
    text = json.dumps(value, indent=2, default=str)
    return re.sub(r"\[\n\s+([-+.\de]+),\n\s+([-+.\de]+)\n\s+\]", r"[\1, \2]", text).replace("\n", "\n  ")


def _inline(quantiles: Mapping[str, Sequence[float]]) -> str:
    """One line per column."""
    lines = [f"    {json.dumps(column)}: {json.dumps(list(values))}" for column, values in quantiles.items()]
    return "{\n" + ",\n".join(lines) + "\n  }" if lines else "{}"
