"""The run folder from the writer's side: what is done is in a journal, what is finished in a manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fewest.errors import DataError, UsageError
from fewest.results.population import Tally
from fewest.runs.run import JOURNAL, MANIFEST, REFERENCES, TREE, Run
from fewest.runs.run_files import part_files, sealed
from fewest.runs.storage import append, cannot_write, digest, file_digest, put, sweep

WORDS = {
    "model": "the model", "data": "the data", "references": "the references", "settings": "a setting",
    "version": "the version of fewest", "schema": "the schema", "format": "the format", "kind": "the kind",
    "about": "the title or another name", "tree": "the tree", "rejected": "the rows left out",
}  # fmt: skip


def make_folder(path: Path) -> None:
    """Make the folder of a run, or say why that cannot be; one that holds something else is left alone."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"--out {path} is a file", do="name a folder")
    try:
        path.mkdir(parents=True, exist_ok=True)
        ours = {MANIFEST, JOURNAL, REFERENCES, TREE}
        strange = sorted(file.name for file in path.iterdir() if not file.name.startswith((".", "part-")))
    except OSError as error:
        raise cannot_write(path, error) from error
    if strange and not ours & set(strange):
        raise UsageError(f"{path} holds other files ({strange[0]}, ...)", do="name an empty folder, or a new one")


def write_part(folder: Path, number: int, files: Sequence[tuple[str, str, bytes]]) -> dict[str, Any]:
    """Write the files of a part, each with its role and its ending; what the journal says of them."""
    record: dict[str, Any] = {}
    for name, ending, data in files:
        path = folder / f"part-{number:05d}.{ending}"
        put(path, data)
        record[name] = {"name": path.name, "bytes": len(data), "sha256": digest(data)}
    return record


@dataclass
class Folder:
    """A run folder that is being filled. Only one process may hold one: see `storage.locked`."""

    path: Path
    plan: Mapping[str, Any]  # What the run depends on
    done: dict[int, dict[str, Any]] = field(default_factory=dict)  # Part number -> what the journal says of it

    @classmethod
    def begin(cls, path: Path, plan: Mapping[str, Any], files: Mapping[str, bytes]) -> Folder:
        """Begin a run, or go on with one; refused where the one that was begun depends on something else.

        ``files`` stand beside the parts: name -> content.
        """
        sweep(path)
        folder = cls(path, plan)
        if (path / MANIFEST).is_file():
            folder._same(Run.open(path).manifest)
            folder.done = dict(enumerate(Run.open(path).manifest["parts"]))
            damaged = [number for number, record in folder.done.items() if not folder._intact(record)]
            if damaged:
                what = f"{path} has ended, and its part {damaged[0]} is not what was written"
                raise DataError(what, do="restore the part, or explain again, into another folder")
        elif (path / JOURNAL).is_file():
            folder._load()
        if not folder.finished:
            for name, data in files.items():
                put(path / name, data)
            folder._save()
        return folder

    @property
    def finished(self) -> bool:
        """Whether the run has ended."""
        return (self.path / MANIFEST).is_file()

    def _same(self, begun: Mapping[str, Any]) -> None:
        """Refuse to go on with a run of something else."""
        changed = [name for name in (*self.plan, "rejected") if self.plan.get(name) != begun.get(name)]
        if "data" in changed and self.plan["model"]["file"] is None:
            changed = [name for name in changed if name != "model"]  # known by its scores of other rows
        if not changed:
            return
        words = {name: WORDS[name] for name in changed}
        if "settings" in words:
            was, now = begun.get("settings") or {}, self.plan["settings"]
            words["settings"] += f" ({', '.join(name for name in {**was, **now} if now.get(name) != was.get(name))})"
        raise UsageError(
            f"{self.path} was begun with something else; changed since: {', '.join(words.values())}",
            do="go back to what it was begun with, or name another folder",
        )

    def _load(self) -> None:
        """Read the journal; a torn last line, and parts whose files are not what it says, do not count."""
        first, *lines = (self.path / JOURNAL).read_bytes().split(b"\n")
        try:
            begun = dict(json.loads(first))
        except (ValueError, TypeError) as error:
            raise DataError(f"{self.path / JOURNAL} is damaged ({error})", do="name another folder") from error
        self._same(begun)
        for line in lines[:-1]:
            try:
                record = _record(line)
                if record and self._intact(record):
                    Tally.from_dict(record)
                    self.done[int(record.pop("part"))] = record
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                what = f"{self.path / JOURNAL} is damaged: a line of it is not what was written ({line[:60]!r})"
                raise DataError(what, do="name another folder") from error

    def _intact(self, record: Mapping[str, Any]) -> bool:
        """Whether the files of a part are what was written."""
        files = part_files(record)
        if not files or any(not str(file["name"]).startswith("part-") or "/" in file["name"] for file in files):
            raise ValueError("it names no files of a part")
        return all(
            (path := self.path / file["name"]).is_file()
            and path.stat().st_size == file["bytes"]
            and file_digest(path) == file["sha256"]
            for file in files
        )

    def _save(self) -> None:
        records = [self.plan, *({"part": number, **record} for number, record in sorted(self.done.items()))]
        put(self.path / JOURNAL, b"".join(_line(record) for record in records))

    def add(self, number: int, record: Mapping[str, Any]) -> None:
        """Note that a part is done; its files are on the disk already."""
        self.done[number] = dict(record)
        append(self.path / JOURNAL, _line({"part": number, **record}))

    def forget(self) -> None:
        """Begin again: nothing that was done counts."""
        self.done.clear()
        self._save()

    def tally(self) -> Tally:
        """Sums over the parts that are done."""
        return Tally.total([Tally.from_dict(record) for record in self.done.values()])

    def finish(self) -> Run:
        """Write the manifest; the journal has served."""
        if not self.finished:
            parts = [self.done[number] for number in sorted(self.done)]
            rows = sum(part["rows"] for part in parts)
            manifest = sealed({**self.plan, "rows": rows, **self.tally().to_dict(), "parts": parts})
            text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False)
            put(self.path / MANIFEST, (text + "\n").encode("utf-8", "surrogatepass"))
        (self.path / JOURNAL).unlink(missing_ok=True)
        return Run.open(self.path)


def _record(line: bytes) -> dict[str, Any]:
    """What a line of the journal says; nothing where it is not whole, and then its part is done again."""
    try:
        return dict(json.loads(line))
    except (ValueError, TypeError):
        return {}


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass") + b"\n"
