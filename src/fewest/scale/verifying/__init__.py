"""An independent look at a run folder: the user's model, plain enumeration, and nothing of the search."""

from fewest.scale.verifying.report import Report
from fewest.scale.verifying.verifier import verify

__all__ = ["Report", "verify"]
