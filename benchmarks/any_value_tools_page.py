"""The fewest features over all values, and what suffices, beside other tools: docs/benchmarks/any_value_tools.md.

FEWEST_DATA=../shared/data python benchmarks/any_value_tools_page.py --tool NAME=PYTHON ... [--cases N] [--quick]

NAME is pyxai, oceanpy, pyxai-sufficient or anchors, PYTHON an interpreter of an environment with that tool and with the
scikit-learn and xgboost of this one. What was measured is kept in docs/benchmarks/units/any_value_tools.jsonl, one line
per dataset, model and tool, and measured again only with more cases; without --tool the page is written from there.
--quick prints one line.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import fewest as fw
from any_value_page import DATASETS, MODELS, fitted
from fewest.experiments.benchmarking.measure import timed
from fewest.results.explanation import Status

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "any_value_tools.md"
UNITS = PAGE.parent / "units" / "any_value_tools.jsonl"
RUNNER = Path(__file__).with_name("any_value_tools.py")
FEWEST, SUFFICIENT = ("pyxai", "oceanpy"), ("pyxai-sufficient", "anchors")
TITLES = {"pyxai": "PyXAI", "oceanpy": "oceanpy", "pyxai-sufficient": "PyXAI", "anchors": "Anchors"}


class Setting:
    """A fitted pipeline, the cases it refuses, and an explainer over every value that training rows have."""

    def __init__(self, name: str, kind: str, count: int) -> None:
        self.decision, self.X, self.y, test = fitted(name, kind)
        everyone = np.zeros(len(self.X), dtype=int)  # values of refused cases too: other tools know no accepted ones
        references = fw.references.anyone(self.decision, self.X, everyone, within=(0, 1))
        self.explainer = fw.Explainer(self.decision, references, n_jobs=1, unseen="allow")
        test = references.schema.conform(test, unseen="allow")
        self.cases = test[self.decision.refuses(test)].iloc[:count]
        self.encode, self.final = self.decision.model[:-1], self.decision.model[-1]

    def groups(self) -> tuple[Any, Any]:
        """Feature of each column of the model, and whether the column is a level of a category."""
        names = list(self.explainer.schema.names)
        said = [column.split("__", 1) for column in self.encode.get_feature_names_out()]
        text = [name for name in names if self.X[name].dtype.kind not in "biuf"]
        group, levels = [], []
        for step, column in said:
            is_level = step.startswith("onehot")
            owners = [name for name in text if column.startswith(f"{name}_")] if is_level else [column]
            group.append(names.index(max(owners, key=len)))
            levels.append(is_level)
        return np.array(group), np.array(levels)

    def ask(self, tool: str, python: str, seconds: int) -> dict[str, Any]:
        """The answers of another tool in its own environment."""
        group, levels = self.groups()
        with tempfile.TemporaryDirectory() as folder:
            np.savez(
                Path(folder, "problem.npz"), train=self.encode.transform(self.X), labels=np.asarray(self.y),
                cases=self.encode.transform(self.cases), group=group, levels=levels,
            )  # fmt: skip
            Path(folder, "model.pkl").write_bytes(pickle.dumps(self.final))
            clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
            command = [python, str(RUNNER), tool, folder, str(seconds)]
            subprocess.run(command, check=True, env=clean, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return dict(json.loads(Path(folder, "answers.json").read_text(encoding="utf-8")))


def fewest_unit(setting: Setting, theirs: dict[str, Any]) -> dict[str, Any]:
    """Sizes, whether the model decides otherwise on the row of each answer, and our sizes on the same cases."""
    setting.explainer.explain(setting.cases.iloc[:2])  # compiles
    out, seconds = timed(partial(setting.explainer.explain, setting.cases))
    turned = ~setting.decision.refuses(out.turned())
    group, levels = setting.groups()
    start, sizes, valid, real = setting.encode.transform(setting.cases), [], [], []
    for k, answer in enumerate(theirs["answers"]):
        if answer["row"] is None:
            sizes.append(None), valid.append(False), real.append(False)  # type: ignore[func-returns-value]
            continue
        row = np.array(answer["row"])
        changed = np.unique(group[row != start[k]])
        sizes.append(len(changed))
        valid.append(bool(setting.final.predict(row[None])[0] == 0))
        real.append(all(row[group == feature].sum() == 1 for feature in changed if levels[group == feature].all()))
    return {
        "ours": [int(cost) if np.isfinite(cost) else None for cost in out.answers.cost],
        "our_cpu": seconds, "our_proved": float(out.answers.proved.mean()),
        "our_valid": float(turned[out.answers.status == 0].mean()), "sizes": sizes, "valid": valid, "real": real,
        "proved": [bool(answer["proved"]) for answer in theirs["answers"]],
    }  # fmt: skip


def sufficient_unit(setting: Setting, theirs: dict[str, Any]) -> dict[str, Any]:
    """Sizes of sets that are said to suffice, ours and theirs, and which of both a change of other features breaks."""
    ours, seconds = timed(partial(setting.explainer.sufficient, setting.cases))
    names = np.array(setting.explainer.schema.names)
    claims = [None if answer["features"] is None else names[answer["features"]] for answer in theirs["answers"]]
    return {
        "ours": [len(one.values) for one in ours], "our_cpu": seconds, "our_kinds": [one.kind for one in ours],
        "our_broken": [broken(setting, k, one.features) for k, one in enumerate(ours)],
        "sizes": [None if claim is None else len(claim) for claim in claims],
        "broken": [None if claim is None else broken(setting, k, claim) for k, claim in enumerate(claims)],
    }  # fmt: skip


def broken(setting: Setting, case: int, held: Any) -> bool | None:
    """Whether the model decides otherwise somewhere though the case keeps these values; None: neither shown."""
    free = set(setting.explainer.schema.names) - set(held)
    if not free:
        return False
    attack = setting.explainer.with_(constraints=[fw.Immutable(*held)] if len(held) else [])
    one = setting.cases.iloc[[case]]
    out = attack.explain(one, progress=False)
    if out[0].status == Status.EXPLAINED:
        return not bool(setting.decision.refuses(out.turned())[0])
    return False if out[0].status == Status.UNREACHABLE else None


def measure(name: str, kind: str, tool: str, python: str, count: int, seconds: int) -> dict[str, Any] | None:
    """What is kept of one tool on one model; none where the model refuses nobody."""
    setting = Setting(name, kind, count)
    if len(setting.cases) == 0:
        return None
    theirs = setting.ask(tool, python, seconds)
    make = fewest_unit if tool in FEWEST else sufficient_unit
    errors = sorted({answer["error"] for answer in theirs["answers"] if answer.get("error")})
    return {
        "data": name, "model": kind, "tool": tool, "version": theirs["version"], "asked": count,
        "cases": len(setting.cases), "seconds": seconds,
        "cpu": sum(answer["cpu"] for answer in theirs["answers"]) + theirs["built"], "errors": errors[:3],
        **make(setting, theirs),
    }  # fmt: skip


def _key(unit: dict[str, Any]) -> tuple[str, str, str]:
    return unit["data"], unit["model"], unit["tool"]


def _mean(values: list[Any]) -> str:
    return f"{np.mean(values):.2f}" if len(values) else "-"


def fewest_line(unit: dict[str, Any]) -> list[Any]:
    """One line of the table of fewest changes."""
    n = unit["cases"]
    good = [k for k in range(n) if unit["valid"][k] and unit["real"][k]]
    more = sum(unit["sizes"][k] > unit["ours"][k] for k in good if unit["ours"][k] is not None)
    fewer = sum(unit["ours"][k] is None or unit["sizes"][k] < unit["ours"][k] for k in good)
    return [
        unit["data"], unit["model"], n, _mean([size for size in unit["ours"] if size is not None]),
        f"{1e3 * unit['our_cpu'] / n:.2f}", f"{TITLES[unit['tool']]} {unit['version']}",
        f"{sum(size is not None for size in unit['sizes']) / n:.0%}", f"{sum(unit['proved']) / n:.0%}",
        f"{sum(unit['valid']) / n:.0%}", f"{len(good) / n:.0%}", _mean([unit["sizes"][k] for k in good]), more, fewer,
        f"{1e3 * unit['cpu'] / n:,.0f}", f"{unit['cpu'] / unit['our_cpu']:,.0f}",
    ]  # fmt: skip


def sufficient_line(unit: dict[str, Any]) -> list[Any]:
    """One line of the table of what suffices."""
    n, claimed = unit["cases"], [k for k, size in enumerate(unit["sizes"]) if size is not None]
    said = [unit["broken"][k] for k in claimed if unit["broken"][k] is not None]
    left = len(claimed) - len(said)
    share = f"{np.mean(said):.0%}" if said else "-"
    return [
        unit["data"], unit["model"], n, _mean(unit["ours"]),
        f"{unit['our_kinds'].count('smallest') / n:.0%}", sum(map(bool, unit["our_broken"])),
        f"{1e3 * unit['our_cpu'] / n:,.0f}", f"{TITLES[unit['tool']]} {unit['version']}", f"{len(claimed) / n:.0%}",
        _mean([unit["sizes"][k] for k in claimed]), f"{share} ({left} not decided)" if left else share,
        f"{1e3 * unit['cpu'] / n:,.0f}",
    ]  # fmt: skip


FEWEST_HEAD = (
    "dataset", "model", "cases", "fewest: mean features", "CPU ms per case", "tool", "answered", "said to be proved",
    "valid", "valid and real", "mean features", "more than needed", "fewer", "its CPU ms per case", "ratio",
)  # fmt: skip
SUFFICIENT_HEAD = (
    "dataset", "model", "cases", "fewest: mean features", "proved smallest", "broken", "CPU ms per case", "tool",
    "answered", "mean features", "broken", "its CPU ms per case",
)  # fmt: skip


def _table(head: tuple[str, ...], lines: list[list[Any]]) -> list[str]:
    rows = ["| " + " | ".join(str(part) for part in line) + " |" for line in lines]
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *rows]


def page(units: list[dict[str, Any]]) -> str:
    """The page."""
    place = {name: k for k, name in enumerate((*DATASETS, *MODELS, *FEWEST, *SUFFICIENT))}
    units = sorted(units, key=lambda unit: [place[unit[key]] for key in ("tool", "data", "model")])
    fewest = [unit for unit in units if unit["tool"] in FEWEST]
    sufficient = [unit for unit in units if unit["tool"] in SUFFICIENT]
    limits = sorted({unit["seconds"] for unit in units})
    done = {_key(unit) for unit in units}
    pairs = len(DATASETS) * len(MODELS)
    left = [f"{tool} {pairs - count} of {pairs}" for tool in (*FEWEST, *SUFFICIENT)
            if (count := sum(one[2] == tool for one in done)) < pairs]  # fmt: skip
    errors = sorted({f"{TITLES[unit['tool']]}: {error}" for unit in units for error in unit["errors"]})
    text = [
        "# All values, beside PyXAI, oceanpy and Anchors",
        "",
        "Written by `benchmarks/any_value_tools_page.py`. Each tool ran in an environment of its own, on the models "
        "and the first refused test rows of [the page beside CP-SAT](any_value.md), on one core, up to "
        f"{', '.join(str(limit) for limit in limits)} seconds a case; CPU time is that of the process and of the "
        "solvers it starts, what is built once divided among the cases: with few cases, the fixed cost of a table "
        "is most of ours. Other tools know no accepted cases: any "
        "value may be taken. So `references.anyone` had every value that training rows have, of refused ones too.",
        "",
        "## The fewest changes",
        "",
        "PyXAI: `minimal_contrastive_reason` under a theory of the columns (order of thresholds, levels of one "
        "category). oceanpy: its CP-SAT explainer with norm 0. Both work on the encoded columns and do not ask the "
        "model about their answers. *Valid*: the model's own `predict` decides otherwise on the row of the "
        "answer; *real*: each category that changed has one level there. Where a tool gives thresholds and no "
        "values, the "
        "nearest value of a training row between them was taken. *More than needed* and *fewer* count such answers "
        "that change more or fewer features than ours. PyXAI counts columns, leaves XGBoost's base score out, and, "
        "where columns are stated to be the levels of one category, takes all of them off in boosted trees, so "
        "that there they "
        "were stated one by one, and the level put on was taken; it reads a forest as a vote of its trees, where "
        "scikit-learn takes the mean of their probabilities.",
        "",
        *_table(FEWEST_HEAD, [fewest_line(unit) for unit in fewest]),
        "",
        _sum_of(fewest),
        "",
        "## What alone suffices",
        "",
        "`Explainer.sufficient` beside PyXAI (`sufficient_reason` of forests, `tree_specific_reason` of boosted trees) "
        "and Anchors (precision 0.95), as sets of features. Each claim was attacked: the features of the set keep the "
        "case's own values, and the search over all values of the others looks for a row on which the model decides "
        "otherwise. *Broken*: there is one, and the model's own word confirms it; else it is proved that there is "
        "none, or neither was shown within the budget (*not decided*). Anchors promise a share of drawn rows, not "
        "all of them: a broken one is not a false one, but it is not sufficient.",
        "",
        *_table(SUFFICIENT_HEAD, [sufficient_line(unit) for unit in sufficient]),
        "",
    ]
    if errors:
        text += [
            "Cases without an answer because the tool raised: " + "; ".join(f"`{error}`" for error in errors) + ".",
            "",
        ]
    if left:
        text += [f"Pairs of dataset and model not measured: {', '.join(left)}; one of them refuses nobody.", ""]
    return "\n".join(text)


def _sum_of(units: list[dict[str, Any]]) -> str:
    """Where valid answers need fewer features than ours over the same values: that would be a fault of ours."""
    lines = [fewest_line(unit) for unit in units]
    return (
        f"In {sum(line[2] for line in lines)} cases, valid answers of other tools have more features than needed "
        f"{sum(line[11] for line in lines)} times, and fewer {sum(line[12] for line in lines)} times."
    )


def main(argv: list[str] | None = None) -> int:
    """Measure what is not measured yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", action="append", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--deep", type=int, default=200, help="cases of models of depth 6")
    parser.add_argument("--seconds", type=int, default=20, help="for one case")
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--quick", action="store_true", help="one line, printed and not kept")
    asked = parser.parse_args(argv)
    known = UNITS.read_text(encoding="utf-8").splitlines() if UNITS.exists() else []
    units = {_key(unit): unit for unit in map(json.loads, known)}  # of what was measured twice, the last
    for tool, python in (pair.split("=", 1) for pair in asked.tool):
        for name in asked.datasets[: 1 if asked.quick else None]:
            for kind in asked.models[: 1 if asked.quick else None]:
                count = asked.deep if kind.endswith("6") else asked.cases
                if units.get((name, kind, tool), {"asked": 0})["asked"] >= count and not asked.quick:
                    continue
                unit = measure(name, kind, tool, python, count, asked.seconds)
                if unit is None:
                    continue
                print(*(fewest_line if tool in FEWEST else sufficient_line)(unit), unit["errors"], flush=True)
                if not asked.quick:
                    units[_key(unit)] = unit
                    UNITS.write_text("".join(f"{json.dumps(one)}\n" for one in units.values()), encoding="utf-8")
    if not asked.quick:
        PAGE.write_text(page(list(units.values())), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
