"""Two runs side by side: what became of the same cases, and above all whose outcome is another now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import UsageError
from fewest.results.drawing import percent
from fewest.results.explanation import Status
from fewest.results.explanations import Explanations
from fewest.results.population import Population, summarize
from fewest.runs.run import Run
from fewest.tables.cards import Rows, ShownAsCard

KEPT = ["row", "status", "sev", "score", "features"]
TURNED = ["row", "label", "score", "other_score", "refused_now"]
LISTED = 200
LARGEST = 6
SHOWN = 5
Compared = str | Path | Population


@dataclass(frozen=True, eq=False, repr=False)
class RunComparison(ShownAsCard):
    """What two runs say of the same cases: how many both have, matched by what, and how many only one has.

    Attributes
    ----------
    matched : int
    by : str
        What cases were matched by.
    only : tuple of int
        Cases in one of them alone.
    figures : tuple
        Name, and the figure of each.
    sizes, moves : tuple
        Cases by features changed in the first (rows) and the second (columns), under the headings ``sizes``.
    turned : tuple
        The first of the cases with another outcome: ``row``, ``label``, ``score``, ``other_score``, ``refused_now``.
    refused, accepted : int
        Cases refused only in the second, and only in the first.
    explained : int
        Cases explained in both.
    other_reasons : int
        Of these, those whose features changed are others, and in neither among the smallest sets that are listed.
    features : DataFrame
        For each feature, the share of the cases explained in both that change it: ``before``, ``after``, ``change``.
    cases : DataFrame
        One row per case with another outcome or other reasons.
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
    explained: int
    other_reasons: int
    features: pd.DataFrame
    cases: pd.DataFrame

    @property
    def reason_drift(self) -> float:
        """Share of the cases explained in both that have other reasons; 0 where there are none."""
        return self.other_reasons / self.explained if self.explained else 0.0

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

    @property
    def reasons_sentence(self) -> str:
        """How many reasons are others, in one sentence."""
        share = percent(self.reason_drift)
        return f"{self.other_reasons:,} of {self.explained:,} cases explained in both have other reasons ({share})."

    def _card_lines(self) -> list[str]:
        return [self.sentence, self.reasons_sentence]

    def _card_rows(self) -> tuple[Sequence[str], Rows]:
        return ("", "first", "second"), self.figures

    def __repr__(self) -> str:
        lines = [self.sentence, self.reasons_sentence, ""]
        wide = max((len(text) + 2 for _, *texts in self.figures for text in texts), default=14)
        lines += [f"{name:<32}{first:>{wide}}{second:>{wide}}" for name, first, second in self.figures]
        moved = self.features[self.features["change"] != 0][:SHOWN]
        if len(moved):
            lines += ["", "Features that come up more or less often:"]
            lines += [f"  {name}: {percent(a)} before, {percent(b)} after" for name, a, b, _ in moved.itertuples()]
        return "\n".join(lines)


