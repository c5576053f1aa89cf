"""The densities themselves: row by row, finite, calibrated on the negatives, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import fewest as fw
from fewest.errors import DataError, UsageError


@pytest.fixture(scope="module")
def people() -> tuple[fw.Decision, pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(0)
    n = 400
    X = pd.DataFrame(
        {
            "debt": random.normal(size=n).round(2),
            "years": random.integers(0, 30, n),
            "job": pd.Series(random.choice(["clerk", "none", "own", "rare"], n, p=[0.5, 0.3, 0.19, 0.01]), dtype="str"),
            "owner": random.random(n) < 0.4,
        }
    )
    X.loc[random.random(n) < 0.1, "debt"] = np.nan
    y = (X["debt"].fillna(0) + 0.05 * X["years"] + random.normal(size=n) > 1).astype(int).to_numpy()
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["job"]), (StandardScaler(), ["years", "owner"])
    )
    return fw.Decision(make_pipeline(encoder, LogisticRegression()).fit(X, y)), X, y


def densities(people: Any, **options: Any) -> dict[str, fw.credibility.Credibility]:
    decision, X, y = people
    tree = fw.Decision(DecisionTreeClassifier(max_depth=3).fit(X[["years", "owner"]], y))
    return {
        "mixture": fw.credibility.mixture(decision, X, y, n_components=3, **options),
        "paper": fw.credibility.mixture(decision, X, y, n_components=3, paper=True, **options),
        "diag": fw.credibility.mixture(decision, X, y, n_components=2, covariance="diag", **options),
        "tied": fw.credibility.mixture(decision, X, y, n_components=2, covariance="tied", **options),
        "spherical": fw.credibility.mixture(decision, X, y, n_components=2, covariance="spherical", **options),
        "neighbours": fw.credibility.neighbours(decision, X, y, k=5, **options),
        "leaf_support": fw.credibility.leaf_support(tree, X[["years", "owner"]], y, **options),
        "supplied": fw.credibility.supplied(decision, X, y, lambda rows: -rows["years"].to_numpy(float), **options),
    }


def test_a_row_has_the_same_bits_alone_in_a_batch_and_in_any_order(people: Any) -> None:
    _, X, _ = people
    for name, dense in densities(people).items():
        whole = dense.log_density(X)
        alone = np.concatenate([dense.log_density(X.iloc[[i]]) for i in range(60)])
        backwards = dense.log_density(X.iloc[::-1])[::-1]
        assert whole[:60].tobytes() == alone.tobytes(), name
        assert whole.tobytes() == np.ascontiguousarray(backwards).tobytes(), name


def test_the_floor_is_the_quantile_of_the_negatives(people: Any) -> None:
    _, X, y = people
    for name, dense in densities(people, quantile=0.2).items():
        below = (dense.negatives < dense.floor).mean()
        assert below <= 0.2, name
        assert dense.floor in dense.negatives, name
        if name != "neighbours":  # held against the others for the floor, with itself when asked again
            assert (dense.log_density(X[y == 0]) < dense.floor).mean() == below, name


def test_a_higher_quantile_is_a_higher_floor_and_nought_is_none(people: Any) -> None:
    for dense in densities(people).values():
        floors = [dense.at(quantile).floor for quantile in (0.0, 0.01, 0.1, 0.5, 1.0)]
        assert floors == sorted(floors)
        assert floors[0] == -np.inf
        assert dense.at(0.0).credible(people[1]).all()


def test_the_mixture_is_scikit_learns(people: Any) -> None:
    decision, X, y = people
    for covariance in ("full", "tied", "diag", "spherical"):
        dense = fw.credibility.mixture(decision, X, y, n_components=2, covariance=covariance, random_state=3)
        points = dense.density.points(dense.schema.conform(X))
        model = GaussianMixture(2, covariance_type=covariance, reg_covar=0.05, random_state=3).fit(points[y == 0])
        assert np.allclose(dense.log_density(X), model.score_samples(points), rtol=1e-9, atol=1e-9)


def test_a_level_that_was_never_accepted_is_a_matter_of_nats_not_of_thousands(people: Any) -> None:
    """The paper's log-likelihoods of -57,437 are singular covariances; regularised ones stay comparable."""
    decision, X, y = people
    accepted = X[(X["job"] != "rare") | (y == 1)], y[(X["job"] != "rare") | (y == 1)]
    schema = fw.Schema.infer(X)
    row = X[(X["job"] != "rare") & (y == 0) & X["debt"].notna()].iloc[[0]]
    rare = row.assign(job=pd.Series(["rare"], index=row.index, dtype="str"))
    sane = fw.credibility.mixture(decision, *accepted, n_components=1, schema=schema)
    paper = fw.credibility.mixture(decision, *accepted, n_components=1, paper=True, schema=schema)
    assert 5 < sane.log_density(row)[0] - sane.log_density(rare)[0] < 45
    assert paper.log_density(row)[0] - paper.log_density(rare)[0] > 10_000
    assert paper.provenance["regularization"] == 1e-6


