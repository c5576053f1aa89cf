"""
A lender: from a credit model to letters
========================================

You have a credit model and a table of applications. At the end there are reasons for every refusal, letters for those
who can get one, a check by group, and one file for colleagues who do not write Python.

The data are German Credit, which is in the package: 1,000 loans, 20 columns, some of them text.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fewest as fw
from fewest.datasets import load
from fewest.reporting import Code, Codes, Letter, letters, reasons

german = load("german")
X = german.X.set_axis([f"APP-{row:05}" for row in range(len(german.X))])
y = german.labels
encode = make_column_transformer(
    (OneHotEncoder(), make_column_selector(dtype_exclude="number")),
    (StandardScaler(), make_column_selector(dtype_include="number")),
)
model = make_pipeline(encode, LogisticRegression(C=0.1, max_iter=1000)).fit(X, y)
X[["checking_status", "duration_months", "credit_amount", "purpose"]].head(3)

# %%
# What decides
# ------------
#
# The model, the outcome to explain, and what people call the two outcomes.

decision = fw.Decision(model, positive="bad", names={"good": "approved", "bad": "refused"})
print(f"{decision.refuses(X).mean():.0%} are refused")

# %%
# Compared with whose values?
# ---------------------------
#
# With the typical approved application: means of numbers, most frequent levels of text. Somebody signs for that
# choice; without a signature no letter is written. Age, sex and origin may not be part of an answer.

references = fw.references.single(decision, X, y).sign_off("Credit Risk")
held = fw.Immutable("age", "personal_status_sex", "foreign_worker")
explainer = fw.Explainer(decision, references, constraints=[held])
references.frame.T.rename(columns={0: "typical approved application"}).head(6)

# %%
# Who was refused, and why
# ------------------------

out = explainer.explain(X, alternatives=1000)
print(out.summary())
print()
print(out.loc["APP-00011"])

# %%
# In a notebook an answer shows itself as a card: its sentence, what was proved, and every fact.

out.loc["APP-00011"]

# %%
# As a picture: how the changed facts carry the score over the cut-off.

out.loc["APP-00011"].plot()

# %%
# Reasons and letters
# -------------------
#
# A decision has several smallest sets of facts. Reasons are made of all of them. The words in a letter are the
# lender's own: one code for each feature, here made of the column names.

print(reasons(out)[0])

# %%
codes = Codes.of(Code(name, "any", f"R{k:02}", name.replace("_", " ").capitalize()) for k, name in enumerate(X))
written = {case: found for case, found in letters(out, codes) if isinstance(found, Letter)}
print(f"{len(written)} letters for {len(out.explained)} refusals")
print(next(iter(written.values())).text)

# %%
# Is one group asked for more?
# ----------------------------
#
# How many features have to change, by group, with intervals. A difference here is a question to ask, not an answer.

young = X["age"].le(25).map({True: "25 or younger", False: "older"})
fw.metrics.parity(out, young).round(2)

# %%
# For colleagues
# --------------
#
# One file that is safe to open. ``fewest explain cases.csv --model credit.fewest``, ``fewest serve credit.fewest``
# and ``fw.load("credit.fewest")`` read it.

with TemporaryDirectory() as folder:
    explainer.save(Path(folder) / "credit.fewest")
    again = fw.load(Path(folder) / "credit.fewest")
    print(str(again.explain(X[:20])[11]) == str(explainer.explain(X[:20])[11]))
