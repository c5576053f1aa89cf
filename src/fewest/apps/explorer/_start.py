"""The first page: what this run is, its warnings, and where to begin."""

from __future__ import annotations

from typing import Any

from fewest.apps.explorer._explored import Explored
from fewest.apps.explorer._population import OPEN_ENDS, STATES, figures
from fewest.runs.views import RunView


def context(explored: Explored) -> dict[str, Any]:
    """What the page shows; there is always one case on it."""
    view = explored.view
    example = explored.view_of(explored.first)
    survey = view.survey
    return {
        "summary": view.summary,
        "figures": figures(view),
        "warnings": view.warnings(),
        "example": "" if example.protected else example.sentence,
        "first": explored.first,
        "hardest": survey.hardest[0] if survey.hardest else None,
        "open_ends": [(name, STATES[name], view.counts[name]) for name in OPEN_ENDS if view.counts.get(name)],
        "model": view.model_name,
        "outcome": view.about["outcome"],
        "reference_count": len(view.references()),
        "fingerprints": view.fingerprints(),
    }


def about(view: RunView) -> str:
    """The run in a few words, for the top of every page."""
    return f"{view.title} · {view.model_name} · {view.against:,} of {view.rows:,} decided against"
