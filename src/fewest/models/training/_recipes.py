"""Where the references of a training run come from, and what becomes of them while the model changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from fewest import references as sources
from fewest.decision import Decision
from fewest.errors import PositiveReferenceError, UsageError, check_word
from fewest.references import References

Recipe = Callable[[Decision, Any, Any], References]
WORDS = ("single", "clusters", "near_threshold")
OPTIONS: dict[str, dict[str, Any]] = {"single": {"on_positive": "allow"}}


def recipe_of(wanted: Any, random_state: int) -> Recipe:
    """The recipe a word, fixed references, or a function stand for.

    Parameters
    ----------
    wanted : str, References or callable
    random_state : int
        For the words that draw.

    Examples
    --------
    >>> recipe_of("clusters", 0).keywords
    {'random_state': 0}
    """
    if isinstance(wanted, References):
        return partial(_rebound, wanted)
    if isinstance(wanted, str):
        check_word("references", wanted, WORDS)
        return partial(sources.build, wanted, **OPTIONS.get(wanted, {"random_state": random_state}))
    if callable(wanted):
        return wanted  # type: ignore[no-any-return]
    raise UsageError(
        f"references {wanted!r} is neither a word, nor references, nor a function of a decision and training rows",
        do=f"use one of {', '.join(WORDS)}, or functools.partial(fewest.references.clusters, n_clusters=4)",
    )


def hangs_on_model(wanted: Any) -> bool:
    """Whether references change when the model does: not those that are given, nor the mean of labelled rows."""
    if isinstance(wanted, partial):
        wanted = wanted.func
    return not (isinstance(wanted, References) or wanted == "single" or wanted is sources.single)


def _rebound(fixed: References, decision: Decision, X: Any, y: Any) -> References:
    """The same points under another model."""
    return replace(fixed, decision=decision, score=decision.verdicts(fixed.frame).score)


def cook(recipe: Recipe, decision: Decision, X: Any, y: Any, before: References | None) -> References:
    """References under the model as it is; those from before where it has none that it accepts."""
    try:
        found = recipe(decision, X, y)
    except PositiveReferenceError:
        if before is None:
            raise
        return _rebound(before, decision, X, y)
    if not isinstance(found, References):
        raise UsageError(
            f"the function for references gave a {type(found).__name__}",
            do="let it return what fewest.references makes",
        )
    return found
