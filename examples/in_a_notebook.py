"""A data scientist: a pipeline in the raw columns, who it refuses, and what would have changed that.

Cell by cell in a notebook, or: python examples/in_a_notebook.py
"""

# %% A model, as you have one
from pathlib import Path

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

# %% What decides, and what cases are compared with; somebody answers for the typical case
decision = fw.Decision(model, positive="bad", names={"good": "approved", "bad": "refused"})
references = fw.references.single(decision, X, y).sign_off("Credit Risk")
explainer = fw.Explainer(decision, references, constraints=[fw.Immutable("age", "personal_status_sex")])

# %% The answers are a table
out = explainer.explain(X[:200], alternatives=1000)
print(out.summary())
print(out.loc["APP-00011"])
out.to_csv("answers.csv")

# %% Reasons, and letters for those who can get one
print(reasons(out)[0])
codes = Codes.of(Code(name, "any", f"R{k:02}", name) for k, name in enumerate(X))  # a lender has words of its own
written = [found for _, found in letters(out, codes) if isinstance(found, Letter)]
print(f"{len(written)} letters; the first begins: {written[0].text.splitlines()[0]}")

# %% Did another training change the reasons?
other = make_pipeline(encode, LogisticRegression(C=0.01, max_iter=1000)).fit(X, y)
second = fw.Decision(other, positive="bad", names=decision.names)
retrained = fw.Explainer(second, references, constraints=explainer.constraints)
print(fw.compare(out, retrained.explain(X[:200], alternatives=1000)))

# %% One file for the command line and the service
explainer.save("credit.fewest")
X[:200].rename_axis("application_id").reset_index().to_csv("cases.csv", index=False)
lines = [f"{code.feature},any,{code.code},{code.text}" for code in codes.codes.values()]
Path("codes.csv").write_text("\n".join(["feature,direction,code,text", *lines]) + "\n")
