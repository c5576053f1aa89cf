"""Answers as JSON values."""

from __future__ import annotations

from typing import Any

from fewest.decision import Decision
from fewest.results.explanation import Explanation
from fewest.results.record import to_json
from fewest.tables.saved_schema import plain


def prediction_record(decision: Decision, score: float, positive: bool) -> dict[str, Any]:
    """What the model decides of one case."""
    return {
        "prediction": decision.positive_name if positive else decision.negative_name,
        "positive": bool(positive),
        "score": plain(float(score)),
    }


def explanation_record(answer: Explanation) -> dict[str, Any]:
    """One explanation, in the fields of the record that the service has."""
    return to_json(answer, "http")
