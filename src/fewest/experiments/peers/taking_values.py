"""Methods that take whole values over from another row: NICE, from a training row, and SHAP top-k, from a reference.

NICE (Brughmans, Leyman and Martens 2023) takes as little of the nearest unlike neighbour as changes the outcome. SHAP
top-k takes the features with the largest Shapley values, one more until it turns: attributions say what a score is made
of, not what would turn it, and this is what they give when they are used for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest import references
from fewest.decision import Decision
from fewest.engine.cubes import Vertices
from fewest.engine.model_reading import ModelReading
from fewest.engine.structure import Additive, Ensemble, Opaque
from fewest.errors import ModelError, check_word
from fewest.experiments.peers.base import FittedPeer
from fewest.experiments.peers.shapley import shapley_values
from fewest.references import References
from fewest.references.training_rows import TrainingRows
from fewest.tables.arrays import Bools, Floats
from fewest.tables.closeness import Distances
from fewest.tables.schema import Schema

SAMPLE, BACKGROUND = 48, 100


def read_inside(decision: Decision, schema: Schema, rows: pd.DataFrame) -> ModelReading:
    """What can be read of a model, tried on training rows mixed with each other."""
    sample = rows.iloc[:SAMPLE]
    return ModelReading.read(decision, schema, sample, sample.iloc[::-1])


@dataclass(frozen=True, eq=False)
class Between:
    """Cases, the goal of each, and everything between them.

    ``start`` and ``goal`` are cases and goals as the structure takes them; without columns where nothing was read.
    """

    vertices: Vertices
    inside: ModelReading
    start: Floats
    goal: Floats

    @classmethod
    def read(
        cls, decision: Decision, schema: Schema, inside: ModelReading, cases: pd.DataFrame, goals: pd.DataFrame
    ) -> Between:
        """Cases (n, columns) and the goal of each (n, columns), both conformed to the schema."""
        vertices = Vertices(decision, schema, cases, goals, np.arange(len(cases)))
        prepared = (inside.prepare(inside.encoding.transform(rows)) for rows in (cases, goals))
        return cls(vertices, inside, *prepared)

    def excess(self, cubes: npt.NDArray[Any], features: Bools) -> Floats:
        """Score less threshold of vertices: case numbers (v,) and the features (v, p) taken from the goal."""
        structure = self.inside.structure
        if isinstance(structure, Opaque):
            return self.vertices.signed(cubes, features)
        mixed = np.where(features[:, self.inside.feature_of()], self.goal[cubes], self.start[cubes])
        return np.asarray(structure.raw(mixed) - structure.reading.cut)

    def rows(self, features: Bools) -> pd.DataFrame:
        """The raw rows with these features (n, p) taken from each case's goal."""
        return self.vertices.rows(np.arange(len(features)), features)


@dataclass(frozen=True)
class NICE:
    """Values of the nearest training row that is decided, and labelled, negative; one by one until the decision turns.

    Nearest is by HEOM: numbers by their share of the range seen, anything else by whether it differs. Each step takes
    over the value with the largest fall of the raw score (``sparsity``), or the largest fall for the distance it adds
    (``proximity``).

    Parameters
    ----------
    reward : str

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 3, 7, 8, 9], "age": [30, 50, 40, 30, 50, 40]}); y = [0, 0, 0, 1, 1, 1]
    >>> decision = Decision(LogisticRegression().fit(X, y))
    >>> out = NICE().fit(decision, X, y).explain(X.iloc[[4]])
    >>> out.frame.to_dict("records"), out.found.tolist()
    ([{'debt': 2, 'age': 50}], [True])
    """

    reward: Literal["sparsity", "proximity"] = "sparsity"

    @property
    def name(self) -> str:
        """With its reward, unless that is the usual one."""
        return "NICE" if self.reward == "sparsity" else f"NICE ({self.reward})"

    def fit(self, decision: Decision, X: Any, y: Any) -> FittedPeer:
        """Keep the training rows that are decided and labelled negative."""
        check_word("reward", self.reward, ("sparsity", "proximity"))
        training = TrainingRows.read(decision, X, y)
        schema, rows = training.schema, training.frame
        accepted = ~decision.refuses(rows)
        justified = accepted & training.labels.accepted
        pool = rows[justified if justified.any() else accepted]
        if len(pool) == 0:
            raise ModelError("the model refuses every training row", do="check `positive=` and the threshold")
        search = partial(self._find, decision, schema, pool, read_inside(decision, schema, rows))
        return FittedPeer(decision, schema, search)

    def _find(
        self, decision: Decision, schema: Schema, pool: pd.DataFrame, inside: ModelReading, cases: pd.DataFrame
    ) -> pd.DataFrame:
        """Rows (n, columns) with as much of each case's neighbour as turns it."""
        distances, share = Distances.read(schema, cases, pool), _per_range(schema)
        everyone = np.arange(len(pool))
        near, far = np.empty(len(cases), dtype=np.int64), np.empty((len(cases), len(schema)))
        for row in range(len(cases)):
            steps = distances.between(np.full(len(everyone), row), everyone) * share
            near[row] = np.argmin((steps**2).sum(axis=1))
            far[row] = steps[near[row]]
        between = Between.read(decision, schema, inside, cases, pool.iloc[near])
        return between.rows(np.array([self._take(between, row, far[row]) for row in range(len(cases))]))

    def _take(self, between: Between, row: int, far: Floats) -> Bools:
        """Features taken over from the neighbour, (p,)."""
        taken, left = np.zeros(len(far), dtype=bool), far > 0
        before = between.excess(np.array([row]), taken[None, :])[0]
        while before >= 0 and left.any():
            choices = np.flatnonzero(left)
            trials = np.repeat(taken[None, :], len(choices), axis=0)
            trials[np.arange(len(choices)), choices] = True
            after = between.excess(np.full(len(choices), row), trials)
            gain = (before - after) / (far[choices] if self.reward == "proximity" else 1.0)
            best = int(np.argmax(gain))
            taken, before = trials[best], after[best]
            left[choices[best]] = False
        return taken


