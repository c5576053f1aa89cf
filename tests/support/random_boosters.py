"""Fitted boosters of every kind on random mixed tables, for what is built on their trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import random_models as rm

from fewest.engine.structure import Ensemble, read
from fewest.models.training._heads import Blocks
from fewest.models.training._leaves_head import check_readable
from fewest.models.training.leaf_sum import LeafSumClassifier

SKLEARN = ("gradient", "exponential", "hist", "hist categories")
OTHERS = ("xgboost", "lightgbm", "catboost")
NAMES = (*SKLEARN, *OTHERS)
TAKE_MISSING = ("hist", "hist categories", *OTHERS)


@dataclass(frozen=True)
class Boosted:
    """A booster, the rows it was fitted on (raw and encoded), and the feature of each encoded column."""

    name: str
    frame: pd.DataFrame
    y: np.ndarray
    encoder: Any
    booster: Any
    Z: np.ndarray
    blocks: Blocks

    @property
    def ensemble(self) -> Ensemble:
        return check_readable(self.booster, read(self.booster))

    def margin(self, Z: np.ndarray) -> np.ndarray:
        """The library's own log-odds."""
        if self.name == "xgboost":
            return np.asarray(self.booster.predict(Z, output_margin=True), dtype=float)
        if self.name == "lightgbm":
            return np.asarray(self.booster.booster_.predict(Z, raw_score=True))
        if self.name == "catboost":
            return np.asarray(self.booster.predict(Z, prediction_type="RawFormulaVal"))
        return np.asarray(self.booster.decision_function(Z)) * (2.0 if self.name == "exponential" else 1.0)

    @property
    def tolerance(self) -> float:
        """How far the library's sum may be from one in double precision."""
        return 1e-5 if self.name == "xgboost" else 1e-9

    def relearned(self, random: np.random.Generator) -> LeafSumClassifier:
        """Other leaf values on the same trees."""
        ensemble = self.ensemble
        value = ensemble.value + random.normal(size=len(ensemble.value)) * ensemble.value.std()
        base = ensemble.base + 0.1 * random.normal()
        return LeafSumClassifier.from_ensemble(
            replace(ensemble, value=value, base=base), self.booster.classes_, self.Z.shape[1]
        )


def boosted(name: str, seed: int, n: int = 150, p: int = 6, gaps: float = 0.1) -> Boosted:
    """A small booster on a random table, with gaps in its numbers where it takes them."""
    if name in OTHERS:
        pytest.importorskip(name)
    random = np.random.default_rng([seed, 5])
    frame = rm.table(random, n, p - 1)
    frame["number"] = np.round(random.normal(size=n), 1)
    y = rm.labels(random, frame)
    if name in TAKE_MISSING:
        for column in frame.columns[frame.dtypes == np.float64]:
            frame[column] = frame[column].mask(random.random(n) < gaps)
    encoder, feature_of = _encoded(frame, ordinal=name == "hist categories")
    Z = np.asarray(encoder.transform(frame), dtype=float)
    booster = _MAKERS[name](_text(frame)).fit(Z, y)
    return Boosted(name, frame, y, encoder, booster, Z, Blocks(feature_of, p))


def _text(frame: pd.DataFrame) -> list[str]:
    return [column for column in frame if str(frame[column].dtype) in ("str", "object", "string")]


def _encoded(frame: pd.DataFrame, ordinal: bool) -> tuple[Any, np.ndarray]:
    """A fitted encoder that puts text first, and the feature of each of its columns."""
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

    text = _text(frame)
    rest = [column for column in frame if column not in text]
    levels = OrdinalEncoder() if ordinal else OneHotEncoder(sparse_output=False)
    encoder = make_column_transformer((levels, text), ("passthrough", rest)).fit(frame)
    place = {column: number for number, column in enumerate(frame)}
    feature_of = [place[column] for column in text for _ in range(1 if ordinal else frame[column].nunique())]
    return encoder, np.array([*feature_of, *(place[column] for column in rest)], dtype=np.int64)


def _gradient(text: list[str], **settings: Any) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(n_estimators=10, max_depth=3, random_state=0, **settings)


def _hist(text: list[str], categories: bool = False) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    columns = list(range(len(text))) if categories else None
    return HistGradientBoostingClassifier(
        max_iter=8, min_samples_leaf=4, max_leaf_nodes=9, categorical_features=columns, random_state=0
    )


def _xgboost(text: list[str]) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1)


def _lightgbm(text: list[str]) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=8, num_leaves=7, min_child_samples=5, n_jobs=1, verbose=-1)


def _catboost(text: list[str]) -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(iterations=8, depth=3, verbose=False, allow_writing_files=False, thread_count=1)


_MAKERS: dict[str, Callable[[list[str]], Any]] = {
    "gradient": _gradient,
    "exponential": lambda text: _gradient(text, loss="exponential"),
    "hist": _hist,
    "hist categories": lambda text: _hist(text, categories=True),
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
    "catboost": _catboost,
}
