"""
All sparse trees that are nearly as good
========================================

Many trees predict nearly equally well. :class:`~fewest.models.rashomon.TOptClassifier` looks at all of them and keeps
the one whose decisions need the fewest features.
"""

import fewest as fw
from fewest.datasets import load
from fewest.models.rashomon import TOptClassifier

german = load("german")
X, y = german.X[["checking_status", "duration_months", "credit_history", "savings"]], german.labels
model = TOptClassifier(max_depth=3, bound=0.02).fit(X, y)
print(f"{model.n_trees_:,} trees; the one kept scores {model.score(X, y):.3f}")

# %%
# :class:`~fewest.reporting.plots.FrontDisplay`: each point stands for all trees with the same accuracy, leaves and
# mean SEV-T.

fw.plots.FrontDisplay.from_estimator(model).plot()
