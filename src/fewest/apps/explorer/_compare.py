"""Two runs side by side: what became of the same cases, and above all whose outcome is another now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fewest.results.drawing import percent
from fewest.results.explanation import Status
from fewest.runs.run import Run

KEPT = ["row", "hash", "status", "sev", "score", "l_inf", "log_density"]
TURNED = ["row", "score", "other_score", "refused_now"]
LISTED = 200
LARGEST = 6


@dataclass(frozen=True)
class RunComparison:
    """What two runs say of the same cases: how many both have, matched by what, and how many only one has.

    ``moves`` counts cases by features changed in the first run (rows) and the second (columns), under the headings
    ``sizes``; ``turned`` lists the first of the cases with another outcome (``row``, ``score``, ``other_score``,
    ``refused_now``): ``refused`` only in the second run, or ``accepted`` only there.
    """

    matched: int
    by: str
    only: tuple[int, int]
    figures: tuple[tuple[str, str, str], ...]
    sizes: tuple[str, ...]
    moves: tuple[tuple[int, ...], ...]
    turned: tuple[Any, ...]
    refused: int
    accepted: int

    @property
    def sentence(self) -> str:
        """The whole comparison in one sentence."""
        changed = self.refused + self.accepted
        if not self.matched:
            return "The two runs have no case in common: nothing can be compared one by one."
        if not changed:
            return f"All {self.matched:,} cases in common have the same outcome."
        return (
            f"{changed:,} of {self.matched:,} cases have another outcome: {self.refused:,} are refused only in "
            f"the second run, {self.accepted:,} only in the first."
        )


def compare(first: Run, second: Run) -> RunComparison:
    """Compare two runs case by case.

    Cases of the same data are matched by their number; else by what is in them, where that is unique.
    """
    ours, theirs = (_read(run) for run in (first, second))
    same_data = first.manifest["data"]["sha256"] == second.manifest["data"]["sha256"]
    key = "row" if same_data else "hash"
    if not same_data:
        ours, theirs = (side.drop_duplicates("hash", keep=False) for side in (ours, theirs))
    both = ours.merge(theirs, on=key, suffixes=("_a", "_b"))
    if same_data:
        both["row_a"] = both["row_b"] = both["row"]
    against = [both[f"status_{side}"] != Status.ALREADY_NEGATIVE.value for side in "ab"]
    changed = both[against[0] != against[1]]
    refused = (against[1] & ~against[0]).sum()
    sizes, moves = _moves(both)
    figures = zip(own_figures(first).items(), own_figures(second).values(), strict=True)
    turned = changed[:LISTED].assign(refused_now=changed["status_b"] != Status.ALREADY_NEGATIVE.value)
    listed = turned[["row_a", "score_a", "score_b", "refused_now"]].set_axis(TURNED, axis=1)
    return RunComparison(
        matched=len(both),
        by="their row in the same data" if same_data else "what is in them: the two runs read different files",
        only=(first.rows - len(both), second.rows - len(both)),
        figures=tuple((name, ours, theirs) for (name, ours), theirs in figures),
        sizes=sizes,
        moves=moves,
        turned=tuple(listed.itertuples(index=False, name="TurnedCase")),
        refused=int(refused),
        accepted=len(changed) - int(refused),
    )


def called(first: Run, second: Run) -> tuple[tuple[str, str], tuple[str, str]]:
    """What two runs are called: the end of each folder's path that tells it from the other, and its title."""
    ours, theirs = (run.path.resolve().parts for run in (first, second))
    short = next((k for k in range(1, min(len(ours), len(theirs))) if ours[-k] != theirs[-k]), 1)
    titles = (run.about.title for run in (first, second))
    folders = ("/".join(parts[-short:]) for parts in (ours, theirs))
    return tuple(zip(folders, titles, strict=True))  # type: ignore[return-value]


def _read(run: Run) -> pd.DataFrame:
    """The few columns that are compared, part by part: the rest of a large run does not stay in memory."""
    return pd.concat(list(run.tables(KEPT)), ignore_index=True)


def _moves(both: pd.DataFrame) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    """Cases by what was needed before and after; sizes from ``LARGEST`` on are one, what has no SEV is another."""
    sides = [_classes(both, side) for side in "ab"]
    most = int(max((side[side < LARGEST + 1].max(initial=0) for side in sides), default=0))
    shown = [0, *range(1, most + 1), LARGEST + 1]
    table = np.zeros((LARGEST + 2, LARGEST + 2), dtype=np.int64)
    np.add.at(table, (sides[0], sides[1]), 1)
    names = {0: "accepted", LARGEST: f"{LARGEST} or more", LARGEST + 1: "no answer"}
    return (
        tuple(names.get(size, str(size)) for size in shown),
        tuple(tuple(int(table[a, b]) for b in shown) for a in shown),
    )


def _classes(both: pd.DataFrame, side: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """0 for accepted cases, the SEV of explained ones, `LARGEST` + 1 for the others."""
    sev = both[f"sev_{side}"].to_numpy(dtype=float, na_value=np.nan)
    known = np.where(np.isnan(sev), LARGEST + 1, np.minimum(sev, LARGEST)).astype(np.int64)
    return np.where(both[f"status_{side}"] == Status.ALREADY_NEGATIVE.value, 0, known)


def own_figures(run: Run) -> dict[str, str]:
    """The figures of one run, as text."""
    tally, table = run.tally, _read(run)
    table = table[table["status"] == Status.EXPLAINED.value]
    return {
        "model": run.about.model,
        "cases": f"{run.rows:,}",
        "refused": f"{tally.against:,}",
        "mean features changed": _number(tally.mean_sev),
        "share with one feature changed": percent(tally.share_one) if tally.explained else "-",
        "median largest change (SD)": _number(table["l_inf"].median()),
        "mean log density (how usual)": _number(table["log_density"].mean()),
        **{s.words: f"{tally.count(s):,}" for s in (Status.UNREACHABLE, Status.NOT_CREDIBLE, Status.BUDGET)},
    }


def _number(value: Any) -> str:
    return "-" if pd.isna(value) else f"{float(value):.3g}"
