"""``fewest verify``: a run folder held against its data and its model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fewest.apps.cli._sources import class_of
from fewest.apps.cli._text import clean
from fewest.decision import Decision
from fewest.errors import ModelError, UsageError, VerificationError
from fewest.persistence.models import load_model
from fewest.runs import Run, verify
from fewest.runs.run import MANIFEST
from fewest.runs.verification import Report

if TYPE_CHECKING:
    from fewest.apps.cli._main import VerifyRequest


def run(request: VerifyRequest) -> int:
    """Verify, print what was found, and end with 6 if something is wrong."""
    folder = request.run
    fitted = load_model(request.model, request.allow_pickle)
    try:
        settings = dict(Run.open(folder).manifest["settings"])
        decision = decision_of(fitted, settings)
    except (UsageError, ModelError):
        raise
    except (KeyError, TypeError, ValueError) as error:
        if not (folder / MANIFEST).is_file():
            raise
        report = Report(problems=[f"{MANIFEST} cannot be read: {str(error).splitlines()[0]}"])
    else:
        report = verify(
            folder, request.data, decision, model_file=request.model, cheap=request.cheap, sample=request.sample,
            random_state=request.random_state,
        )  # fmt: skip
    print(json.dumps(report.to_dict(), indent=1) if request.as_json else clean(str(report)))
    if not report.ok:
        count = len(report.problems) + report.more
        raise VerificationError(
            f"{folder} does not hold: {count:,} thing{'s are' if count != 1 else ' is'} wrong",
            do="check that --data and --model are those of the run (--json lists what is wrong); else do not use it, "
            "and explain again, into another folder",
        )
    return 0


def decision_of(model: Any, settings: Mapping[str, Any]) -> Decision:
    """The decision a run was made with, from the model and the run's settings."""
    kind = str(settings["score"])
    positive, against = (
        None if settings[name] is None else class_of(model, str(settings[name])) for name in ("positive", "against")
    )
    chosen = kind if kind in ("proba", "decision", "label") else None
    return Decision(model, positive=positive, threshold=float(settings["threshold"]), against=against, kind=chosen)
