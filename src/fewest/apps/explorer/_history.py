"""Versions of a run's references: what the run used is never written over, every edit is a file of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fewest.apps.explorer._forms import NotThereError
from fewest.errors import UsageError
from fewest.references import differences
from fewest.references.file import Saved, read_saved
from fewest.results.explanation import show
from fewest.runs.run import REFERENCES
from fewest.runs.storage import cannot_write, locked

FOLDER = "references"
NAME = re.compile(r"version-(\d{4})\.json")


@dataclass(frozen=True)
class Version:
    """One state of the references; the first is what the run used."""

    number: int
    path: Path
    saved: Saved

    @property
    def title(self) -> str:
        """What it is called."""
        return f"version {self.number}" + (" (used by this run)" if self.number == 1 else "")


def versions(run: Path) -> list[Version]:
    """All versions, the one the run used first."""
    later = [(int(found[1]), path) for path in _files(run) if (found := NAME.fullmatch(path.name))]
    return [Version(number, path, read_saved(path)) for number, path in [(1, run / REFERENCES), *sorted(later)]]


def find(run: Path, number: int | None) -> Version:
    """One version, the last where none is named."""
    known = versions(run)
    if number is None:
        return known[-1]
    for version in known:
        if version.number == number:
            return version
    raise NotThereError(f"there is no version {number} of the references", do=f"choose from 1 to {known[-1].number}")


def add(run: Path, saved: Saved) -> Version:
    """Write a new version beside the others; those that are there stay as they are."""
    folder = run / FOLDER
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    with locked(folder):
        number = versions(run)[-1].number + 1
        path = folder / f"version-{number:04d}.json"
        try:
            saved.write(path)
        except OSError as error:
            raise cannot_write(path, error) from error
    return Version(number, path, saved)


def edited(saved: Saved, name: str, values: Mapping[str, Any], score: float) -> Saved:
    """The same with other values of one reference, and the model's score of them (NaN where nobody asked it).

    Its signature stays in the file: it says what was signed, and no longer holds.
    """
    if name not in saved.names:
        raise UsageError(f'there is no reference "{name}"', do=f"choose from {', '.join(saved.names)}")
    k = saved.names.index(name)
    return replace(
        saved,
        values=(*saved.values[:k], dict(values), *saved.values[k + 1 :]),
        score=(*saved.score[:k], score, *saved.score[k + 1 :]),
    )


def changes(before: Saved, after: Saved) -> list[tuple[str, str, str, str]]:
    """Reference, feature, value before and after, of everything that differs, signatures included."""
    out = []
    for found in differences(before, after):
        if found.feature is None:
            ends = ("absent", "added") if found.before is None else ("there", "removed")
            out.append((found.reference, "the whole reference", *ends))
        else:
            out.append((found.reference, found.feature.heading, show(found.before), show(found.after)))
    if before.assignment != after.assignment:
        out.append(("all", "assignment", before.assignment, after.assignment))
    signed = [
        {name: str(one) for name, one in zip(saved.names, saved.signatures, strict=False) if one is not None}
        for saved in (before, after)
    ]
    for name in after.names:
        was, now = (side.get(name, "not signed") for side in signed)
        if name in before.names and was != now:
            out.append((name, "signature", was, now))
    return out


def _files(run: Path) -> list[Path]:
    folder = run / FOLDER
    return list(folder.iterdir()) if folder.is_dir() else []
