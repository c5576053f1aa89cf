"""``fewest verify``: a run folder held against its data, its model and what the caller states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fewest.apps.cli._explain import text_columns
from fewest.apps.cli._files import read_table
from fewest.apps.cli._sources import decision_of, load_model
from fewest.apps.cli._text import clean
from fewest.errors import ModelError, UnprovedError, UsageError, VerificationError
from fewest.models.trees import read_plain
from fewest.persistence import load
from fewest.references.file import read_saved
from fewest.runs import Run, verify
from fewest.runs.run import MANIFEST
from fewest.runs.storage import first_line
from fewest.runs.verification import Report
from fewest.runs.verification.verifier import NOT_UNDERSTOOD
from fewest.tables.schema import Schema

if TYPE_CHECKING:
    from fewest.apps.cli._main import VerifyRequest


def run(request: VerifyRequest) -> int:
    """Verify, print what was found, and end with 6 if something is wrong, with 8 if something is left unproved."""
    folder = request.run
    report = _report(request)
    print(json.dumps(report.to_dict(), indent=1) if request.as_json else clean(str(report)))
    if not report.ok:
        count = len(report.findings)
        raise VerificationError(
            f"{folder} does not hold: {count:,} kind{'s' if count != 1 else ''} of problem",
            do="check that --data and --model are those of the run, and what else you state; else do not use it, and "
            "explain again, into another folder",
        )
    if not report.complete:
        raise UnprovedError(
            f"nothing is wrong with {folder}, but not all of it is proved again: {report.unproved:,} of "
            f"{report.claims:,} claims are left, and {len(report.left):,} of its statements",
            do="read what is left; allow more with --cheap N and --sample N, state more with --references FILE; "
            "a .fewest model knows its floor",
        )
    return 0


def _report(request: VerifyRequest) -> Report:
    model = load_model(request.model, request.allow_pickle)
    credibility = None
    try:
        opened = Run.open(request.run)
        settings = _stated(request, opened.manifest["settings"])
        decision = decision_of(model, settings)
        if settings["credibility"] is not None and request.model.suffix.lower() == ".fewest":
            credibility = load(request.model, request.allow_pickle).credibility
        features = opened.schema
    except (UsageError, ModelError):
        raise
    except NOT_UNDERSTOOD as error:
        if not (request.run / MANIFEST).is_file():
            raise
        report = Report()
        report.add(f"{MANIFEST} cannot be read: {type(error).__name__}: {first_line(error)}")
        return report
    references, schema = _references(request.references, features)
    return verify(
        request.run, request.data, decision, model_file=request.model, references=references, schema=schema,
        credibility=credibility, read_tree=read_plain, cheap=request.cheap, sample=request.sample,
        random_state=request.random_state,
    )  # fmt: skip


def _stated(request: VerifyRequest, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run with what the caller states in their place."""
    cut = request.threshold  # of numbers that are explained below a threshold, the run keeps minus both
    if cut is not None and not settings.get("above", True):
        cut = -cut
    stated = {"positive": request.positive, "threshold": cut}
    return {**settings, **{name: value for name, value in stated.items() if value is not None}}


def _references(path: Path | None, schema: Schema) -> tuple[pd.DataFrame | None, Schema | None]:
    """The references of a file, named where it names them, and the features where it knows them."""
    if path is None:
        return None, None
    if path.suffix.lower() != ".json":
        table = read_table(path, text=text_columns(schema))
        return table.set_index("name") if "name" in table and "name" not in schema.columns else table, None
    saved = read_saved(path)
    return saved.frame.set_axis(pd.Index(saved.names, dtype=object), axis=0), saved.schema
