"""What is paid for sparsity: closeness, credibility, flexibility of the references, a credibility floor, and accuracy.

Accuracy is that of all near-optimal trees (TOpt's choice), and along All-Opt's path (of C1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd

from fewest.errors import UsageError
from fewest.reporting.plots.display import LINES, Display, key_markers, marker, percents
from fewest.results.explanations import Explanations

if TYPE_CHECKING:
    from fewest.explainer import Explainer

WORDS = {
    "sev": "mean SEV",
    "l_inf": "mean largest change (SD)",
    "log_likelihood": "mean log-likelihood",
    "used": "share that uses it",
}
AMOUNTS = (0.05, 0.1, 0.2)
QUANTILES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5)
SMALLEST, LARGEST = 14.0, 260.0
MEASURES = {"roc_auc": "AUC", "accuracy": "accuracy"}


@dataclass
class TradeOffDisplay(Display):
    """Points of several models, each under several ways to explain it, joined in order by arrows.

    The marker says which model, the grey says which way: nothing is in colour alone.

    Parameters
    ----------
    table : DataFrame
        One row per point: ``label`` (the model), ``variant`` (the way, in the order of the arrows), and numbers.
    x, y : str
        Columns drawn.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> table = pd.DataFrame({"label": ["LR", "LR"], "variant": ["one", "clusters"], "sev": [2.0, 1.5],
    ...                       "l_inf": [1.4, 1.1]})
    >>> TradeOffDisplay(table).plot(Figure().subplots()).ax_.get_xlabel()
    'mean SEV'
    """

    headline: ClassVar[str] = "What references cost and give"
    x: str = "sev"
    y: str = "l_inf"

    @classmethod
    def from_explanations(cls, explanations: Mapping[str, Mapping[str, Explanations]], y: str = "l_inf") -> Self:
        """Of explanations by model, then by the way they were made.

        ``y`` is ``l_inf``, or ``log_likelihood`` where the explainers have a credibility.
        """
        rows = [_point(label, way, out) for label, ways in explanations.items() for way, out in ways.items()]
        display = cls(pd.DataFrame(rows), y=y)
        display._drawn()
        return display

    def _drawn(self) -> pd.DataFrame:
        """Points that have both numbers."""
        unknown = [name for name in ("label", "variant", self.x, self.y) if name not in self.table]
        if unknown:
            raise UsageError(f'the table has no column "{unknown[0]}"', do=f"choose from {', '.join(self.table)}")
        drawn = self.table[np.isfinite(self.table[self.x]) & np.isfinite(self.table[self.y])]
        if len(drawn) == 0:
            raise UsageError(f"no point has both {self.x} and {self.y}", do="pass explanations that have them")
        return drawn

    def _draw(self, ax: Any) -> None:
        drawn = self._drawn()
        variants = list(dict.fromkeys(self.table["variant"]))
        labels = list(dict.fromkeys(self.table["label"]))
        for place, label in enumerate(labels):
            own = drawn[drawn["label"] == label]
            ends = own[[self.x, self.y]].to_numpy()
            for start, end in pairwise(ends):
                ax.annotate(
                    "", end, start, arrowprops={"arrowstyle": "->", "color": "0.55", "shrinkA": 4, "shrinkB": 4}
                )
            for variant, point in zip(own["variant"], ends, strict=True):
                ax.scatter(
                    *point, marker=marker(place), s=42, facecolors=self.face(variants.index(variant)),
                    edgecolors="black", linewidths=0.9, zorder=3,
                )  # fmt: skip
        ax.margins(0.12)
        ax.set_xlabel(WORDS.get(self.x, self.x))
        ax.set_ylabel(WORDS.get(self.y, self.y))
        key_markers(ax, labels, variants, face=self.face)
        ax.legend(frameon=False, fontsize="small")


def _point(label: str, variant: str, out: Explanations) -> dict[str, Any]:
    summary, sev = out.summary(), out.sev.dropna()
    explained = out.answers.moved.any(axis=1)
    return {
        "label": label,
        "variant": variant,
        "sev": float(sev.mean()) if len(sev) else np.nan,
        "l_inf": float(out.answers.l_inf[explained].mean()) if explained.any() else np.nan,
        "log_likelihood": float(summary.get("mean log-likelihood", np.nan)),
    }


@dataclass
class FlexibilityDisplay(Display):
    """One figure against the flexibility of the references, a line per label.

    Parameters
    ----------
    table : DataFrame
        One row per label and amount: ``label``, ``flexibility`` (0 for references as they are), ``sev``, and others.
    y : str
        Column drawn.

    Examples
    --------
    >>> import fewest as fw
    >>> X = pd.DataFrame({"debt": range(101), "rent": [k % 7 for k in range(101)]}); y = X["debt"] > 80
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100, positive=True)
    >>> explainer = fw.Explainer(decision, fw.references.single(decision, X, y), n_jobs=1)
    >>> display = FlexibilityDisplay.from_explainer(explainer, X, amounts=(0.1,))
    >>> display.table["flexibility"].tolist(), display.table["sev"].tolist()
    ([0.0, 0.1], [1.0, 1.0])
    """

    headline: ClassVar[str] = "What flexible references change"
    y: str = "sev"

    @classmethod
    def from_explainer(
        cls, explainer: Explainer, X: Any, amounts: Sequence[float] = AMOUNTS, label: str = "", y: str = "sev"
    ) -> Self:
        """Explain the cases with the references as they are, then once for every amount.

        ``amounts`` are as in `References.flexible`; ``y`` is ``sev``, ``log_likelihood`` (where the explainer has a
        credibility) or ``used``.
        """
        if len(amounts) == 0:
            raise UsageError("there is no flexibility to try", do="pass at least one amount")
        plain = explainer.references.plain()
        rows = []
        for amount in (0.0, *sorted(amounts)):
            out = explainer.with_(references=plain.flexible(amount) if amount else plain).explain(X)
            summary = out.summary()
            rows.append({
                "label": label, "flexibility": amount, "sev": summary["mean SEV"],
                "log_likelihood": summary.get("mean log-likelihood", np.nan),
                "used": summary.get("flexibility used", 0.0),
            })  # fmt: skip
        return cls(pd.DataFrame(rows), y=y)

    def _draw(self, ax: Any) -> None:
        drawn = self.table[np.isfinite(self.table[self.y])]
        if len(drawn) == 0:
            raise UsageError(f"no line has {self.y}", do="pass an explainer that has it")
        labels = list(dict.fromkeys(drawn["label"]))
        for place, label in enumerate(labels):
            own = drawn[drawn["label"] == label]
            ax.plot(
                own["flexibility"], own[self.y], linestyle=LINES[place % len(LINES)], color="0.3",
                marker=marker(place), markerfacecolor=self.face(place), markeredgecolor="black",
                label=label,
            )  # fmt: skip
        amounts = sorted(set(self.table["flexibility"]))
        ax.set_xticks(amounts, [f"{amount:g}" for amount in amounts])
        ax.set_xlabel("flexibility of the references")
        ax.set_ylabel(WORDS.get(self.y, self.y))
        if labels != [""]:
            ax.legend(frameon=False, fontsize="small")


@dataclass
class FloorDisplay(Display):
    """Mean SEV and share NOT_CREDIBLE for several floors: a help to choose one.

    A floor is worth raising as long as the line stays flat and the bars stay low. The mean is over explained cases, so
    it can fall where the cases that need the most changes become NOT_CREDIBLE: read it together with the bars.

    Parameters
    ----------
    table : DataFrame
        One row per floor: ``quantile``, ``floor`` (log-density), ``mean_sev``, ``not_credible`` (share of the cases
        refused), ``explained``, ``log_density`` (mean over explained cases).

    Examples
    --------
    >>> import fewest as fw
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 3, 8, 9], "age": [30, 40, 50, 30, 60]}); y = [0, 0, 0, 1, 1]
    >>> decision = fw.Decision(LogisticRegression().fit(X, y))
    >>> dense = fw.credibility.mixture(decision, X, y, n_components=1)
    >>> explainer = fw.Explainer(decision, fw.references.single(decision, X, y), credibility=dense, n_jobs=1)
    >>> display = FloorDisplay.from_explainer(explainer, X, quantiles=(0.0, 1.0))
    >>> display.table["mean_sev"].tolist()
    [1.0, 2.0]
    """

    headline: ClassVar[str] = "What a floor of credibility costs"

    @classmethod
    def from_explainer(cls, explainer: Explainer, X: Any, quantiles: Sequence[float] = QUANTILES) -> Self:
        """Explain the cases once for every floor, given as quantiles of the accepted cases' own densities.

        The explainer needs a credibility; its own floor does not matter.
        """
        credibility = explainer.credibility
        if credibility is None:
            raise UsageError("this explainer has no credibility", do="pass credibility= to the Explainer")
        if len(quantiles) == 0:
            raise UsageError("there is no floor to try", do="pass at least one quantile")
        rows = []
        for quantile in sorted(quantiles):
            dense = credibility.at(quantile)
            out = explainer.with_(credibility=dense).explain(X)
            counts, summary = out.counts(), out.summary()
            share = counts["NOT_CREDIBLE"] / max(1, summary["refused"])
            density = summary.get("mean log-likelihood", np.nan)
            rows.append((dense.quantile, dense.floor, summary["mean SEV"], share, counts["EXPLAINED"], density))
        columns = ["quantile", "floor", "mean_sev", "not_credible", "explained", "log_density"]
        return cls(pd.DataFrame(rows, columns=columns))

    def _draw(self, ax: Any) -> None:
        places = np.arange(len(self.table))
        share = ax.twinx()
        share.bar(
            places,
            self.table["not_credible"],
            width=0.6,
            color="0.85" if self.style == "paper" else self.face(0),
            edgecolor="0.5",
            label="not credible",
        )
        share.set_ylim(0, 1)
        percents(share.yaxis)
        share.set_ylabel("share of cases that nothing credible turns (bars)")
        ax.plot(places, self.table["mean_sev"], marker="o", color="black", label="mean SEV")
        ax.set_zorder(share.get_zorder() + 1)
        ax.patch.set_visible(False)
        ax.set_xticks(places, [f"{quantile:g}" for quantile in self.table["quantile"]])
        ax.set_ylim(bottom=min(1.0, *self.table["mean_sev"].fillna(1.0)) - 0.1)
        ax.set_xlabel("floor (quantile of the accepted cases)")
        ax.set_ylabel("mean SEV of explained cases (line)")


@dataclass
class FrontDisplay(Display):
    """Training accuracy against mean SEV-T of the trees in a Rashomon set.

    A point stands for all trees with the same accuracy, leaves and mean SEV-T, its size for their number; points that
    nothing else beats are filled, and the chosen tree is marked with a star. No information is in colour alone.

    Parameters
    ----------
    table : DataFrame
        As in ``TOptClassifier.front_``.

    Examples
    --------
    >>> from fewest.models.rashomon import TOptClassifier
    >>> frame = pd.DataFrame({"age": [20, 25, 30, 50, 60, 70], "job": ["none", "none", "clerk"] * 2})
    >>> model = TOptClassifier(bound=0.2).fit(frame, ["bad", "bad", "bad", "ok", "ok", "bad"])
    >>> FrontDisplay.from_estimator(model).table["trees"].sum() == model.n_trees_
    np.True_
    """

    @classmethod
    def from_estimator(cls, estimator: Any) -> Self:
        """Of a fitted `TOptClassifier`."""
        if not hasattr(estimator, "front_"):
            raise UsageError(f"{type(estimator).__name__} has no front_", do="pass a fitted TOptClassifier")
        return cls(estimator.front_)

    def _draw(self, ax: Any) -> None:
        drawn = self.table[self.table["mean_sev_t"].notna()]
        if len(drawn) == 0:
            raise UsageError("no tree of the set decides a case positive that can be turned", do="enlarge the set")
        # By the logarithm of how many trees, because sets have one and thousands side by side.
        scale = np.log1p(drawn["trees"].to_numpy(dtype=float)) - np.log1p(1.0)
        sizes = SMALLEST + (LARGEST - SMALLEST) * scale / np.log1p(10_000.0)
        best = drawn["pareto"].to_numpy(dtype=bool)
        for kept, face, label in (
            (~best, "none", "other trees"),
            (best, "0.35" if self.style == "paper" else self.face(0), "nothing better in all three"),
        ):
            rows = drawn[kept]
            ax.scatter(
                rows["mean_sev_t"], rows["accuracy"], s=sizes[kept], facecolors=face, edgecolors="0.35",
                linewidths=0.8, label=f"{label} ({int(rows['trees'].sum()):,})",
            )  # fmt: skip
        mark = drawn[drawn["chosen"].to_numpy(dtype=bool)]
        ax.scatter(
            mark["mean_sev_t"], mark["accuracy"], marker="*", s=220, facecolors="white", edgecolors="black",
            linewidths=1.4, zorder=3, label="chosen",
        )  # fmt: skip
        ax.set_xlabel("mean SEV-T (features to change per case)")
        ax.set_ylabel("training accuracy")
        ax.set_title(f"{int(self.table['trees'].sum()):,} near-optimal trees")
        ax.legend(loc="best", frameon=False)


@dataclass
class TrainingFrontDisplay(Display):
    """Measures against mean SEV on the rows held out, from stop to stop of a path.

    Each measure has its marker and its line, and a band that reaches from its best value down by the tolerance. The
    chosen stop is starred; C1 is written at the stops of the first measure. No information is in colour alone.

    Parameters
    ----------
    table : DataFrame
        As in ``AllOptSearchCV.front_``.
    tolerance : float
        Height of the bands.
    max_unreachable : float
        Stops with more than this share of positive rows without SEV are out of the race: hollow, and no best.
    measures : sequence of str
        Columns drawn.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> front = pd.DataFrame({"c1": [0.0, 0.1], "c2": [0.0, 1.0], "accuracy": [0.8, 0.795], "roc_auc": [0.85, 0.85],
    ...                       "mean_sev": [1.5, 1.1], "positives": 9, "unreachable": 0, "chosen": [False, True]})
    >>> TrainingFrontDisplay(front).plot(Figure().subplots()).ax_.get_xlabel()
    'mean SEV on the rows held out (fewer is better)'
    """

    tolerance: float = 0.01
    max_unreachable: float = 0.05
    measures: Sequence[str] = ("roc_auc", "accuracy")

    @classmethod
    def from_estimator(cls, estimator: Any) -> Self:
        """Of a fitted `AllOptSearchCV`."""
        if not (hasattr(estimator, "front_") and hasattr(estimator, "measures")):
            raise UsageError(f"{type(estimator).__name__} has no path", do="pass a fitted AllOptSearchCV")
        return cls(estimator.front_, estimator.tolerance, estimator.max_unreachable, tuple(estimator.measures))

    def _draw(self, ax: Any) -> None:
        drawn = self.table[self.table["mean_sev"].notna()]
        if len(drawn) == 0:
            raise UsageError("at no stop is a row decided positive that can be turned", do="train with other settings")
        for place, measure in enumerate(self.measures):
            self._line(ax, drawn, measure, place)
        for _, stop in drawn.iterrows():
            ax.annotate(
                f"{stop['c1']:g}", (stop["mean_sev"], stop[self.measures[0]]), (7, 4), textcoords="offset points",
                fontsize="x-small",
            )  # fmt: skip
        ax.margins(0.12)
        ax.set_xlabel("mean SEV on the rows held out (fewer is better)")
        ax.set_ylabel(" and ".join(MEASURES.get(measure, measure) for measure in self.measures))
        ax.set_title("numbers: C1")
        ax.legend(frameon=False, fontsize="small")

    def _line(self, ax: Any, drawn: pd.DataFrame, measure: str, place: int) -> None:
        """One measure: its band, its paths from the warm-up on, its stops, its star."""
        name = MEASURES.get(measure, measure)
        usable = (drawn["unreachable"] <= self.max_unreachable * drawn["positives"]).to_numpy(dtype=bool)
        best = float(drawn[measure][usable | (not usable.any())].max())
        ax.axhspan(
            best - self.tolerance, best, facecolor="0.92", edgecolor="0.6", hatch=("...", "///")[place % 2],
            linewidth=0.0, zorder=0, label=f"within {self.tolerance:g} of the best {name}",
        )  # fmt: skip
        start = drawn[drawn["c1"] == 0]
        for _, branch in drawn[drawn["c1"] > 0].groupby("c2"):
            walked = pd.concat([start, branch])
            ax.plot(walked["mean_sev"], walked[measure], LINES[place % len(LINES)], color="0.35", linewidth=1.0)
        faces = [self.face(place + 1) if kept else "none" for kept in usable]
        ax.scatter(
            drawn["mean_sev"], drawn[measure], marker=marker(place), s=36, facecolors=faces,
            edgecolors="black", linewidths=0.8, zorder=3, label=name,
        )  # fmt: skip
        star = drawn[drawn["chosen"].to_numpy(dtype=bool)]
        ax.scatter(
            star["mean_sev"], star[measure], marker="*", s=200, facecolors="white", edgecolors="black", linewidths=1.3,
            zorder=4, label="chosen" if place == 0 else None,
        )  # fmt: skip
