"""
Fewer features, or smaller changes?
===================================

Comparing with the nearest of several typical cases makes changes smaller. What does that cost in features?
"""

from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

import fewest as fw
from fewest.datasets import load

german = load("german")
X, y = german.X.select_dtypes("number"), german.labels
models = {
    "boosted trees": HistGradientBoostingClassifier(max_iter=30, random_state=0),
    "forest": RandomForestClassifier(20, max_depth=5, random_state=0),
}
answers = {}
for name, model in models.items():
    decision = fw.Decision(model.fit(X, y), positive="bad", threshold=0.4)
    ways = {
        "one": fw.references.single(decision, X, y),
        "clusters": fw.references.clusters(decision, X, y, n_clusters=4, embedding="identity"),
        "near threshold": fw.references.near_threshold(decision, X, y),
    }
    answers[name] = {way: fw.Explainer(decision, references).explain(X) for way, references in ways.items()}

# %%
# :class:`~fewest.reporting.plots.TradeOffDisplay`: a marker per model, an arrow from one way to the next.

display = fw.plots.TradeOffDisplay.from_explanations(answers).plot()
print(display.table.round(2).to_string(index=False))
