"""The run folder from the reader's side: nothing here needs the model, and nothing here searches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import DataError
from fewest.results.explanation import Explanation
from fewest.runs.kept_cases import load, read_cases, read_one, readable
from fewest.runs.storage import digest
from fewest.runs.stored_answers import RunContext, rebuild
from fewest.tables.saved_schema import schema_from_json
from fewest.tables.schema import Schema

FORMAT = 2
READABLE = (1, 2)
KIND = "fewest run"
MANIFEST, REFERENCES, JOURNAL, TREE = "manifest.json", "references.json", "journal.jsonl", "tree.json"
ROLES = ("table", "certificates", "cases")


@dataclass(frozen=True)
class Run:
    """A finished run folder.

    Attributes
    ----------
    path : Path
    manifest : mapping
        Fingerprints of model, data, references, settings and version; the schema; counts; the parts with checksums.

    Examples
    --------
    >>> import tempfile
    >>> import fewest as fw
    >>> from fewest.runs import explain_files
    >>> folder = Path(tempfile.mkdtemp())
    >>> pd.DataFrame({"debt": [10, 90]}).to_csv(folder / "cases.csv", index=False)
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    >>> refs = fw.references.supplied(decision, {"debt": [20]})
    >>> run = explain_files(fw.Explainer(decision, refs), folder / "cases.csv", folder / "run", n_jobs=1)
    >>> run.rows, run.counts["EXPLAINED"]
    (2, 1)
    >>> Run.open(folder / "run").table()[["row", "status", "to"]]
       row            status    to
    0    0  ALREADY_NEGATIVE    []
    1    1         EXPLAINED  [20]
    >>> print(run.explanation(1))
    If debt had been 20 instead of 90, the model would have predicted accepted (refused: 0.200 instead of 0.900).
    """

    path: Path
    manifest: Mapping[str, Any]

    @classmethod
    def open(cls, path: str | Path) -> Run:
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

    @property
    def counts(self) -> dict[str, int]:
        """How many cases ended in each status."""
        return dict(self.manifest["counts"])

    @cached_property
    def schema(self) -> Schema:
        """The features spoken of."""
        return schema_from_json(self.manifest["schema"]["features"], self.manifest["schema"]["dtypes"])

    def references(self) -> dict[str, Any]:
        """The references file as plain values."""
        return dict(json.loads((self.path / REFERENCES).read_text(encoding="utf-8")))

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """The answers, part by part, in the order of the data; all columns, or those that are named."""
        for part in self.manifest["parts"]:
            yield read_part(self.file(part["table"]["name"]), columns)

    def table(self) -> pd.DataFrame:
        """All answers in one table; for runs that fit into memory."""
        return pd.concat(list(self.tables()), ignore_index=True)

    @property
    def keeps_cases(self) -> bool:
        """Whether the cases' own values are in the folder."""
        return all("cases" in part for part in self.manifest["parts"])

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
            raise DataError(f"{name!r} in {MANIFEST} is no name of a file", do="restore the folder, or explain again")
        return self.path / name

    def explanation(self, row: int) -> Explanation:
        """The answer for one case, as `Explanations` gave it: sentence, changes, facts and proof.

        Where the cases were not kept, the facts are those of the changed features alone, and other smallest sets are
        not listed.

        Parameters
        ----------
        row : int
            Number of the case in the data, from 0 on.
        """
        return rebuild(self.record(row), self.case(row), self.context)

    def case(self, row: int) -> dict[str, Any] | None:
        """One case by its columns, as plain values; None where the cases were not kept."""
        part, place = self._place(row)
        return read_one(self.file(part["cases"]["name"]), place) if "cases" in part else None

    def record(self, row: int) -> dict[str, Any]:
        """One row of the answers, as it is in its part."""
        part, place = self._place(row)
        return read_row(self.file(part["table"]["name"]), place)

    def records(self, rows: Sequence[int], columns: Sequence[str]) -> pd.DataFrame:
        """Some rows of the answers, in the order of the data; of each part only these rows are unpacked."""
        wanted = np.unique(np.asarray(rows, dtype=np.int64))
        found = []
        for part in self.manifest["parts"]:
            first = int(part["first"])
            low, high = np.searchsorted(wanted, [first, first + int(part["rows"])])
            if high > low:
                found.append(read_rows(self.file(part["table"]["name"]), wanted[low:high] - first, columns))
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

    @cached_property
    def context(self) -> RunContext:
        """What holds for all its cases: names, references, settings."""
        content = self.references()
        names, frame = read_references(content)
        return RunContext(self.schema, self.manifest, content, names, frame)


