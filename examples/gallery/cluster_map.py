"""
Several typical accepted cases
==============================

One average of everybody accepted may describe nobody. :func:`fewest.references.clusters` gives one typical case per
group.
"""

from sklearn.ensemble import HistGradientBoostingClassifier

import fewest as fw
from fewest.datasets import load

german = load("german")
X, y = german.X.select_dtypes("number"), german.labels
model = HistGradientBoostingClassifier(max_iter=50, random_state=0).fit(X, y)
decision = fw.Decision(model, positive="bad")
references = fw.references.clusters(decision, X, y, n_clusters=3, embedding="identity")
print(references.frame[["duration_months", "credit_amount", "age"]].set_axis(references.names))

# %%
# :class:`~fewest.reporting.plots.ClusterMapDisplay` draws the rows on their two principal axes.

fw.plots.ClusterMapDisplay.from_references(references, X).plot()
