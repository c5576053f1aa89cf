"""Explainer: binds decision, references, constraints and search; `explain` returns verified answers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, Literal
from warnings import warn

import numpy as np
import pandas as pd

from fewest.constraints import Constraint, Constraints
from fewest.credibility import Credibility
from fewest.decision import Decision
from fewest.engine.choices import Choices
from fewest.engine.cubes import Engine
from fewest.engine.goals import answer_table, goals_of
from fewest.engine.model_reading import ModelReader, ModelReading
from fewest.engine.points import ENGINE
from fewest.engine.sufficient_sets import Sufficient, check_whole_domains, sufficient_sets
from fewest.engine.value_profiles import ValueProfiles
from fewest.errors import (
    DataError,
    FewestWarning,
    PositiveReferenceError,
    UsageError,
    check_count,
    check_number,
    check_word,
)
from fewest.references import References, build, single
from fewest.results.explanation import Explanation
from fewest.results.explanations import Explanations
from fewest.results.population import warned_of_wrong_ways
from fewest.results.progress_bar import Progress
from fewest.tables.arrays import Floats
from fewest.tables.cards import ShownAsCard
from fewest.tables.schema import UNSEEN
from fewest.tables.wording import show_label


class Explainer(ShownAsCard):
    """Finds, for each case a model refused, the fewest features that change the outcome.

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
        ``minus``: fewest features of the case set to the reference's values that change the outcome.
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
    engine : Engine
        The steps of the search; `Engine.with_search` puts one of yours in place (`docs/methods/extending.md`).

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
    >>> fw.Explainer(decision, fw.references.single(decision, X, y))
    <explainer of LogisticRegression: why 1, not 0; 1 reference, 2 features, 0 constraints>
    """

    def __repr__(self) -> str:
        decision, count = self.decision, len(self.references)
        rules = len(tuple(self.constraints))
        return (
            f"<explainer of {type(decision.model).__name__}: why {decision.positive_name}, not "
            f"{decision.negative_name}; {count} reference{'s' if count != 1 else ''}, {len(self.references.schema)} "
            f"features, {rules} constraint{'s' if rules != 1 else ''}>"
        )

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
        engine: Engine = ENGINE,
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
        self.engine = engine
        self._chosen = Choices(
            decision, self.references, self.constraints, credibility, self._read_weights(), direction == "plus",
            max_nodes, self.n_jobs,
        )  # fmt: skip
        self.reader = ModelReader(decision, self.schema, self.references.frame, opaque=structure == "opaque")
        self.goals = goals_of(self._chosen, self.reader, engine)
        self._profiles = ValueProfiles(self.reader)

    def with_(self, **changes: Any) -> Explainer:
        """A new explainer with some of the choices replaced."""
        names = signature(Explainer).parameters
        unknown = set(changes) - set(names)
        if unknown:
            raise UsageError(f"with_ has no {sorted(unknown)[0]!r}", do=f"choose from {', '.join(names)}")
        return Explainer(**{name: getattr(self, name) for name in names} | changes)

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

    def _read_weights(self) -> Floats | None:
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
        progress: Progress | bool | None = None,
    ) -> Explanations:
        """Explain every case of a table.

        Parameters
        ----------
        X : table
            Cases in raw columns. Cases the model did not refuse come back as ALREADY_NEGATIVE.
        alternatives : int
            List up to this many of the smallest sets per case.
        time_limit : float, optional
            Seconds after which no further case is begun; those left are BUDGET.
        progress : callable or bool, optional
            Called with (cases done, cases in all) after each part. Default: a bar, in notebooks and on terminals, for
            work of more than two seconds; False is none.
        """
        began = time.monotonic()
        check_count("alternatives", alternatives, least=0)
        if time_limit is not None:
            check_number("time_limit", time_limit, "use seconds, or None for no limit", least=0)
        frame = self.schema.conform(X, unseen=self.unseen)
        if len(frame) == 0:
            raise DataError("the table of cases is empty", do="pass at least one row")
        deadline = np.inf if time_limit is None else began + time_limit
        answers, work = answer_table(self.goals, self.reader, frame, deadline, alternatives, progress)
        references = self.references if work.references is None else work.references()
        plus = self.direction == "plus"
        seconds, weighted, reach = time.monotonic() - began, bool(self.weights), self.goals.reach
        out = Explanations(
            frame, references, answers, work.strategies, plus, weighted, seconds, work.notes, reach,
            profiles=self._profiles,
        )  # fmt: skip
        return warned_of_wrong_ways(out)

    def least(self, answers: Explanations) -> Explanations:
        """The same answers, with numbers moved no further from the case than they have to be.

        The set of each answer is kept. Among the values from the case's own to the one shown, on the feature's grid,
        the largest step in standard deviations is as small as can be, then the sum of steps. Tree ensembles and
        additive models are searched exactly, and single numbers of any model: ``proof.strategy`` then ends in "least
        values". Elsewhere it ends in "nearer values": the model confirmed them, and still nearer ones may do.

        Parameters
        ----------
        answers : Explanations
            What `explain` of this explainer gave.

        Examples
        --------
        >>> import fewest as fw
        >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
        >>> explainer = fw.Explainer(decision, fw.references.supplied(decision, {"debt": [20]}))
        >>> str(explainer.least(explainer.explain({"debt": [90]}))[0].changes[0])
        'debt had been 49 instead of 90'
        """
        from fewest.engine.least import least_of  # imports numba, which `explain` needs only where it searches

        return least_of(self._chosen, self.reader, answers)

    def sufficient(self, X: Any, *, widen: bool = False, every: bool = False) -> list[Sufficient]:
        """What alone suffices: of each case a smallest set of its own values that forces the outcome.

        Whatever values the other features take, of those that `references.anyone` allows: proved, or said not to be.
        ``widen`` puts intervals in place of numbers, ``every`` looks for features that are in no such set.

        Examples
        --------
        >>> import fewest as fw, pandas as pd
        >>> from sklearn.linear_model import LogisticRegression
        >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
        >>> decision = fw.Decision(LogisticRegression().fit(X, y))
        >>> out = fw.Explainer(decision, fw.references.anyone(decision, X, y)).sufficient(X.iloc[2:])
        >>> out[0].kind, out[0].features
        ('smallest', ('debt',))
        """

        def ask(cases: pd.DataFrame, *more: Constraint) -> list[Explanation]:
            other = self.with_(constraints=[*self.constraints, *more], weights=None, credibility=None)
            other.reader.take_over(self.reader, cases)
            return list(other.explain(cases, progress=False))

        check_whole_domains(self.references, self.constraints)
        cases = self.schema.conform(X, unseen=self.unseen)
        return sufficient_sets(self.references, cases, ask, self.constraints, widen, every)

    @property
    def doubt(self) -> str | None:
        """Why what had been read of the model was given up; None where it holds, or nothing was looked at yet."""
        return None if self.reader.reading is None else self.reader.reading.doubt

    def look_inside(self, cases: Any) -> ModelReading:
        """What can be read of the model, read once, and tried on a few of the cases before it is trusted."""
        if self.reader.reading is not None:
            return self.reader.reading
        return self.reader.look(self.schema.conform(cases, unseen=self.unseen))


def explain(
    model: Any,
    cases: Any,
    *,
    train: tuple[Any, Any],
    positive: Any = None,
    references: References | str | None = None,
    alternatives: int = 0,
    **choices: Any,
) -> Explanations:
    """Explain cases of a model in one line; `Decision`, `fewest.references` and `Explainer` are the long form.

    Parameters
    ----------
    model : object
        A fitted classifier, or a `Decision`.
    cases : table
        Cases in raw columns.
    train : (X, y)
        Training rows and their labels: what references are made of.
    positive : label, optional
        The class being explained (the refusal). Default: the second of two, with a warning that says which.
    references : References or str, optional
        What cases are compared with: ``single``, ``clusters``, ``near_threshold``, ``leaves``, or references made
        before. Default: the mean of the accepted rows or, where the model refuses that, their median or medoid.
    alternatives : int
        List up to this many of the smallest sets per case.
    **choices
        Those of `Decision` (``threshold``, ``against``, ``kind``, ``names``), of `Explainer` (``constraints``,
        ``weights``, ...), ``time_limit`` and ``progress``.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = ["ok", "ok", "bad", "bad"]
    >>> out = explain(LogisticRegression().fit(X, y), X, train=(X, y), positive="bad")
    >>> out[2].sev, str(out[2].changes[0])
    (1, 'debt had been 2 instead of 8')
    """
    parts: dict[str, Any] = {
        name: choices.pop(name) for name in ("threshold", "against", "kind", "names") if name in choices
    }
    asked = {name: choices.pop(name) for name in ("time_limit", "progress") if name in choices}
    for name in choices:
        known = [*signature(Explainer).parameters][2:]
        check_word("explain: option", name, [*known, "threshold", "against", "kind", "names", *asked])
    decision = _decision(model, positive, parts)
    if not (isinstance(train, tuple | list) and len(train) == 2):
        raise UsageError("train is not a pair of training rows and labels", do="pass train=(X, y)")
    if not isinstance(references, References):
        references = _made(references, decision, *train)
    return Explainer(decision, references, **choices).explain(cases, alternatives=alternatives, **asked)


def _decision(model: Any, positive: Any, parts: dict[str, Any]) -> Decision:
    """The decision of a model; which class is explained is said where nobody said it."""
    if isinstance(model, Decision):
        if positive is not None or parts:
            given = "positive" if positive is not None else next(iter(parts))
            raise UsageError(f"the Decision has its own {given}", do="pass the model, or leave that out")
        return model
    decision = Decision(model, positive=positive, **parts)
    if positive is None and decision.positive is not None:
        said, other = (show_label(label) for label in (decision.positive, decision.classes[0]))
        do = f"pass positive={said}, or positive={other} if that is the outcome to explain"
        warn(f"explaining class {said}, the second one\n  Try: {do}", FewestWarning, stacklevel=3)
    return decision


def _made(kind: str | None, decision: Decision, X: Any, y: Any) -> References:
    """References of a kind; without one, the first centre of the accepted rows that the model accepts."""
    if kind is not None:
        return build(kind, decision, X, y)
    try:
        return single(decision, X, y)
    except PositiveReferenceError as error:
        for centre in ("median", "medoid"):
            with suppress(PositiveReferenceError):
                return build("single", decision, X, y, centre=centre)
        raise error


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
