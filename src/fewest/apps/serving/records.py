"""Answers as JSON values."""

from __future__ import annotations

from typing import Any

from fewest.decision import Decision
from fewest.results.explanation import Change, Explanation
from fewest.tables.saved_schema import plain


def value_json(value: Any) -> Any:
    """A feature's value; that of a group of columns is an object.

    Examples
    --------
    >>> value_json(3.5), value_json({"left": 1, "right": None})
    (3.5, {'left': 1, 'right': None})
    """
    return {str(key): plain(part) for key, part in value.items()} if isinstance(value, dict) else plain(value)


def change_records(changes: tuple[Change, ...]) -> list[dict[str, Any]]:
    """Changes of a set, in column order.

    Examples
    --------
    >>> change_records((Change("age", 30, 40),))
    [{'feature': 'age', 'from': 30, 'to': 40}]
    """
    return [
        {"feature": change.feature, "from": value_json(change.before), "to": value_json(change.after)}
        for change in changes
    ]


def prediction_record(decision: Decision, score: float, positive: bool) -> dict[str, Any]:
    """What the model decides of one case."""
    return {
        "prediction": decision.positive_name if positive else decision.negative_name,
        "positive": bool(positive),
        "score": plain(float(score)),
    }


def explanation_record(answer: Explanation) -> dict[str, Any]:
    """One explanation."""
    proof = answer.proof
    return {
        "status": answer.status.value,
        "sev": answer.sev,
        "sentence": str(answer),
        "changes": change_records(answer.changes),
        "score": plain(answer.score),
        "score_after": plain(answer.score_after),
        "lower_bound": plain(proof.lower_bound),
        "proof": {
            "minimal": proof.minimal,
            "verified": proof.verified,
            "strategy": proof.strategy,
            "nodes": proof.nodes,
        },
        "reference": answer.reference,
        "alternatives": [change_records(changes) for changes in answer.alternatives],
        "all_listed": answer.all_listed,
    }
