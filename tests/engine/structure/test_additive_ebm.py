"""Explainable boosting machines are additive in their terms."""

import numpy as np
import pandas as pd
import pytest

from fewest.engine.structure import Additive, read

pytest.importorskip("interpret")


def fitted(X, y, **settings):
    from interpret.glassbox import ExplainableBoostingClassifier

    fixed = {"interactions": 0, "outer_bags": 2, "max_rounds": 60, "n_jobs": 1, "random_state": 0}
    return ExplainableBoostingClassifier(**{**fixed, **settings}).fit(X, y)


def with_gaps(X, seed, share=0.1):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


@pytest.mark.filterwarnings("ignore:Missing values detected")
def test_main_effects_are_read(tools, train, rows):
    model = fitted(with_gaps(train[0], 1), train[1])
    for asked in (
        {"threshold": 0.3},
        {"threshold": 0.6, "positive": 0},
        {"kind": "label"},
        {"kind": "decision", "threshold": 0.1},
    ):
        structure, _ = tools.check_it(
            model, with_gaps(rows, 2), asked, raw=lambda model, rows: model.decision_function(rows)
        )
        assert isinstance(structure, Additive)
    for broken in (
        tools.replace(structure, intercept=0.5),
        tools.replace(
            structure, reading=tools.replace(structure.reading, source=structure.reading.source[::-1].copy())
        ),
    ):
        assert tools.wrong(model, broken, rows, 0.1, kind="decision")


def test_a_frame_with_categories_is_read(tools, train, rows):
    def frame(X):
        names = np.array(["north", "east", "south"], dtype=object)
        return pd.DataFrame({"x0": X[:, 0], "place": names[X[:, 2].astype(int) % 3], "x1": X[:, 1], "x5": X[:, 5] > 0})

    model = fitted(frame(train[0]), train[1])
    structure, _ = tools.check_it(model, frame(rows), {"threshold": 0.4})
    assert structure.reading.source.tolist() == [0, 1, 2, 3]


def test_two_of_three_classes_are_compared(tools, train3, rows):
    model = fitted(*train3)
    tools.check_it(model, rows, {"positive": 2, "against": 0})


def test_interactions_are_terms_of_two_columns(train, rows):
    model = fitted(*train, interactions=2)
    assert sum(len(features) == 2 for features in model.term_features_) == 2
    structure = read(model)
    assert structure.reading.inputs == tuple(model.term_features_)
    raw = structure.raw(structure.reading.prepare(rows))
    assert np.allclose(raw, model.decision_function(rows), rtol=0, atol=structure.reading.tolerance)
