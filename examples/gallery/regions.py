"""
Where one fact is enough, and where two are needed
==================================================

A map over two numbers. The star is the typical accepted case: from the light grey one step parallel to an axis leads
into the accepted region, from the dark grey it takes both.
"""

from sklearn.linear_model import LogisticRegression

import fewest as fw
from fewest.datasets import load

german = load("german")
X, y = german.X[["duration_months", "credit_amount"]], german.labels
decision = fw.Decision(LogisticRegression(max_iter=1000).fit(X, y), positive="bad", threshold=0.3)
explainer = fw.Explainer(decision, fw.references.single(decision, X, y))
display = fw.plots.RegionDisplay.from_explainer(explainer, X)
print(display.table["region"].value_counts())

# %%
display.plot()
