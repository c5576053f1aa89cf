"""The pages of a whole run: where to begin, and all cases with their figures, groups and a list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from fewest.apps.explorer._forms import is_row
from fewest.apps.explorer._pages_of_run import Explored
from fewest.errors import DataError
from fewest.reporting.views import SORTS, CaseLine, Filter, PopulationView
from fewest.results import drawing
from fewest.results.explanation import Status
from fewest.runs.run import Run
from fewest.tables.wording import clip

PAGE = 50
POINTS = 500
MOST_CHOICES = 300
OPEN_ENDS = (Status.UNREACHABLE, Status.NOT_CREDIBLE, Status.BUDGET)
STATUS_CHOICES = (
    ("AGAINST", "all refused"),
    *((status.value, status.words) for status in (Status.EXPLAINED, *OPEN_ENDS, Status.ALREADY_NEGATIVE)),
    ("", "everybody"),
)
SORT_WORDS = {
    "row": "row", "sev": "features changed", "score": "score", "margin": "margin", "closeness": "largest change (SD)",
    "density": "how usual",
}  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """What a visitor asked to see, as the form holds it."""

    status: str = "AGAINST"
    sev: str = ""
    feature: str = ""
    reference: str = ""
    sort: str = "row"

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Choice:
        """Take it from an address; what nobody could have chosen is refused."""
        asked = {name: query.get(name, default) for name, default in vars(cls()).items()}
        if asked["status"] not in dict(STATUS_CHOICES) or asked["sort"].removeprefix("-") not in SORTS:
            raise DataError("there is no such choice", do="choose from the lists on the Population page")
        if asked["sev"] and not is_row(asked["sev"]):
            raise DataError("the number of features is not a number", do="choose from the list")
        return cls(**asked)

    @property
    def wanted(self) -> Filter:
        """The same as a filter of the run."""
        return Filter(self.status, int(self.sev) if self.sev else None, self.feature, self.reference)

    @property
    def query(self) -> str:
        """The same as part of an address."""
        return urlencode({name: value for name, value in vars(self).items() if value or name == "status"})


@dataclass(frozen=True)
class ListedCase:
    """One case of the list, as text."""

    row: int
    score: str
    sev: str
    what: str


def context(view: PopulationView, choice: Choice, page: int, by: str) -> dict[str, Any]:
    """What the page shows of a choice."""
    count = view.count(choice.wanted)
    pages = max(1, -(-count // PAGE))
    page = min(max(1, page), pages)
    by = by if by in view.titles else _first_group(view)
    return {
        "by": by,
        "by_title": view.titles[by],
        "group_choices": list(view.titles.items())[:MOST_CHOICES],
        "groups": view.groups(by),
        "chosen": choice,
        "query": choice.query,
        "count": count,
        "against": view.against,
        "lines": [_listed(view, line) for line in view.cases(choice.wanted, choice.sort, page, PAGE)],
        "page": page,
        "pages": pages,
    }


def charts(view: PopulationView) -> dict[str, Any]:
    """What of the page is the same whatever is chosen on it."""
    return {
        "summary": view.summary,
        "figures": figures(view),
        "warnings": view.warnings(),
        "sev_chart": drawing.bar_chart(view.sev_bars()),
        "feature_chart": drawing.bar_chart(view.feature_bars()),
        "scatter": _scatter(view),
        **_choices(view),
    }


def figures(view: PopulationView) -> list[tuple[str, str]]:
    """The run in a handful of numbers."""
    tally = view.tally
    return [
        ("cases", f"{view.rows:,}"),
        ("refused", f"{view.against:,}"),
        ("explained, re-checked", f"{view.explained:,}"),
        ("mean features changed", f"{tally.mean_sev:.2f}" if view.explained else "-"),
        *((status.words, f"{tally.count(status):,}") for status in OPEN_ENDS if tally.count(status)),
    ]


def not_found(view: PopulationView, text: str) -> str:
    """What is shown for a search for something that is not there."""
    return (
        f"Nothing here is called {clip(text, 100)!r}. Cases are found by their row, from 0 to {view.rows - 1:,}, and "
        "features by their name. Below are all cases that were refused."
    )


def _first_group(view: PopulationView) -> str:
    """The column that is sliced by unless another is chosen: a protected one, a category, or the first."""
    features = view.population.schema.features
    for fits in (lambda f: f.protected, lambda f: f.kind in ("category", "boolean"), lambda f: True):
        for feature in features:
            if fits(feature) and len(feature.columns) == 1:
                return feature.name
    return features[0].name


def _scatter(view: PopulationView) -> Any:
    points = view.closeness_points(POINTS, link=lambda row: f"/decision/{row}")
    return drawing.scatter("Distance and margin", "How far, and how sure?", *view.axes, points)


def _choices(view: PopulationView) -> dict[str, list[tuple[str, str]]]:
    used = [name for name in view.tally.features if name in view.titles][:MOST_CHOICES]
    references = [reference.name for reference in view.references()][:MOST_CHOICES]
    sorts = [
        (mark + name, SORT_WORDS[name] + word) for name in SORTS for mark, word in (("", ""), ("-", ", descending"))
    ]
    return {
        "status_choices": list(STATUS_CHOICES),
        "sev_choices": [("", "any number"), *((str(size), str(size)) for size in view.tally.sev)],
        "feature_choices": [("", "any"), *((name, view.titles[name]) for name in used)],
        "reference_choices": [("", "any"), *((name, name) for name in references)],
        "sort_choices": sorts,
    }


def _listed(view: PopulationView, line: CaseLine) -> ListedCase:
    hidden = {view.titles[name] for name, on in view.protected.items() if on} & set(line.features)
    what = " and ".join(line.features)
    if hidden:
        what = "withheld: uses a protected feature"
    status = Status(line.status)
    if status != Status.EXPLAINED:
        what = f"{status.words}; found so far: {what}" if what and status == Status.BUDGET else status.words
    return ListedCase(line.row, line.score, "-" if line.sev is None else str(line.sev), what)


def start(explored: Explored) -> dict[str, Any]:
    """What the first page shows; there is always one case on it."""
    view = explored.view
    example = explored.view_of(explored.first)
    return {
        "summary": view.summary,
        "figures": figures(view),
        "warnings": view.warnings(),
        "example": "" if example.protected else example.sentence,
        "first": explored.first,
        "hardest": view.survey.hardest[0] if view.survey.hardest else None,
        "open_ends": [(s.value, s.words, view.tally.count(s)) for s in OPEN_ENDS if view.tally.count(s)],
        "model": view.model_name,
        "outcome": explored.run.about.outcome,
        "reference_count": len(view.references()),
        "fingerprints": explored.run.origin.fingerprints,
    }


def about(run: Run) -> str:
    """The run in a few words, for the top of every page."""
    view = PopulationView(run)
    return f"{view.title} · {view.model_name} · {view.against:,} of {view.rows:,} refused"
