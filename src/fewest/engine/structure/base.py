"""What is inside a fitted model, as plain arrays that the exact searches read.

Every structure gives a *raw* score in the model's additive space (log-odds for boosters and logistic regression,
mean probability for forests). A row is decided positive when ``raw >= cut``, up to ``tolerance``: inside that band
the arithmetic of the structure and of the library may differ, and the library has the last word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewest.tables.arrays import Bools, Floats, Ints32


def as_floats(model_input: Any) -> Floats:
    """Turn what a final estimator is fed (array, frame or sparse matrix) into a dense float64 array.

    It may be written to: the arrays of a frame may not, and every search would be compiled once more for such.
    """
    if hasattr(model_input, "toarray"):
        model_input = model_input.toarray()
    return np.require(model_input, dtype=np.float64, requirements=["C", "W"])


def as_float32_values(model_input: Any) -> Floats:
    """Like `as_floats`, rounded to float32 first: how scikit-learn trees and XGBoost see their input."""
    return as_floats(model_input).astype(np.float32).astype(np.float64)


@dataclass(frozen=True)
class Reading:
    """The part every structure shares: how model input becomes the array it is defined on, and where it decides."""

    cut: float  # Raw score at the decision threshold; positive means ``raw >= cut``
    tolerance: float  # Largest difference expected between `raw` and the library's own raw score
    # Model input (n, any) -> float64 array (n, d). Row-wise: a row's values never depend on the other rows.
    prepare: Callable[[Any], Floats]
    source: Ints32  # (d,): For each prepared column the position of the model-input column it comes from
    # For additive structures: the tolerance is at least this times the summed size of a row's terms, because terms
    # that cancel are rounded on the scale they have
    growth: float = 0.0
    # (d,): All columns of the model input that each prepared column depends on; empty where each has its source alone
    several: tuple[tuple[int, ...], ...] = ()

    @property
    def inputs(self) -> tuple[tuple[int, ...], ...]:
        """Positions of the model-input columns that each prepared column depends on."""
        return self.several or tuple((int(place),) for place in self.source)


@dataclass(frozen=True)
class Additive:
    """raw(z) = intercept + z @ coef. Generalised additive models come prepared as one column per term, coef one."""

    reading: Reading
    coef: Floats
    intercept: float

    def raw(self, Z: Floats) -> Floats:
        """Raw score of prepared rows Z (n, d) -> (n,)."""
        # A sum per row, not a matrix product: the result may not depend on the batch.
        return np.asarray(self.intercept + np.einsum("ij,j->i", Z, self.coef))

    def wide_enough(self, *rows: Floats) -> Additive:
        """The same, with a tolerance that covers the rounding of the terms of these rows and their mixtures."""
        sizes = [np.abs(part).max(axis=0, initial=0.0) for part in rows]
        needed = self.reading.growth * float(np.max(sizes, axis=0) @ np.abs(self.coef))
        if not needed > self.reading.tolerance:
            return self
        return replace(self, reading=replace(self.reading, tolerance=needed))


@dataclass(frozen=True)
class Ensemble:
    """raw(z) = base + the sum over trees of the value of the leaf z falls into.

    All trees lie in one set of node arrays. A node with ``column >= 0`` sends z left when

    * numeric split (``category < 0``): ``z[column] <= threshold``; NaN goes left iff ``missing_left``;
    * categorical split: ``left_levels[category, int(z[column])]``; NaN, negative or unknown codes (beyond the table)
      go left iff ``missing_left``.
    """

    reading: Reading
    column: Ints32  # (nodes,), as all that follow but for two
    threshold: Floats
    left: Ints32
    right: Ints32
    missing_left: Bools
    category: Ints32
    left_levels: Bools  # (sets, levels)
    value: Floats
    root: Ints32  # (trees,)
    base: float

    def raw(self, Z: Floats) -> Floats:
        """Raw score of prepared rows Z (n, d) -> (n,)."""
        from fewest.engine.structure.walk import ensemble_raw

        return np.asarray(
            ensemble_raw(
                Z, self.column, self.threshold, self.left, self.right, self.missing_left, self.category,
                self.left_levels, self.value, self.root, self.base,
            )
        )  # fmt: skip


@dataclass(frozen=True)
class Network:
    """A feed-forward net with one raw output: h = act(h @ W + b) for each hidden layer, then h @ w + b.

    ``activation`` is one of relu, tanh, logistic, identity, and of nets with one hidden layer, which sums of kernels
    are, gauss (exp of what is at most zero), square and cube: on an interval, each lies between two parallel lines.
    """

    reading: Reading
    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    activation: str

    def raw(self, Z: Floats) -> Floats:
        """Raw score of prepared rows Z (n, d) -> (n,)."""
        hidden = Z
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = activate(hidden @ weight + bias, self.activation)
        return np.asarray((hidden @ self.weights[-1] + self.biases[-1])[:, 0])


def activate(values: Floats, name: str) -> Floats:
    """Apply a hidden layer's activation."""
    if name == "relu":
        return np.maximum(values, 0.0)
    if name == "tanh":
        return np.tanh(values)
    if name == "logistic":
        from scipy.special import expit

        return np.asarray(expit(values))
    if name == "gauss":
        return np.asarray(np.exp(np.minimum(values, 0.0)))
    if name in ("square", "cube"):
        return np.asarray(values ** (2 if name == "square" else 3))
    return values