def compare(first: Compared, second: Compared, *, labels: Any = None) -> RunComparison:
    """Compare two models, references or trainings case by case: whose outcome is another, whose reasons are others.

    Cases are matched by their names where both have names; those of the same data by their number; those of other files
    by what is in them, where that is unique.

    Parameters
    ----------
    first, second : Explanations, Run or path of a run folder
    labels : (n,) labels, optional
        What became of the cases of the first, in their order: adds the accuracy of both on the cases in common.

    Returns
    -------
    RunComparison

    Examples
    --------
    >>> import fewest as fw
    >>> cases = pd.DataFrame({"debt": [90, 60, 10], "late": [0, 3, 0]}, index=["A", "B", "C"])
    >>> def explained(weight):
    ...     decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100 + weight * rows["late"].to_numpy())
    ...     refs = fw.references.supplied(decision, {"debt": [20], "late": [0]})
    ...     return fw.Explainer(decision, refs).explain(cases)
    >>> both = compare(explained(0.0), explained(0.2))
    >>> print(both.reasons_sentence)
    1 of 2 cases explained in both have other reasons (50 %).
    >>> both.cases[["case", "reasons", "other_reasons"]]
      case reasons other_reasons
    0    B    debt    debt, late
    """
    one, other = (Run.open(side) if isinstance(side, str | Path) else side for side in (first, second))
    key, by = _matched_by(one, other)
    ours, theirs = (_read(side, key) for side in (one, other))
    if key == "hash":
        ours, theirs = (side.drop_duplicates("hash", keep=False) for side in (ours, theirs))
    both = ours.merge(theirs, on=key, suffixes=("_a", "_b"))
    if key == "row":
        both["row_a"] = both["row_b"] = both["row"]
    both["label"] = both["label"] if key == "label" else both["row_a"].astype(str)
    against = [both[f"status_{side}"] != Status.ALREADY_NEGATIVE.value for side in "ab"]
    turned = against[0] != against[1]
    explained = (both["status_a"] == Status.EXPLAINED.value) & (both["status_b"] == Status.EXPLAINED.value)
    drifted = explained & (both["features_a"] != both["features_b"])
    drifted[drifted] = ~_listed_in_other(both[drifted], one, other)
    sizes, moves = _moves(both)
    shown = both[turned].assign(refused_now=against[1][turned])[:LISTED]
    shown = shown[["row_a", "label", "score_a", "score_b", "refused_now"]].set_axis(TURNED, axis=1)
    pairs = zip(own_figures(one).items(), own_figures(other).values(), strict=True)
    figures = [(name, ours, theirs) for (name, ours), theirs in pairs if (ours, theirs) != ("-", "-")]
    if labels is not None and len(both):
        truth = _truth(labels, one)[both["row_a"].to_numpy(dtype=np.int64)]
        right, other_right = (percent(float((side == truth).mean())) for side in against)
        figures.append(("accuracy", right, other_right))
    return RunComparison(
        matched=len(both),
        by=by,
        only=(len(one) - len(both), len(other) - len(both)),
        figures=tuple(figures),
        sizes=sizes,
        moves=moves,
        turned=tuple(shown.itertuples(index=False, name="TurnedCase")),
        refused=int((against[1] & ~against[0]).sum()),
        accepted=int((against[0] & ~against[1]).sum()),
        explained=int(explained.sum()),
        other_reasons=int(drifted.sum()),
        features=_shares(both[explained]),
        cases=_cases(both[turned | drifted]),
    )


def _truth(labels: Any, population: Population) -> npt.NDArray[np.bool_]:
    """Which labels are the class that is explained."""
    if isinstance(population, Explanations):
        positive = population.references.decision.positive
    else:
        positive = population.origin.settings["positive"]
    texts = np.array([str(label) for label in np.asarray(labels, dtype=object).ravel()], dtype=object)
    if len(texts) != len(population):
        raise UsageError(f"{len(texts):,} labels for {len(population):,} cases", do="pass one label for each case")
    truth = np.isin(texts, ["True", "1", "1.0"] if positive is None else [str(positive)])
    if not truth.any():
        seen = ", ".join(sorted(set(texts))[:5])
        raise UsageError(f'no label is "{positive}": they are {seen}', do="pass labels as the model knows them")
    return truth


def _matched_by(first: Population, second: Population) -> tuple[str, str]:
    """The column that cases are matched by, and what to say of it."""
    if first.origin.names_cases and second.origin.names_cases:
        return "label", "their names"
    if isinstance(first, Run) and isinstance(second, Run):
        if first.manifest["data"]["sha256"] == second.manifest["data"]["sha256"] and not (
            first.names_cases or second.names_cases
        ):
            return "row", "their row in the same data"
        return "hash", "what is in them: the two runs read different files"
    if len(first) != len(second):
        raise UsageError(
            f"{len(first):,} and {len(second):,} cases cannot be matched", do="name them: an index, or `explain --id`"
        )
    return "row", "their place in the table"


