"""Files as they were written: seals, checksums, order, and certificates that say what the table says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewest.errors import DataError
from fewest.results import record
from fewest.runs.cases import fingerprints
from fewest.runs.parts import read_answers, read_cases, row_hashes
from fewest.runs.run_files import REFERENCES, RunFiles, canonical, is_sealed, part_files
from fewest.runs.storage import digest, file_digest
from fewest.runs.verification.base import Report


def check_manifest(run: RunFiles, report: Report) -> None:
    """The manifest is what was written, and so are the references."""
    manifest = run.manifest
    if not is_sealed(manifest):
        report.add("manifest.json was changed after it was written")
    schema = {name: manifest["schema"][name] for name in ("features", "dtypes")}
    if digest(canonical(schema)) != manifest["schema"]["sha256"]:
        report.add("manifest.json: the schema is not the one the run was made with")
    _is_there(run, {"name": REFERENCES, **manifest["references"]}, report)
    if manifest.get("tree") is not None:
        _is_there(run, manifest["tree"], report)
    named = {file["name"] for part in manifest["parts"] for file in part_files(part)}
    for file in sorted(run.path.glob("part-*")):
        if file.name not in named:
            report.add(f"{file.name} is in the folder, but not in the manifest")


def _is_there(run: RunFiles, file: Mapping[str, Any], report: Report) -> bool:
    """Whether a file is there; it is reported where it is not, and where it is not what was written."""
    path = run.file(file["name"])
    if not path.is_file():
        report.add(f"{path.name} is missing")
        return False
    size = path.stat().st_size
    if file.get("bytes", size) != size or file_digest(path) != file["sha256"]:
        report.add(f"{path.name} was changed after it was written")
    return True


def check_data(run: RunFiles, paths: Sequence[Path], report: Report) -> None:
    """The data are those of the run, by size and checksum; names may have changed."""
    found = fingerprints(paths)
    wanted = run.manifest["data"]["files"]
    if len(found) != len(wanted):
        report.add(f"the run was made of {len(wanted)} files of data, not of {len(found)}")
    for here, there in zip(found, wanted, strict=False):
        if here["sha256"] != there["sha256"]:
            report.add(f"the data have changed: {here['name']} is not {there['name']} as it was explained")


def check_model(run: RunFiles, file: Path | None, report: Report) -> None:
    """The model file is the one of the run, where the run knows its file."""
    known = run.manifest["model"]
    if file is not None and known["file"] is not None and file_digest(file) != known["sha256"]:
        report.add(f"the model has changed: {file.name} is not {known['file']} as it was used")


def check_sums(run: RunFiles, report: Report) -> None:
    """Rows and counts of the parts add up to those of the manifest, and the parts follow each other."""
    parts, at = run.manifest["parts"], 0
    for part in parts:
        if part["first"] != at:
            report.add(f"{part['table']['name']} starts at row {part['first']}, not {at}")
        at += part["rows"]
    if at != run.rows:
        report.add(f"the parts hold {at} rows, the manifest says {run.rows}")
    for name in ("counts", "sev", "features"):
        total: Counter[str] = Counter()
        for part in parts:
            total.update(part[name])
        if {key: count for key, count in total.items() if count} != {k: v for k, v in run.manifest[name].items() if v}:
            report.add(f"manifest.json: the {name} are not the sums of the parts")


def read_checked(run: RunFiles, part: Mapping[str, Any], report: Report) -> pd.DataFrame | None:
    """The table of a part, after its files and its certificates were compared; None where it cannot be read."""
    there = [_is_there(run, file, report) for file in part_files(part)]  # all of them are reported
    if not all(there):
        return None
    try:
        table = read_answers(run.file(part["table"]["name"]))
        _compare(run.file(part["certificates"]["name"]), table, report)
        if "cases" in part:
            _same_cases(run, part["cases"]["name"], table, report)
    except DataError as error:
        report.add(error.message)
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        report.add(f"{part['table']['name']} or its certificates cannot be understood: {error}")
        return None
    counts = {status: int(count) for status, count in table["status"].value_counts().items()}
    if counts != {status: count for status, count in part["counts"].items() if count}:
        report.add(f"{part['table']['name']}: the counts by status are not those of the manifest")
    if len(table) != part["rows"]:
        report.add(f"{part['table']['name']} has {len(table)} rows, the manifest says {part['rows']}")
    return table


def _same_cases(run: RunFiles, name: str, table: pd.DataFrame, report: Report) -> None:
    """The cases that were kept are those that were explained, by the hash of each."""
    frame = read_cases(run.file(name), run.schema)
    if len(frame) != len(table):
        report.add(f"{name} has {len(frame)} rows, the table has {len(table)}")
        return
    wrong = row_hashes(run.schema, frame) != table["hash"].to_numpy(dtype=np.uint64)
    report.rows_wrong(table["row"].to_numpy(dtype=np.int64), wrong, f"{name}: this is not the case that was explained")


def _compare(path: Path, table: pd.DataFrame, report: Report) -> None:
    """Certificates, line by line, against the table."""
    lines = path.read_bytes().decode("utf-8", "surrogatepass").split("\n")[:-1]
    if len(lines) != len(table):
        report.add(f"{path.name} has {len(lines)} lines, the table has {len(table)} rows")
        return
    said = pd.DataFrame(json.loads(f"[{','.join(lines)}]"))
    rows = table["row"].to_numpy(dtype=np.int64)
    for field in record.fields_in("certificate"):
        name = field.certificate or field.name
        wrong = _differ(said[name], table[field.name], field.kind)
        report.rows_wrong(rows, wrong, f'{path.name}: another "{name}" than in the table')


def _differ(said: pd.Series[Any], known: pd.Series[Any], kind: str) -> Any:
    """Where two columns differ; null stands for what is missing and for a bound that is infinite."""
    if kind == "hash":
        return np.array([int(text, 16) for text in said], dtype=np.uint64) != known.to_numpy(dtype=np.uint64)
    if kind == "features":
        return np.array([a != b for a, b in zip(said, known, strict=True)], dtype=bool)
    if kind == "word":
        return said.astype(object).fillna("").to_numpy() != known.astype(object).fillna("").to_numpy()
    a = pd.to_numeric(said).to_numpy(dtype=float, na_value=np.nan)
    b = known.to_numpy(dtype=float, na_value=np.nan)
    b = np.where(np.isinf(b), np.nan, b)
    return ~((a == b) | (np.isnan(a) & np.isnan(b)))
