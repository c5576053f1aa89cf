"""The space rows are clustered in, and maps of it into few dimensions, each with a fixed rule for new rows.

The space is the model's own encoding where it can be read, a plain one of the schema elsewhere. Numbers are
standardised on the rows it is made from, everything else is one column of 0 and 1 per level; a missing number lies in
the middle, a missing or unknown level is not a level.

PaCMAP's own rule for new rows moves the rows it was fitted on and depends on the rows beside them; here it is
distilled: a new row lies at the weighted mean of its nearest training rows' places. docs/methods/clusters.md has the
figures.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.engine.column_probe import cells
from fewest.engine.encoding import Encoding
from fewest.errors import MissingExtraError, check_word
from fewest.tables.arrays import Bools, Floats
from fewest.tables.closeness import as_numbers
from fewest.tables.schema import Feature, Schema

LANDMARKS = 4000
NEIGHBOURS = 10
# The last maps, by their rows and settings: a map does not know the model, and many models are clustered on one.
MAPS_KEPT = 4
_maps: dict[tuple[Any, ...], Floats] = {}


class Fitted(Protocol):
    """A fitted map: where the training rows are, and where any other row is."""

    @property
    def coordinates(self) -> Floats:
        """Places of the rows it was fitted on, (n, dimensions)."""
        ...

    def transform(self, Z: Floats) -> Floats:
        """Places of rows, (n, dimensions); each row's depends on that row alone, to the last bit."""
        ...


class Embedding(Protocol):
    """A map to be fitted on encoded rows."""

    def fit(self, Z: Floats) -> Fitted:
        """Fit on encoded rows, (n, columns)."""
        ...


@dataclass(frozen=True, eq=False)
class Unchanged:
    """`identity`, fitted."""

    coordinates: Floats

    def transform(self, Z: Floats) -> Floats:
        """The rows themselves."""
        return Z


@dataclass(frozen=True, eq=False)
class Projected:
    """`pca`, fitted."""

    middle: Floats
    axes: Floats
    coordinates: Floats = field(repr=False)

    def transform(self, Z: Floats) -> Floats:
        """Rows on the principal axes."""
        return _project(Z, self.middle, self.axes)


@dataclass(frozen=True, eq=False)
class Interpolated:
    """`pacmap`, fitted: the places of some training rows (landmarks), and the mean over the nearest for other rows."""

    landmarks: npt.NDArray[np.float32] = field(repr=False)
    places: Floats = field(repr=False)
    neighbours: int
    coordinates: Floats = field(repr=False)

    def transform(self, Z: Floats) -> Floats:
        """Weighted mean of the nearest landmarks' places; a landmark's own place on it."""
        return _interpolate(Z, self.landmarks, self.places, self.neighbours)


@dataclass(frozen=True)
class identity:  # noqa: N801 - named as the word that stands for it in options
    """No map: the encoded rows themselves.

    Examples
    --------
    >>> identity().fit(np.array([[1.0, 2.0]])).transform(np.array([[3.0, 4.0]])).tolist()
    [[3.0, 4.0]]
    """

    def fit(self, Z: Floats) -> Unchanged:
        """Keep the rows."""
        return Unchanged(Z)


@dataclass(frozen=True)
class pca:  # noqa: N801
    """The directions in which the rows vary most.

    Parameters
    ----------
    dimensions : int
        At most this many.

    Examples
    --------
    >>> fitted = pca(1).fit(np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]))
    >>> fitted.transform(np.array([[5.0, 7.0]])).tolist()
    [[5.0]]
    """

    dimensions: int = 2

    def fit(self, Z: Floats) -> Projected:
        """Find the directions: the leading eigenvectors of the covariance."""
        middle = Z.mean(axis=0)
        axes = np.linalg.eigh((Z - middle).T @ (Z - middle))[1].T[::-1][: self.dimensions]
        # The sign of a direction is arbitrary: its largest part is positive.
        largest = axes[np.arange(len(axes)), np.argmax(np.abs(axes), axis=1)]
        axes = axes * np.where(largest < 0, -1.0, 1.0)[:, None]
        return Projected(middle, axes, _project(Z, middle, axes))


