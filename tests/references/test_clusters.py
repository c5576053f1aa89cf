"""Cluster references: made of accepted rows of their cluster, assigned row by row, the same on every run."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import random_models as rm
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from slow_cases import few_or_all

import fewest as fw
from fewest.errors import DataError, PositiveReferenceError, UsageError
from fewest.references import References
from fewest.references.clustering import ClusterSpace
from fewest.references.clusters import centred_score, clusters


def two_kinds(n: int = 240) -> tuple[pd.DataFrame, np.ndarray]:
    """Young renters and old owners; debt decides."""
    random = np.random.default_rng(0)
    old = np.arange(n) % 2 == 1
    X = pd.DataFrame(
        {
            "age": np.where(old, random.normal(65, 4, n), random.normal(25, 4, n)).round().astype(int),
            "savings": np.where(old, random.normal(90, 9, n), random.normal(10, 3, n)).round(1),
            "debt": random.integers(0, 20, n),
        }
    )
    return X, (X["debt"] > 9).to_numpy(dtype=int)


X, Y = two_kinds()
DECISION = fw.Decision(LogisticRegression(max_iter=1000).fit(X, Y))
EMBEDDINGS = ("pacmap", "pca", "identity")


@pytest.mark.parametrize("embedding", EMBEDDINGS)
def test_two_kinds_of_cases_get_two_references(embedding: str) -> None:
    refs = clusters(DECISION, X, Y, n_clusters=2, embedding=embedding, centre="mean")
    accepted = X[(Y == 0) & ~DECISION.verdicts(X).positive]
    old = accepted[accepted["age"] > 45]
    expected = {round(float(old["age"].mean())), round(float(accepted.drop(old.index)["age"].mean()))}
    assert set(refs.frame["age"]) == expected
    assert sorted(refs.support.tolist()) == sorted([len(old), len(accepted) - len(old)])
    assert refs.support.tolist() == sorted(refs.support.tolist(), reverse=True)
    assert refs.names == ("cluster 1", "cluster 2")
    assert (refs.score < DECISION.cut).all()


@pytest.mark.parametrize("embedding", EMBEDDINGS)
@pytest.mark.parametrize("assignment", ["embedding", "features"])
def test_a_case_is_compared_with_its_own_kind(embedding: str, assignment: Any) -> None:
    refs = clusters(DECISION, X, Y, n_clusters=2, embedding=embedding, assignment=assignment)
    chosen = refs.frame["age"].to_numpy()[refs.candidates(X)[:, 0]]
    assert ((chosen > 45) == (X["age"].to_numpy() > 45)).all()


def test_centres_are_typed_and_a_medoid_is_a_real_accepted_row() -> None:
    for centre in ("mean", "median", "medoid"):
        refs = clusters(DECISION, X, Y, n_clusters=3, centre=centre, embedding="pca")
        assert refs.frame.dtypes.equals(X.dtypes)
    accepted = X[(Y == 0) & ~DECISION.verdicts(X).positive].to_numpy().tolist()
    assert all(row in accepted for row in refs.frame.to_numpy().tolist())


def test_one_cluster_is_the_single_reference_of_the_accepted_rows() -> None:
    one = clusters(DECISION, X, Y, n_clusters=1, centre="mean")
    accepted = ~DECISION.verdicts(X).positive
    assert one.frame.equals(fw.references.single(DECISION, X[accepted], Y[accepted]).frame)
    assert one.support.tolist() == [int(((Y == 0) & accepted).sum())]


def row_alone_is_row_in_batch(refs: References) -> bool:
    together = refs.candidates(X)
    order = np.random.default_rng(1).permutation(len(X))
    alone = np.vstack([refs.candidates(X.iloc[[i]]) for i in range(0, len(X), 7)])
    return np.array_equal(together[::7], alone) and np.array_equal(together[order], refs.candidates(X.iloc[order]))


@pytest.mark.parametrize("assignment", ["embedding", "features", "sparsest"])
@pytest.mark.parametrize("embedding", EMBEDDINGS)
def test_a_case_alone_is_a_case_in_a_batch_in_any_order(embedding: str, assignment: Any) -> None:
    assert row_alone_is_row_in_batch(clusters(DECISION, X, Y, n_clusters=4, embedding=embedding, assignment=assignment))


def test_the_check_catches_an_assigner_that_looks_at_the_batch() -> None:
    @dataclass(frozen=True)
    class ByRank:
        def assign(self, frame: pd.DataFrame) -> np.ndarray:
            return (frame["age"] > frame["age"].mean()).to_numpy(dtype=np.int32)

    refs = clusters(DECISION, X, Y, n_clusters=2, embedding="pca", assignment="embedding")
    assert row_alone_is_row_in_batch(refs)
    assert not row_alone_is_row_in_batch(replace(refs, assigner=ByRank()))


@pytest.mark.parametrize("embedding", EMBEDDINGS)
def test_the_same_seed_gives_the_same_bytes(embedding: str) -> None:
    one, two = (json.dumps(clusters(DECISION, X, Y, embedding=embedding, random_state=4).to_dict()) for _ in range(2))
    assert one == two


def test_explanations_lead_to_the_assigned_reference() -> None:
    refs = clusters(DECISION, X, Y, n_clusters=2, embedding="pca", assignment="embedding")
    out = fw.Explainer(DECISION, refs, n_jobs=1).explain(X)
    against = out.answers.status != list(fw.Status).index(fw.Status.ALREADY_NEGATIVE)
    assert (out.answers.reference[against] == refs.candidates(X)[against, 0]).all()


@pytest.mark.parametrize("count", few_or_all(8, 80))
def test_one_more_reference_never_raises_sev(count: int) -> None:
    for seed in range(count):
        setting = (rm.linear, rm.tree_ensemble)[seed % 2](np.random.default_rng([seed, 3]))
        decision, schema = setting.decision, setting.references.schema
        goals = setting.cases.sample(3, replace=True, random_state=seed)
        sizes = []
        for k in (1, 2, 3):
            refs = fw.references.supplied(
                decision, goals.iloc[:k], schema=schema, on_positive="allow", assignment="sparsest"
            )
            answers = fw.Explainer(decision, refs, n_jobs=1).explain(setting.cases).answers
            sizes.append(np.where(answers.status == 0, answers.cost, np.where(answers.status == 1, -1, np.inf)))
        assert (sizes[2] <= sizes[1]).all()
        assert (sizes[1] <= sizes[0]).all()


@pytest.mark.parametrize("select", ["silhouette", "bic"])
def test_auto_finds_the_kinds_there_are(select: Any) -> None:
    blobs = pd.DataFrame(
        np.vstack([np.random.default_rng(k).normal(12 * k, 1, size=(80, 2)) for k in range(3)]), columns=["a", "b"]
    )
    decision = fw.Decision(lambda frame: (frame["a"] > 30).to_numpy(dtype=float), positive=1)
    refs = clusters(decision, blobs, np.zeros(240), n_clusters="auto", select=select, embedding="identity")
    assert len(refs) == 3


def test_a_centre_decided_positive_is_left_out_and_named() -> None:
    """A ring of accepted rows around a refused middle: the mean of the ring is refused, its median row is not."""
    angle = np.linspace(0, 2 * np.pi, 80, endpoint=False)
    ring = pd.DataFrame({"a": 5 * np.cos(angle), "b": 5 * np.sin(angle)})
    far = pd.DataFrame({"a": 40 + np.cos(angle), "b": np.sin(angle)})
    table = pd.concat([ring, far], ignore_index=True).round(3)
    decision = fw.Decision(lambda frame: np.exp(-(frame["a"] ** 2 + frame["b"] ** 2).to_numpy()), positive=1)
    with pytest.warns(fw.FewestWarning, match=r"cluster \d \(score .* >= 0.5\)"):
        refs = clusters(decision, table, np.zeros(160), n_clusters=2, centre="mean", embedding="identity")
    assert refs.frame["a"].tolist() == [40.0]
    assert refs.provenance["left_out"][0].startswith("cluster")
    assert (refs.with_assignment("embedding").candidates(table) == 0).all()
    assert len(clusters(decision, table, np.zeros(160), n_clusters=2, centre="medoid", embedding="identity")) == 2
    with pytest.raises(PositiveReferenceError, match="no cluster has a centre") as caught:
        clusters(decision, ring.round(3), np.zeros(80), n_clusters=1, centre="mean")
    assert "medoid" in str(caught.value.do)


def test_a_cluster_without_accepted_rows_is_left_out_and_named() -> None:
    table = pd.DataFrame({"a": [0.0, 0.1, 0.2, 9.0, 9.1, 9.2]})
    decision = fw.Decision(lambda frame: (frame["a"] > 5).to_numpy(dtype=float), positive=1)
    with pytest.warns(fw.FewestWarning, match=r"cluster 2 \(the model accepts none of its rows\)"):
        refs = clusters(decision, table, np.zeros(6), n_clusters=2, m=0.1, embedding="identity")
    assert refs.frame["a"].tolist() == [0.1]


def test_a_freak_group_is_left_out_and_named() -> None:
    table = pd.DataFrame({"a": [*np.linspace(0, 1, 197), 50.0, 50.1, 50.2]}).round(3)
    decision = fw.Decision(lambda frame: np.zeros(len(frame)), positive=1)
    with pytest.warns(fw.FewestWarning, match=r"cluster 2 \(too few to be typical: 3 rows\)"):
        refs = clusters(decision, table, np.zeros(200), n_clusters=2, embedding="identity")
    assert refs.frame["a"].max() < 1
    assert len(clusters(decision, table, np.zeros(200), n_clusters=2, embedding="identity", min_share=0)) == 2


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"n_clusters": 0}, UsageError, "n_clusters"),
        ({"n_clusters": 2.5}, UsageError, "n_clusters"),
        ({"n_clusters": "many"}, UsageError, "n_clusters"),
        ({"n_clusters": 1000}, DataError, "1000"),
        ({"centre": "mode"}, UsageError, "centre"),
        ({"embedding": "tsne"}, UsageError, "embedding"),
        ({"assignment": "any"}, UsageError, "assignment"),
        ({"select": "gap"}, UsageError, "select"),
        ({"m": 0}, UsageError, "m is 0"),
        ({"max_rows": 0}, UsageError, "max_rows"),
        ({"min_share": 1.0}, UsageError, "min_share"),
    ],
)
def test_senseless_options_are_refused(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        clusters(DECISION, X, Y, **{"embedding": "pca", **options})


def test_no_negatives_and_no_accepted_negatives_are_refused() -> None:
    with pytest.raises(DataError, match="no row is labelled"):
        clusters(DECISION, X, np.ones(len(X)))
    refusing = fw.Decision(lambda frame: np.ones(len(frame)), positive=1)
    with pytest.raises(PositiveReferenceError, match="refuses all"):
        clusters(refusing, X, np.zeros(len(X)), embedding="pca")


def test_constant_columns_text_and_missing_values_are_fine() -> None:
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "same": 7,
            "gap": np.where(random.uniform(size=100) < 0.2, np.nan, random.normal(size=100)),
            "job": pd.Series(random.choice(["a", "b", "c"], 100), dtype="str"),
        }
    )
    decision = fw.Decision(lambda frame: np.nan_to_num(frame["gap"].to_numpy(dtype=float)) / 9 + 0.3, positive=1)
    refs = clusters(decision, table, np.zeros(100), n_clusters=3)
    assert refs.frame["same"].tolist() == [7] * len(refs)
    assert set(refs.frame["job"]) <= {"a", "b", "c"}


def test_nearest_is_another_word_for_features_and_embedding_needs_clusters() -> None:
    refs = fw.references.supplied(DECISION, X.iloc[:1], X=X, on_positive="allow", assignment="nearest")
    assert refs.assignment == "features"
    with pytest.raises(UsageError, match="no clusters"):
        refs.with_assignment("embedding")


def test_more_rows_than_the_most_are_sampled() -> None:
    refs = clusters(DECISION, X, Y, n_clusters=2, max_rows=50, embedding="pca")
    assert refs.provenance["rows_clustered"] == 50
    assert refs.support.sum() <= 50


def test_scores_without_bounds_are_bent_and_thresholds_moved() -> None:
    model = LogisticRegression(max_iter=1000).fit(X, Y)
    by_margin = fw.Decision(model, kind="decision", threshold=1.0)
    assert centred_score(by_margin, np.array([-50.0, 1.0, 50.0])).tolist() == pytest.approx([0, 0.5, 1])
    strict = fw.Decision(model, threshold=0.2)
    assert centred_score(strict, np.array([0.2, 0.1])).tolist() == pytest.approx([0.5, 0.4])
    assert len(clusters(by_margin, X, Y, n_clusters=2, embedding="pca")) == 2


def test_forests_and_functions_are_clustered_too() -> None:
    forest = fw.Decision(RandomForestClassifier(20, random_state=0).fit(X, Y))
    function = fw.Decision(lambda frame: (frame["debt"] > 9).to_numpy(dtype=float), positive=1)
    assert ClusterSpace.read(function, fw.Schema.infer(X), X).encoding is None
    for decision in (forest, function):
        refs = clusters(decision, X, Y, n_clusters=2)
        assert sorted(refs.frame["age"] > 45) == [False, True]
