"""
A clinician: which measurements decided?
========================================

A model calls a breast mass malignant or benign by measurements of cell nuclei. For each mass that it calls malignant:
which fewest measurements, had they been those of a typical benign mass, would have led it to call the mass benign?

The data are the Wisconsin diagnostic data that come with scikit-learn: 569 masses. The answers describe the model.
They are not medical advice, and a measurement that decided is not a cause.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import fewest as fw

cancer = load_breast_cancer(as_frame=True)
columns = [name for name in cancer.data if name.startswith("mean ")]
X, y = cancer.data[columns], cancer.target.map({0: "malignant", 1: "benign"})
X.index = [f"mass {row}" for row in range(len(X))]
y.index = X.index
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
model = RandomForestClassifier(30, max_depth=5, random_state=0).fit(X_train, y_train)
print(f"accuracy on masses it has not seen: {model.score(X_test, y_test):.2f}")

# %%
# A cut-off on the safe side
# --------------------------
#
# A missed malignant mass is worse than a second look. At 0.3 the model calls a mass malignant when three trees in ten
# do.

decision = fw.Decision(model, positive="malignant", threshold=0.3)
called = decision.refuses(X_test)
missed = (~called) & (y_test == "malignant").to_numpy()
print(f"{called.sum()} of {len(X_test)} are called malignant, malignant and missed: {missed.sum()}")

# %%
# Typical benign masses
# ---------------------
#
# Benign masses are not all alike: three groups of them, and each case is compared with the nearest. Labels are what
# the reader sees.

schema = fw.Schema.infer(X_train)
for name in columns:
    schema = schema.with_(name, label=name.removeprefix("mean "))
references = fw.references.clusters(decision, X_train, y_train, n_clusters=3, embedding="identity", schema=schema)
references.frame.set_axis(references.names).round(2)

# %%
# Size measures go together
# -------------------------
#
# Radius, perimeter and area of one nucleus cannot change one without the others. They are linked: all three or none.

size = fw.Linked("mean radius", "mean perimeter", "mean area")
explainer = fw.Explainer(decision, references, constraints=[size])
out = explainer.explain(X_test)
print(out.summary())

# %%
# One mass, close to the cut-off.

near = out.loc[min(out.explained, key=lambda answer: answer.score).label]
print(near)
near.plot()

# %%
# Believable answers
# ------------------
#
# A changed mass should look like benign masses do. A floor on the density of benign masses asks for that. Cases then
# need more measurements, or end as ``NOT_CREDIBLE``, which is said and not hidden.

dense = fw.credibility.mixture(decision, X_train, y_train, n_components=2, quantile=0.05, schema=schema)
believable = explainer.with_(credibility=dense).explain(X_test)
print({status: count for status, count in believable.counts().items() if count})
print(f"{out.summary()['mean SEV']:.2f} measurements before, {believable.summary()['mean SEV']:.2f} with the floor")

# %%
fig, ax = plt.subplots(figsize=(7, 4))
answers = {"any answer": out, "believable": believable}
fw.plots.FeatureFrequencyDisplay.from_explanations(answers, most=10).plot(ax)
