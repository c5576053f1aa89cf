"""
How little is enough?
=====================

An answer names the values of the typical accepted case. Often less would do: ``least`` keeps the features of each
answer and moves their numbers no further than needed.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import GradientBoostingClassifier

import fewest as fw
from fewest.datasets import load

german = load("german")
X, y = german.X.select_dtypes("number"), german.labels
model = GradientBoostingClassifier(n_estimators=50, random_state=0).fit(X, y)
decision = fw.Decision(model, positive="bad", threshold=0.4)
explainer = fw.Explainer(decision, fw.references.single(decision, X, y))
out = explainer.explain(X)
little = explainer.least(out)
row = next(i for i, answer in enumerate(out) if answer.sev == 2)
print(out[row])
print(little[row])

# %%
# :class:`~fewest.reporting.plots.ScoreLineDisplay` in axes of one's own: the typical values above, the least below.

figure, axes = plt.subplots(2, 1, figsize=(7, 5), sharex=True)
for ax, answers in zip(axes, (out, little), strict=True):
    fw.plots.ScoreLineDisplay.from_explanation(answers[row]).plot(ax)
