"""
Did training for few reasons help?
==================================

:class:`~fewest.models.training.AllOptClassifier` adds to the loss what a single changed feature leaves of the score.
Here the same kinds of models are trained without it (``c1=0``) and with it.
"""

from sklearn.model_selection import train_test_split

import fewest as fw
from fewest.datasets import load
from fewest.models.training import AllOptClassifier

german = load("german")
X, X_test, y, y_test = train_test_split(german.X, german.labels, stratify=german.labels, random_state=0)
pairs = {}
for name, kind in {"logistic on curves": "logistic", "small net": "mlp"}.items():
    explained, accuracy = [], []
    for c1 in (0.0, 2.0):
        model = AllOptClassifier(kind, c1=c1, warmup_epochs=30, epochs=10, positive="bad", random_state=0).fit(X, y)
        decision = fw.Decision(model, positive="bad")
        explained.append(fw.Explainer(decision, model.references_).explain(X_test))
        accuracy.append(model.score(X_test, y_test))
    pairs[name] = (explained[0], explained[1])
    print(f"{name}: accuracy {accuracy[0]:.2f} before, {accuracy[1]:.2f} after")

# %%
# :class:`~fewest.reporting.plots.BeforeAfterDisplay`: mean number of features, on rows that no model was trained on.

fw.plots.BeforeAfterDisplay.from_explanations(pairs).plot()
