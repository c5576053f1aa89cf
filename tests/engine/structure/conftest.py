"""Shared oracle: a structure that was read must decide like the library it was read from."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from threadpoolctl import threadpool_limits

from fewest.engine.structure import Ensemble, Opaque, read

BATCH, ALONE = 2000, 100


def numbers(seed: int, count: int, dtype: Any = np.float64) -> np.ndarray:
    """Columns of very different scale, some of whole numbers."""
    rng = np.random.default_rng(seed)
    return np.column_stack([
        rng.normal(size=count),
        rng.lognormal(7.0, 1.0, size=count),
        rng.integers(0, 9, size=count),
        rng.uniform(-1e-3, 1e-3, size=count),
        rng.integers(0, 30, size=count) * 1000.0,
        rng.integers(0, 2, size=count),
    ]).astype(dtype)  # fmt: skip


def labels(X: np.ndarray, classes: int = 2, seed: int = 0) -> np.ndarray:
    """Labels that need every column, with noise."""
    rng = np.random.default_rng(seed)
    Z = np.nan_to_num((X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)).astype(np.float64)
    score = Z[:, 0] - 0.7 * Z[:, 1] + 0.5 * np.sin(Z[:, 2] * 2) + Z[:, 3] * (Z[:, 5] > 0) + 0.3 * Z[:, 4]
    score += rng.normal(size=len(X)) * 0.5
    return np.digitize(score, np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1] + 0.07))


def on_the_edge(structure: Any, rows: Any, seed: int = 0) -> Any:
    """Put split thresholds and their neighbours, in double and single precision, into numeric cells."""
    if not isinstance(structure, Ensemble):
        return rows
    rng = np.random.default_rng(seed)
    splits = np.flatnonzero((structure.column >= 0) & (structure.category < 0) & (np.abs(structure.threshold) < 1e30))
    places = np.arange(0, len(rows), 2)
    nodes = rng.choice(splits, size=len(places))
    columns, at = structure.reading.source[structure.column[nodes]], structure.threshold[nodes]
    single = at.astype(np.float32)
    below, above = np.nextafter(single, np.float32(-np.inf)), np.nextafter(single, np.float32(np.inf))
    between = (single.astype(float) + above.astype(float)) / 2
    nearby = np.array([at, np.nextafter(at, -np.inf), np.nextafter(at, np.inf), single, below, above, between])
    values = nearby[rng.integers(len(nearby), size=len(places)), np.arange(len(places))]
    rows = rows.copy()
    for column in np.unique(columns):
        here = columns == column
        if isinstance(rows, pd.DataFrame):
            cells = rows.iloc[:, column].to_numpy(copy=True)
            cells[places[here]] = values[here]
            rows.isetitem(int(column), cells)
        else:
            rows[places[here], column] = values[here]
    return rows


def score(model: Any, rows: Any, positive: int = 1, against: int | None = None, kind: str = "proba") -> np.ndarray:
    """The library's own score."""
    if kind == "label":
        return (model.predict(rows).ravel() == model.classes_[positive]).astype(float)
    if kind == "decision":
        values = model.decision_function(rows)
        if values.ndim == 1:
            return values if positive == 1 else -values
    else:
        values = model.predict_proba(rows)
    return values[:, positive] - (0.0 if against is None else values[:, against])


def slices(rows: Any, count: int) -> list[tuple[int, Any]]:
    """Single rows, spread over the table, in the table's own form."""
    places = np.linspace(0, rows.shape[0] - 1, count).astype(int)
    return [(i, rows.iloc[[i]] if isinstance(rows, pd.DataFrame) else rows[[i]]) for i in places]


