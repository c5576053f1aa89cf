"""
A researcher: a model of one's own, proofs, and peers
=====================================================

You have a class of models that no library knows, and want figures that hold: exact sparsity of each decision, a check
against brute force, several kinds of references, and other methods on the same cases.
"""

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

import fewest as fw
from fewest.datasets import load
from fewest.experiments.peers import NICE


class Scorecard(ClassifierMixin, BaseEstimator):
    """Points of a logistic regression, rounded to whole numbers."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Scorecard":
        """Fit, then round to tenths of the largest weight."""
        X = np.asarray(X, dtype=float)
        self.classes_ = np.unique(y)
        self.middle_, self.spread_ = X.mean(axis=0), X.std(axis=0)
        inner = LogisticRegression().fit((X - self.middle_) / self.spread_, y)
        self.points_ = (10 * inner.coef_[0] / abs(inner.coef_).max()).round()
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Sum of the points of each row."""
        return ((np.asarray(X, dtype=float) - self.middle_) / self.spread_) @ self.points_

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The second class above zero points."""
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


german = load("german")
X = german.X.select_dtypes("number")
y = np.where(german.labels == "bad", "refused", "accepted")
model = Scorecard().fit(X, y)
print(dict(zip(X, model.points_.astype(int).tolist(), strict=True)))

# %%
# Exact, without knowing the inside
# ---------------------------------
#
# The library cannot read this class, so it asks for scores: all sets of one feature, then of two, and so on. What it
# returns is still the smallest set, and says how that was proved.

decision = fw.Decision(model, positive="refused", threshold=5.0)
references = fw.references.single(decision, X, y)
explainer = fw.Explainer(decision, references)
cases = X[decision.refuses(X)][:60]
out = explainer.explain(cases)
print(out[0])
print(out[0].proof)

# %%
# The same, by brute force
# ------------------------
#
# :func:`fewest.checks.run` asks the model about every set of every case and compares. It raises where an answer is
# not the smallest.

print(fw.checks.run(explainer, cases[:15]))

# %%
# How much depends on the reference?
# ----------------------------------

kinds = {
    "mean": references,
    "median": fw.references.single(decision, X, y, centre="median"),
    "3 clusters": fw.references.clusters(decision, X, y, n_clusters=3, embedding="identity"),
    "every accepted row": fw.references.accepted(decision, X, y),
}
answers = {name: fw.Explainer(decision, refs).explain(cases) for name, refs in kinds.items()}
rows = {
    name: {
        "mean SEV": fw.metrics.sparsity(found).mean_sev,
        "largest change (SD)": found.to_frame()["l_inf"].mean(),
        "not possible": found.counts()["UNREACHABLE"],
    }
    for name, found in answers.items()
}
pd.DataFrame(rows).T.round(2)

# %%
fw.plots.SevDistributionDisplay.from_explanations(answers).plot()

# %%
# Another method's answers, cut down
# ----------------------------------
#
# NICE starts from the nearest accepted row. How many features does it change, and how many of these changes were
# needed? ``references.paired`` keeps of each proposal the smallest part that is enough.

proposed = NICE().fit(decision, X, y).explain(cases)
own_rows = fw.references.paired(decision, proposed.frame, schema=references.schema)
needed = fw.metrics.sparsity(explainer.with_(references=own_rows).explain(cases))
print(f"NICE changes {proposed.changed.sum(axis=1).mean():.2f} features; {needed.mean_sev:.2f} of them were needed")
print(f"towards the mean of the accepted cases it takes {fw.metrics.sparsity(out).mean_sev:.2f}")
