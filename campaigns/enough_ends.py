"""How much is enough: the ends of intervals on real data, each asked of the model again, and the value just outside.

    FEWEST_DATA=FOLDER python campaigns/enough_ends.py [--ends 100000] [--table NAME ...]

One line per table and model, then the counts. An end is wrong where the model, asked on the raw row, does not change
its outcome with it; a claim is wrong where the next value of the grid inside the range seen changes it as well. Ends
with 6 where anything is wrong, with 7 where there were fewer ends than asked for.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections import Counter
from typing import Any

if __name__ == "__main__":  # one thread, said before anything counts the cores; tests import this among other things
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, "1")

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fewest as fw
from fewest.datasets import load
from fewest.results.enough import Enough, enough_by_row

TABLES = ("fico", "compas", "german", "adult")
MODELS: dict[str, Any] = {
    "LR": LogisticRegression(C=0.1, max_iter=2000),
    "GBDT": GradientBoostingClassifier(n_estimators=50, random_state=0),
    "forest": RandomForestClassifier(20, max_depth=6, random_state=0),
    "MLP": MLPClassifier((16,), early_stopping=True, random_state=0),
}
CASES = 20_000


def explained(table: str, kind: str, cases: int) -> fw.Explanations:
    """Answers towards one reference, and towards clusters of them."""
    data = load(table)
    X, y = data.X, np.asarray(data.y)
    text = list(X.select_dtypes(exclude="number"))
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), text), (StandardScaler(), [name for name in X if name not in text])
    )
    half = np.random.default_rng(0).permutation(len(X))[: min(len(X) // 2, 10_000)]
    decision = fw.Decision(make_pipeline(encode, MODELS[kind]).fit(X.iloc[half], y[half]))
    references = fw.references.single(decision, X, y, centre="median", on_positive="allow")
    return fw.Explainer(decision, references).explain(X.iloc[:cases])


def with_value(frame: pd.DataFrame, column: str, values: list[float]) -> pd.DataFrame:
    """Rows with other numbers in one column, in its own dtype where that holds them."""
    numbers = pd.Series(values, index=frame.index, dtype=float)
    whole = bool((numbers % 1 == 0).all())
    return frame.assign(**{column: numbers.astype(frame[column].dtype if whole else float)})


def check(out: fw.Explanations, parts: list[tuple[Enough, ...]], turned: pd.DataFrame) -> Counter[str]:
    """Ask the model about every end, the values just outside, and every level."""
    decision, counts, found = out.references.decision, Counter[str](), [
        (row, part) for row, own in enumerate(parts) for part in own
    ]  # fmt: skip
    for feature in out.schema.features:
        mine = [(row, part) for row, part in found if part.feature == feature.name]
        numbers = [(row, part) for row, part in mine if part.seen is not None]
        step = 10.0**feature.decimals if feature.kind == "number" else 1.0
        for side, way in (("low", -1), ("high", 1)):
            if not numbers:
                continue
            rows, ends = [row for row, _ in numbers], [float(getattr(part, side)) for _, part in numbers]
            changes = ~decision.refuses(with_value(turned.iloc[rows], feature.columns[0], ends))
            counts["ends"] += len(ends)
            counts["ends that do not change the outcome"] += int((~changes).sum())
            # The next value of the grid: an end that lies between two of them (a value shown) has one, too.
            nearest = np.floor if way > 0 else np.ceil
            beyond = [round(float((nearest(round(end * step, 6)) + way) / step), max(feature.decimals, 0))
                      for end in ends]  # fmt: skip
            seen = [part.seen for _, part in numbers if part.seen is not None]
            inside = [(value >= low) and (value <= high) for value, (low, high) in zip(beyond, seen, strict=True)]
            kept = [k for k, is_in in enumerate(inside) if is_in]
            if kept:
                asked = with_value(turned.iloc[[rows[k] for k in kept]], feature.columns[0], [beyond[k] for k in kept])
                counts["values just outside"] += len(kept)
                counts["values just outside that change it"] += int((~decision.refuses(asked)).sum())
        counts["intervals claimed whole"] += sum(part.whole for _, part in numbers)
        for row, part in mine if feature.kind == "category" else ():
            levels = list(feature.levels)
            asked = turned.iloc[[row] * len(levels)].assign(**{feature.columns[0]: levels})
            asked = asked.astype({feature.columns[0]: turned[feature.columns[0]].dtype})
            fits = ~decision.refuses(asked)
            counts["levels"] += len(levels)
            counts["levels that are wrong"] += sum(
                (level in part.levels) != bool(fit) for level, fit in zip(levels, fits, strict=True)
            )
    return counts


def main() -> int:
    """Until there are enough ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ends", type=int, default=100_000)
    parser.add_argument("--table", action="append", choices=TABLES)
    parser.add_argument("--cases", type=int, default=CASES)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    total: Counter[str] = Counter()
    for table in asked.table or TABLES:
        for kind in MODELS:
            out = explained(table, kind, asked.cases)
            rows = np.flatnonzero(out.answers.moved.any(axis=1))
            turned = out.turned().iloc[rows].reset_index(drop=True)
            parts = enough_by_row(out.references.decision, out.schema, turned, out.answers.moved[rows], out.profiles)
            counts = check(out, parts, turned)
            total += counts
            print(f"{table} {kind}: {len(rows)} answers, {counts['ends']} ends, {dict(counts)}", flush=True)
    print(dict(total))
    wrong = sum(count for name, count in total.items() if "that" in name)
    print(f"{total['ends']:,} ends and {total['levels']:,} levels asked again: {wrong} wrong")
    return 6 if wrong else 7 if total["ends"] < asked.ends else 0


if __name__ == "__main__":
    sys.exit(main())
