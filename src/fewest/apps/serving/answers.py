"""What a worker does with a model: bodies of requests in, bodies of responses out."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fewest.apps.serving.instances import BodyReader, Request
from fewest.apps.serving.refusals import RefusedError
from fewest.apps.serving.wire import Reply
from fewest.decision import Decision
from fewest.errors import DataError, FewestError, FewestWarning
from fewest.explainer import Explainer
from fewest.results.record import to_json
from fewest.runs.parts import row_hashes
from fewest.tables.saved_schema import plain
from fewest.tables.schema import Feature, Schema

UNFINISHED = "BUDGET"
PREDICTED = "PREDICTED"
ROWS = 48
FEATURE_PARTS = ("name", "title", "kind", "columns", "levels", "unit")


class _Job(NamedTuple):
    """A request that could be read, and its number among those that came together."""

    number: int
    verb: str
    asked: Request

    @property
    def likeness(self) -> tuple[float, str, int, tuple[bool, ...]]:
        """What requests must share to be answered by one call; a missing value can change a column's dtype."""
        missing = tuple(None in column for column in self.asked.cells)
        return self.asked.time_limit, self.verb, self.asked.alternatives, missing

    @property
    def size(self) -> int:
        """Cases."""
        return len(self.asked.cells[0])


class Answerer:
    """A model that answers requests; the time limit, in seconds, is for all that come together."""

    def __init__(
        self, explainer: Explainer, *, max_instances: int = 1_000, max_alternatives: int = 20, time_limit: float = 10.0
    ) -> None:
        # One request, one core: the workers share the machine. Levels are checked where requests are read.
        self.explainer = explainer.with_(n_jobs=1, unseen="allow")
        self.limits: dict[str, Any] = {
            "max_instances": max_instances, "max_alternatives": max_alternatives, "time_limit": time_limit,
        }  # fmt: skip
        self.schema = explainer.schema
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            missing = self._try_out()
        self.notes = [str(note.message) for note in caught if issubclass(note.category, FewestWarning)]
        self.reader = BodyReader(self.schema, any_level=explainer.unseen == "allow", missing=missing, **self.limits)

    def _try_out(self) -> tuple[str, ...]:
        """Read the model's inside and compile the search, on cases that are the same every time."""
        typical = self.explainer.references.frame
        cases = made_up(self.schema, typical)
        try:
            self.explainer.decision.score(cases)
        except FewestError:  # a model that refuses made-up cases
            cases = self.schema.conform(typical, unseen="allow")
        for alternatives in (0, 2):  # both ways are compiled before anybody waits for them
            self.explainer.explain(cases, alternatives=alternatives, time_limit=3600)
        return takes_missing(self.explainer.decision, self.schema, cases)

    def describe(self) -> dict[str, Any]:
        """A model as its clients see it: features, decision, limits, and the JSON Schema of requests to it."""
        decision = self.explainer.decision
        return {
            "positive": decision.positive_name,
            "outcome": decision.negative_name,
            "threshold": float(decision.cut),
            "direction": self.explainer.direction,
            "references": list(self.explainer.references.names),
            # Not the range seen, whose ends are values of people.
            "features": [
                {part: plain(getattr(feature, part)) for part in FEATURE_PARTS} for feature in self.schema.features
            ],
            "limits": dict(self.limits),
            "notes": self.notes,
            "instance": self.reader.instance_schema(),
            "request": self.reader.request_schema(),
        }

    def answer(self, verbs: Sequence[str], bodies: Sequence[bytes]) -> list[Reply]:
        """Answer requests that came together, ``explain`` or ``predict``; a wrong one leaves the others alone."""
        began = time.monotonic()
        replies: dict[int, Reply] = {}
        jobs: dict[Any, list[_Job]] = {}
        for number, (verb, body) in enumerate(zip(verbs, bodies, strict=True)):
            try:
                job = _Job(number, verb, self.reader.read(body))
            except FewestError as error:
                replies[number] = _refused(error)
                continue
            jobs.setdefault(job.likeness, []).append(job)
        # The shortest limits come first: time is counted from the beginning for all.
        for key in sorted(jobs):
            replies.update(self._answer_alike(jobs[key], began, alone=len(bodies) == 1))
        return [replies[number] for number in range(len(bodies))]

    def _answer_alike(self, jobs: list[_Job], began: float, alone: bool) -> dict[int, Reply]:
        """Answer requests with the same wishes by one call."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self._answer_together(jobs, began, alone)
        except FewestError as error:
            cause = error.__cause__
            if isinstance(cause, MemoryError):
                raise cause from error
            if len(jobs) == 1:
                return {jobs[0].number: _refused(error)}
        return {number: reply for job in jobs for number, reply in self._answer_alike([job], began, alone).items()}

    def _answer_together(self, jobs: list[_Job], began: float, alone: bool) -> dict[int, Reply]:
        columns = zip(*(job.asked.cells for job in jobs), strict=True)
        whole = self.reader.table([[cell for part in column for cell in part] for column in columns])
        records, statuses = self._records(jobs[0], whole, began)
        hashes = [f"{word:016x}" for word in row_hashes(self.schema, whole).tolist()]
        seconds = time.monotonic() - began
        out: dict[int, Reply] = {}
        first = 0
        for job in jobs:
            rows = slice(first, first + job.size)
            first += job.size
            if not alone and seconds >= job.asked.time_limit and UNFINISHED in statuses[rows]:
                # The time may have gone to its neighbours: it is asked again, alone.
                out[job.number] = Reply({"again": True}, b"")
                continue
            counts = {name: statuses[rows].count(name) for name in sorted(set(statuses[rows]))}
            head = {
                "status": 200, "instances": job.size, "answers": counts, "rows": hashes[rows],
                "seconds": round(seconds, 6), "together": len(jobs),
            }  # fmt: skip
            body = {name: _called(values[rows], job.asked.ids) for name, values in records.items()}
            out[job.number] = Reply(head, json.dumps(body, allow_nan=False, ensure_ascii=False).encode())
        return out

    def _records(self, job: _Job, frame: pd.DataFrame, began: float) -> tuple[dict[str, list[Any]], list[str]]:
        """What is answered for each row, and its status."""
        decision = self.explainer.decision
        if job.verb == "predict":
            verdicts = decision.verdicts(frame)
            pairs = zip(verdicts.score.tolist(), verdicts.positive.tolist(), strict=True)
            records = [prediction_record(decision, score, positive) for score, positive in pairs]
            return {"predictions": records}, [PREDICTED] * len(frame)
        left = max(1e-3, job.asked.time_limit - (time.monotonic() - began))
        out = self.explainer.explain(frame, alternatives=job.asked.alternatives, time_limit=left)
        answers = list(out.brief(range(len(out))))
        return {
            "predictions": [prediction_record(decision, a.score, a.score >= decision.cut) for a in answers],
            "explanations": [to_json(a, "http") for a in answers],
        }, [str(a.status.value) for a in answers]


def _called(records: list[Any], ids: Sequence[str | None]) -> list[Any]:
    """The records, each with what its case is called, where the request says so."""
    return [one if name is None else {"id": name, **one} for name, one in zip(ids, records, strict=True)]


def prediction_record(decision: Decision, score: float, positive: bool) -> dict[str, Any]:
    """What the model decides of one case, as JSON values."""
    return {
        "prediction": decision.positive_name if positive else decision.negative_name,
        "positive": bool(positive),
        "score": plain(float(score)),
    }


def _refused(error: FewestError) -> Reply:
    """An error as a reply: the client's where the data do not fit, the model's otherwise."""
    if not isinstance(error, RefusedError):
        fits = not isinstance(error, DataError)
        error = RefusedError(
            500 if fits else 422,
            "the model failed on these instances" if fits else "the instances do not fit the model",
            "model" if fits else "instances", error.message, error.do or "check the values",
        )  # fmt: skip
    return Reply({"status": error.status}, error.body())


def made_up(schema: Schema, typical: pd.DataFrame) -> pd.DataFrame:
    """Made-up cases to try a model on, the same ones every time: no rows of people are kept with it.

    They are drawn feature by feature from the schema's ranges and levels, from typical rows where it has none.
    """
    random = np.random.default_rng(0)
    out: dict[str, Any] = {}
    for feature in schema.features:
        out.update(_draw(feature, typical, random, ROWS))
    return schema.conform(pd.DataFrame(out), unseen="allow")


def _draw(feature: Feature, typical: pd.DataFrame, random: np.random.Generator, rows: int) -> dict[str, Any]:
    name = feature.columns[0]
    if feature.is_numeric and np.isfinite([feature.minimum, feature.maximum]).all():
        values = np.round(random.uniform(feature.minimum, feature.maximum, rows), feature.decimals)
        return {name: values.astype(np.int64) if feature.kind == "integer" else values}
    if feature.kind == "indicators":
        chosen = random.integers(0, len(feature.columns), rows)
        return {column: (chosen == k).astype(int) for k, column in enumerate(feature.columns)}
    if feature.kind in ("category", "boolean") and feature.levels:
        return {name: pd.Series([feature.levels[k] for k in random.integers(0, len(feature.levels), rows)])}
    taken = random.integers(0, len(typical), rows)
    return {column: typical[column].array[taken] for column in feature.columns}


def takes_missing(decision: Decision, schema: Schema, cases: pd.DataFrame) -> tuple[str, ...]:
    """Columns in which a model scores missing values, tried on cases it can score."""
    single = [f.columns[0] for f in schema.features if len(f.columns) == 1]
    if _scores(decision, schema, cases, single):
        return tuple(single)
    return tuple(name for name in single if _scores(decision, schema, cases, [name]))


def _scores(decision: Decision, schema: Schema, cases: pd.DataFrame, empty: list[str]) -> bool:
    """Whether the model scores cases in which some columns are missing."""
    try:
        few = cases.iloc[:2].astype(dict.fromkeys(empty, object))
        few[empty] = None
        scores = decision.score(schema.conform(few, unseen="allow"))
    except Exception:
        return False
    return bool(np.isfinite(scores).all())
