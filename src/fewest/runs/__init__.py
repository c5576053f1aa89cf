"""From one case to a billion: tables on disk in, a run folder out, and a verifier apart from the search."""

from fewest.runs.batches import explain_batches
from fewest.runs.run import Run
from fewest.runs.runner import explain_files
from fewest.runs.verification import Report, verify

__all__ = ["Report", "Run", "explain_batches", "explain_files", "verify"]
