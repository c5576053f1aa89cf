"""The score of one case, fact by fact, to beyond the cut-off, like a waterfall; and all cases at a glance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import pandas as pd

from fewest.errors import UsageError
from fewest.reporting.plots.bars import FeatureFrequencyDisplay, SevDistributionDisplay
from fewest.reporting.plots.display import Display, Style, needs_matplotlib
from fewest.results.explanation import Explanation, show_score
from fewest.results.explanations import Explanations
from fewest.tables.wording import clip, show_measured, show_name

HATCH_DOWN, HATCH_UP = "", "///"  # the hatch says it without colour
LONGEST = 40


@dataclass
class ScoreLineDisplay(Display):
    """How the changed facts of one case carry its score over the cut-off, the one that moves it most first.

    Parameters
    ----------
    table : DataFrame
        One row per changed feature: ``feature``, ``fact`` (what it becomes), ``before`` and ``after`` (the model's
        scores).
    threshold : float
        The cut-off.
    title : str
        What stands above.
    percent : bool
        Whether scores are probabilities.
    number : str
        ``up`` where the score is a predicted number, ``down`` where it is minus one.

    Examples
    --------
    >>> import fewest as fw
    >>> decision = fw.Decision(lambda rows: (rows["debt"] + rows["rate"]).to_numpy() / 100)
    >>> refs = fw.references.supplied(decision, {"debt": [20], "rate": [5], "age": [50]})
    >>> out = fw.Explainer(decision, refs).explain({"debt": [90], "rate": [40], "age": [30]})
    >>> ScoreLineDisplay.from_explanation(out[0]).table[["fact", "before", "after"]].values.tolist()
    [['debt 90 → 20', 1.3, 0.6], ['rate 40 → 5', 0.6, 0.25]]
    """

    threshold: float = 0.5
    title: str = ""
    percent: bool = False
    number: str = ""

    @classmethod
    def from_explanation(cls, answer: Explanation) -> Self:
        """Of one answer, as `Explanations` gives it by place or label."""
        if not answer.changes:
            raise UsageError(f"nothing changes in this case: {answer.status.words}", do="plot one of `out.explained`")
        if answer.steps is None:
            raise UsageError("the model is not at hand to score the changes one by one", do="plot `out[i]`")
        changed = {change.feature: change for change in answer.changes}
        rows = []
        for name, before, after in answer.steps():
            change = changed[name]
            values = (show_measured(value, change.unit) for value in (change.before, change.after))
            rows.append((name, f"{show_name(change.title)} {' → '.join(values)}", before, after))
        table = pd.DataFrame(rows, columns=["feature", "fact", "before", "after"])
        title = f"{answer.label}: {answer.positive}, then {answer.outcome}"
        if answer.plus:
            title = f"{answer.label}: {answer.outcome}, then {answer.positive}"
        return cls(table, answer.threshold, title, answer.shows_percent, answer.number)

    def _draw(self, ax: Any) -> None:
        for place, row in enumerate(self.table.itertuples()):
            falls = row.after < row.before
            ax.barh(
                place, row.after - row.before, left=row.before, height=0.6, color=self.face(0 if falls else 1),
                hatch=HATCH_DOWN if falls else HATCH_UP, edgecolor="0.2", linewidth=0.8,
            )  # fmt: skip
            if place:
                ax.plot([row.before, row.before], [place - 1, place], color="0.5", linewidth=0.8)
        ax.axvline(self.threshold, color="0.1", linestyle="--", linewidth=1, label="cut-off")
        first, last = float(self.table["before"].iloc[0]), float(self.table["after"].iloc[-1])
        for score, height, word in ((first, -0.45, "before"), (last, len(self.table) - 0.55, "after")):
            said = f"{word} {show_score(score, self.threshold, self.percent, self.number)}"
            ax.annotate(said, (score, height), ha="center", va="bottom" if height < 0 else "top", fontsize=9)
        ax.set_yticks(range(len(self.table)), [clip(fact, LONGEST) for fact in self.table["fact"]], fontsize=8)
        ax.set_ylim(len(self.table) - 0.2, -0.9)
        reached = [*self.table["before"], *self.table["after"], self.threshold]
        room = 0.25 * (max(reached) - min(reached) or 1.0)
        ax.set_xlim(min(reached) - room, max(reached) + room)
        ax.set_xlabel("the model's score")
        if self.number == "down":
            ax.xaxis.set_major_formatter(lambda value, _: f"{-value:g}")
        if self.percent:
            ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        ax.set_title(self.title, fontsize=10)
        ax.legend(frameon=False, loc="best", fontsize=8)
        ax.figure.tight_layout()


def overview(explanations: Explanations, style: Style = "screen") -> Any:
    """How many features must change and which ones come up, side by side; returns the figure.

    Parameters
    ----------
    explanations : Explanations
    style : str
        ``screen``, or ``paper`` without colours.

    Examples
    --------
    >>> import fewest as fw
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    >>> out = fw.Explainer(decision, fw.references.supplied(decision, {"debt": [20]})).explain({"debt": [90, 10]})
    >>> len(overview(out).axes)
    2
    """
    with needs_matplotlib("plots"):
        import matplotlib.pyplot as plt
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2))
    SevDistributionDisplay.from_explanations(explanations).plot(left, style=style)
    FeatureFrequencyDisplay.from_explanations(explanations).plot(right, style=style)
    figure.tight_layout()
    return figure
