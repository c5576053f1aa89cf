"""Explainers and models as files that are safe to open: audited first, no pickle, no rows of people.

`save` and `load` write and read an explainer; `load_model` reads a model alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fewest.persistence.explainers import load, save
    from fewest.persistence.models import load_model

__all__ = ["load", "load_model", "save"]

_HOMES = {"load": "explainers", "save": "explainers", "load_model": "models"}


def __getattr__(name: str) -> Any:
    """Load what is asked for: reading a model does not need the searches, nor `fewest --help` either."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
