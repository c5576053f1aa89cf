"""Score-based soft k-means: fuzzy c-means where it must be, the scores' pull where it differs, and its edges."""

from __future__ import annotations

import time
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import SkipTestWarning
from sklearn.metrics import silhouette_score
from sklearn.utils.estimator_checks import check_estimator

from fewest.references.clustering import ScoreSoftKMeans, soft_kmeans

BLOBS = np.vstack([np.random.default_rng(k).normal(loc=5 * k, size=(40, 2)) for k in range(3)])


def plain_fuzzy_c_means(X: np.ndarray, centres: np.ndarray, exponents: np.ndarray, turns: int) -> np.ndarray:
    """Bezdek's two updates, written out with loops."""
    for _ in range(turns):
        pull = np.zeros((len(X), len(centres)))
        for i, x in enumerate(X):
            far = [float(np.sqrt(((x - v) ** 2).sum())) for v in centres]
            for j in range(len(centres)):
                pull[i, j] = (1 / sum((far[j] / other) ** (2 / (exponents[i] - 1)) for other in far)) ** exponents[i]
        centres = np.array([(pull[:, j, None] * X).sum(axis=0) / pull[:, j].sum() for j in range(len(centres))])
    return centres


def agrees_with_fuzzy_c_means(score: float, m: float) -> bool:
    """Whether fitted centres stay where they are under the plain updates with the exponent the formula gives."""
    exponent = 1 + 2 * m * max(score - 0.5, 0.01)
    fitted = ScoreSoftKMeans(3, m=m, tol=1e-20).fit(BLOBS, score=np.full(len(BLOBS), score))
    again = plain_fuzzy_c_means(BLOBS, fitted.cluster_centers_, np.full(len(BLOBS), exponent), 3)
    return bool(np.allclose(again, fitted.cluster_centers_, atol=1e-6))


@pytest.mark.parametrize(("score", "m"), [(1.0, 1.0), (1.0, 2.0), (0.9, 1.5), (0.7, 3.0)])
def test_with_equal_exponents_it_is_fuzzy_c_means(score: float, m: float) -> None:
    assert agrees_with_fuzzy_c_means(score, m)


def test_the_comparison_catches_a_wrong_exponent(monkeypatch: pytest.MonkeyPatch) -> None:
    right = soft_kmeans.log_memberships
    monkeypatch.setattr(soft_kmeans, "log_memberships", lambda apart, exponent: right(apart, exponent + 0.2))
    assert not agrees_with_fuzzy_c_means(1.0, 1.0)


def test_wide_tables_are_clustered_as_narrow_ones_are() -> None:
    wide = np.hstack([BLOBS + 100, np.zeros((len(BLOBS), 20))])
    narrow, padded = ScoreSoftKMeans(3, tol=1e-20).fit(BLOBS + 100), ScoreSoftKMeans(3, tol=1e-20).fit(wide)
    assert np.allclose(padded.cluster_centers_[:, :2], narrow.cluster_centers_)
    assert padded.inertia_ == pytest.approx(narrow.inertia_)


def test_every_row_has_its_own_exponent() -> None:
    score = np.random.default_rng(0).uniform(size=len(BLOBS))
    fitted = ScoreSoftKMeans(3, m=1.0, tol=1e-20).fit(BLOBS, score=score)
    exponents = 1 + 2 * np.maximum(score - 0.5, 0.05)
    coarse = ScoreSoftKMeans(3, m=1.0, delta=0.05, tol=1e-20).fit(BLOBS, score=score)
    assert np.allclose(plain_fuzzy_c_means(BLOBS, coarse.cluster_centers_, exponents, 3), coarse.cluster_centers_)
    assert not np.allclose(coarse.cluster_centers_, fitted.cluster_centers_)


def test_rows_decided_positive_pull_less() -> None:
    X = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2], [3.0]])
    high = np.array([0.1] * 6 + [0.95])
    plain, soft = ScoreSoftKMeans(2).fit(X), ScoreSoftKMeans(2).fit(X, score=high)
    assert soft.cluster_centers_.max() < plain.cluster_centers_.max()
    assert soft.memberships(X, high)[-1].max() < 0.95 < soft.memberships(X, high)[:-1].max(axis=1).min()


def test_memberships_sum_to_one_and_a_row_on_a_centre_belongs_to_it() -> None:
    fitted = ScoreSoftKMeans(3).fit(BLOBS)
    shares = fitted.memberships(np.vstack([BLOBS, fitted.cluster_centers_]), np.full(len(BLOBS) + 3, 0.9))
    assert np.allclose(shares.sum(axis=1), 1)
    assert np.array_equal(shares[-3:], np.eye(3))


