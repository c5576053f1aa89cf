"""The files of a finished run folder, read as they are: nothing here needs the model, and nothing here searches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from fewest.errors import DataError
from fewest.runs.parts import read_answer, read_answers, read_cases, read_one
from fewest.runs.storage import digest, refuse_links
from fewest.tables.saved_schema import schema_from_json
from fewest.tables.schema import Schema

FORMAT = 4  # 3 had certificates as JSON lines
READABLE = (1, 2, 3, 4)
KIND = "fewest run"
MANIFEST, REFERENCES, JOURNAL, TREE = "manifest.json", "references.json", "journal.jsonl", "tree.json"
ROLES = ("table", "certificates", "cases")


@dataclass(frozen=True)
class RunFiles:
    """A finished run folder and its manifest: fingerprints, schema, counts, and the parts with checksums."""

    path: Path
    manifest: Mapping[str, Any]

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Read the manifest of a finished run."""
        path = Path(path)
        file = path / MANIFEST
        if not file.is_file():
            begun = (path / JOURNAL).is_file()
            raise DataError(
                f"{path} is {'a run that has not ended' if begun else 'not a run folder'}: it has no {MANIFEST}",
                do="run the same `fewest explain` again"
                if begun
                else "pass the folder that `fewest explain --out` made",
            )
        refuse_links(path)
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            known = content.get("kind") == KIND and content.get("format") in READABLE
        except (ValueError, AttributeError) as error:
            raise DataError(f"{file} cannot be read ({error})", do="restore it, or explain again") from error
        if not known:
            raise DataError(f"{file} is not the manifest of a run this version reads", do="update fewest")
        return cls(path, content)

    @property
    def rows(self) -> int:
        """Cases in all."""
        return int(self.manifest["rows"])

    def __len__(self) -> int:
        return self.rows

    @cached_property
    def schema(self) -> Schema:
        """The features."""
        return schema_from_json(self.manifest["schema"]["features"], self.manifest["schema"]["dtypes"])

    def references(self) -> dict[str, Any]:
        """The references file as plain values."""
        return dict(json.loads((self.path / REFERENCES).read_text(encoding="utf-8")))

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """The answers, part by part, in the order of the data; all columns, or those that are named."""
        for part in self.manifest["parts"]:
            yield read_answers(self.file(part["table"]["name"]), columns)

    def table(self) -> pd.DataFrame:
        """All answers in one table; for runs that fit into memory."""
        return pd.concat(list(self.tables()), ignore_index=True)

    @property
    def keeps_cases(self) -> bool:
        """Whether the cases' own values are in the folder."""
        return all("cases" in part for part in self.manifest["parts"])

    @property
    def names_cases(self) -> bool:
        """Whether cases have names: from a column, or, where rows of the data were left out, their row there."""
        return self.manifest["settings"].get("id") is not None or bool(self.manifest.get("rejected", {}).get("rows"))

    def cases(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """The cases themselves, part by part, labelled by their row numbers; nothing where they were not kept."""
        for part in self.manifest["parts"]:
            if "cases" in part:
                frame = read_cases(self.file(part["cases"]["name"]), self.schema, columns)
                frame.index = pd.RangeIndex(part["first"], part["first"] + len(frame))
                yield frame

    def file(self, name: str) -> Path:
        """A file of the folder; a name that leads out of it is refused."""
        if Path(name).name != name or name in ("", ".", ".."):
            raise DataError(
                f"{name!r} in {MANIFEST} is not the name of a file", do="restore the folder, or explain again"
            )
        return self.path / name

    def case(self, row: int) -> dict[str, Any] | None:
        """One case by its columns, as plain values; None where the cases were not kept."""
        part, place = self._place(row)
        return read_one(self.file(part["cases"]["name"]), place) if "cases" in part else None

    def record(self, row: int) -> dict[str, Any]:
        """One row of the answers, as it is in its part."""
        part, place = self._place(row)
        return read_answer(self.file(part["table"]["name"]), place)

    def records(self, rows: Sequence[int], columns: Sequence[str]) -> pd.DataFrame:
        """Some rows of the answers, in the order of the data; of each part only these rows are unpacked."""
        wanted = np.unique(np.asarray(rows, dtype=np.int64))
        found = []
        for part in self.manifest["parts"]:
            first = int(part["first"])
            low, high = np.searchsorted(wanted, [first, first + int(part["rows"])])
            if high > low:
                found.append(read_answers(self.file(part["table"]["name"]), columns, wanted[low:high] - first))
        return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=list(columns))

    def _place(self, row: int) -> tuple[Mapping[str, Any], int]:
        """The part a row is in, and where."""
        if not 0 <= row < self.rows:
            raise IndexError(f"row {row} of {self.rows}")
        part = next(part for part in self.manifest["parts"] if part["first"] <= row < part["first"] + part["rows"])
        return part, row - int(part["first"])

    def digest_of(self, name: str) -> str:
        """SHA-256 of a part of the manifest."""
        return digest(canonical(self.manifest[name]))


def part_files(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The files of a part, each with its name, size and checksum."""
    return [part[role] for role in ROLES if role in part]


def canonical(content: Any) -> bytes:
    """JSON bytes that are the same for the same content."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with a fingerprint of itself."""
    return {**content, "seal": digest(canonical(dict(content)))}


def is_sealed(content: Mapping[str, Any]) -> bool:
    """Whether nothing was changed since it was sealed."""
    inner = {name: value for name, value in content.items() if name != "seal"}
    return content.get("seal") == digest(canonical(inner))


def read_references(content: Mapping[str, Any]) -> tuple[tuple[str, ...], pd.DataFrame]:
    """Names and typed values of the references in a file."""
    schema = schema_from_json(content["schema"]["features"], content["schema"]["dtypes"])
    frame = pd.DataFrame([entry["values"] for entry in content["references"]])
    return tuple(str(entry["name"]) for entry in content["references"]), schema.conform(frame, unseen="allow")
