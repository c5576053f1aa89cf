"""
How much accuracy for fewer reasons?
====================================

:class:`~fewest.models.training.AllOptSearchCV` raises the weight of the SEV loss step by step and keeps the last stop
whose measures are within a tolerance of the best.
"""

import fewest as fw
from fewest.datasets import load
from fewest.models.training import AllOptClassifier, AllOptSearchCV

german = load("german")
short = AllOptClassifier(warmup_epochs=20, epochs=5, positive="bad", random_state=0)
search = AllOptSearchCV(short, tolerance=0.02).fit(german.X, german.labels)
print(search.front_[["c1", "roc_auc", "accuracy", "mean_sev", "chosen"]].round(3).to_string(index=False))

# %%
# :class:`~fewest.reporting.plots.TrainingFrontDisplay`: the bands are what the tolerance allows, the star is the stop
# that is kept.

fw.plots.TrainingFrontDisplay.from_estimator(search).plot()
