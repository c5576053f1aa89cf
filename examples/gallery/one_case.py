"""
What would have changed this decision?
======================================

The score of one refused case, fact by fact, to beyond the cut-off. Bars to the left lower the risk.
"""

from sklearn.ensemble import HistGradientBoostingClassifier

import fewest as fw
from fewest.datasets import load

german = load("german", categories=True)
X, y = german.X, german.labels
model = HistGradientBoostingClassifier(max_iter=50, random_state=0).fit(X, y)
out = fw.explain(model, X, train=(X, y), positive="bad", names={"good": "approved", "bad": "refused"})
print(out[618])

# %%
# The two facts in the picture are the fewest that change the outcome: no single one does, and the model itself scored
# each bar.

out[618].plot()
