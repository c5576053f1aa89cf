"""The run folder from the reader's side: nothing here needs the model, and nothing here searches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewest.errors import DataError, MissingExtraError
from fewest.scale.storage import digest
from fewest.schema import Schema
from fewest.schema_json import schema_from_json

FORMAT = 1
READABLE = (1,)
KIND = "fewest run"
MANIFEST, REFERENCES, JOURNAL = "manifest.json", "references.json", "journal.jsonl"


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
    >>> from fewest.scale import explain_files
    >>> folder = Path(tempfile.mkdtemp())
    >>> pd.DataFrame({"debt": [10, 90]}).to_csv(folder / "cases.csv", index=False)
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    >>> refs = fw.references.supplied(decision, {"debt": [20]})
    >>> run = explain_files(fw.Explainer(decision, refs), folder / "cases.csv", folder / "run", jobs=1)
    >>> run.rows, run.counts["EXPLAINED"]
    (2, 1)
    >>> Run.open(folder / "run").table()[["row", "status", "to"]]
       row            status    to
    0    0  ALREADY_NEGATIVE    []
    1    1         EXPLAINED  [20]
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

    @property
    def schema(self) -> Schema:
        """The features spoken of."""
        return schema_from_json(self.manifest["schema"]["features"], self.manifest["schema"]["dtypes"])

    def references(self) -> dict[str, Any]:
        """The references file as plain values."""
        return dict(json.loads((self.path / REFERENCES).read_text(encoding="utf-8")))

    def tables(self) -> Iterator[pd.DataFrame]:
        """The answers, part by part, in the order of the data."""
        for part in self.manifest["parts"]:
            yield read_part(self.path / part["table"]["name"])

    def table(self) -> pd.DataFrame:
        """All answers in one table; for runs that fit into memory."""
        return pd.concat(list(self.tables()), ignore_index=True)


def read_part(path: Path) -> pd.DataFrame:
    """One part of the answers; the lists of ``from`` and ``to`` hold plain values."""
    try:
        if path.suffix == ".jsonl":
            return _from_lines(path)
        return _from_parquet(path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{path.name} cannot be read: {first}", do="restore it, or explain again") from error


def _from_lines(path: Path) -> pd.DataFrame:
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    frame = pd.DataFrame(records)
    unbounded = (frame["status"] != "ALREADY_NEGATIVE") & frame["lower_bound"].isna()
    return frame.assign(
        hash=[int(text, 16) for text in frame["hash"]],
        **{name: _words(frame[name]) for name in ("status", "strategy", "reference")},
        sev=frame["sev"].astype("Int64"),
        lower_bound=frame["lower_bound"].astype(float).mask(unbounded, float("inf")),
        **{name: frame[name].astype(float) for name in ("cost", "score_after", "margin", "l_inf", "log_density")},
    )


def _from_parquet(path: Path) -> pd.DataFrame:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError(f"reading {path.name} needs pyarrow", do='pip install "fewest[scale]"') from error
    table = parquet.ParquetFile(path).read()
    frame = table.to_pandas()
    frame["sev"] = frame["sev"].astype("Int64")
    for name in ("status", "strategy", "reference"):
        frame[name] = _words(frame[name])
    for name in ("from", "to", "alternatives"):
        frame[name] = _decoded(frame[name])
    frame["features"] = [list(cell) for cell in frame["features"]]
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