def _per_range(schema: Schema) -> Floats:
    """What turns a distance in standard deviations into a share of the range seen; 1 for anything but numbers."""
    out = np.ones(len(schema))
    for j, feature in enumerate(schema.features):
        width = feature.maximum - feature.minimum
        if feature.is_numeric and np.isfinite(width) and width > 0:
            out[j] = feature.scale / width
    return out


@dataclass(frozen=True)
class TopSHAP:
    """The first features by Shapley value, as many as change the outcome when set to a reference's values.

    LinearSHAP for additive models and interventional TreeSHAP for trees, against training rows; the values of a
    feature's encoded columns are one value.

    Parameters
    ----------
    towards : References, optional
        The first of them is the goal. Default: the mean/mode of the negatively labelled rows (SEV1's).
    background : int
        Training rows the values are against, at equal distances through the table.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 3, 7, 8, 9], "age": [30, 50, 40, 30, 50, 40]}); y = [0, 0, 0, 1, 1, 1]
    >>> decision = Decision(LogisticRegression().fit(X, y))
    >>> out = TopSHAP().fit(decision, X, y).explain(X.iloc[[4]])
    >>> out.frame.to_dict("records"), out.found.tolist()
    ([{'debt': 2, 'age': 50}], [True])
    """

    towards: References | None = None
    background: int = BACKGROUND

    name = "SHAP top-k"

    def fit(self, decision: Decision, X: Any, y: Any) -> FittedPeer:
        """Read the model, the background and the goal."""
        search = Attribution.read(self, decision, X, y)
        return FittedPeer(decision, search.schema, search.find)


@dataclass(frozen=True, eq=False)
class Attribution:
    """`TopSHAP` of a decision."""

    decision: Decision
    schema: Schema
    inside: ModelReading
    background: Floats
    goal: pd.DataFrame

    @classmethod
    def read(cls, settings: TopSHAP, decision: Decision, X: Any, y: Any) -> Attribution:
        """Read the model, the background and the goal from training rows."""
        training = TrainingRows.read(decision, X, y)
        schema, rows = training.schema, training.frame
        inside = read_inside(decision, schema, rows)
        if not isinstance(inside.structure, Additive | Ensemble):
            raise ModelError(
                f"Shapley values are exact for additive models and trees, not for {type(decision.model).__name__}",
                do="choose another method",
            )
        goal = settings.towards or references.single(decision, rows, y, schema=schema, on_positive="allow")
        some = np.unique(np.linspace(0, len(rows) - 1, min(settings.background, len(rows))).astype(int))
        behind = inside.prepare(inside.encoding.transform(rows.iloc[some]))
        return cls(decision, schema, inside, behind, goal.frame.iloc[[0]])

    def values(self, cases: pd.DataFrame) -> Floats:
        """Shapley values of cases conformed to the schema, (n, p)."""
        assert isinstance(self.inside.structure, Additive | Ensemble)
        Z = self.inside.prepare(self.inside.encoding.transform(cases))
        found = shapley_values(self.inside.structure, self.inside.feature_of(), Z, self.background)
        return np.pad(found, ((0, 0), (0, len(self.schema) - found.shape[1])))

    def find(self, cases: pd.DataFrame) -> pd.DataFrame:
        """Rows (n, columns) with the first features of each case set to the goal's values."""
        n, p = len(cases), len(self.schema)
        goals = self.goal.iloc[np.zeros(n, dtype=np.int64)].set_index(cases.index)
        between = Between.read(self.decision, self.schema, self.inside, cases, goals)
        order = np.argsort(-self.values(cases), axis=1, kind="stable")
        rank = np.argsort(order, axis=1)
        first = rank[:, None, :] <= np.arange(p)[:, None]  # (n, sizes, p): the k + 1 first features
        excess = between.excess(np.repeat(np.arange(n), p), first.reshape(n * p, p)).reshape(n, p)
        size = np.argmax(excess < 0, axis=1)
        return between.rows(first[np.arange(n), size])
