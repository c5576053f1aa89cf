from . import benchmarking as benchmarking
from . import paper as paper
from . import peers as peers

__all__ = ["benchmarking", "paper", "peers"]