@dataclass(frozen=True)
class Neighbours:
    """raw(z) = cut + the mean of value - cut over the training rows nearest to z, all alike or by inverse distance.

    Which of several rows that are equally near count is the library's affair: where that decides, raw is the cut.
    A weighted mean is one on the scale of the farthest of them: its sign is that of the library's own.
    """

    reading: Reading
    rows: Floats  # (n, d)
    value: Floats  # (n,)
    count: int  # How many of the nearest rows
    power: float  # Of the Minkowski distance
    weighted: bool
    rounding: float  # Of a distance to the power, in parts of the size of the rows

    def raw(self, Z: Floats) -> Floats:
        """Raw score of prepared rows Z (n, d) -> (n,)."""
        from scipy.spatial.distance import cdist

        from fewest.engine.structure.nearest_rows import means

        cut, out = self.reading.cut, np.zeros(len(Z))
        if not np.isfinite(cut):
            return out
        names = {2.0: "sqeuclidean", 1.0: "cityblock"}
        more = {} if self.power in names else {"p": self.power}
        step = max(1, 2**20 // len(self.rows))
        for low in range(0, len(Z), step):
            some = Z[low : low + step]
            far = cdist(some, self.rows, names.get(self.power, "minkowski"), **more)
            if more:
                far **= self.power
            slack = self.slack((np.abs(some) ** self.power).sum(axis=1))
            some_means = means(far, self.value - cut, self.count, self.power, self.weighted, slack)
            out[low : low + step] = cut + some_means
        return out

    def slack(self, sizes: Floats) -> Floats:
        """How far rounding may move a distance to the power, for rows of these sizes (their columns to the power)."""
        largest = float((np.abs(self.rows) ** self.power).sum(axis=1).max(initial=0.0))
        return np.asarray(self.rounding * (1e-100 + largest + sizes))


@dataclass(frozen=True)
class Composite:
    """raw(z) = sum of weight_i * link_i(member_i.raw(z_i)): calibrated folds and votes over readable members.

    The prepared array is the members' prepared arrays side by side; ``spans`` holds each member's column range.
    Links are non-decreasing.
    """

    reading: Reading
    members: tuple[Structure, ...]
    spans: tuple[slice, ...]
    links: tuple[Callable[[Floats], Floats], ...]
    weights: tuple[float, ...]

    def raw(self, Z: Floats) -> Floats:
        """Raw score of prepared rows Z (n, d) -> (n,)."""
        total = np.zeros(len(Z))
        for member, span, link, weight in zip(self.members, self.spans, self.links, self.weights, strict=True):
            total += weight * link(member.raw(np.ascontiguousarray(Z[:, span])))
        return total


@dataclass(frozen=True)
class Rivals:
    """A class against each of the others: raw(z) = the least of member.raw(z_i) - its cut, positive from 0 on.

    Members are of one kind, each the comparison with one class; ``spans`` holds their columns, which may be the same.
    """

    reading: Reading
    members: tuple[Structure, ...]
    spans: tuple[slice, ...]

    def raw(self, Z: Floats) -> Floats:
        """Raw score of prepared rows Z (n, d) -> (n,)."""
        pairs = zip(self.members, self.spans, strict=True)
        ahead = [member.raw(np.ascontiguousarray(Z[:, span])) - member.reading.cut for member, span in pairs]
        return np.asarray(np.min(ahead, axis=0))

    def wide_enough(self, *rows: Floats) -> Rivals:
        """The same, with tolerances that cover the rounding of these rows and their mixtures."""
        members = tuple(
            member.wide_enough(*(part[:, span] for part in rows)) if isinstance(member, Additive) else member
            for member, span in zip(self.members, self.spans, strict=True)
        )
        if all(new is old for new, old in zip(members, self.members, strict=True)):
            return self
        widest = max(member.reading.tolerance for member in members)
        return replace(self, members=members, reading=replace(self.reading, tolerance=widest))


def is_smooth(structure: Structure) -> bool:
    """Whether a structure takes the values of its columns themselves, not what splits say of them."""
    if isinstance(structure, Rivals):
        return is_smooth(structure.members[0])
    return isinstance(structure, Additive | Network)


@dataclass(frozen=True)
class Opaque:
    """A model whose inside is not read; its own scores are all there is. ``reason`` says why."""

    reason: str


@dataclass(frozen=True)
class Module(Opaque):
    """A torch module that is not read, but takes rows mixed on the device it lies on."""

    module: Any
    positive: int  # Which of the classes 0 and 1 is explained
    cut: float  # Chance from which a row is positive


Structure = Additive | Ensemble | Network | Neighbours | Composite | Rivals
