"""What flexibility buys: mean SEV, and the credibility of the explanations, against how far references may move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from fewest.errors import UsageError
from fewest.reporting.plots._display import LINES, MARKERS, Display, shade

if TYPE_CHECKING:
    from fewest.explainer import Explainer

AMOUNTS = (0.05, 0.1, 0.2)
WORDS = {"sev": "mean SEV", "log_likelihood": "mean log-likelihood", "used": "share that uses it"}


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
    >>> from matplotlib.figure import Figure
    >>> import fewest as fw
    >>> X = pd.DataFrame({"debt": range(101), "rent": [k % 7 for k in range(101)]}); y = X["debt"] > 80
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100, positive=True)
    >>> explainer = fw.Explainer(decision, fw.references.single(decision, X, y), n_jobs=1)
    >>> display = FlexibilityDisplay.from_explainer(explainer, X, amounts=(0.1,))
    >>> display.table["flexibility"].tolist(), display.table["sev"].tolist()
    ([0.0, 0.1], [1.0, 1.0])
    >>> display.plot(Figure().subplots()).ax_.get_ylabel()
    'mean SEV'
    """

    y: str = "sev"

    @classmethod
    def from_explainer(
        cls, explainer: Explainer, X: Any, amounts: Sequence[float] = AMOUNTS, label: str = "", y: str = "sev"
    ) -> Self:
        """Explain the cases with the references as they are, then once for every amount.

        Parameters
        ----------
        explainer : Explainer
        X : table
            Cases.
        amounts : sequence of float
            Flexibilities to try, as in `References.flexible`.
        label : str
        y : str
            ``sev``, ``log_likelihood`` (where the explainer has a credibility) or ``used``.
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
                marker=MARKERS[place % len(MARKERS)], markerfacecolor=shade(place), markeredgecolor="black",
                label=label,
            )  # fmt: skip
        amounts = sorted(set(self.table["flexibility"]))
        ax.set_xticks(amounts, [f"{amount:g}" for amount in amounts])
        ax.set_xlabel("flexibility of the references")
        ax.set_ylabel(WORDS.get(self.y, self.y))
        if labels != [""]:
            ax.legend(frameon=False, fontsize="small")
