"""Text columns as categories, for models that take them."""

import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

import fewest as fw
from fewest.datasets import load


def test_categories_hold_the_same_values_and_the_schema_knows() -> None:
    plain, german = load("german"), load("german", categories=True)
    text = list(plain.X.select_dtypes(exclude="number"))
    assert all(isinstance(dtype, pd.CategoricalDtype) for dtype in german.X[text].dtypes)
    pd.testing.assert_frame_equal(german.X.astype(plain.X.dtypes), plain.X)
    conformed = german.schema.conform(plain.X)
    pd.testing.assert_frame_equal(conformed, german.X)


def test_a_model_of_categories_is_explained_with_the_datasets_own_schema() -> None:
    german = load("german", categories=True)
    model = HistGradientBoostingClassifier(max_iter=5, random_state=0).fit(german.X, german.labels)
    decision = fw.Decision(model, positive="bad")
    refs = fw.references.single(decision, german.X, german.labels, schema=german.schema)
    out = fw.Explainer(decision, refs, n_jobs=1).explain(german.X[:50])
    assert out.explained[0].proof.verified
