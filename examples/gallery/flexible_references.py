"""
What if the typical case may move a little?
===========================================

The typical case is an average: its exact values matter to nobody. ``flexible(0.1)`` lets each number move by up to a
tenth of the accepted cases' ranks, to where the model scores lower.
"""

from sklearn.linear_model import LogisticRegression

import fewest as fw
from fewest.datasets import load

german = load("german")
X, y = german.X.select_dtypes("number"), german.labels
decision = fw.Decision(LogisticRegression(max_iter=2000).fit(X, y), positive="bad", threshold=0.35)
explainer = fw.Explainer(decision, fw.references.single(decision, X, y))

# %%
# :class:`~fewest.reporting.plots.FlexibilityDisplay` explains all cases once per amount. ``used`` is the share of
# answers that lead to the moved typical case.

display = fw.plots.FlexibilityDisplay.from_explainer(explainer, X, amounts=(0.05, 0.1, 0.2)).plot()
print(display.table[["flexibility", "sev", "used"]].round(3).to_string(index=False))
