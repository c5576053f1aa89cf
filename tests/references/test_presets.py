"""SEV-cluster as the paper and its authors do it: centres, assignment, and the rule in a file."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fewest as fw
from fewest.errors import DataError, FewestWarning, MissingExtraError, UsageError
from fewest.references import References
from fewest.references.by_embedding import ByEmbedding
from fewest.references.clusters import clusters

PRESETS = ("paper", "authors")


def people(n: int = 240) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(0)
    old = np.arange(n) % 2 == 1
    X = pd.DataFrame(
        {
            "age": np.where(old, random.normal(60, 8, n), random.normal(30, 8, n)).round().astype(int),
            "job": pd.Series(random.choice(["none", "clerk", "driver"], n), dtype="str"),
            "debt": random.integers(0, 20, n),
        }
    )
    return X, (X["debt"] + random.normal(0, 3, n) > 10).to_numpy(dtype=int)


X, Y = people()
STEPS = make_column_transformer((StandardScaler(), ["age", "debt"]), (OneHotEncoder(), ["job"]))
DECISION = fw.Decision(make_pipeline(STEPS, LogisticRegression()).fit(X, Y))


def nearest_on_the_map(refs: References, frame: pd.DataFrame) -> list[int]:
    """The rule in the paper's words: references and cases on the map, the closest of the former by l2."""
    assert isinstance(refs.assigner, ByEmbedding)
    at, goals = refs.assigner.locate(frame), refs.assigner.locate(refs.frame)
    return [int(np.argmin([np.sqrt(((case - goal) ** 2).sum()) for goal in goals])) for case in at]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_case_goes_to_the_reference_that_is_nearest_on_the_map(preset: Any) -> None:
    refs = clusters(DECISION, X, Y, n_clusters=4, preset=preset)
    assert refs.candidates(X)[:, 0].tolist() == nearest_on_the_map(refs, X)


def test_a_rule_that_goes_to_centroids_is_caught() -> None:
    """Negative control of the test above: the default rule of `embedding` sends some cases elsewhere."""
    refs = clusters(
        DECISION, X, Y, n_clusters=4, centre="mean", embedding="pacmap", assignment="embedding", min_share=0
    )
    assert refs.candidates(X)[:, 0].tolist() != nearest_on_the_map(refs, X)


def test_the_paper_takes_the_mean_of_all_rows_of_a_cluster_and_the_authors_the_median_of_the_accepted() -> None:
    whole = X[Y == 0]
    accepted = whole[~DECISION.verdicts(whole).positive]
    assert len(accepted) < len(whole)
    paper, authors = (clusters(DECISION, X, Y, n_clusters=1, preset=preset) for preset in PRESETS)  # type: ignore[arg-type]
    assert paper.support.tolist() == [len(whole)]
    assert paper.frame["age"].tolist() == [round(whole["age"].mean())]
    assert authors.support.tolist() == [len(accepted)]
    assert authors.frame["age"].tolist() == [round(accepted["age"].median())]


def test_no_cluster_is_too_small_and_what_is_given_goes_before_the_preset() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        refs = clusters(DECISION, X, Y, n_clusters=12, preset="paper")
    assert all("too few" not in str(warning.message) for warning in seen)
    assert refs.provenance["min_share"] == 0.0
    assert refs.support.min() < 0.08 * refs.support.sum()
    with pytest.warns(FewestWarning, match="too few"):
        fewer = clusters(DECISION, X, Y, n_clusters=12, preset="paper", min_share=0.08)
    assert len(fewer) < len(refs)
    assert clusters(DECISION, X, Y, n_clusters=2, preset="paper", centre="median").provenance["centre"] == "median"


