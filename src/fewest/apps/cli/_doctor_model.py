"""``fewest doctor MODEL``: how a model of the user's own is searched, how fast, and what would let it be read."""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

from fewest.apps.cli._sources import Source, from_files
from fewest.apps.cli._text import clean
from fewest.errors import DataError, FewestWarning, PositiveReferenceError, UsageError
from fewest.explainer import Explainer
from fewest.references import References, build
from fewest.results.explanation import Status
from fewest.tables.model_kinds import NUMBERS

CASES = 200
# Why a model is not read, in part -> what to change.
REMEDIES = {
    "votes between pairs": "fit a OneVsRestClassifier of it",
    "approximations that need not rise": "fit it with probability=False, or ask for its decision function",
    "other chances than one half": "use a threshold of 0.5",
    "three or more": "explain two classes: against= in Python",
    "compared with (against)": "explain two classes: against= in Python",
    "interaction": "fit it with interactions=0",
    "is not a model whose inside": "a linear model, trees, boosting or a net of the same accuracy would be read",
    "blends features": "leave the step out that mixes columns, or give the model the columns themselves",
    "is not understood": "use transformers that work on one column each",
    "function of raw rows": "pass the model itself",
    "training mode": "call model.eval() before it is saved",
    "last model": "use a linear final_estimator, such as LogisticRegression",
    "features together": "let a column depend on six features or fewer; linear trees of LightGBM: max_depth=6",
    "categorical": "encode the categories before the model",
}


@dataclass(frozen=True)
class ModelCheck:
    """What was measured of a model."""

    model: str
    search: str
    cases: int
    microseconds: float  # CPU time per case of a second call
    proved: float  # share of the cases
    why_not_read: str
    what_to_change: str


def run(
    model: Path, train: Path | None, target: str | None, positive: str | None, threshold: float | None,
    above: bool | None, allow_pickle: bool, as_json: bool,
) -> int:  # fmt: skip
    """Print how the model is searched."""
    if train is None:
        raise UsageError("doctor MODEL tries the model on rows of its training table", do="pass --train FILE")
    source = from_files(model, train, target, positive, threshold, allow_pickle, above)
    if source.labels is None and source.decision.kind not in NUMBERS:
        raise UsageError("without labels nobody knows which cases were accepted", do="pass --target COL")
    found = examine(source)
    if as_json:
        print(json.dumps(asdict(found), indent=1))
        return 0
    print(clean(f"model               {found.model}"))
    print(f"search              {found.search}")
    print(f"proved              {found.proved:.0%} of {found.cases} cases")
    print(f"time per case       {found.microseconds:,.0f} microseconds of CPU")
    if found.why_not_read:
        print(clean(f"not read because    {found.why_not_read}"))
        print(f"what would help     {found.what_to_change}")
    return 0


def examine(source: Source) -> ModelCheck:
    """Explain refused rows of the training table, up to 200, with the model."""
    decision = source.decision
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewestWarning)
        explainer = Explainer(decision, _references(source), n_jobs=1)
        rows = source.schema.conform(source.X, unseen="allow")
        cases = rows[decision.refuses(rows)].iloc[:CASES]
        if len(cases) == 0:
            raise DataError(
                f"the model calls no row of {source.name} {decision.positive_name}", do="choose another --threshold"
            )
        explainer.explain(cases)  # reads the model and compiles what it needs
        began = time.process_time()
        out = explainer.explain(cases)
        spent = (time.process_time() - began) / len(cases)
    reason = " ".join(out.notes)
    steps = getattr(decision.model, "steps", None) or [("", decision.model)]
    change = next((do for words, do in REMEDIES.items() if words in reason), "more nodes, or fewer features")
    stopped = out.counts()[Status.BUDGET.value]
    return ModelCheck(
        type(steps[-1][1]).__name__, out.strategies[1], len(cases), round(1e6 * spent, 1), 1 - stopped / len(cases),
        reason, change if reason else "",
    )  # fmt: skip


def _references(source: Source) -> References:
    for centre in ("mean", "median", "medoid"):
        try:
            return build("single", source.decision, source.X, source.labels, schema=source.schema, centre=centre)
        except PositiveReferenceError:
            continue
    return build("single", source.decision, source.X, source.labels, schema=source.schema, on_positive="allow")
