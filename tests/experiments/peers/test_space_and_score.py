"""The continuous space goes there and back, and scores and gradients in it are the model's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewest as fw
from fewest.experiments.peers import PeerSpace
from fewest.experiments.peers.space import Score


def test_rows_go_there_and_back_unchanged(additive: Any) -> None:
    space = PeerSpace.fit(fw.Schema.infer(additive.X), additive.X)
    pd.testing.assert_frame_equal(space.decode(space.encode(additive.X), additive.X), additive.X)


def test_a_row_becomes_any_other_row(additive: Any) -> None:
    space = PeerSpace.fit(fw.Schema.infer(additive.X), additive.X)
    other = additive.X.iloc[::-1].set_index(additive.X.index)
    pd.testing.assert_frame_equal(space.decode(space.encode(other), additive.X), other)


def test_dates_and_one_hot_groups_go_there_and_back_and_other_groups_stay() -> None:
    X = pd.DataFrame(
        {
            "since": pd.to_datetime(["2020-01-01", "2021-06-30", "2022-02-02"]),
            "own": [1, 0, 0], "rent": [0, 1, 1], "lat": [1.5, 2.5, 3.5], "long": ["e", "w", "e"],
        }
    )  # fmt: skip
    schema = fw.Schema.infer(X, {"housing": ["own", "rent"], "place": ["lat", "long"]})
    space = PeerSpace.fit(schema, X)
    other = X.iloc[[1, 2, 0]].set_index(X.index)
    back = space.decode(space.encode(other), X)
    pd.testing.assert_frame_equal(back[["since", "own", "rent"]], other[["since", "own", "rent"]])
    pd.testing.assert_frame_equal(back[["lat", "long"]], X[["lat", "long"]])


def test_small_steps_are_rounded_away_and_keep_the_raw_value() -> None:
    X = pd.DataFrame({"age": [20, 30, 40], "rate": [0.25, 0.5, 0.75], "job": ["a", "b", "b"]})
    space = PeerSpace.fit(fw.Schema.infer(X), X)
    pd.testing.assert_frame_equal(space.decode(space.encode(X) + 0.001, X), X)
    moved = space.decode(space.encode(X) + 0.5, X)
    assert moved["age"].tolist() == [24, 34, 44]
    assert moved["job"].tolist() == ["a", "b", "b"]


def test_hardened_points_are_the_points_of_the_rows_they_decode_to(additive: Any) -> None:
    space = PeerSpace.fit(fw.Schema.infer(additive.X), additive.X)
    points = space.encode(additive.X) + np.random.default_rng(0).normal(0, 0.7, (len(additive.X), space.width))
    assert np.allclose(space.harden(points), space.encode(space.decode(points, additive.X)))


@pytest.mark.parametrize("kind", ["additive", "ensemble", "network", "opaque"])
def test_many_points_are_scored_as_the_model_scores_each_row_alone(kind: str, mixed: Any) -> None:
    case = mixed(kind)
    space = PeerSpace.fit(fw.Schema.infer(case.X), case.X)
    score = Score.read(case.decision, space, case.X)
    assert (score.affine is None) == (kind == "opaque")
    random = np.random.default_rng(1)
    points = space.harden(space.encode(case.cases) + random.normal(0, 1, (len(case.cases), space.width)))
    rows = space.decode(points, case.cases)
    alone = np.array([case.decision.score(rows.iloc[[k]])[0] for k in range(len(rows))])
    assert ((score.excess(points, case.cases) < 0) == (alone < case.decision.cut)).all()
    assert 0 < (alone < case.decision.cut).mean() < 1
    # Negative control: a predict that deals out the scores of a batch in another order is noticed.
    muddled = alone.reshape(2, -1).T.ravel()
    assert ((score.excess(points, case.cases) < 0) != (muddled < case.decision.cut)).any()


@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic", "identity"])
def test_exact_gradients_are_those_of_small_differences(activation: str, mixed: Any) -> None:
    case = mixed("network")
    case.decision.model[-1].activation = activation
    space = PeerSpace.fit(fw.Schema.infer(case.X), case.X)
    score = Score.read(case.decision, space, case.X)
    assert score.affine is not None
    assert score.affine.smooth
    points = space.encode(case.cases)
    slope = score.slope(points, case.cases)
    for k in range(space.width):
        step = np.eye(space.width)[k] * 1e-6
        central = (score.excess(points + step, case.cases) - score.excess(points - step, case.cases)) / 2e-6
        assert np.allclose(slope[:, k], central, atol=1e-5)


def test_a_linear_score_has_the_same_slope_by_differences(additive: Any) -> None:
    space = PeerSpace.fit(fw.Schema.infer(additive.X), additive.X)
    score = Score.read(additive.decision, space, additive.X)
    blind = Score(additive.decision, space, score.affine and type(score.affine)(
        score.affine.matrix, score.affine.offset, score.affine.structure, smooth=False
    ))  # fmt: skip
    points = space.encode(additive.cases)
    assert blind.affine is not None
    assert not blind.affine.smooth
    assert np.allclose(blind.slope(points, additive.cases), score.slope(points, additive.cases))


def test_an_encoder_that_is_not_affine_is_not_taken_for_one(additive: Any) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PowerTransformer

    X = additive.X[["income", "children"]]
    model = make_pipeline(PowerTransformer(), LogisticRegression()).fit(X, additive.y)
    space = PeerSpace.fit(fw.Schema.infer(X), X)
    assert Score.read(fw.Decision(model), space, X).affine is None
