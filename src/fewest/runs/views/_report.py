"""The report of a run: one page that stands alone, sentence first, evidence second, limits and fingerprints last."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from fewest.reporting._page import NOTE, statuses
from fewest.reporting._templates import render
from fewest.results.drawing import STYLE, CaseRow, bar_chart, scatter
from fewest.runs.views._case import CaseView
from fewest.runs.views._references import ReferenceView
from fewest.runs.views._run import RunView
from fewest.tables.wording import clip

POINTS = 200
GROUPED = 4  # protected features that are shown by group
FEATURES, REFERENCES, SAME = 120, 6, 60
TEXT, SENTENCE = 200, 2000

PROMISES = (
    "Every answer was scored again by the model itself, on the values that are printed here: it turns the decision.",
    "Explained means proved: no {less} set of features does it, with this reference and under these rules.",
    "Not possible means proved as well: no allowed change towards this reference turns the decision.",
    "Nothing was learned from the cases in this report.",
)
LIMITS = (
    "It describes the model. It does not say why the world is as it is, and it is no advice on what to do.",
    "It compares with the references named here; another reference can give another answer.",
    "Other sets of the same {measure} may exist; the one shown is the closest to the case.",
    "A set is sufficient for the turn. It does not rank its features, nor those outside it.",
    "The fingerprints show that files were changed, not who changed them.",
)


@dataclass(frozen=True)
class Example:
    """One case of the report."""

    row: int
    chosen: str
    decided: str
    sentence: str
    proof: str
    table: Markup
    cube: Markup | None
    hidden: int
    protected: tuple[str, ...]


def report(view: RunView, title: str | None = None) -> str:
    """One self-contained HTML page about a run: no script, nothing fetched, ready to be printed.

    A run of any size is read part by part; what is kept of it does not grow with it.

    Parameters
    ----------
    view : RunView
    title : str, optional
        Default: that of the run.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> import fewest as fw
    >>> from fewest.runs import explain_files
    >>> from fewest.runs.views import open_run
    >>> folder = Path(tempfile.mkdtemp())
    >>> pd.DataFrame({"debt": [10, 90]}).to_csv(folder / "cases.csv", index=False)
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    >>> refs = fw.references.supplied(decision, {"debt": [20]})
    >>> _ = explain_files(fw.Explainer(decision, refs), folder / "cases.csv", folder / "run", n_jobs=1)
    >>> page = report(open_run(folder / "run"))
    >>> "1 of 2 cases were predicted refused" in page, "<script" in page
    (True, False)
    """
    style = render("style.css.j2").rstrip() + "\n" + STYLE
    x_label, y_label = view.axes
    return render(
        "report_run.html.j2",
        title=clip(title or view.title, TEXT),
        style=Markup(style),
        style_hash=base64.b64encode(hashlib.sha256(f"\n{style}".encode()).digest()).decode(),
        note=NOTE,
        summary=view.summary,
        model=clip(view.model_name, TEXT),
        warnings=[clip(text, 2 * TEXT) for text in view.warnings()],
        promises=_promises(view),
        figures=_figures(view),
        charts=[
            bar_chart(view.sev_bars(), folded=False),
            bar_chart(_clipped(view), folded=False),
            scatter(
                "Close and usual", _question(view), x_label, y_label, view.closeness_points(POINTS)
            ),
        ] if view.explained else [],
        groups=_groups(view),
        references=_references(view),
        threshold=f"{float(view.settings['threshold']):g}",
        examples=[_example(view.case(row), why) for row, why in view.survey.examples()],
        random_state=view.random_state,
        keeps_cases=view.run.keeps_cases,
        statuses=statuses(view.counts, view.about["weighted"]),
        open_ends=_open_ends(view),
        limits=[text.format(measure="cost" if view.about["weighted"] else "size") for text in LIMITS],
        settings=_settings(view),
        fingerprints=view.fingerprints(),
    )  # fmt: skip


def _question(view: RunView) -> str:
    drawn = f" ({POINTS} explained cases drawn, seed {view.random_state})" if view.explained > POINTS else ""
    return f"How far does a case have to go, and how clearly does it end?{drawn}"


def _promises(view: RunView) -> list[str]:
    less = "cheaper" if view.about["weighted"] else "smaller"
    out = [text.format(less=f"{less} credible" if view.has_density else less) for text in PROMISES]
    if view.has_density:
        out.append("Only changes that lead where accepted cases are were counted as answers.")
    if view.about["plus"]:
        out[0] = (
            "Every answer was scored again by the model itself: put onto the typical case, these values bring it about."
        )
    return out


def _figures(view: RunView) -> list[tuple[str, str]]:
    return [
        (name, f"{value:,}" if isinstance(value, int) else f"{value:.4g}") for name, value in view.figures().items()
    ]


def _clipped(view: RunView) -> Any:
    chart = view.feature_bars()
    bars = tuple(replace(bar, name=clip(bar.name, TEXT)) for bar in chart.bars[:FEATURES])
    return replace(chart, bars=bars)


def _groups(view: RunView) -> list[dict[str, Any]]:
    """Protected features, group by group."""
    names = [name for name, is_protected in view.protected.items() if is_protected][:GROUPED]
    tables = [(view.titles[name], view.groups(name)) for name in names]
    return [{"name": clip(title, TEXT), "lines": lines} for title, lines in tables if lines]


def _references(view: RunView) -> dict[str, Any]:
    views = view.references()
    shown, count = views[:REFERENCES], len(views[0].rows)
    return {
        "views": [_reference(one) for one in shown],
        "rows": [
            (clip(shown[0].rows[j][0], TEXT), [clip(one.rows[j][1], TEXT) for one in shown])
            for j in range(min(count, FEATURES))
        ],
        "hidden_features": max(0, count - FEATURES),
        "hidden": len(views) - len(shown),
    }


def _reference(view: ReferenceView) -> Mapping[str, str]:
    signed = view.signature or "not signed"
    if view.broken:
        signed += f"; changed since: {', '.join(view.broken)}"
    return {
        "name": clip(view.name, TEXT),
        "score": "not known" if view.score is None else f"{view.score:.3f}",
        "support": "not known" if view.support is None else f"{view.support:,}",
        "used": f"{view.used:,}",
        "signed": clip(signed + (f" ({view.note})" if view.note else ""), 2 * TEXT),
    }


def _example(view: CaseView, chosen: str) -> Example:
    changed = [row for row in view.rows if row.changed]
    same = [row for row in view.rows if not row.changed]
    rows = [_short(row) for row in [*changed[:FEATURES], *same[:SAME]]]
    kept = replace(view, rows=tuple(rows))
    return Example(
        row=view.row,
        chosen=chosen,
        decided=clip(view.decided, TEXT),
        sentence=clip(view.sentence, SENTENCE),
        proof="; ".join(view.proof),
        table=kept.table(),
        cube=view.cube(),
        hidden=len(view.rows) - len(rows),
        protected=tuple(clip(name, TEXT) for name in view.protected),
    )


def _short(row: CaseRow) -> CaseRow:
    texts = {name: clip(getattr(row, name), TEXT) for name in ("feature", "case", "reference", "after")}
    return CaseRow(**texts, changed=row.changed)


def _open_ends(view: RunView) -> dict[str, Any]:
    """The first cases without a proved answer, and how many more there are."""
    answers = [view.run.explanation(row) for row in view.survey.open_ends]
    count = sum(view.counts.get(name, 0) for name in ("UNREACHABLE", "NOT_CREDIBLE", "BUDGET"))
    return {
        "rows": [(answer.row, answer.status.value, clip(str(answer), SENTENCE)) for answer in answers],
        "hidden": count - len(answers),
    }


def _settings(view: RunView) -> list[tuple[str, str]]:
    """The choices the run was made with, in words."""
    settings = view.settings
    rules = ", ".join(_rule(item) for item in settings["constraints"])
    weights = ", ".join(f"{name} {weight:g}" for name, weight in settings["weights"].items())
    floor = settings["credibility"]
    least = "cheapest" if view.about["weighted"] else "smallest"
    return [
        ("class explained", f"{view.about['positive']}, from a score of {float(settings['threshold']):g} on"),
        ("direction", "what brings the decision about (SEV+)" if view.about["plus"] else "what turns the decision"),
        ("rules", clip(rules, SENTENCE) or "none: every feature may change"),
        ("weights", clip(weights, SENTENCE) or "none: every feature counts once"),
        ("floor of credibility", "none" if floor is None else f"{floor['name']}, quantile {floor['quantile']}"),
        ("compared with", f"by {settings['assignment']}"),
        (f"{least} sets listed per case", f"up to {settings['alternatives']}" if settings["alternatives"] else "one"),
    ]


def _rule(item: Mapping[str, Any]) -> str:
    values = [str(value) for name, value in item.items() if name != "kind" and value not in (None, [], ())]
    return f"{item['kind']}({', '.join(values)})"
