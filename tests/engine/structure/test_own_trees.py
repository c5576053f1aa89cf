"""The package's own trees: read as one tree on codes, levels never seen and missing values included."""

import numpy as np
import pandas as pd
import pytest

from fewest import Decision, Explainer, Status, references
from fewest.datasets import load
from fewest.engine.structure import Ensemble, read
from fewest.models.trees import C45Classifier, CARTClassifier, GOSDTClassifier

MODELS = {
    "cart": lambda: CARTClassifier(max_depth=5),
    "c45": lambda: C45Classifier(min_samples_leaf=15, pruning=False),
    "c45 multiway": lambda: C45Classifier(min_samples_leaf=15, multiway=True, pruning=False),
    "gosdt": lambda: GOSDTClassifier(regularization=0.006, max_depth=3),
}


def grown(name, X, y):
    if name == "gosdt":
        pytest.importorskip("gosdt")
    return MODELS[name]().fit(X, y)


@pytest.mark.parametrize("name", ["cart", "c45"])
def test_trees_on_arrays_are_read(name, tools, train, rows):
    model = grown(name, *train)
    for asked in tools.questions(("proba", "label")):
        structure, _ = tools.check_it(model, rows, asked)
        assert isinstance(structure, Ensemble)
    assert "decision_function" in read(model, kind="decision").reason


@pytest.mark.parametrize("name", MODELS)
def test_mixed_rows_with_missing_and_unknown_values_are_decided_alike(name):
    data = load("german")
    model = grown(name, data.X, data.y)
    rng = np.random.default_rng(0)
    rows = data.X.copy()
    for column in rows.columns:
        rows[column] = rng.permutation(rows[column].to_numpy())
        rows[column] = rows[column].mask(pd.Series(rng.random(len(rows)) < 0.15, index=rows.index))
        if not pd.api.types.is_numeric_dtype(data.X[column]):
            rows[column] = rows[column].astype(object).mask(rng.random(len(rows)) < 0.15, "never seen")
    for positive in (0, 1):
        structure = read(model, positive=positive)
        assert isinstance(structure, Ensemble)
        raw = structure.raw(structure.reading.prepare(rows))
        assert np.allclose(raw, model.predict_proba(rows)[:, positive], rtol=0, atol=1e-12)
    assert structure.reading.source.tolist() == list(range(data.X.shape[1]))


@pytest.mark.parametrize("name", MODELS)
def test_german_credit_is_explained_from_the_inside_and_verified(name):
    data = load("german")
    model = grown(name, data.X, data.y)
    decision = Decision(model)
    refs = references.single(decision, data.X, data.y)
    explainer = Explainer(decision, refs)
    denied = data.X[decision.verdicts(data.X).positive].head(40)
    assert len(denied) > 10
    assert isinstance(explainer.look_inside(denied).structure, Ensemble)
    out = explainer.explain(denied)
    explained = [answer for answer in out if answer.status is Status.EXPLAINED]
    assert len(explained) == len(denied)
    # Taking the inside away must not change a single answer.
    blind = Explainer(Decision(lambda frame: model.predict_proba(frame)[:, 1], threshold=0.5), refs).explain(denied)
    assert [answer.sev for answer in out] == [answer.sev for answer in blind]