def part_files(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The files of a part, each with its name, size and checksum."""
    return [part[role] for role in ROLES if role in part]


def read_part(path: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """One part of the answers; the lists of ``from`` and ``to`` hold plain values."""
    with readable(path):
        frame = _typed(load(path, columns))
        return frame if columns is None else frame[list(columns)]


def read_row(path: Path, place: int) -> dict[str, Any]:
    """One answer of a part; the file is read once."""
    record = read_one(path, place)
    with readable(path):
        if path.suffix == ".jsonl":
            unbounded = record["status"] != "ALREADY_NEGATIVE" and record["lower_bound"] is None
            bound = float("inf") if unbounded else record["lower_bound"]
            return {**record, "hash": int(record["hash"], 16), "lower_bound": bound}
        decoded = {name: [json.loads(text) for text in record[name]] for name in ("from", "to", "alternatives")}
        return {**record, **decoded}


def read_rows(path: Path, places: npt.NDArray[np.int64], columns: Sequence[str]) -> pd.DataFrame:
    """Some answers of a part."""
    with readable(path):
        whole = load(path, columns)
        some = [whole[place] for place in places] if isinstance(whole, list) else whole.take(places)
        return _typed(some)[list(columns)]


def _typed(rows: Any) -> pd.DataFrame:
    return _from_lines(rows) if isinstance(rows, list) else _from_arrow(rows)


def _from_lines(rows: list[str]) -> pd.DataFrame:
    frame = pd.DataFrame([json.loads(line) for line in rows])
    unbounded = (frame["status"] != "ALREADY_NEGATIVE") & frame["lower_bound"].isna()
    return frame.assign(
        hash=[int(text, 16) for text in frame["hash"]],
        **{name: _words(frame[name]) for name in ("status", "strategy", "reference")},
        sev=frame["sev"].astype("Int64"),
        lower_bound=frame["lower_bound"].astype(float).mask(unbounded, float("inf")),
        **{name: frame[name].astype(float) for name in ("cost", "score_after", "margin", "l_inf", "log_density")},
    )


def _from_arrow(table: Any) -> pd.DataFrame:
    frame = table.to_pandas()
    for name in frame.columns:
        if name == "sev":
            frame[name] = frame[name].astype("Int64")
        elif name in ("status", "strategy", "reference"):
            frame[name] = _words(frame[name])
        elif name in ("from", "to", "alternatives"):
            frame[name] = _decoded(frame[name])
        elif name == "features":
            frame[name] = [list(cell) for cell in frame[name]]
    return frame


def _words(column: pd.Series[Any]) -> pd.Series[Any]:
    """Text as plain objects; what is missing is None."""
    words = np.array(column.to_numpy(dtype=object))
    words[column.isna().to_numpy()] = None
    return pd.Series(words, index=column.index, dtype=object)


def _decoded(column: pd.Series[Any]) -> list[list[Any]]:
    """Lists of JSON text as lists of values; all cells are decoded in one go."""
    values = json.loads(f"[{','.join(text for cell in column for text in cell)}]")
    ends = np.cumsum(column.map(len).to_numpy(dtype=np.int64)).tolist()
    return [values[low:high] for low, high in zip([0, *ends[:-1]], ends, strict=True)]


def canonical(content: Any) -> bytes:
    """JSON bytes that are the same for the same content.

    Examples
    --------
    >>> canonical({"b": 1, "a": 2})
    b'{"a":2,"b":1}'
    """
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with a fingerprint of itself.

    Examples
    --------
    >>> whole = sealed({"rows": 3})
    >>> is_sealed(whole), is_sealed({**whole, "rows": 4})
    (True, False)
    """
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
