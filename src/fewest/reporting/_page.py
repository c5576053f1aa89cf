"""The HTML report: sentence first, evidence second; no script, nothing fetched, every value escaped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from fewest.reporting._bars import bars, percent
from fewest.reporting._templates import render
from fewest.results.drawing import STYLE, Bars, CaseRow, bar_chart, case_table
from fewest.results.explanation import STATUSES, Explanation, Fact, Status, what_is_proved
from fewest.results.explanations import Explanations
from fewest.tables.schema import Feature
from fewest.tables.wording import cell, clip

MAX_BYTES = 200_000
RANDOM_CASES = 5
HARDEST_CASES = 5
OFTEN = 0.9
NOTE = "This describes the model. It is not advice and not a cause."
MEANINGS = {
    Status.EXPLAINED: "the {least} set was found, proved and re-checked on the model",
    Status.ALREADY_NEGATIVE: "the model did not decide against this case: nothing to explain",
    Status.UNREACHABLE: "not possible with this reference and these limits (proved)",
    Status.NOT_CREDIBLE: "possible, but only by way of cases that are not believable",
    Status.BUDGET: "the search was stopped; what is shown is the best found so far",
}


@dataclass(frozen=True)
class Limits:
    """How much of wide tables and long texts is shown, so that the page stays small."""

    text: int
    sentence: int
    changed: int
    unchanged: int
    references: int
    features: int
    listed: int


LIMITS = (
    Limits(text=80, sentence=1500, changed=60, unchanged=60, references=6, features=120, listed=20),
    Limits(text=40, sentence=500, changed=20, unchanged=10, references=3, features=40, listed=10),
    Limits(text=24, sentence=200, changed=8, unchanged=2, references=1, features=15, listed=3),
)


@dataclass(frozen=True)
class Case:
    """One example decision."""

    label: str
    sentence: str
    chosen: str
    evidence: str
    rows: tuple[CaseRow, ...]
    hidden: int
    table: Markup


def html(
    explanations: Explanations, title: str = "Which facts decided?", *, verb: str = "refused", seed: int = 0
) -> str:
    """One self-contained HTML page about a table of explanations.

    Parameters
    ----------
    explanations : Explanations
        What `Explainer.explain` returned.
    title : str
        Heading of the page.
    verb : str
        What happened to the cases decided against, as the summary sentence says it.
    seed : int
        Draws the random examples.

    Returns
    -------
    str
        The page: no script, no outside resources, less than 200 kB.

    Examples
    --------
    >>> import fewest as fw, pandas as pd
    >>> from fewest.reporting import html
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
    >>> decision = fw.Decision(LogisticRegression().fit(X, y))
    >>> page = html(fw.Explainer(decision, fw.references.single(decision, X, y)).explain(X), title="Debts")
    >>> "2 of 4 cases were refused; for 100 % one feature turns the decision." in page
    True
    """
    page = ""
    for limits in LIMITS:
        page = _render(explanations, title, verb, seed, limits)
        if len(page.encode("utf-8")) < MAX_BYTES:
            break
    return page


def _render(explanations: Explanations, title: str, verb: str, seed: int, limits: Limits) -> str:
    frequency = _feature_bars(explanations, limits)
    n_explained = len(explanations.sev())
    used = np.unique(explanations.answers.strategy[explanations.answers.strategy > 0])
    return render(
        "report.html.j2",
        title=clip(title, 200),
        note=NOTE,
        sentence=summary_sentence(explanations, verb),
        figures=_figures(explanations),
        warning=_often(frequency, n_explained),
        style=Markup(STYLE),
        sev=bar_chart(_sev_bars(explanations), folded=False, columns=("changed", "cases", "share")),
        features=bar_chart(frequency, folded=False, columns=("feature", "cases", "share")),
        references=_references(explanations, limits),
        cases=[_case(explanations, row, why, limits) for row, why in _examples(explanations, seed)],
        seed=seed,
        statuses=statuses(explanations.counts(), explanations.weighted),
        unanswered=_unanswered(explanations, limits),
        notes=explanations.notes,
        n_explained=n_explained,
        strategies=", ".join(dict.fromkeys(explanations.strategies[k] for k in used)) or "nothing to search",
    )


def statuses(counts: Mapping[str, int], weighted: bool) -> list[tuple[str, str, str]]:
    """Every status with how many cases ended in it and what it means."""
    least = "cheapest" if weighted else "smallest"
    return [(s.value, f"{counts.get(s.value, 0):,}", MEANINGS[s].format(least=least)) for s in STATUSES]


def summary_sentence(explanations: Explanations, verb: str = "refused") -> str:
    """The whole table in one sentence.

    Examples
    --------
    "227 of 1,000 cases were refused; for 85 % one feature turns the decision."
    """
    counts, sev = explanations.counts(), explanations.sev()
    against = len(explanations) - counts["ALREADY_NEGATIVE"]
    head = f"{against:,} of {len(explanations):,} cases were {verb}"
    if against == 0:
        return f"{head}: there is nothing to explain."
    ones = int((sev == 1).sum())
    what = "one value alone brings the decision about" if explanations.plus else "one feature turns the decision"
    return f"{head}; for {percent(ones / against)} {what}."


def _figures(explanations: Explanations) -> list[tuple[str, str]]:
    """The summary's figures, as it prints them."""
    summary = explanations.summary()
    return [(name, line[len(name) :].strip()) for name, line in zip(summary, str(summary).splitlines(), strict=True)]


