"""Models from files; `fewest.persistence` has how they are checked."""

from __future__ import annotations

from fewest.persistence.models import load_model

__all__ = ["load_model"]