def test_two_centres_in_one_place_share_their_rows() -> None:
    shares = np.exp(soft_kmeans.log_memberships(np.array([[0.0], [0.0], [4.0]]), np.array([2.0])))
    assert np.allclose(shares[:, 0], [0.5, 0.5, 0.0])


@pytest.mark.parametrize("m", [1e-9, 1e-4, 50.0])
def test_extreme_exponents_stay_finite(m: float) -> None:
    fitted = ScoreSoftKMeans(3, m=m).fit(BLOBS)
    assert np.isfinite(fitted.cluster_centers_).all()
    assert np.isfinite(fitted.memberships(BLOBS)).all()


@pytest.mark.parametrize("X", [np.zeros((6, 2)), np.repeat([[0.0, 1.0], [2.0, 3.0]], 3, axis=0)])
def test_fewer_different_rows_than_clusters_are_fine(X: np.ndarray) -> None:
    fitted = ScoreSoftKMeans(4).fit(X)
    assert np.isfinite(fitted.cluster_centers_).all()
    assert fitted.inertia_ == pytest.approx(0)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(1, 5))
def test_an_iteration_never_raises_the_objective(seed: int, k: int) -> None:
    random = np.random.default_rng(seed)
    X, score = random.normal(size=(30, 2)), random.uniform(size=30)
    costs = [ScoreSoftKMeans(k, n_init=1, max_iter=n, tol=0).fit(X, score=score).inertia_ for n in (1, 2, 4, 8)]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(costs))


def test_a_row_alone_gets_the_cluster_it_gets_in_a_batch() -> None:
    X = np.random.default_rng(1).normal(size=(200, 7))
    fitted = ScoreSoftKMeans(6).fit(X)
    order = np.random.default_rng(2).permutation(len(X))
    together = fitted.predict(X)
    assert np.array_equal(together, fitted.labels_)
    assert np.array_equal(together[order], fitted.predict(X[order]))
    assert [int(fitted.predict(X[[i]])[0]) for i in range(len(X))] == together.tolist()


def test_the_same_seed_gives_the_same_centres() -> None:
    one, two = (ScoreSoftKMeans(4, random_state=3).fit(BLOBS) for _ in range(2))
    assert np.array_equal(one.cluster_centers_, two.cluster_centers_)


@pytest.mark.parametrize(
    ("options", "score", "words"),
    [
        ({"n_clusters": 0}, None, "n_clusters"),
        ({"n_clusters": 500}, None, "n_samples=120"),
        ({"m": 0.0}, None, "m == 0.0"),
        ({"delta": 0.0}, None, "delta"),
        ({"n_init": 0}, None, "n_init"),
        ({}, [0.5], "one per row"),
        ({}, np.full(len(BLOBS), np.nan), "finite"),
    ],
)
def test_senseless_calls_are_refused(options: dict[str, float], score: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ScoreSoftKMeans(**options).fit(BLOBS, score=score)  # type: ignore[arg-type]


def test_it_is_a_scikit_learn_estimator() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        check_estimator(ScoreSoftKMeans())


@pytest.mark.slow
def test_a_hundred_thousand_rows_take_seconds() -> None:
    random = np.random.default_rng(0)
    X, score = random.normal(size=(100_000, 2)), random.uniform(size=100_000)
    began = time.process_time()
    ScoreSoftKMeans(7).fit(X, score=score)
    assert time.process_time() - began < 30


@pytest.mark.parametrize("select", ["silhouette", "bic"])
@pytest.mark.parametrize("count", [2, 4, 6])
def test_separate_groups_are_counted(select: soft_kmeans.Select, count: int) -> None:
    random = np.random.default_rng(count)
    angle = 2 * np.pi * np.arange(count * 60) / (count * 60)
    ring = np.floor(angle / (2 * np.pi / count)) * (2 * np.pi / count)
    X = 12 * np.column_stack([np.cos(ring), np.sin(ring)]) + random.normal(size=(count * 60, 2))
    fitted = soft_kmeans.choose_clusters(X, lambda k: ScoreSoftKMeans(k, n_init=10).fit(X), select)
    assert len(fitted.cluster_centers_) == count


def test_rows_without_two_places_are_one_cluster() -> None:
    X = np.zeros((5, 2))
    assert len(soft_kmeans.choose_clusters(X, lambda k: ScoreSoftKMeans(k).fit(X)).cluster_centers_) == 1


def test_the_silhouette_is_that_of_scikit_learn_and_defined_where_theirs_is_not() -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    labels = (X[:, 0] > 0).astype(np.int32)
    assert soft_kmeans.silhouette(X, labels) == silhouette_score(X, labels)
    assert soft_kmeans.silhouette(X, np.zeros(50, dtype=np.int32)) == -1