def test_the_number_of_components_is_chosen_by_bic() -> None:
    random = np.random.default_rng(1)
    centre = np.repeat([[-6.0, 0.0], [6.0, 0.0], [0.0, 9.0]], 120, axis=0)
    X = pd.DataFrame(centre + random.normal(size=(360, 2)), columns=["a", "b"])
    y = (random.random(360) < 0.2).astype(int)
    decision = fw.Decision(LogisticRegression().fit(X, y))
    assert fw.credibility.mixture(decision, X, y).provenance["n_components"] == 3


def test_the_same_seed_gives_the_same_bytes(people: Any) -> None:
    one, two = densities(people, quantile=0.1), densities(people, quantile=0.1)
    for name in one:
        assert one[name].log_density(people[1]).tobytes() == two[name].log_density(people[1]).tobytes(), name
        assert one[name].floor == two[name].floor


def test_leaf_support_is_the_share_of_the_negatives_in_the_leaf(people: Any) -> None:
    _, X, y = people
    X = X[["years", "owner"]]
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    dense = fw.credibility.leaf_support(fw.Decision(model), X, y)
    leaf = model.apply(X)
    share = np.array([np.mean(leaf[y == 0] == here) for here in leaf])
    # Leaves with the same decision under one parent are one leaf here, so the share can only be larger.
    assert (np.exp(dense.log_density(X)) >= share - 1e-12).all()


@pytest.mark.parametrize("floor", [-0.1, 1.5, float("nan"), "0.05", True])
def test_a_floor_outside_0_and_1_is_refused(people: Any, floor: Any) -> None:
    decision, X, y = people
    with pytest.raises(UsageError, match="floor"):
        fw.credibility.mixture(decision, X, y, quantile=floor)
    with pytest.raises(UsageError, match="floor"):
        fw.credibility.neighbours(decision, X, y, quantile=floor)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"covariance": "round"}, "covariance"),
        ({"regularization": 0.0}, "regularization"),
        ({"paper": True}, "as many components as clusters"),
        ({"paper": True, "n_components": 2, "covariance": "diag"}, "full covariances"),
    ],
)
def test_settings_that_make_no_sense_are_refused(people: Any, options: dict[str, Any], message: str) -> None:
    decision, X, y = people
    with pytest.raises(UsageError, match=message):
        fw.credibility.mixture(decision, X, y, **options)


def test_rows_that_have_no_density_are_refused(people: Any) -> None:
    decision, X, y = people
    with pytest.raises(DataError, match="no row is labelled"):
        fw.credibility.mixture(decision, X, np.ones(len(X), dtype=int))
    same = pd.concat([X.iloc[[0]]] * 5)
    with pytest.raises(DataError, match="are the same"):
        fw.credibility.mixture(decision, same, np.zeros(5, dtype=int), schema=fw.Schema.infer(X))
    with pytest.raises(DataError, match="n_components is 7"):
        fw.credibility.mixture(decision, X.iloc[:5], np.zeros(5, dtype=int), n_components=7, schema=fw.Schema.infer(X))
    with pytest.raises(DataError, match="k is 10"):
        fw.credibility.neighbours(decision, X.iloc[:5], np.zeros(5, dtype=int), schema=fw.Schema.infer(X))
    with pytest.raises(UsageError, match="k is 0"):
        fw.credibility.neighbours(decision, X, y, k=0)


def test_a_density_of_ones_own_must_work_row_by_row(people: Any) -> None:
    decision, X, y = people
    with pytest.raises(UsageError, match="rows beside it"):
        fw.credibility.supplied(decision, X, y, lambda rows: rows["years"] - rows["years"].mean())
    with pytest.raises(DataError, match="shape"):
        fw.credibility.supplied(decision, X, y, lambda rows: np.zeros((len(rows), 2)))
    with pytest.raises(UsageError, match="no function"):
        fw.credibility.supplied(decision, X, y, 3)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="NaN"):
        fw.credibility.supplied(decision, X, y, lambda rows: np.full(len(rows), np.nan))