@dataclass(frozen=True)
class pacmap:  # noqa: N801
    """PaCMAP of the rows: keeps near rows near and far ones far (Wang et al. 2021; the paper's choice).

    Parameters
    ----------
    dimensions : int
    landmarks : int
        PaCMAP is fitted on at most this many different rows; all others are placed by their nearest landmarks.
    neighbours : int
        How many of them.
    random_state : int
    middle_near : float
        Pairs of rows at middle distance, per neighbour (``MN_ratio``); the paper's authors take 1.

    Examples
    --------
    >>> Z = np.random.default_rng(0).normal(size=(60, 4))
    >>> fitted = pacmap().fit(Z)
    >>> bool((fitted.transform(Z[7:8]) == fitted.coordinates[7]).all())
    True
    """

    dimensions: int = 2
    landmarks: int = LANDMARKS
    neighbours: int = NEIGHBOURS
    random_state: int = 0
    middle_near: float = 0.5

    def fit(self, Z: Floats) -> Fitted:
        """Fit on a sample of the different rows; too few of them for PaCMAP are projected instead."""
        different = np.unique(Z.astype(np.float32), axis=0)
        if len(different) <= 2 * self.neighbours:
            return pca(self.dimensions).fit(Z)
        if len(different) > self.landmarks:
            random = np.random.default_rng(self.random_state)
            different = different[np.sort(random.choice(len(different), self.landmarks, replace=False))]
        places = _kept_or_run(different, self)
        landmarks = np.ascontiguousarray(different.T)
        return Interpolated(landmarks, places, self.neighbours, _interpolate(Z, landmarks, places, self.neighbours))


KINDS = {"identity": identity, "pca": pca, "pacmap": pacmap}


def named(embedding: str | Embedding, random_state: int = 0) -> Embedding:
    """The embedding a word stands for, or the one given."""
    if not isinstance(embedding, str):
        return embedding
    check_word("embedding", embedding, KINDS)
    return pacmap(random_state=random_state) if embedding == "pacmap" else KINDS[embedding]()


def _project(Z: Floats, middle: Floats, axes: Floats) -> Floats:
    """Column by column, not as a matrix product: those round differently for batches of different sizes."""
    out = np.zeros((len(Z), len(axes)))
    for j in range(Z.shape[1]):
        out += (Z[:, j] - middle[j])[:, None] * axes[:, j]
    return out


def _interpolate(Z: Floats, landmarks: npt.NDArray[np.float32], places: Floats, neighbours: int) -> Floats:
    from fewest.references.clustering._neighbours import interpolate  # compiled when first needed

    return np.asarray(interpolate(np.ascontiguousarray(Z, dtype=np.float32), landmarks, places, neighbours))


def _kept_or_run(rows: npt.NDArray[np.float32], settings: pacmap) -> Floats:
    """Where PaCMAP puts rows; what it gave for the same rows and settings before is given again."""
    key = (settings, rows.shape, sha256(rows.tobytes()).digest())
    if key not in _maps:
        places = _run_pacmap(rows, settings)
        while len(_maps) >= MAPS_KEPT:
            del _maps[next(iter(_maps))]
        _maps[key] = places
    return _maps[key].copy()


def _run_pacmap(rows: npt.NDArray[np.float32], settings: pacmap) -> Floats:
    with _quiet():
        try:
            from pacmap import PaCMAP
        except ImportError as error:
            raise MissingExtraError(
                'clusters in the PaCMAP embedding need pacmap (or embedding="pca")', do='pip install "fewest[cluster]"'
            ) from error
        model: Any = PaCMAP(
            n_components=settings.dimensions, n_neighbors=None, MN_ratio=settings.middle_near,
            random_state=settings.random_state,
        )  # fmt: skip
        with _one_thread():
            return np.asarray(model.fit_transform(rows), dtype=np.float64)


@contextmanager
def _one_thread() -> Iterator[None]:
    """PaCMAP's threads do next to nothing but wait for each other: one gives the same map sooner."""
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(before)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the library's notes on its random state and sample sizes to itself, for this call only."""
    log = logging.getLogger("pacmap.pacmap")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


