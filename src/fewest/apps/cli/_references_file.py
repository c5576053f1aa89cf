"""``fewest references show``, ``sign`` and ``diff``: what can be done with a references file, without the model."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fewest.apps.cli._references_build import check_place
from fewest.apps.cli._text import clean
from fewest.errors import FewestWarning
from fewest.references.audit import Audit, audit, value_of
from fewest.references.file import Saved, read_saved
from fewest.references.signatures import canonical
from fewest.reporting import audit_html
from fewest.reporting.audit_page import facts, lines, summary_sentence
from fewest.results.explanation import show
from fewest.tables.files import write_text
from fewest.tables.saved_schema import plain
from fewest.tables.schema import Schema


def run_show(path: Path, html: Path | None, as_json: bool) -> int:
    """Print the audit of a file, and write it as a page."""
    if html is not None:
        check_place(html, ".html", "--html")
    saved = read(path)
    found = audit(saved)
    if html is not None:
        write_text(html, audit_html(found, f"What are cases compared with? {path.name}"))
    if as_json:
        print(json.dumps(as_dict(found), indent=1, allow_nan=False))
    else:
        print(clean(as_text(found)))
        if html is not None:
            print(f"\nWritten: {html}.")
    return 0


def run_sign(path: Path, by: str, note: str, only: tuple[str, ...]) -> int:
    """Sign the references of a file and write it again."""
    signed = read(path).sign(by, note, only or None)
    signed.write(path)
    names = only or signed.names
    print(clean(f"{by} signed {', '.join(names)} in {path.name}."))
    return 0


def run_diff(first: Path, second: Path, as_json: bool) -> int:
    """Print what differs between two files; 1 if something does."""
    changes = differences(read(first), read(second))
    if as_json:
        print(json.dumps({"equal": not changes, "changes": changes}, indent=1, allow_nan=False))
    elif changes:
        print(clean("\n".join(_line(change) for change in changes)))
    else:
        print("No difference: both compare people with the same cases.")
    return 1 if changes else 0


def read(path: Path) -> Saved:
    """A references file; a warning names every signature that no longer holds."""
    saved = read_saved(path)
    for number in range(len(saved)):
        changed = saved.broken(number)
        if changed:
            warnings.warn(
                f'{path.name}: the signature of reference "{saved.names[number]}" no longer holds: '
                f"{', '.join(changed)} changed",
                FewestWarning,
                stacklevel=2,
            )
    return saved


def differences(first: Saved, second: Saved) -> list[dict[str, Any]]:
    """What differs in the references of two files: those that only one has, and values; signatures do not count.

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
    ours, theirs = (dict(zip(saved.names, saved.values, strict=True)) for saved in (first, second))
    schema = first.schema or second.schema or Schema.infer(pd.DataFrame([*first.values, *second.values]))
    for name in dict.fromkeys([*ours, *theirs]):
        if name not in ours or name not in theirs:
            changes.append({"reference": name, "only": "first" if name in ours else "second"})
            continue
        for feature in schema.features:
            before, after = (canonical_value(feature, side[name]) for side in (ours, theirs))
            if before != after:
                changes.append({"reference": name, "feature": feature.name, "first": before, "second": after})
    return changes


def canonical_value(feature: Any, values: Any) -> Any:
    """A feature's value in the form that is compared and printed."""
    value = value_of(feature, values)
    if isinstance(value, dict):
        return {column: canonical(part) for column, part in value.items()}
    return canonical(value)


def as_text(found: Audit) -> str:
    """The audit as text for a terminal."""
    parts = [summary_sentence(found)]
    for row in found.references.to_dict("records"):
        parts.append(f"\n{row['name']}: {facts(row)}; {row['signature']}")
        shown = [
            (line.feature + (" (moved)" if line.moved else ""), line.value, line.people, line.note)
            for line in lines(found, row["name"], row["twin_of"])
        ]
        parts += _columns([("feature", "value", "10 to 90 %", "note"), *shown])
    flags = found.flags()
    if flags:
        parts += ["\nTo look at:", *(f"- {flag}" for flag in flags)]
    return "\n".join(parts)


def _columns(table: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines with the cells below each other."""
    widths = [max(len(cells[k]) for cells in table) for k in range(len(table[0]))]
    padded = ([f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)] for cells in table)
    return [f"  {'  '.join(cells)}".rstrip() for cells in padded]


def as_dict(found: Audit) -> dict[str, Any]:
    """The audit as plain values."""
    return {
        "threshold": plain(found.threshold),
        "references": [_plain_row(row) for row in found.references.to_dict("records")],
        "features": [_plain_row(row) for row in found.table.to_dict("records")],
        "flags": found.flags(),
    }


def _plain_row(row: dict[Any, Any]) -> dict[str, Any]:
    return {
        str(name): {key: plain(part) for key, part in value.items()} if isinstance(value, dict) else plain(value)
        for name, value in row.items()
    }


def _line(change: dict[str, Any]) -> str:
    if "only" in change:
        return f"{change['reference']}: only in the {change['only']} file"
    where = f"{change['reference']}: " if "reference" in change else ""
    return f"{where}{change['feature']}: {show(change['first'])} -> {show(change['second'])}"
