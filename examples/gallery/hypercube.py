"""
Every way from a case to the typical one
========================================

Each mark is the case with some features set to the values of the typical accepted case. Squares are refused, circles
accepted.
"""

from sklearn.ensemble import HistGradientBoostingClassifier

import fewest as fw
from fewest.datasets import load

german = load("german", categories=True)
X, y = german.X, german.labels
model = HistGradientBoostingClassifier(max_iter=50, random_state=0).fit(X, y)
out = fw.explain(model, X, train=(X, y), positive="bad")
print(out[618])

# %%
# Without ``features`` the picture shows those of the answer. With more of them (up to five) one sees that no single
# one is enough, and which other sets are.

features = ["checking_status", "housing", "duration_months"]
fw.plots.HypercubeDisplay.from_explanations(out, 618, features=features).plot()
