from . import views as views
from .batches import explain_batches
from .comparison import RunComparison, compare
from .run import Run
from .runner import explain_files
from .verification import Report, verify

__all__ = ["Report", "Run", "RunComparison", "compare", "explain_batches", "explain_files", "verify", "views"]
