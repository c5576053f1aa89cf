"""
Which of two models needs fewer reasons?
========================================

A linear model and boosted trees on the same table, explained against the same kind of typical accepted case.
"""

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fewest as fw
from fewest.datasets import load

german = load("german", categories=True)
X, y = german.X, german.labels
encode = make_column_transformer(
    (OneHotEncoder(), make_column_selector(dtype_exclude="number")),
    (StandardScaler(), make_column_selector(dtype_include="number")),
)
models = {
    "logistic regression": make_pipeline(encode, LogisticRegression(C=0.1, max_iter=1000)),
    "boosted trees": HistGradientBoostingClassifier(max_iter=50, random_state=0),
}
answers = {name: fw.explain(model.fit(X, y), X, train=(X, y), positive="bad") for name, model in models.items()}
for name, out in answers.items():
    print(f"{name}: {len(out.explained)} refused, {out.summary()['mean SEV']:.2f} features on average")

# %%
# :class:`~fewest.reporting.plots.SevDistributionDisplay` takes one table of answers, or several under labels.

fw.plots.SevDistributionDisplay.from_explanations(answers).plot()
