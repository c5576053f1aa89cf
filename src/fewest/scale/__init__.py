"""From one case to a billion: tables on disk in, a run folder out, and a verifier apart from the search."""

from fewest.scale.batches import explain_batches
from fewest.scale.reading import Run
from fewest.scale.running import explain_files
from fewest.scale.verifying import Report, verify

__all__ = ["Report", "Run", "explain_batches", "explain_files", "verify"]