def _listed_in_other(both: pd.DataFrame, first: Population, second: Population) -> npt.NDArray[np.bool_]:
    """Where the set of one is among the smallest sets that the other lists: either could have been shown."""
    same = np.zeros(len(both), dtype=bool)
    for population, rows, shown in ((first, "row_a", "features_b"), (second, "row_b", "features_a")):
        listed = population.records(both[rows].tolist(), ("row", "alternatives")).set_index("row")["alternatives"]
        for place, (row, names) in enumerate(zip(both[rows], both[shown], strict=True)):
            same[place] |= any(tuple(change["feature"] for change in one) == names for one in listed[row])
    return same


def _shares(explained: pd.DataFrame) -> pd.DataFrame:
    """How often each feature comes up in both, by how much that changed."""
    counts = [Counter(name for names in explained[f"features_{side}"] for name in names) for side in "ab"]
    names = sorted({*counts[0], *counts[1]})
    table = pd.DataFrame({"before": counts[0], "after": counts[1]}, index=names, dtype=float).fillna(0.0)
    table /= max(1, len(explained))
    table["change"] = table["after"] - table["before"]
    return table.sort_values("change", key=lambda change: -change.abs(), kind="stable")


def _cases(both: pd.DataFrame) -> pd.DataFrame:
    """The cases that are not as they were, as a table."""
    words = {status.value: status.words for status in Status}
    return pd.DataFrame(
        {
            "case": both["label"].to_numpy(),
            "outcome": both["status_a"].astype(object).map(words).to_numpy(),
            "other_outcome": both["status_b"].astype(object).map(words).to_numpy(),
            "score": both["score_a"].to_numpy(),
            "other_score": both["score_b"].to_numpy(),
            "reasons": both["features_a"].map(", ".join).to_numpy(),
            "other_reasons": both["features_b"].map(", ".join).to_numpy(),
        }
    )


def called(first: Run, second: Run) -> tuple[tuple[str, str], tuple[str, str]]:
    """What two runs are called: the end of each folder's path that tells it from the other, and its title."""
    ours, theirs = (run.path.resolve().parts for run in (first, second))
    short = next((k for k in range(1, min(len(ours), len(theirs))) if ours[-k] != theirs[-k]), 1)
    titles = (run.about.title for run in (first, second))
    folders = ("/".join(parts[-short:]) for parts in (ours, theirs))
    return tuple(zip(folders, titles, strict=True))  # type: ignore[return-value]


def _read(population: Population, key: str) -> pd.DataFrame:
    """The few columns that are compared, part by part: the rest of a large run does not stay in memory."""
    known: dict[tuple[str, ...], tuple[str, ...]] = {}  # equal sets are kept once
    parts = []
    for part in population.tables([*KEPT, *([] if key == "row" else [key])]):
        sets = [known.setdefault(names, names) for names in map(tuple, part["features"])]
        parts.append(part.assign(features=pd.Series(sets, index=part.index, dtype=object)))
    return pd.concat(parts, ignore_index=True)


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


def own_figures(population: Population) -> dict[str, str]:
    """The figures of one run, as text."""
    tally, figures = population.tally, summarize(population)
    return {
        "model": population.about.model or "-",
        "cases": f"{len(population):,}",
        "refused": f"{tally.against:,}",
        "mean features changed": _number(tally.mean_sev),
        "share with one feature changed": percent(tally.share_one) if tally.explained else "-",
        "median largest change (SD)": _number(figures["median largest change (SD)"]),
        "mean log density (how usual)": _number(figures.get("mean log-likelihood")),
        **{s.words: f"{tally.count(s):,}" for s in (Status.UNREACHABLE, Status.NOT_CREDIBLE, Status.BUDGET)},
    }


def _number(value: Any) -> str:
    return "-" if pd.isna(value) else f"{float(value):.3g}"
