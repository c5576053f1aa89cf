"""Files as they were written: seals, checksums, order, and certificates that say what the table says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewest.decision import Decision
from fewest.errors import DataError
from fewest.results import record
from fewest.runs.cases import fingerprints
from fewest.runs.parts import read_answers, read_cases, read_certificates
from fewest.runs.run_files import REFERENCES, RunFiles, canonical, is_sealed, part_files
from fewest.runs.storage import digest, file_digest
from fewest.runs.verification.base import Report
from fewest.runs.verification.rules import differing

FIGURES = {"counts": "counts by status", "sev": "counts by SEV", "features": "counts by feature"}


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
            report.add("{} is in the folder, but not in the manifest", [file.name])


def _is_there(run: RunFiles, file: Mapping[str, Any], report: Report) -> bool:
    """Whether a file is there; it is reported where it is not, and where it is not what was written."""
    path = run.file(file["name"])
    if not path.is_file():
        report.add("{} is missing", [path.name])
        return False
    size = path.stat().st_size
    if file.get("bytes", size) != size or file_digest(path) != file["sha256"]:
        report.add("{} was changed after it was written", [path.name])
    return True


def check_data(run: RunFiles, paths: Sequence[Path], report: Report) -> None:
    """The data are those of the run, by size and checksum; names may have changed."""
    found = fingerprints(paths)
    wanted = run.manifest["data"]["files"]
    if len(found) != len(wanted):
        report.add(f"the run was made of {len(wanted)} files of data, not of {len(found)}")
    for here, there in zip(found, wanted, strict=False):
        if (here["sha256"], here["bytes"]) != (there["sha256"], there["bytes"]):
            report.add("the data have changed: {} is not what was explained", [here["name"]])
        elif here["name"] != there["name"]:
            report.leave(f"the name of the data: the run says {there['name']}, not {here['name']}")
    known = digest(canonical(wanted))
    if run.manifest["data"].get("sha256", known) != known:
        report.add("manifest.json: the checksum of all data is not that of its files")


def check_model(run: RunFiles, file: Path | None, report: Report) -> None:
    """The model file is the one of the run, where the run knows its file."""
    known = run.manifest["model"]
    if known["file"] is None:
        return
    if file is None:
        report.leave(f"the checksum of the model: the run was made with the file {known['file']}, none is given")
    elif file_digest(file) != known["sha256"]:
        report.add(f"the model has changed: {file.name} is not {known['file']} as it was used")
    elif file.name != known["file"]:
        report.leave(f"the name of the model file: the run says {known['file']}, not {file.name}")


def check_scores(run: RunFiles, decision: Decision, frames: Sequence[pd.DataFrame], report: Report) -> None:
    """A model that came from no file is known by its scores of the first rows and of the references."""
    known = run.manifest["model"]
    scores = [decision.verdicts(frame).score.tolist() for frame in frames]
    if known["file"] is None and digest(canonical(scores)) != known["sha256"]:
        report.leave("the fingerprint of the model: it is not that of its scores here")


def tally(table: pd.DataFrame) -> dict[str, Counter[str]]:
    """Figures of a part, counted anew: cases by status, explained ones by SEV and by feature."""
    explained = table[table["status"] == "EXPLAINED"]
    return {
        "counts": Counter(table["status"]),
        "sev": Counter(str(size) for size in explained["sev"].dropna()),
        "features": Counter(name for names in explained["features"] for name in names),
    }


def check_figures(said: Mapping[str, Any], counted: Mapping[str, Counter[str]], where: str, report: Report) -> None:
    """What a part or the whole manifest says of its answers is what is counted there."""
    for name, counts in counted.items():
        if {key: count for key, count in said[name].items() if count} != {k: v for k, v in counts.items() if v}:
            report.add(f"{{}}: the {FIGURES[name]} are not those of the answers", [where])
    if said["rows"] != counted["counts"].total():
        report.add(f"{{}}: the manifest says {said['rows']} rows, not {counted['counts'].total()}", [where])


def check_order(run: RunFiles, report: Report) -> None:
    """The parts follow each other."""
    at = 0
    for part in run.manifest["parts"]:
        if part["first"] != at:
            report.add(f"{{}} starts at row {part['first']}, not {at}", [part["table"]["name"]])
        at += part["rows"]


def read_checked(run: RunFiles, part: Mapping[str, Any], report: Report) -> pd.DataFrame | None:
    """The table of a part, after its files and its certificates were compared; None where it cannot be read."""
    there = [_is_there(run, file, report) for file in part_files(part)]  # all of them are reported
    if not all(there):
        return None
    try:
        table = read_answers(run.file(part["table"]["name"]))
        _compare(run.file(part["certificates"]["name"]), table, report)
    except DataError as error:
        report.add(error.message)
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        report.add("{} or its certificates cannot be understood", [part["table"]["name"]], f": {error}")
        return None
    return table


def check_cases(run: RunFiles, part: Mapping[str, Any], frame: pd.DataFrame, report: Report) -> None:
    """The cases that were kept are those of the data."""
    if "cases" not in part:
        return
    name = part["cases"]["name"]
    try:
        kept = read_cases(run.file(name), run.schema)
    except DataError as error:
        report.add(error.message)
        return
    if len(kept) != len(frame):
        report.add(f"{{}} has {len(kept)} rows, the data have {len(frame)}", [name])
        return
    wrong = np.asarray(differing(run.schema, kept, frame).any(axis=1))
    report.rows_wrong(frame.index.to_numpy(), wrong, "what is kept of it is not the case that was explained")


def check_rejected(run: RunFiles, found: pd.DataFrame, report: Report) -> None:
    """The rows that were left out are those that cannot be explained; the file that lists them is the one written."""
    said = run.manifest["rejected"]
    if not _is_there(run, said, report):
        return
    try:
        listed = pd.read_csv(run.file(said["name"]), dtype=str, keep_default_na=False)["row"].tolist()
    except (ValueError, KeyError) as error:
        report.add("{} cannot be read", [said["name"]], f": {error}")
        return
    if len(listed) != said["rows"]:
        report.add(f"{{}} lists {len(listed)} rows, the manifest says {said['rows']}", [said["name"]])
    wrong = sorted(set(listed) ^ set(found["row"].astype(str)), key=str)
    if wrong:
        report.add("row {} of the data: it is left out though it can be explained, or the other way round", wrong)


def check_labels(table: pd.DataFrame, known: Sequence[str] | None, report: Report) -> None:
    """Cases are called what the data call them: a letter must not go to somebody else."""
    rows = table["row"].to_numpy(dtype=np.int64)
    said = table["label"].to_numpy(dtype=object) if "label" in table else np.full(len(table), None)
    data = np.full(len(table), None) if known is None else np.array(known, dtype=object)
    report.rows_wrong(rows, np.array(said != data, dtype=bool), "it is called something else than in the data")


def _compare(path: Path, table: pd.DataFrame, report: Report) -> None:
    """Certificates, row by row, against the table."""
    said = read_certificates(path)
    if len(said) != len(table):
        report.add(f"{{}} has {len(said)} rows, the table has {len(table)}", [path.name])
        return
    rows = table["row"].to_numpy(dtype=np.int64)
    for field in record.fields_in("certificate"):
        name = field.certificate or field.name
        if field.optional and name not in said and field.name not in table:
            continue
        wrong = _differ(said[name], table[field.name], field.kind)
        report.rows_wrong(rows, wrong, f'its certificate has another "{name}" than the table')


def _differ(said: pd.Series[Any], known: pd.Series[Any], kind: str) -> Any:
    """Where two columns differ; null stands for what is missing and for a bound that is infinite."""
    if kind == "hash":
        return said.to_numpy(dtype=np.uint64) != known.to_numpy(dtype=np.uint64)
    if kind == "features":
        return np.array([list(a) != b for a, b in zip(said, known, strict=True)], dtype=bool)
    if kind == "word":
        return said.astype(object).fillna("").to_numpy() != known.astype(object).fillna("").to_numpy()
    a, b = (pd.to_numeric(column).to_numpy(dtype=float, na_value=np.nan) for column in (said, known))
    a, b = (np.where(np.isinf(column), np.nan, column) for column in (a, b))
    return ~((a == b) | (np.isnan(a) & np.isnan(b)))
