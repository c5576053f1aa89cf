"""
How believable should an answer be?
===================================

A credibility floor keeps answers where accepted cases are. A higher floor asks for more features, and leaves more
cases without an answer.
"""

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fewest as fw
from fewest.datasets import load

german = load("german")
X, y = german.X.select_dtypes("number"), german.labels
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
decision = fw.Decision(model, positive="bad", threshold=0.4)
density = fw.credibility.mixture(decision, X, y, n_components=3)
explainer = fw.Explainer(decision, fw.references.single(decision, X, y), credibility=density)

# %%
# :class:`~fewest.reporting.plots.FloorDisplay` tries several floors. Each is a quantile of the densities of accepted
# cases.

display = fw.plots.FloorDisplay.from_explainer(explainer, X, quantiles=(0.0, 0.05, 0.25, 0.5)).plot()
print(display.table.round(2).to_string(index=False))