def _sev_bars(explanations: Explanations) -> Bars:
    sev = explanations.sev()
    sizes, tally = np.unique(sev, return_counts=True)
    rows = [(f"{size} feature{'s' if size != 1 else ''}", int(count)) for size, count in zip(sizes, tally, strict=True)]
    return bars("Features changed (SEV)", rows[:40], len(sev), "How many features must change?")


def _feature_bars(explanations: Explanations, limits: Limits) -> Bars:
    explained = explanations.answers.status == STATUSES.index(Status.EXPLAINED)
    tally = explanations.answers.moved[explained].sum(axis=0)
    order = [int(j) for j in np.argsort(-tally, kind="stable") if tally[j] > 0]
    features = explanations.schema.features
    rows = [(clip(features[j].title, limits.text), int(tally[j])) for j in order[: limits.features]]
    return bars("Features in the explanations", rows, int(explained.sum()), "Which features come up?")


def _often(frequency: Bars, n_explained: int) -> str | None:
    """A warning where one feature is in nearly every explanation."""
    if n_explained >= 20 and frequency.bars and frequency.bars[0].share >= OFTEN:
        top = frequency.bars[0]
        return f'"{top.name}" is in {top.percent} of the explanations: they may say little about the single case.'
    return None


def _references(explanations: Explanations, limits: Limits) -> dict[str, Any]:
    references = explanations.references
    shown = range(min(len(references), limits.references))
    features = explanations.schema.features[: limits.features]
    used = np.bincount(explanations.answers.reference[explanations.answers.reference >= 0], minlength=len(references))
    return {
        "names": [clip(references.names[k], limits.text) for k in shown],
        "scores": [f"{references.score[k]:.3f}" for k in shown],
        "support": ["not known" if references.support[k] < 0 else f"{references.support[k]:,}" for k in shown],
        "used": [f"{used[k]:,}" for k in shown],
        "threshold": f"{references.decision.cut:g}",
        "rows": [
            (clip(feature.heading, limits.text), [_cell(references.frame.iloc[k], feature, limits) for k in shown])
            for feature in features
        ],
        "hidden_features": len(explanations.schema) - len(features),
        "hidden_references": len(references) - len(shown),
    }


def _cell(row: Any, feature: Feature, limits: Limits) -> str:
    """A feature's value in a row, as text."""
    if feature.kind == "indicators":
        value: Any = next((column for column in feature.columns if row[column] == 1), None)
    elif len(feature.columns) > 1:
        value = {column: row[column] for column in feature.columns}
    else:
        value = row[feature.columns[0]]
    return clip(cell(value), limits.text)


def _examples(explanations: Explanations, seed: int) -> list[tuple[int, str]]:
    """Rows of the examples and why each was chosen: some at random, then the largest SEV among the rest."""
    explained = np.flatnonzero(explanations.answers.status == STATUSES.index(Status.EXPLAINED))
    drawn = np.random.default_rng(seed).permutation(len(explained))[:RANDOM_CASES]
    random = np.sort(explained[drawn])
    rest = np.setdiff1d(explained, random)
    sev = explanations.answers.moved[rest].sum(axis=1)
    hardest = rest[np.argsort(-sev, kind="stable")[:HARDEST_CASES]]
    return [(int(row), "drawn at random") for row in random] + [(int(row), "largest SEV") for row in hardest]


def _case(explanations: Explanations, row: int, chosen: str, limits: Limits) -> Case:
    answer = explanations[row]
    changed = [fact for fact in answer.facts if fact.changed][: limits.changed]
    same = [fact for fact in answer.facts if not fact.changed][: limits.unchanged]
    rows = tuple(_row(fact, limits) for fact in [*changed, *same])
    mark = "kept" if answer.plus else "changed"
    return Case(
        label=clip(str(answer.label), limits.text),
        sentence=clip(str(answer), limits.sentence),
        chosen=chosen,
        evidence=_evidence(answer),
        rows=rows,
        hidden=len(answer.facts) - len(rows),
        table=case_table(rows, folded=False, mark=mark),
    )


def _row(fact: Fact, limits: Limits) -> CaseRow:
    case, reference, after = (clip(cell(value), limits.text) for value in (fact.case, fact.reference, fact.after))
    return CaseRow(clip(fact.heading, limits.text), case, reference, after, fact.changed)


def _evidence(answer: Explanation) -> str:
    """What was checked, in one line."""
    parts = []
    if answer.proof.verified and answer.score_after is not None:
        parts.append(f"re-checked on the model: {answer.score:.3f} to {answer.score_after:.3f}")
    if answer.proof.minimal and answer.sev is not None:
        parts.append(f"proved: {what_is_proved(answer)} ({answer.proof.strategy}, {answer.proof.nodes:,} nodes)")
    if answer.alternatives:
        n = len(answer.alternatives)
        parts.append("the only set of this size listed" if n == 1 else f"{n} sets of this size listed")
    return "; ".join(parts)


def _unanswered(explanations: Explanations, limits: Limits) -> dict[str, Any]:
    """The first cases without a proved answer."""
    open_codes = [STATUSES.index(s) for s in (Status.UNREACHABLE, Status.NOT_CREDIBLE, Status.BUDGET)]
    rows = np.flatnonzero(np.isin(explanations.answers.status, open_codes))
    shown = [explanations[int(row)] for row in rows[: limits.listed]]
    return {
        "rows": [(clip(str(a.label), limits.text), a.status.value, clip(str(a), limits.sentence)) for a in shown],
        "hidden": len(rows) - len(shown),
    }
