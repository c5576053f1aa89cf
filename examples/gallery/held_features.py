"""
What if age and sex may not count?
==================================

Features that nobody can change are held. The search then looks for the fewest of the others, and still proves its
answer.
"""

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fewest as fw
from fewest.datasets import load

german = load("german")
X, y = german.X, german.labels
encode = make_column_transformer(
    (OneHotEncoder(), make_column_selector(dtype_exclude="number")),
    (StandardScaler(), make_column_selector(dtype_include="number")),
)
model = make_pipeline(encode, LogisticRegression(C=0.1, max_iter=1000)).fit(X, y)
decision = fw.Decision(model, positive="bad")
explainer = fw.Explainer(decision, fw.references.single(decision, X, y))
held = explainer.with_(constraints=[fw.Immutable("age", "personal_status_sex", "foreign_worker")])
answers = {"all features": explainer.explain(X), "age, sex and origin held": held.explain(X)}
for name, out in answers.items():
    print(f"{name}: {out.summary()['mean SEV']:.3f} features on average, {out.summary()['not possible']} not possible")

# %%
# :class:`~fewest.reporting.plots.FeatureFrequencyDisplay`: how often each feature is part of the answer shown.

fw.plots.FeatureFrequencyDisplay.from_explanations(answers, most=8).plot()
