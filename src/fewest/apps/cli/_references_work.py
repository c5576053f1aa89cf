"""The work of ``fewest references``: build from training rows; show, sign and compare files without the model."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewest.apps.cli._files import check_place
from fewest.apps.cli._sources import DEMOS, Source, from_demo, from_files, other_class_first
from fewest.apps.cli._text import clean
from fewest.errors import FewestWarning, UsageError
from fewest.references import build, differences
from fewest.references.audit import Audit, audit
from fewest.references.file import Saved, read_saved
from fewest.reporting import audit_html
from fewest.reporting.audit_page import facts, lines, summary_sentence
from fewest.results.explanation import show
from fewest.tables.files import write_text
from fewest.tables.model_kinds import NUMBERS
from fewest.tables.saved_schema import plain

if TYPE_CHECKING:
    from fewest.apps.cli._command_groups import BuildRequest


def run_build(request: BuildRequest) -> int:
    """Build, write, and say what was built."""
    check_place(request.out, (".json",), "this is not a .json file")
    source = _source(request)
    with other_class_first(source):
        refs = build(
            request.kind.value.replace("-", "_"), source.decision, source.X, source.labels, schema=source.schema,
            **_options(request),
        )  # fmt: skip
    if request.flexible is not None:
        refs = refs.flexible(request.flexible)
    refs.save(request.out, training_rows=request.training_rows)
    if request.as_json:
        print(json.dumps({"file": str(request.out), **refs.to_dict()}, indent=1, default=str))
        return 0
    width = max(map(len, refs.names))
    for name, support, score in zip(refs.names, refs.support, refs.score, strict=True):
        print(clean(f"{name:<{width}}  {support:>6,} people  score {score:.3f}"))
    print(f"\nWritten: {request.out}. Look at it with `fewest references show {request.out}`, then sign it.")
    return 0


def _source(request: BuildRequest) -> Source:
    if request.data in DEMOS:
        return from_demo(request.data, request.model, request.positive, request.threshold, request.allow_pickle)
    if request.model is None:
        raise UsageError(f"there is no model for {request.data}", do="pass --model FILE")
    source = from_files(
        request.model, Path(request.data), request.target, request.positive, request.threshold, request.allow_pickle,
        request.above,
    )  # fmt: skip
    if request.target is None and source.decision.kind not in NUMBERS:
        raise UsageError("without labels nobody knows which cases were accepted", do="pass --target COL")
    return source


def _options(request: BuildRequest) -> dict[str, Any]:
    """What was asked for, of the options this kind has; the rest is as in the library."""
    given = {
        "centre": None if request.centre is None else request.centre.value, "n_clusters": request.n_clusters,
        "embedding": request.embedding, "width": request.width, "assignment": request.assignment, "m": request.m,
        "min_share": request.min_share, "preset": request.preset,
    }  # fmt: skip
    options = {name: value for name, value in given.items() if value is not None}
    of_groups = dict.fromkeys(
        ("n_clusters", "embedding", "assignment", "m", "min_share"), ("clusters", "near-threshold")
    )
    for name, kinds in {**of_groups, "preset": ("clusters",), "width": ("near-threshold",)}.items():
        if name in options and request.kind.value not in kinds:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is for --kind {' or '.join(kinds)}", do=f"leave {option} out")
    return options if request.kind == "single" else {**options, "random_state": request.random_state}


def run_show(path: Path, html: Path | None, as_json: bool) -> int:
    """Print the audit of a file, and write it as a page."""
    if html is not None:
        check_place(html, (".html",), "this is not a .html file", "--html")
    saved = read(path)
    found = audit(saved)
    if html is not None:
        write_text(html, audit_html(found, f"What are cases compared with? {path.name}"))
    if as_json:
        known = {
            "threshold": found.threshold, "references": found.references.to_dict("records"),
            "features": found.table.to_dict("records"), "flags": found.flags(),
        }  # fmt: skip
        print(json.dumps(plain(known), indent=1, allow_nan=False))
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
    changes = changes_of(read(first), read(second))
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


def changes_of(first: Saved, second: Saved) -> list[dict[str, Any]]:
    """What differs between two files, as plain values."""
    changes: list[dict[str, Any]] = []
    if first.assignment != second.assignment:
        changes.append({"feature": "assignment", "first": first.assignment, "second": second.assignment})
    for found in differences(first, second):
        if found.feature is None:
            changes.append({"reference": found.reference, "only": "second" if found.before is None else "first"})
        else:
            values = {"first": found.before, "second": found.after}
            changes.append({"reference": found.reference, "feature": found.feature.name, **values})
    return changes


def as_text(found: Audit) -> str:
    """The audit as text for a terminal."""
    parts = [summary_sentence(found)]
    for row in found.references.to_dict("records"):
        parts.append(f"\n{row['name']}: {facts(row)}; {row['signature']}")
        shown = [
            (line.feature + (" (moved)" if line.moved else ""), line.value, line.people, line.note)
            for line in lines(found, row["name"], row["flexible_of"])
        ]
        parts += _columns([("feature", "value", "10 to 90 %", "note"), *shown])
    flags = found.flags()
    if flags:
        parts += ["\nWarnings:", *(f"- {flag}" for flag in flags)]
    return "\n".join(parts)


def _columns(table: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines with the cells below each other."""
    widths = [max(len(cells[k]) for cells in table) for k in range(len(table[0]))]
    padded = ([f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)] for cells in table)
    return [f"  {'  '.join(cells)}".rstrip() for cells in padded]


def _line(change: dict[str, Any]) -> str:
    if "only" in change:
        return f"{change['reference']}: only in the {change['only']} file"
    where = f"{change['reference']}: " if "reference" in change else ""
    return f"{where}{change['feature']}: {show(change['first'])} -> {show(change['second'])}"
