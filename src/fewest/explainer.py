"""Explainer: binds decision, references, constraints and search; `explain` returns verified answers."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.constraints import Constraint, Constraints
from fewest.credibility import Credibility
from fewest.credibility.leaf_support import LeafDensity
from fewest.credibility.mixture import GaussianDensity
from fewest.decision import Decision
from fewest.engine.leaves import LeafTask
from fewest.engine.leaves import answer as answer_leaves
from fewest.engine.model_reading import SAMPLE, ModelReading
from fewest.engine.move_groups import MoveGroups
from fewest.engine.not_credible import floored
from fewest.engine.points import Task, answer
from fewest.engine.search import strategy_name
from fewest.engine.structure import Opaque
from fewest.errors import DataError, DoubtError, FewestWarning, UsageError, check_count, check_number, check_word
from fewest.models.trees import Reach
from fewest.references import Leaves, References
from fewest.results.answers import Answers
from fewest.results.explanations import Explanations
from fewest.tables.schema import UNSEEN

CHUNK_CELLS = 4_000_000
MAX_CHUNK = 20_000
DEFAULT_NODES = 100_000
DEFAULT_OWN_NODES = 20_000
# The function that answers a part, the columns it works on, the names of its strategies, and notes.
Work = tuple[Callable[[pd.DataFrame], Answers], int, tuple[str, ...], tuple[str, ...]]


class Explainer:
    """Finds, for each case a model decided against, the fewest features that turn the decision.

    Parameters
    ----------
    decision : Decision
        What decides.
    references : References
        What cases are compared with.
    constraints : Constraints, optional
        What may change; one constraint alone or a list of them will do.
    weights : mapping, optional
        Feature -> cost of changing it (default 1). The least cost is looked for instead of the least count.
    direction : str
        ``minus``: fewest features of the case set to the reference's values that turn the decision.
        ``plus``: fewest of the case's values which, put onto the reference, bring the decision about.
    max_nodes : int, optional
        Search nodes per case; vertices scored per case for models whose inside cannot be read.
    n_jobs : int, optional
        Default: all cores. The answers do not depend on it.
    unseen : str
        ``error`` refuses levels that were not in the data the schema was read from; ``allow`` leaves them to the model.
    structure : str
        ``auto`` reads the model's inside; ``opaque`` uses its scores alone (slower; for cross-checks).
    credibility : Credibility, optional
        What is believable: only changes that lead to where accepted cases are count. Cases that nothing credible turns
        come back as NOT_CREDIBLE.

    Examples
    --------
    >>> import fewest as fw
    >>> from sklearn.linear_model import LogisticRegression
    >>> import pandas as pd
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
    >>> decision = fw.Decision(LogisticRegression().fit(X, y))
    >>> out = fw.Explainer(decision, fw.references.single(decision, X, y)).explain(X)
    >>> out[2].sev, str(out[2].changes[0])
    (1, 'debt had been 2 instead of 8')
    """

    def __init__(
        self,
        decision: Decision,
        references: References,
        *,
        constraints: Constraints | Constraint | Iterable[Constraint] | None = None,
        weights: Mapping[str, float] | None = None,
        direction: Literal["minus", "plus"] = "minus",
        max_nodes: int | None = None,
        n_jobs: int | None = None,
        unseen: Literal["error", "allow"] = "error",
        structure: Literal["auto", "opaque"] = "auto",
        credibility: Credibility | None = None,
    ) -> None:
        _check_parts(decision, references, credibility)
        check_word("direction", direction, ("minus", "plus"))
        check_word("unseen", unseen, UNSEEN)
        check_word("structure", structure, ("auto", "opaque"))
        for name, count in (("max_nodes", max_nodes), ("n_jobs", n_jobs)):
            if count is not None:
                check_count(name, count, do=", or None for the default")
        self.decision = decision
        self.references = references.under(decision)
        self.constraints = Constraints.read(constraints)
        if not isinstance(weights, Mapping | None):
            raise UsageError(f"weights is {weights!r}", do='pass a mapping of features to costs: {"income": 2}')
        self.weights = dict(weights or {})
        self.direction = direction
        self.max_nodes = max_nodes
        self.n_jobs = n_jobs or _cores()
        self.unseen: Literal["error", "allow"] = unseen
        self.structure = structure
        self.credibility = credibility
        self.schema = references.schema
        self.constraints.check(self.schema)
        self._check_credibility()
        self._cost = self._read_weights()
        self._units = MoveGroups.build(self.schema, self.constraints)
        self._inside: ModelReading | None = None
        self._goals: npt.NDArray[np.float64] | None = None
        self._band = 0.0
        self._reach = self._leaf_reach()
        self._offered()
        if direction == "plus" and (self.references.score >= decision.cut).any():
            raise UsageError("SEV+ needs references the model accepts; one of these is decided positive", do="drop it")

    def with_(self, **changes: Any) -> Explainer:
        """A new explainer with some of the choices replaced."""
        now = {
            "decision": self.decision, "references": self.references, "constraints": self.constraints,
            "weights": self.weights, "direction": self.direction, "max_nodes": self.max_nodes, "n_jobs": self.n_jobs,
            "unseen": self.unseen, "structure": self.structure, "credibility": self.credibility,
        }  # fmt: skip
        unknown = set(changes) - set(now)
        if unknown:
            raise UsageError(f"with_ has no {sorted(unknown)[0]!r}", do=f"choose from {', '.join(now)}")
        now.update(changes)
        return Explainer(now.pop("decision"), now.pop("references"), **now)  # type: ignore[arg-type]

    def save(self, path: str | Path, *, training_rows: bool = False) -> None:
        """Write the explainer as one file, ``NAME.fewest``, for `fewest.persistence.load`.

        The file is a zip of JSON, arrays and the model as skops; reading it runs nothing. Neither training rows nor
        the model's history are in it.

        Parameters
        ----------
        path : path
            Ends in ``.fewest``.
        training_rows : bool
            Whether the file may hold rows of people the model or the density was trained on. Without it, what is made
            of such rows (nearest neighbours, support vectors) is refused.
        """
        # By name: files know how to build explainers, so the package of files is the one that imports the other.
        import_module("fewest.persistence").save(self, path, training_rows)

    def _check_credibility(self) -> None:
        """Refuse a density of other features, and a question it has no answer to."""
        if self.credibility is None:
            return
        if self.direction == "plus":
            raise UsageError(
                "SEV+ leads to cases the model decides against; a density of accepted cases says nothing of them",
                do='use direction="minus", or leave credibility out',
            )
        ours, theirs = self.schema, self.credibility.schema
        if ours.names != theirs.names or ours.columns != theirs.columns:
            raise UsageError(
                "the credibility and the references speak of different features",
                do="make both from the same table, with the same groups",
            )

    def _read_weights(self) -> npt.NDArray[np.float64] | None:
        cost = np.ones(len(self.schema))
        for name, weight in self.weights.items():
            check_number(f'the weight of "{name}"', weight, "use a positive number, or Immutable", above=0)
            cost[self.schema.index(name)] = weight
        return cost if self.weights else None

    def explain(
        self,
        X: Any,
        *,
        alternatives: int = 0,
        time_limit: float | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Explanations:
        """Explain every case of a table.

        Parameters
        ----------
        X : table
            Cases in raw columns. Cases the model did not decide against come back as ALREADY_NEGATIVE.
        alternatives : int
            List up to this many of the smallest sets per case.
        time_limit : float, optional
            Seconds after which no further case is begun; those left are BUDGET.
        progress : callable, optional
            Called with (cases done, cases in all) after each part.
        """
        began = time.monotonic()
        check_count("alternatives", alternatives, least=0)
        if time_limit is not None:
            check_number("time_limit", time_limit, "use seconds, or None for no limit", least=0)
        frame = self.schema.conform(X, unseen=self.unseen)
        if len(frame) == 0:
            raise DataError("the table of cases is empty", do="pass at least one row")
        deadline = np.inf if time_limit is None else began + time_limit
        try:
            answers, strategies, notes = self._answer(frame, deadline, alternatives, progress)
        except DoubtError as doubt:
            # What was read answered other cases of the table before: they are searched again as well.
            self._give_up(doubt.message)
            answers, strategies, notes = self._answer(frame, deadline, alternatives, progress)
        plus = self.direction == "plus"
        weighted = self._cost is not None
        seconds = time.monotonic() - began
        return Explanations(frame, self.references, answers, strategies, plus, weighted, seconds, notes, self._reach)

    def _answer(
        self, frame: pd.DataFrame, deadline: float, alternatives: int, progress: Callable[[int, int], None] | None
    ) -> tuple[Answers, tuple[str, ...], tuple[str, ...]]:
        """The answers of a table, part by part, the strategies they name and notes."""
        towards = self._towards_points if self._reach is None else self._towards_leaves
        work, width, strategies, notes = towards(frame, deadline, alternatives)
        answers = Answers.blank(len(frame), len(self.schema))
        step = min(MAX_CHUNK, max(256, CHUNK_CELLS // max(len(self.schema), width)))
        for first in range(0, len(frame), step):
            rows = np.arange(first, min(first + step, len(frame)))
            answers.put(rows, work(frame.iloc[rows]))
            if progress is not None:
                progress(int(rows[-1]) + 1, len(frame))
        return answers, strategies, notes

    def _give_up(self, doubt: str) -> None:
        """Believe nothing that was read of the model from now on."""
        assert self._inside is not None
        self._inside, self._goals = self._inside.given_up(doubt), None
        warnings.warn(f"{doubt}; its own scores are searched instead", FewestWarning, stacklevel=3)

    @property
    def doubt(self) -> str | None:
        """Why what had been read of the model was given up; None where it holds, or nothing was looked at yet."""
        return None if self._inside is None else self._inside.doubt

    def _towards_points(self, frame: pd.DataFrame, deadline: float, alternatives: int) -> Work:
        """How to answer a part of the table by search between cases and references."""
        inside = self.look_inside(frame)
        if self._goals is None:
            self._goals = inside.goals(self.references.frame)
        task = Task(
            self.decision, self.references, self.constraints, self._units, self._cost, inside, self._goals,
            sign=1 if self.direction == "minus" else -1,
            nodes=self.max_nodes or DEFAULT_NODES,
            own_nodes=self.max_nodes or DEFAULT_OWN_NODES,
            own_tolerance=self._band,
            deadline=deadline,
            alternatives=alternatives,
            n_jobs=self.n_jobs,
            credibility=self.credibility,
        )  # fmt: skip
        strategies = ("none", self._strategy(inside), "levelwise on the model's own scores")
        notes = (inside.structure.reason,) if isinstance(inside.structure, Opaque) else ()
        # References that are compared are searched together, so a case takes as many cells as there are of them.
        together = len(self.references) if self.references.assignment == "sparsest" else 1
        return partial(answer, task), together * max(len(self.schema), inside.width), strategies, notes

    def _strategy(self, inside: ModelReading) -> str:
        if self.credibility is None or not floored(self.credibility):
            return strategy_name(inside.structure)
        bounded = isinstance(self.credibility.density, GaussianDensity)
        return strategy_name(inside.structure, "bounded" if bounded else "asked")

    def _towards_leaves(self, frame: pd.DataFrame, deadline: float, alternatives: int) -> Work:
        """How to answer a part of the table by the leaves of the tree that decides."""
        assert self._reach is not None
        self.decision.check(frame.iloc[:SAMPLE])
        task = LeafTask(
            self.decision, self._reach, deadline, alternatives, self.n_jobs, self.credibility, self._offered()
        )  # fmt: skip
        return partial(answer_leaves, task), len(self.schema), ("none", "all leaves of the tree"), ()

    def _offered(self) -> npt.NDArray[np.bool_] | None:
        """Which of the negative leaves are credible."""
        if self.credibility is None or self._reach is None:
            return None
        density = self.credibility.density
        tree = self._reach.tree
        if not isinstance(density, LeafDensity) or density.tree.n_nodes != tree.n_nodes:
            raise UsageError(
                "the leaves of a tree are boxes, of which a density of points says nothing",
                do="use credibility.leaf_support of the same decision with references.leaves",
            )
        return np.asarray(density.of_node[self._reach.leaf] >= self.credibility.floor)

    def _leaf_reach(self) -> Reach | None:
        """How the leaves can be entered, where the references are leaves."""
        if not isinstance(self.references, Leaves):
            return None
        if self.direction == "plus":
            raise UsageError("SEV+ is not defined for the leaves of a tree", do="use references.single with it")
        return self.references.reach(self.constraints, self._cost)

    def look_inside(self, cases: Any) -> ModelReading:
        """What can be read of the model, read once, and tried on a few of the cases before it is trusted."""
        if self._inside is None:
            sample = self.schema.conform(cases, unseen=self.unseen).iloc[:SAMPLE]
            self.decision.check(sample)
            self._band = self.decision.band(sample.iloc[:1])
            if self.structure == "opaque":
                self._inside = ModelReading.unread(self.decision, self.schema)
            else:
                self._inside = ModelReading.read(self.decision, self.schema, sample, self.references.frame)
            if self._inside.doubt:
                warnings.warn(f"{self._inside.doubt}; its own scores are searched instead", FewestWarning, stacklevel=3)
        return self._inside


def _check_parts(decision: Any, references: Any, credibility: Any) -> None:
    """Refuse models and tables where their decision and references belong."""
    made = f'build("{references}", decision, X, y)' if isinstance(references, str) else "single(decision, X, y)"
    for given, kind, do in (
        (decision, Decision, "fw.Decision(model, positive=...)"),
        (references, References, f"fw.references.{made}"),
        (credibility, Credibility | None, "fw.credibility.mixture(decision, X, y)"),
    ):
        if not isinstance(given, kind):
            named = getattr(kind, "__name__", "Credibility")
            raise UsageError(f"a {type(given).__name__} is not a {named}", do=f"pass {do} in its place")


def _cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
