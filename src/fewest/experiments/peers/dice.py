"""DiCE with random sampling (Mothilal et al. 2020), as the package dice-ml does it."""

from __future__ import annotations

import contextlib
import io
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from fewest.decision import Decision
from fewest.errors import MissingExtraError, UsageError
from fewest.experiments.peers.base import FittedPeer
from fewest.experiments.peers.space import level_cells, level_numbers
from fewest.references.training_rows import TrainingRows
from fewest.tables.arrays import Floats
from fewest.tables.schema import Feature, Schema

OUTCOME = "decided against"
LEVELLED = ("category", "boolean")


@dataclass(frozen=True)
class DiCE:
    """Random values for one feature, then two, until some sample is turned; dice-ml picks one of these.

    Needs dice-ml. It is a heavy package with an XGBoost of its own: install it into an environment that can have that.

    Parameters
    ----------
    sparsity : float
        dice-ml's ``posthoc_sparsity_param``.
    random_state : int

    Examples
    --------
    >>> peer = DiCE(random_state=1)
    >>> peer.name, peer.sparsity
    ('DiCE', 0.1)

    With dice-ml installed, ``peer.fit(decision, X_train, y_train).explain(X)`` works as for every other method.
    """

    sparsity: float = 0.1
    random_state: int = 0

    name = "DiCE"

    def fit(self, decision: Decision, X: Any, y: Any) -> FittedPeer:
        """Hand the training rows and the model over to dice-ml."""
        training = TrainingRows.read(decision, X, y)
        schema, rows = training.schema, training.frame
        for feature in schema.features:
            if not feature.is_numeric and feature.kind not in LEVELLED:
                raise UsageError(f'dice-ml takes numbers and levels, not "{feature.name}"', do="leave it out")
        plain = DiceTable(decision, schema)
        with _quiet():
            dice_ml = _package()
            numbers = [feature.name for feature in schema.features if feature.is_numeric]
            table = plain.as_text(rows).assign(**{OUTCOME: decision.refuses(rows).astype(int)})
            data = dice_ml.Data(dataframe=table, continuous_features=numbers, outcome_name=OUTCOME)
            model = dice_ml.Model(model=plain, backend="sklearn")
            explainer = dice_ml.Dice(data, model, method="random")
        return FittedPeer(decision, schema, partial(self._find, plain, explainer))

    def _find(self, plain: DiceTable, explainer: Any, cases: pd.DataFrame) -> pd.DataFrame:
        """Rows (n, columns), the case itself where dice-ml has none; samples do not depend on the cases beside it."""
        as_text = plain.as_text(cases)
        return pd.concat(
            [self._one(plain, explainer, cases.iloc[[row]], as_text.iloc[[row]]) for row in range(len(cases))]
        )

    def _one(self, plain: DiceTable, explainer: Any, case: pd.DataFrame, as_text: pd.DataFrame) -> pd.DataFrame:
        if (as_text == "-1").any(axis=None):
            return case  # a level that the training rows do not have: dice-ml refuses the case
        with _quiet(), _seeded(self.random_state):
            out = explainer.generate_counterfactuals(
                as_text, total_CFs=1, desired_class=0, random_seed=self.random_state,
                posthoc_sparsity_param=self.sparsity, verbose=False,
            )  # fmt: skip
        made = out.cf_examples_list[0].final_cfs_df_sparse
        if made is None or len(made) == 0:
            return case
        after = plain.meant(made.iloc[[0]].set_index(case.index))
        same = (plain.as_text(after) == as_text).iloc[0]
        kept = {f.columns[0]: case[f.columns[0]] for f in plain.schema.features if same[f.name]}
        return plain.schema.conform(after.assign(**kept), unseen="allow")


@dataclass(frozen=True, eq=False)
class DiceTable:
    """The decision as dice-ml wants a classifier: levels are text, the second class is the one explained."""

    decision: Decision
    schema: Schema

    def as_text(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Rows with numbers as they are and the number of each level as text."""
        return pd.DataFrame(
            {f.name: _level_numbers(rows[f.columns[0]], f) for f in self.schema.features}, index=rows.index
        )

    def meant(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows that a table of dice-ml means, rounded as the schema shows them."""
        columns = {f.columns[0]: _meant(table[f.name], f) for f in self.schema.features}
        return self.schema.conform(pd.DataFrame(columns, index=table.index))

    def predict_proba(self, table: pd.DataFrame) -> Floats:
        """Chances of both outcomes, with the decision's threshold moved to one half."""
        score, cut = self.decision.score(self.meant(table)), self.decision.cut
        if self.decision.kind not in ("proba", "torch") or len(self.decision.classes) > 2 or not 0 < cut < 1:
            chance = 1.0 / (1.0 + np.exp(np.clip(cut - score, -500, 500)))
        else:
            chance = np.where(score < cut, 0.5 * score / cut, 0.5 + 0.5 * (score - cut) / (1 - cut))
        return np.column_stack([1.0 - chance, chance])

    def predict(self, table: pd.DataFrame) -> Any:
        """1 where a row is refused."""
        return (self.predict_proba(table)[:, 1] >= 0.5).astype(int)


def _level_numbers(column: pd.Series[Any], feature: Feature) -> Any:
    if feature.is_numeric:
        return column
    return pd.Series(level_numbers(column, feature), index=column.index).astype(str)


def _meant(column: pd.Series[Any], feature: Feature) -> Any:
    if feature.is_numeric:
        return pd.to_numeric(column).astype(float).round(feature.decimals)
    return level_cells(column.astype(int).to_numpy(), feature, column.index)


def _package() -> Any:
    try:
        return import_module("dice_ml")
    except ImportError as error:
        raise MissingExtraError("DiCE needs dice-ml", do='pip install "fewest[peers]"') from error


@contextmanager
def _quiet() -> Iterator[None]:
    """dice-ml prints, draws progress bars, and warns of things its user cannot change."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """dice-ml draws from the global generators; they are seeded for it and put back."""
    before, here = np.random.get_state(), random.getstate()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002
        random.setstate(here)
