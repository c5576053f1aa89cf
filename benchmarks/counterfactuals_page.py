"""Write docs/benchmarks/counterfactuals.md: SEV beside its peers, which dominates which, and how much faster it is.

fewest paper table counterfactuals --splits 10 --out DIR; python benchmarks/counterfactuals_page.py DIR
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import product
from math import nan
from pathlib import Path
from typing import Any

import pandas as pd

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "counterfactuals.md"
SEV = ["SEV1", "SEV-cluster paper", "SEV-cluster", "sparsest"]  # the second is the paper's procedure
FEWER, MORE = ["features", "l_inf"], ["valid", "sane_log_likelihood"]
SHOWN = {"features": 2, "l_inf": 2, "sane_log_likelihood": 1, "sane_log_likelihood_median": 1}


def main(folder: str) -> None:
    splits = read(Path(folder, "counterfactuals.jsonl"))
    means = splits.groupby(["dataset", "model", "method"], sort=False).mean()
    parts = [
        "# SEV beside other counterfactual methods\n",
        "Written by `benchmarks/counterfactuals_page.py` from what `fewest paper table counterfactuals` measured; the "
        "figures themselves are in [the table](paper/counterfactuals.md). What the methods are: "
        "[peers](../methods/peers.md).\n",
        "![Counterfactual methods](paper/figures/counterfactual_scatter.svg)\n",
        "## Which method dominates which\n",
        "A method dominates another when it changes no more features, is no further, valid as often, and at least as "
        "likely (mean log-likelihood of the regularised mixture). Means are over each method's own valid answers, then "
        f"over {splits.groupby(['dataset', 'model', 'method']).size().max()} splits. Peers that dominate a variant of "
        "SEV:\n",
        *(rivals(means, splits) or ["- none"]),
        "\nVariants of SEV that dominate a peer:\n",
        *(beaten(means) or ["- none"]),
        "\n## DiCE and the sparsest reference\n",
        "DiCE changes few features by large jumps. *sparsest* compares a case with many accepted references, those "
        "just accepted among them:\n",
        *beside(means, ["DiCE", "SEV-cluster", "sparsest"]),
        "\n## Validity\n",
        *validity(means),
        "\n## How many times faster SEV is\n",
        "CPU time per case of the peer over that of each variant of SEV.\n",
        *speed(means),
        "",
    ]
    PAGE.write_text("\n".join(parts), encoding="utf-8")


def read(path: Path) -> pd.DataFrame:
    """Figures of each dataset, split, model and method."""
    rows: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        unit = json.loads(line)
        for record in unit["records"]:
            model, method = record["method"].split(" ", 1)
            key = {"dataset": unit["dataset"], "model": model, "method": method, "split": unit["split"]}
            rows.append({**key, **record["figures"]})
    return pd.DataFrame(rows).set_index(["dataset", "model", "method", "split"]).sort_index()


def subjects(means: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Name of each dataset and model, and the figures of its methods."""
    for (dataset, model), methods in means.groupby(["dataset", "model"]):
        yield f"{dataset}, {model}", methods.droplevel([0, 1])


def _variants(methods: pd.DataFrame) -> list[str]:
    """The lines of SEV that were measured."""
    return [name for name in SEV if name in methods.index]


def dominates(one: pd.Series[Any], other: pd.Series[Any]) -> bool:
    return bool((one[FEWER] <= other[FEWER]).all() and (one[MORE] >= other[MORE]).all())


def rivals(means: pd.DataFrame, splits: pd.DataFrame) -> list[str]:
    """Peers that dominate a variant of SEV, and on how many splits."""
    out = []
    for subject, methods in subjects(means):
        dataset, model = subject.split(", ")
        each = splits.xs((dataset, model))
        for peer, sev in product(methods.index.difference(SEV, sort=False), _variants(methods)):
            one, other = methods.loc[peer], methods.loc[sev]
            if dominates(one, other):
                pairs = zip(each.loc[peer].iterrows(), each.loc[sev].iterrows(), strict=True)
                count = sum(dominates(a, b) for (_, a), (_, b) in pairs)
                figures = ", ".join(f"{name} {one[name]:.{d}f} to {other[name]:.{d}f}" for name, d in SHOWN.items())
                of = f"on {count} of {len(each.loc[sev])} splits"
                out.append(f"- {subject}: {peer} dominates {sev} ({figures}), {of}")
    return out


def beaten(means: pd.DataFrame) -> list[str]:
    """The peers that each variant of SEV dominates."""
    out = []
    for name, methods in subjects(means):
        for sev in _variants(methods):
            peers = methods.index.difference(SEV, sort=False)
            names = [peer for peer in peers if dominates(methods.loc[sev], methods.loc[peer])]
            if names:
                out.append(f"- {name}: {sev} dominates {', '.join(names)}")
    return out


def beside(means: pd.DataFrame, chosen: list[str]) -> list[str]:
    """Features changed and distance of some methods."""
    rows = ["| dataset, model | " + " | ".join(f"{one}: features | l_inf" for one in chosen) + " |"]
    rows.append("|---|" + "---|---|" * len(chosen))
    for name, methods in subjects(means):
        if set(chosen) <= set(methods.index):
            cells = (f"{methods['features'][one]:.2f} | {methods['l_inf'][one]:.2f}" for one in chosen)
            rows.append(f"| {name} | {' | '.join(cells)} |")
    return rows


def validity(means: pd.DataFrame) -> list[str]:
    """Methods some of whose answers do not turn the model, or that give none."""
    lines = [
        f"- {name}: {method} {100 * share:.1f} %"
        for name, methods in subjects(means)
        for method, share in methods["valid"].items()
        if share < 1
    ]
    sev = means[means.index.get_level_values("method").isin(SEV)]
    said = f"Of the cases explained by a variant of SEV, the least share valid is {100 * sev['valid'].min():.1f} %."
    return [said + " All answers are scored again by the model, alone. Methods below 100 %:\n", *(lines or ["- none"])]


def speed(means: pd.DataFrame) -> list[str]:
    rows = [f"| dataset, model | peer | {' | '.join(SEV)} |", "|---|---|" + "---|" * len(SEV)]
    for name, methods in subjects(means):
        spent = methods["milliseconds"]
        rows += [
            f"| {name} | {peer} | {' | '.join(f'{spent[peer] / spent.get(sev, nan):.1f}' for sev in SEV)} |"
            for peer in spent.index.difference(SEV, sort=False)
        ]
    return rows


if __name__ == "__main__":
    main(sys.argv[1])
