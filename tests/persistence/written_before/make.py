"""Writes the files beside it: run once, with the version of fewest whose files must stay readable.

With that version: python make.py. What it writes is opened by tests/persistence/test_written_before.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import fewest as fw
from fewest.runs import explain_files

HERE = Path(__file__).parent


def table(n: int = 160) -> tuple[pd.DataFrame, np.ndarray]:
    """Debts, ages and jobs, and who did not pay."""
    draw = np.random.default_rng(7)
    X = pd.DataFrame(
        {
            "debt": draw.integers(0, 100, n),
            "rate": draw.uniform(0, 1, n).round(2),
            "age": draw.integers(20, 80, n),
            "job": draw.choice(["clerk", "cook", "none"], n),
        }
    )
    risk = X["debt"] / 100 + X["rate"] + 0.5 * (X["job"] == "none") - X["age"] / 160 + draw.normal(scale=0.2, size=n)
    return X, np.where(risk > 0.9, "bad", "good")


def pipeline(final: object) -> object:
    """Raw columns in."""
    encoder = make_column_transformer(
        (StandardScaler(), ["debt", "rate", "age"]), (OneHotEncoder(handle_unknown="ignore"), ["job"])
    )
    return make_pipeline(encoder, final)


def explainers() -> dict[str, fw.Explainer]:
    """One explainer for each kind of file content."""
    X, y = table()
    out = {}
    for name, final in (("linear", LogisticRegression()), ("boosted", GradientBoostingClassifier(n_estimators=20))):
        decision = fw.Decision(pipeline(final).fit(X, y), positive="bad")
        refs = fw.references.clusters(decision, X, y, n_clusters=3, random_state=0)
        rules = fw.Constraints(fw.Immutable("age"), fw.Only("debt", "down"), fw.AtMost(3))
        out[name] = fw.Explainer(decision, refs, constraints=rules, weights={"job": 2.0} if name == "boosted" else None)
    decision = fw.Decision(pipeline(DecisionTreeClassifier(max_depth=3, random_state=0)).fit(X, y), positive="bad")
    density = fw.credibility.mixture(decision, X, y, floor=0.05)
    out["credible"] = fw.Explainer(decision, fw.references.single(decision, X, y), credibility=density)
    return out


def main() -> None:
    """Write explainers, references, run folders, and what they answered."""
    X, _ = table()
    cases = X.iloc[:60]
    cases.to_csv(HERE / "cases.csv", index=False)
    answers = {}
    for name, explainer in explainers().items():
        explainer.save(HERE / f"{name}.fewest")
        explainer.references.save(HERE / f"{name}.references.json")
        explain_files(explainer, HERE / "cases.csv", HERE / f"{name}.run", n_jobs=1, alternatives=3, part_rows=40)
        answers[name] = [
            [answer.status.value, answer.sev, [[c.feature, c.before, c.after] for c in answer.changes]]
            for answer in explainer.explain(cases)
        ]
    (HERE / "answers.json").write_text(json.dumps({"version": fw.__version__, "answers": answers}, indent=1) + "\n")


if __name__ == "__main__":
    main()