def wrong(
    model: Any, structure: Any, rows: Any, threshold: float, *, raw: Any = None, scorer: Any = score, **asked: Any
) -> list[str]:
    """Everything in which the structure contradicts the library; empty when it was read right."""
    cut, tolerance = structure.reading.cut, structure.reading.tolerance
    found = []
    Z = structure.reading.prepare(rows)
    values = structure.raw(Z)
    outside = np.abs(values - cut) > tolerance
    if outside.mean() < 0.8:
        found.append(f"only {outside.mean():.0%} of the rows lie outside the band of {tolerance}")
    limit = threshold if asked.get("against") is None else 0.0
    decided = scorer(model, rows, **asked) >= limit
    missed = np.flatnonzero(outside & ((values >= cut) != decided))
    if len(missed):
        found.append(f"{len(missed)} rows decided differently in a batch")
    if raw is not None:
        far = np.abs(values - raw(model, rows)).max()
        if not far <= tolerance:
            found.append(f"raw scores differ by {far}, tolerance {tolerance}")
    # Class 0 mirrors class 1: fewer rows alone suffice there.
    for place, row in slices(rows, ALONE if asked.get("positive", 1) else ALONE // 5):
        z = structure.reading.prepare(row)
        if not np.array_equal(z[0], Z[place], equal_nan=True):
            found.append("a row alone is prepared differently")
            break
        value = structure.raw(z)[0]
        positive = scorer(model, row, **asked)[0] >= limit
        if abs(value - cut) > tolerance and (value >= cut) != positive:
            found.append("a row alone is decided differently")
            break
    return found + wrong_source(structure, rows)


def wrong_source(structure: Any, rows: Any) -> list[str]:
    """A prepared column may move only with the input columns it is said to come from."""
    few = rows.iloc[:40] if isinstance(rows, pd.DataFrame) else rows[:40]
    before = structure.reading.prepare(few)
    for column in range(few.shape[1]):
        if isinstance(few, pd.DataFrame):
            moved = few.copy()
            moved.isetitem(column, pd.Series(few.iloc[::-1, column].array, index=few.index))
        else:
            moved = few.copy() if isinstance(few, np.ndarray) else few.toarray()
            moved[:, column] = moved[::-1, column].copy()
            moved = moved if isinstance(few, np.ndarray) else type(rows)(moved)
        after = structure.reading.prepare(moved)
        changed = ~((before == after) | (np.isnan(before) & np.isnan(after))).all(axis=0)
        if any(column not in structure.reading.inputs[place] for place in np.flatnonzero(changed)):
            return [f"prepared columns {np.flatnonzero(changed)} move with input column {column}"]
    return []


def questions(kinds: tuple[str, ...] = ("proba",)) -> list[dict[str, Any]]:
    """Both classes, several thresholds, every kind of score a model has."""
    asked = []
    for kind in kinds:
        for threshold in {"proba": (0.5, 0.23), "decision": (0.0, 0.4), "label": (0.5,)}[kind]:
            asked += [{"kind": kind, "positive": positive, "threshold": threshold} for positive in (0, 1)]
    if "proba" in kinds:
        asked.append({"kind": "proba", "positive": 1, "threshold": 0.9})
    return asked


def check_it(model: Any, rows: Any, asked: dict[str, Any], raw: Any = None, edges: bool = True) -> Any:
    """Read the model and hold it against the library; `raw` gives the margin of ``classes_[1]``."""
    structure = read(model, **asked)
    assert not isinstance(structure, Opaque), structure.reason
    if edges:
        rows = on_the_edge(structure, rows)
    signed = None
    if raw is not None:
        sign = 1.0 if asked.get("positive", 1) == 1 or asked.get("against") is not None else -1.0

        def signed(model: Any, rows: Any) -> Any:
            return sign * raw(model, rows)

    rest = {key: value for key, value in asked.items() if key != "threshold"}
    problems = wrong(model, structure, rows, asked.get("threshold", 0.5), raw=signed, **rest)
    assert problems == []
    return structure, rows


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Any:
    """Rows are scored one at a time: threads only get in each other's way."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="session")
def tools() -> SimpleNamespace:
    return SimpleNamespace(
        numbers=numbers, labels=labels, on_the_edge=on_the_edge, score=score, wrong=wrong, questions=questions,
        check_it=check_it, replace=replace, expit=expit, batch=BATCH,
    )  # fmt: skip


@pytest.fixture(scope="session")
def train() -> tuple[np.ndarray, np.ndarray]:
    X = numbers(0, 700)
    return X, labels(X)


@pytest.fixture(scope="session")
def train3() -> tuple[np.ndarray, np.ndarray]:
    X = numbers(3, 700)
    return X, labels(X, 3)


@pytest.fixture(scope="session")
def rows() -> np.ndarray:
    return numbers(1, BATCH)
