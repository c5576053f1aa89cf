"""Versions of a run's references: what the run used is never written over, every edit is a file of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fewest.apps.explorer._forms import NotThereError
from fewest.errors import UsageError
from fewest.references.file import Saved, read_saved
from fewest.references.signatures import canonical
from fewest.results.explanation import show
from fewest.runs.run import REFERENCES
from fewest.runs.storage import cannot_write, locked
from fewest.tables.schema import Feature
from fewest.tables.values import value_of

FOLDER = "references"
NAME = re.compile(r"version-(\d{4})\.json")


@dataclass(frozen=True)
class Version:
    """One state of the references; the first is what the run used.

    Attributes
    ----------
    number : int
    path : Path
    saved : Saved
    """

    number: int
    path: Path
    saved: Saved

    @property
    def title(self) -> str:
        """What it is called."""
        return f"version {self.number}" + (" (used by this run)" if self.number == 1 else "")


def versions(run: Path) -> list[Version]:
    """All versions, the one the run used first.

    Examples
    --------
    >>> import tempfile
    >>> run = Path(tempfile.mkdtemp())
    >>> Saved(("r1",), ({"age": 35},), (-1,), (0.1,)).write(run / REFERENCES)
    >>> [version.title for version in versions(run)]
    ['version 1 (used by this run)']
    """
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
    """Reference, feature, value before and after, of everything that differs; new signatures as a feature of their own.

    Examples
    --------
    >>> from fewest.tables.schema import Schema
    >>> schema = Schema((Feature("age", "integer", ("age",)),))
    >>> one = Saved(("r1",), ({"age": 35},), (-1,), (0.1,), schema)
    >>> changes(one, edited(one, "r1", {"age": 40}, 0.2))
    [('r1', 'age', '35', '40')]
    """
    schema = after.schema or before.schema
    features: Sequence[Feature] = () if schema is None else schema.features
    out = []
    for k, name in enumerate(after.names):
        if name not in before.names:
            out.append((name, "the whole reference", "absent", "added"))
            continue
        old = before.names.index(name)
        for feature in features:
            was, now = (value_of(feature, values) for values in (before.values[old], after.values[k]))
            if canonical_value(was) != canonical_value(now):
                out.append((name, feature.heading, show(was), show(now)))
        if _signature(before, old) != _signature(after, k):
            out.append((name, "signature", _signature(before, old), _signature(after, k)))
    return out


def canonical_value(value: Any) -> Any:
    """A value in the form that is compared."""
    return {name: canonical(part) for name, part in value.items()} if isinstance(value, dict) else canonical(value)


def _signature(saved: Saved, number: int) -> str:
    signature = saved.signatures[number] if saved.signatures else None
    return "not signed" if signature is None else str(signature)


def _files(run: Path) -> list[Path]:
    folder = run / FOLDER
    return list(folder.iterdir()) if folder.is_dir() else []
