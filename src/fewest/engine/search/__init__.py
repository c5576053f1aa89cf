"""How it is found: exact search on the hypercube between a case and its reference, one strategy per model structure."""

from fewest.engine.search._ties import as_cheap
from fewest.engine.search.choose import solve, strategy_name
from fewest.engine.search.problem import Budget, Found, Outcome, Problem, Rules

__all__ = ["Budget", "Found", "Outcome", "Problem", "Rules", "as_cheap", "solve", "strategy_name"]
