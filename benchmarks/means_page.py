"""How many features and how far: fewest in five ways beside NICE, DiCE and Wachter, into docs/benchmarks/means.md.

FEWEST_DATA=../shared/data python benchmarks/means_page.py [--data NAME ...] [--cases N] [--lines FILE]

--lines keeps what was measured, one line per dataset and model, and is gone on with. The lines of a peer are its own
answers, and the smallest part of each that is enough (`references.paired`). DiCE needs dice-ml.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fewest as fw
from fewest.errors import FewestError
from fewest.experiments import peers
from fewest.experiments.paper.data import load_split
from fewest.experiments.paper.models import clusters_of, fit
from fewest.experiments.peers import Counterfactuals, turns_alone

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "means.md"
UNITS = PAGE.parent / "units" / "means.jsonl"
DATASETS, KINDS = ("compas", "german", "adult", "headline", "fico"), ("L2LR", "GBDT")
OURS = ("single", "clusters", "accepted", "anyone", "anyone + least")
WITHIN = 0.01  # means that differ by less are the same


def ways(decision: fw.Decision, X: pd.DataFrame, y: Any, cases: pd.DataFrame, data: str) -> Iterator[tuple[str, Any]]:
    """Names and answers: those of fewest, then those of others, as they are and cut down."""
    count, m = clusters_of(data, None)
    refs = {
        "single": fw.references.single(decision, X, y, on_positive="allow"),
        "clusters": fw.references.clusters(decision, X, y, n_clusters=count, m=m),
        "accepted": fw.references.accepted(decision, X, y),
        "anyone": fw.references.anyone(decision, X, y),
    }
    for name, own in refs.items():
        explainer = fw.Explainer(decision, own, n_jobs=1, unseen="allow")
        out = explainer.explain(cases)
        yield name, rows_of(out)
        if name == "anyone":
            yield "anyone + least", rows_of(explainer.least(out))
    for peer in (peers.NICE(), peers.DiCE(), peers.Wachter()):
        try:
            theirs = peer.fit(decision, X, y).explain(cases)
        except (ImportError, FewestError) as error:
            print(f"{data}: {peer.name} is left out: {error}", file=sys.stderr)
            continue
        yield peer.name, theirs
        found = cases.index[theirs.found]
        if len(found):
            proposed = theirs.frame.set_axis(cases.index).loc[found]
            pairs = fw.references.paired(decision, proposed, X=X)
            yield f"{peer.name}, cut down", rows_of(fw.Explainer(decision, pairs, n_jobs=1, unseen="allow").explain(
                cases.loc[found]))  # fmt: skip


def rows_of(out: fw.Explanations) -> Counterfactuals:
    """Answers as rows."""
    return Counterfactuals(out.schema, out.frame, out.turned(), np.asarray(out.answers.moved.any(axis=1)))


def measure(data: str, kind: str, count: int) -> list[list[Any]]:
    """Way, cases, share valid, mean features and mean largest step in standard deviations, over valid answers."""
    rows = load_split(data, 0)
    X, y = rows.X_train, rows.y_train
    decision = fw.Decision(fit(kind, data, X, y, False), positive=1)
    cases = rows.X_test[decision.refuses(rows.X_test)].iloc[:count]
    lines: list[list[Any]] = []
    for name, out in ways(decision, X, y, cases, data):
        valid = out.found & turns_alone(decision, out.frame)
        means = [float(out.changed[valid].sum(axis=1).mean()), float(out.l_inf[valid].mean())] if valid.any() else []
        lines.append([name, len(cases), float(valid.sum() / len(cases)), *means])
    return lines


def better(line: list[Any], than: list[Any]) -> bool:
    """Whether a way that is valid for as many cases needs fewer features and smaller steps."""
    return line[2] >= than[2] and line[3] < than[3] - WITHIN and line[4] < than[4] - WITHIN


def beaten(found: dict[str, list[list[Any]]]) -> str:
    """Which ways of fewest another tool, as it is, is better than in both, in how many tables."""
    counts = []
    for way in OURS:
        tables = 0
        for lines in found.values():
            own = next(line for line in lines if line[0] == way)
            theirs = [line for line in lines if line[0] not in OURS and "cut down" not in line[0] and len(line) > 3]
            tables += any(better(other, own) for other in theirs)
        counts.append(f"{way} {tables}")
    return f"Tables, of {len(found)}, in which another tool is better in both: {', '.join(counts)}."


def page(found: dict[str, list[list[Any]]], count: int) -> str:
    """The page."""
    text = [
        "# How many features, and how far",
        "",
        f"Written by `benchmarks/means_page.py`: split 0, the first {count} test rows that the model decides against. "
        "Every answer was scored again by the model, alone; means are over valid answers. The largest step is that of "
        "numbers, in standard deviations of the training rows. *cut down*: the smallest part of its own changes "
        "that is enough (`references.paired`). Fewer features and smaller steps pull against each other: the last "
        "column names the ways that are better in both (by more than "
        f"{WITHIN}) and valid for as many cases.",
        "",
        beaten(found),
    ]
    for name, lines in found.items():
        text += ["", f"## {name}", "", "| way | cases | valid | mean features | mean largest step | better in both |",
                 "|---|---|---|---|---|---|"]  # fmt: skip
        for line in lines:
            rivals = [other[0] for other in lines if len(line) > 3 and len(other) > 3 and better(other, line)]
            means = [f"{value:.2f}" for value in line[3:]] or ["-", "-"]
            text.append(f"| {line[0]} | {line[1]} | {line[2]:.0%} | {' | '.join(means)} | {', '.join(rivals) or '-'} |")
    return "\n".join([*text, ""])


def main(argv: list[str] | None = None) -> int:
    """Measure what is not in the file of lines yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(DATASETS), choices=DATASETS)
    parser.add_argument("--models", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--lines", type=Path, default=UNITS)
    asked = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    for data in asked.data:
        for kind in asked.models:
            if f"{data}, {kind}" not in read(asked.lines):
                lines = measure(data, kind, asked.cases)
                with asked.lines.open("a", encoding="utf-8") as sink:
                    sink.write(json.dumps([f"{data}, {kind}", lines]) + "\n")
    known = read(asked.lines)
    names = [f"{data}, {kind}" for data in DATASETS for kind in KINDS]
    PAGE.write_text(page({name: known[name] for name in names if name in known}, asked.cases), encoding="utf-8")
    return 0


def read(path: Path) -> dict[str, list[list[Any]]]:
    """What was measured before."""
    return dict(map(json.loads, path.read_text(encoding="utf-8").splitlines())) if path.exists() else {}


if __name__ == "__main__":
    sys.exit(main())