@pytest.mark.parametrize("preset", PRESETS)
def test_a_saved_preset_assigns_every_case_as_before(preset: Any, tmp_path: Path) -> None:
    refs = clusters(DECISION, X, Y, n_clusters=4, preset=preset)
    with pytest.raises(UsageError, match="training rows"):
        refs.save(tmp_path / "refs.json")
    assert not (tmp_path / "refs.json").exists()
    refs.save(tmp_path / "refs.json", training_rows=True)
    again = fw.references.load(tmp_path / "refs.json", DECISION)
    assert again.assignment == "embedding"
    others, _ = people(500)
    assert again.candidates(others).tolist() == refs.candidates(others).tolist()
    again.sign_off("Credit Risk").flexible(0.1, X=X, y=Y).save(tmp_path / "more.json", training_rows=True)
    more = fw.references.load(tmp_path / "more.json", DECISION)
    assert more.candidates(others)[:, 0].tolist() == refs.candidates(others)[:, 0].tolist()


@pytest.mark.parametrize("embedding", ["pca", "identity"])
def test_maps_without_landmarks_are_saved_without_training_rows(embedding: str, tmp_path: Path) -> None:
    refs = clusters(DECISION, X, Y, n_clusters=3, embedding=embedding, assignment="embedding")
    refs.save(tmp_path / "refs.json")
    content = json.loads((tmp_path / "refs.json").read_text())
    assert content["format"] == 3
    assert content["rule"]["training_rows"] == 0
    assert fw.references.load(tmp_path / "refs.json", DECISION).candidates(X).tolist() == refs.candidates(X).tolist()


def test_a_file_without_its_rule_says_that_it_is_another_assignment(tmp_path: Path) -> None:
    clusters(DECISION, X, Y, n_clusters=3, preset="paper").saved().write(tmp_path / "refs.json")
    with pytest.warns(FewestWarning, match="does not hold its rule"):
        refs = fw.references.load(tmp_path / "refs.json", DECISION)
    assert refs.assignment == "features"
    assert fw.references.supplied(DECISION, tmp_path / "refs.json", assignment="sparsest").assignment == "sparsest"


def _other_model(content: dict[str, Any]) -> fw.Decision:
    older = X.assign(age=X["age"] + 7)
    return fw.Decision(make_pipeline(clone(STEPS), LogisticRegression()).fit(older, Y))


def _shorter(content: dict[str, Any]) -> fw.Decision:
    content["rule"]["arrays"]["at"]["shape"][0] -= 1
    return DECISION


def _larger(content: dict[str, Any]) -> fw.Decision:
    content["rule"]["arrays"]["landmarks"]["shape"] = [10**9, 10**9]
    return DECISION


def _many_neighbours(content: dict[str, Any]) -> fw.Decision:
    content["rule"]["neighbours"] = 10**6
    return DECISION


def _moved(content: dict[str, Any]) -> fw.Decision:
    content["references"][0]["values"]["age"] += 5
    return DECISION


@pytest.mark.parametrize("change", [_other_model, _shorter, _larger, _many_neighbours, _moved])
def test_a_rule_that_would_send_cases_elsewhere_is_refused(change: Any, tmp_path: Path) -> None:
    path = tmp_path / "refs.json"
    clusters(DECISION, X, Y, n_clusters=3, preset="paper").save(path, training_rows=True)
    content = json.loads(path.read_text())
    decision = change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"damaged|lie elsewhere"):
        fw.references.supplied(decision, path, on_positive="allow")


def test_a_rule_of_ones_own_is_not_saved(tmp_path: Path) -> None:
    class First:
        def assign(self, frame: pd.DataFrame) -> Any:
            return np.zeros(len(frame), dtype=np.int32)

    refs = replace(clusters(DECISION, X, Y, n_clusters=3, preset="paper"), assigner=First())
    assert set(refs.candidates(X)[:, 0]) == {0}
    with pytest.raises(UsageError, match="of your own"):
        refs.save(tmp_path / "refs.json", training_rows=True)


def test_a_preset_without_pacmap_and_an_unknown_preset_are_clear_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="preset"):
        clusters(DECISION, X, Y, preset="papers")  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "pacmap", None)
    with pytest.raises(MissingExtraError, match=r"fewest\[cluster\]"):  # of other rows: maps of the same ones are kept
        clusters(DECISION, X[30:], Y[30:], n_clusters=2, preset="paper")
