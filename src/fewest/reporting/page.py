"""The report: one page that stands alone, sentence first, evidence second, limits and fingerprints last."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from fewest.reporting.page_templates import render
from fewest.reporting.views import CaseView, PopulationView, ReferenceView
from fewest.results.drawing import STYLE, bar_chart, percent, scatter
from fewest.results.explanation import STATUSES, Status
from fewest.results.population import Population, figure
from fewest.tables.wording import clip

MAX_BYTES = 200_000
GROUPED = 4  # protected features that are shown by group
NOTE = "This describes the model. It is not advice and not a cause."
MEANINGS = {
    Status.EXPLAINED: "the {least} set was found, proved and re-checked on the model",
    Status.ALREADY_NEGATIVE: "the model accepted this case: there is nothing to explain",
    Status.UNREACHABLE: "not possible with this reference and these limits (proved)",
    Status.NOT_CREDIBLE: "possible, but only by way of cases that are not believable",
    Status.BUDGET: "the search stopped early; what is shown is the best found so far",
}
PROMISES = (
    "Every answer was scored again by the model itself, on the values that are printed here: it changes the outcome.",
    "Explained means proved: no {less} set of features does it, with this reference and under these rules.",
    "Not possible means proved as well: no allowed change towards this reference changes the outcome.",
    "Nothing was learned from the cases in this report.",
)
NOT_SAID = (
    "It describes the model. It does not say why the world is as it is, and it is not advice on what to do.",
    "It compares with the references named here; another reference can give another answer.",
    "Other sets of the same {measure} may exist; the one shown is the closest to the case.",
    "A set is enough to change the outcome. It does not rank its features, nor those outside it.",
    "The fingerprints show that files were changed, not who changed them.",
)


@dataclass(frozen=True)
class PageLimits:
    """How much of wide tables and long texts is shown, so that the page stays small."""

    text: int
    sentence: int
    features: int
    unchanged: int
    references: int
    points: int


LIMITS = (
    PageLimits(text=200, sentence=2000, features=120, unchanged=60, references=6, points=200),
    PageLimits(text=60, sentence=500, features=40, unchanged=10, references=3, points=100),
    PageLimits(text=24, sentence=200, features=15, unchanged=2, references=1, points=50),
)


def html(
    source: Population | PopulationView,
    title: str | None = None,
    *,
    verb: str = "",
    random_state: int = 0,
    enough: bool = False,
) -> str:
    """One self-contained HTML page about explanations or a run: no script, nothing fetched, ready to be printed.

    A run of any size is read part by part; what is kept of it does not grow with it.

    Parameters
    ----------
    source : Explanations, Run or PopulationView
        What `Explainer.explain` returned, or a run folder that was opened.
    title : str, optional
        Heading of the page; default: that of the run.
    verb : str
        What happened to the cases explained, as the summary sentence says it; default: by the name of the outcome.
    random_state : int
        Draws the random examples.
    enough : bool
        Show which values of each change are enough, in the examples. Asks the model, so that it is left out of reports
        on run folders.

    Returns
    -------
    str
        The page; wide tables and long texts are shortened where it would exceed 200 kB.

    Examples
    --------
    >>> import fewest as fw, pandas as pd
    >>> from fewest.reporting import html
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
    >>> decision = fw.Decision(LogisticRegression().fit(X, y))
    >>> out = fw.Explainer(decision, fw.references.single(decision, X, y)).explain(X)
    >>> "2 of 4 cases were refused; for 100 % one feature changes the outcome." in html(out, verb="refused")
    True
    """
    view = source if isinstance(source, PopulationView) else PopulationView(source, random_state, verb)
    page = ""
    for limits in LIMITS:
        page = _render(view, clip(title or view.title, 200), limits, enough)
        if len(page.encode("utf-8")) < MAX_BYTES:
            break
    return page


def _render(view: PopulationView, title: str, limits: PageLimits, enough: bool) -> str:
    style = render("style.css.j2").rstrip() + "\n" + STYLE
    about, origin = view.population.about, view.population.origin
    least = "cheapest" if about.weighted else "smallest"
    return render(
        "report.html.j2",
        title=title,
        style=Markup(style),
        style_hash=base64.b64encode(hashlib.sha256(f"\n{style}".encode()).digest()).decode(),
        note=NOTE,
        summary=view.summary,
        model=clip(view.model_name, limits.text),
        warnings=[clip(text, 2 * limits.text) for text in view.warnings()],
        promises=_promises(view),
        figures=[(name, percent(value) if name.startswith("share") else figure(value))
                 for name, value in view.figures().items()],
        strategies=", ".join(view.survey.strategies) or "nothing to search",
        notes=origin.notes,
        charts=_charts(view, limits) if view.explained else [],
        groups=_groups(view, limits),
        references=_references(view, limits),
        threshold=f"{about.threshold:g}",
        examples=[_example(view.case(row), why, limits, enough) for row, why in view.survey.examples()],
        random_state=view.random_state,
        keeps_cases=origin.keeps_cases,
        statuses=[(s.words, f"{view.tally.count(s):,}", MEANINGS[s].format(least=least)) for s in STATUSES],
        open_ends=_open_ends(view, limits),
        limits=[text.format(measure="cost" if about.weighted else "size") for text in NOT_SAID],
        settings=_settings(view, limits) if view.settings else [],
        fingerprints=origin.fingerprints,
    )  # fmt: skip


def _charts(view: PopulationView, limits: PageLimits) -> list[Markup]:
    often = view.feature_bars()
    bars = tuple(replace(bar, name=clip(bar.name, limits.text)) for bar in often.bars[: limits.features])
    drawn = f" ({limits.points} explained cases drawn, seed {view.random_state})"
    question = "How far does a case have to go, and how clearly does it end?"
    question += drawn if view.explained > limits.points else ""
    return [
        bar_chart(view.sev_bars()),
        bar_chart(replace(often, bars=bars)),
        scatter("Distance and margin", question, *view.axes, view.closeness_points(limits.points)),
    ]


def _promises(view: PopulationView) -> list[str]:
    about = view.population.about
    less = "cheaper" if about.weighted else "smaller"
    out = [text.format(less=f"{less} credible" if about.has_density else less) for text in PROMISES]
    if about.has_density:
        out.append("Only changes that lead where accepted cases are were counted as answers.")
    if about.plus:
        out[0] = (
            "Every answer was scored again by the model itself: put onto the typical case, these values are enough "
            "for the outcome."
        )
    return out


def _groups(view: PopulationView, limits: PageLimits) -> list[dict[str, Any]]:
    """Protected features, group by group."""
    names = [name for name, is_protected in view.protected.items() if is_protected][:GROUPED]
    tables = [(view.titles[name], view.groups(name)) for name in names]
    return [{"name": clip(title, limits.text), "lines": lines} for title, lines in tables if lines]


def _references(view: PopulationView, limits: PageLimits) -> dict[str, Any]:
    views = view.references()
    shown, count = views[: limits.references], len(views[0].rows)
    return {
        "views": [_reference(one, limits.text) for one in shown],
        "rows": [
            (clip(shown[0].rows[j][0], limits.text), [clip(one.rows[j][1], limits.text) for one in shown])
            for j in range(min(count, limits.features))
        ],
        "hidden_features": max(0, count - limits.features),
        "hidden": len(views) - len(shown),
    }


def _reference(view: ReferenceView, text: int) -> Mapping[str, str]:
    signed = view.signature or "not signed"
    if view.broken:
        signed += f"; changed since: {', '.join(view.broken)}"
    return {
        "name": clip(view.name, text),
        "score": "not known" if view.score is None else f"{view.score:.3f}",
        "support": "not known" if view.support is None else f"{view.support:,}",
        "used": f"{view.used:,}",
        "signed": clip(signed + (f" ({view.note})" if view.note else ""), 2 * text),
    }


def _example(view: CaseView, chosen: str, limits: PageLimits, enough: bool) -> dict[str, Any]:
    """One case of the report."""
    changed = [row for row in view.rows if row.changed][: limits.features]
    same = [row for row in view.rows if not row.changed][: limits.unchanged]
    rows = tuple(row.clipped(limits.text) for row in [*changed, *same])
    return {
        "label": clip(str(view.answer.label), limits.text),
        "chosen": chosen,
        "verdict": clip(view.verdict, limits.text),
        "sentence": clip(view.sentence, limits.sentence),
        "proof": "; ".join(view.proof),
        "table": replace(view, rows=rows).table(),
        "gauge": view.gauge() or "",
        "cube": view.cube(),
        "how_much": view.how_much(limits.features, limits.text) if enough and not view.protected else None,
        "hidden": len(view.rows) - len(rows),
        "protected": [clip(name, limits.text) for name in view.protected],
    }


def _open_ends(view: PopulationView, limits: PageLimits) -> dict[str, Any]:
    """The first cases without a proved answer, and how many more there are."""
    answers = [view.population.explanation(row) for row in view.survey.open_ends]
    count = view.tally.count(Status.UNREACHABLE, Status.NOT_CREDIBLE, Status.BUDGET)
    return {
        "rows": [(clip(str(a.label), limits.text), a.status.words, clip(str(a), limits.sentence)) for a in answers],
        "hidden": count - len(answers),
    }


def _settings(view: PopulationView, limits: PageLimits) -> list[tuple[str, str]]:
    """The choices the answers were made with, in words."""
    settings, about = view.settings, view.population.about
    rules = ", ".join(_rule(item) for item in settings["constraints"])
    weights = ", ".join(f"{name} {weight:g}" for name, weight in settings["weights"].items())
    floor = settings["credibility"]
    least = "cheapest" if about.weighted else "smallest"
    return [
        ("class explained", f"{about.positive}, from a score of {about.threshold:g} on"),
        ("direction", "what is enough for the outcome (SEV+)" if about.plus else "what changes the outcome"),
        ("rules", clip(rules, limits.sentence) or "none: every feature may change"),
        ("weights", clip(weights, limits.sentence) or "none: every feature counts once"),
        ("floor of credibility", "none" if floor is None else f"{floor['name']}, quantile {floor['quantile']}"),
        ("compared with", f"by {settings['assignment']}"),
        (f"{least} sets listed per case", f"up to {settings['alternatives']}" if settings["alternatives"] else "one"),
    ]


def _rule(item: Mapping[str, Any]) -> str:
    values = [str(value) for name, value in item.items() if name != "kind" and value not in (None, [], ())]
    return f"{item['kind']}({', '.join(values)})"