@dataclass(frozen=True, eq=False)
class ClusterSpace:
    """A fixed map from raw rows to points; each row is mapped by itself.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 3, 8, 9], "age": [30, 50, 30, 50]})
    >>> decision = Decision(LogisticRegression().fit(X, [0, 0, 1, 1]))
    >>> ClusterSpace.read(decision, Schema.infer(X), X.iloc[:2]).encode(X).tolist()
    [[-1.0, -1.0], [1.0, 1.0], [6.0, -1.0], [7.0, 1.0]]
    """

    schema: Schema
    encoding: Encoding | None  # the model's own, where it is used
    middle: Floats  # (columns,): what encoded columns are standardised with; 0 and 1 for columns of levels
    spread: Floats

    @classmethod
    def read(cls, decision: Decision, schema: Schema, rows: pd.DataFrame) -> ClusterSpace:
        """The space of a decision's rows, standardised with some that are conformed to the schema."""
        encoding: Encoding | None = Encoding.read(decision, schema)
        values = _own_encoding(encoding, rows)
        if encoding is None or encoding.feature_of is None or values is None:
            encoding, values, numeric = None, _plain(schema, rows), _plain_numeric(schema)
        else:
            kinds = np.array([feature.is_numeric for feature in schema.features] + [False])
            numeric = kinds[encoding.feature_of]
        middle, spread = np.zeros(len(numeric)), np.ones(len(numeric))
        middle[numeric] = _finite_mean(values[:, numeric])
        spread[numeric] = np.sqrt(_finite_mean((values[:, numeric] - middle[numeric]) ** 2))
        return cls(schema, encoding, middle, np.where(spread > 0, spread, 1.0))

    def encode(self, rows: pd.DataFrame) -> Floats:
        """Points of rows, (n, columns)."""
        values = _own_encoding(self.encoding, rows)
        if values is None:
            values = _plain(self.schema, rows)
        points = (values - self.middle) / self.spread
        return np.where(np.isfinite(points), points, 0.0)


def _own_encoding(encoding: Encoding | None, rows: pd.DataFrame) -> Floats | None:
    """What the final model is fed, as numbers; None where that is not the feature's columns or not numbers."""
    if encoding is None or encoding.feature_of is None:
        return None
    values = cells(encoding.transform(rows))
    if values.ndim != 2 or values.shape[1] != len(encoding.feature_of):
        return None
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _finite_mean(values: Floats) -> Floats:
    """Mean of each column over its finite cells; 0 where there is none."""
    known = np.isfinite(values)
    return np.asarray(np.where(known, values, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1))


def _levels(feature: Feature) -> tuple[Any, ...]:
    """Levels that get a column of their own; none where the column is a number."""
    if feature.kind == "boolean":
        return (True,)
    return feature.levels if feature.kind == "category" else ()


def _plain_numeric(schema: Schema) -> Bools:
    """Which columns of `_plain` are standardised."""
    standard = []
    for feature in schema.features:
        measured = feature.is_numeric or feature.kind in ("datetime", "group")
        standard += [measured] * max(len(_levels(feature)), 1) * len(feature.columns)
    return np.array(standard, dtype=bool)


def _plain(schema: Schema, rows: pd.DataFrame) -> Floats:
    """A plain encoding of the schema's columns, in their order."""
    parts = [_columns(rows[column], feature) for feature in schema.features for column in feature.columns]
    return np.column_stack(parts) if len(rows) else np.empty((0, len(_plain_numeric(schema))))


def _columns(column: pd.Series[Any], feature: Feature) -> Floats:
    """One raw column as one column of numbers or one per level, (n, 1) or (n, levels)."""
    levels = _levels(feature)
    if levels:
        return np.column_stack([(column == level).to_numpy(dtype=float, na_value=0.0) for level in levels])
    if feature.is_numeric or feature.kind in ("datetime", "indicators"):
        return as_numbers(column, feature)[:, None]
    numbers = pd.to_numeric(column, errors="coerce")  # a group of any columns: text in it does not count
    return np.asarray(numbers.to_numpy(dtype=float, na_value=np.nan))[:, None]
