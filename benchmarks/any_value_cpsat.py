"""The fewest changes over all values with CP-SAT: reads what any_value_page.py states, writes one line per case.

PYTHON-WITH-ORTOOLS benchmarks/any_value_cpsat.py PROBLEM.npz ANSWERS.json SECONDS
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

UNITS = 10**7  # of a score, in whole numbers


def state(given: Any, case: int) -> tuple[cp_model.CpModel, list[Any]]:
    """One leaf of each tree, the values of changed features inside it, the sum of leaves below the threshold."""
    model, values = cp_model.CpModel(), given["values"]
    changed = [model.NewBoolVar(f"changed {f}") for f in range(len(values))]
    value = [model.NewIntVar(0, max(int(m) - 1, 0), f"value {f}") for f, m in enumerate(values)]
    for f, m in enumerate(values):
        if m == 0:
            model.Add(changed[f] == 0)
    leaf = [model.NewBoolVar(f"leaf {k}") for k in range(len(given["worth"]))]
    for first, last in zip(given["tree"][:-1], given["tree"][1:], strict=True):
        model.AddExactlyOne(leaf[first:last])
    for slot, (k, f) in enumerate(zip(given["slot_leaf"], given["slot_feature"], strict=True)):
        runs = given["runs"][given["run"][slot] : given["run"][slot + 1]]
        if given["outside"][case, slot]:
            model.AddImplication(leaf[k], changed[f])
        inside = cp_model.Domain.FromIntervals([[int(a), int(b)] for a, b in runs])
        model.AddLinearExpressionInDomain(value[f], inside).OnlyEnforceIf([leaf[k], changed[f]])
    whole = [round(float(v) * UNITS) for v in given["worth"]]
    model.Add(sum(v * one for v, one in zip(whole, leaf, strict=True)) < round(float(given["cut"]) * UNITS))
    model.Minimize(sum(changed))
    return model, changed


def main(problem: str, answers: str, seconds: str) -> None:
    """Solve every case, on one thread."""
    given = dict(np.load(problem))
    out = []
    for case in range(len(given["outside"])):
        began = time.process_time()
        model, changed = state(given, case)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers, solver.parameters.max_time_in_seconds = 1, float(seconds)
        status = solver.Solve(model)
        found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        size = sum(solver.Value(one) for one in changed) if found else None
        proved = status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
        out.append({"size": size, "proved": proved, "cpu": time.process_time() - began})
    with open(answers, "w", encoding="utf-8") as file:
        json.dump(out, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
