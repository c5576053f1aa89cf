"""
How many facts, and which?
==========================

All refused cases at a glance: how many features must change, and which ones come up.
"""

from sklearn.ensemble import HistGradientBoostingClassifier

import fewest as fw
from fewest.datasets import load

german = load("german", categories=True)
X, y = german.X, german.labels
model = HistGradientBoostingClassifier(max_iter=50, random_state=0).fit(X, y)
out = fw.explain(model, X, train=(X, y), positive="bad")
print(out.summary())

# %%
# Most refusals depend on one fact. The numbers at the bars are cases.

figure = out.plot()
