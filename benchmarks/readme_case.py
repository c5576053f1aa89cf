"""The README's case: its picture, and what shap's first four features, DiCE and fewest say about it.

python benchmarks/readme_case.py            draws docs/img/sentence.png
python benchmarks/readme_case.py --table    prints the table too; DiCE needs dice-ml, in an environment of its own
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

import fewest as fw
from fewest.datasets import load
from fewest.experiments.peers import DiCE
from fewest.experiments.peers.taking_values import Attribution, TopSHAP

matplotlib.use("agg")
ROW, SEEDS = 618, range(10)
PICTURE = Path(__file__).parents[1] / "docs" / "img" / "sentence.png"


def main() -> None:
    german = load("german", categories=True)
    X, y = german.X, german.labels
    model = HistGradientBoostingClassifier(max_iter=50, random_state=0).fit(X, y)
    out = fw.explain(model, X, train=(X, y), positive="bad")
    figure = out[ROW].plot().figure_
    figure.set_size_inches(8, 2.6)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)
    if "--table" in sys.argv:
        print("\n".join(table(fw.Decision(model, positive="bad"), X, y, out)))


def table(decision: fw.Decision, X: pd.DataFrame, y: np.ndarray, out: fw.Explanations) -> list[str]:
    """One line per tool: what it changes, and what the model then says."""
    case = X.iloc[[ROW]]
    found = [DiCE(random_state=seed).fit(decision, X, y).explain(case) for seed in SEEDS]
    anyone = fw.Explainer(decision, fw.references.anyone(decision, X, y)).explain(case)
    sizes = sorted(int(part.changed.sum()) for part in found)
    rows = {
        "shap: the four features that weigh most, set to the typical accepted case's values": heaviest(decision, X, y),
        f"DiCE (random search): the first of ten draws, which change {sizes[0]} or {sizes[-1]}": found[0].frame,
        "fewest: towards the typical accepted case, one is proved not to be enough": out.turned().iloc[[ROW]],
        "fewest with `references.anyone`: towards any value that accepted cases have": anyone.turned(),
    }
    lines = ["| tool | what it changes | bad |", "|---|---|---|"]
    lines.append(f"| the case as it is | | {float(decision.score(case)[0]):.0%} |")
    for tool, row in rows.items():
        values = {name: (case[name].iloc[0], row[name].iloc[0]) for name in X}
        facts = [f"{name}: {before} → {after}" for name, (before, after) in values.items() if before != after]
        lines.append(f"| {tool} | {len(facts)}: {'; '.join(facts)} | {float(decision.score(row)[0]):.0%} |")
    return lines


def heaviest(decision: fw.Decision, X: pd.DataFrame, y: np.ndarray) -> pd.DataFrame:
    """The case with its four features of the largest Shapley values set to the typical accepted case's values."""
    shap, case = Attribution.read(TopSHAP(), decision, X, y), X.iloc[[ROW]].copy()
    for place in np.argsort(-shap.values(shap.schema.conform(case))[0], kind="stable")[:4]:
        name = shap.schema.names[place]
        case[name] = shap.goal[name].astype(case[name].dtype).to_numpy()
    return case


if __name__ == "__main__":
    main()
