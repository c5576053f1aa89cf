"""The public names are a promise: adding or removing one is a decision, not an accident."""

from __future__ import annotations

import inspect

import fewest as fw

NAMES = {
    "AtMost", "Change", "Constraints", "Decision", "Explainer", "Explanation", "Explanations", "Feature", "FewestError",
    "FewestWarning", "Forbidden", "Immutable", "Implies", "Linked", "OneOf", "Only", "Proof", "Range", "Schema",
    "Status", "checks", "compare", "credibility", "datasets", "explain", "load", "metrics", "models", "plots",
    "rashomon", "references", "reporting", "runs", "training", "trees",
}  # fmt: skip


def test_the_public_names_are_pinned() -> None:
    assert set(fw.__all__) == NAMES
    assert all(hasattr(fw, name) for name in NAMES)


def test_every_public_name_has_a_docstring() -> None:
    for name in NAMES:
        thing = getattr(fw, name)
        assert inspect.getdoc(thing), name
        if inspect.isclass(thing):
            for method, function in inspect.getmembers(thing, inspect.isfunction):
                if not method.startswith("_") and function.__module__.startswith("fewest"):
                    assert inspect.getdoc(function), f"{name}.{method}"
