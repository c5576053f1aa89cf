"""An independent look at a run folder: the user's model, plain enumeration, and nothing of the search."""

from fewest.runs.verification.base import Report
from fewest.runs.verification.verifier import verify

__all__ = ["Report", "verify"]
