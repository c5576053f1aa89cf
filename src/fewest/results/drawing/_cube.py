"""The cube of choices: every subset of the changed features, and whether it changes the outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from markupsafe import Markup

from fewest.results.drawing._pieces import fill, html_table, joined, twin
from fewest.tables.wording import clip

WIDTH, WIDE, LEVEL, MOST = 440, 640, 78, 4
SIGN, UNDER = 10, 34  # half a corner's sign; from a corner down to below its words
Corners = Mapping[frozenset[int], "Corner"]


@dataclass(frozen=True)
class Corner:
    """One subset of the changed features: their names, whether it changes the outcome, and a text such as its score."""

    names: tuple[str, ...]
    turned: bool
    text: str = ""


def corners_of(
    k: int, names: Sequence[str] = (), texts: Mapping[frozenset[int], str] | None = None
) -> dict[frozenset[int], Corner]:
    """The corners of a proved set of ``k`` features: every proper subset stays, only the whole set turns.

    That is what minimality says, so no model is needed. It holds for answers that are proved, and not where a floor
    of credibility or a rule between features takes subsets out of the race. ``names`` are the features, their numbers
    where not given; ``texts`` are written beside the corners.

    Examples
    --------
    >>> corners = corners_of(2, ("duration", "amount"))
    >>> [(corner.names, corner.turned) for corner in corners.values()]
    [((), False), (('duration',), False), (('amount',), False), (('duration', 'amount'), True)]
    """
    called = tuple(names) or tuple(str(j + 1) for j in range(k))
    known = texts or {}
    return {
        frozenset(chosen): Corner(tuple(called[j] for j in chosen), size == k, known.get(frozenset(chosen), ""))
        for size in range(k + 1)
        for chosen in combinations(range(k), size)
    }


def cube(
    features: Sequence[str],
    corners: Corners,
    folded: bool = True,
    *,
    words: tuple[str, str] = ("stays as it is", "changes the outcome"),
    bottom: str = "this case",
) -> Markup:
    """A drawing of the subsets of at most four changed features, level by level, with its table, folded or open.

    ``corners`` are by positions in ``features``; those that are left out are not drawn. ``words`` are for a corner that
    does not change the outcome and for one that does, ``bottom`` for the empty set.

    Examples
    --------
    >>> page = cube(("duration", "<amount>"), corners_of(2, ("duration", "<amount>")))
    >>> page.count("<circle"), page.count("fw-turned"), "&lt;amount&gt;" in page
    (3, 1, True)
    """
    table = twin("Show as table", _table(corners, words, bottom), folded)
    picture = _picture(features, corners, words, bottom)
    if len(features) > MOST:
        why = f"{len(features)} features change: too many to draw. Only all together change the outcome."
        picture = fill("<p>{text}</p>", text=why)
    return fill('<figure class="fw fw-cube">{picture}{table}</figure>', picture=picture, table=table)


def _picture(features: Sequence[str], corners: Corners, words: tuple[str, str], bottom: str) -> Markup:
    width = WIDTH if len(features) < MOST else WIDE
    places = _places(corners, width)
    height = (max((len(subset) for subset in corners), default=0) + 1) * LEVEL
    # Of more than two features, single names and pairs of names do not fit beside each other.
    named = "; ".join(f"{j + 1}: {name}" for j, name in enumerate(features)) + ". " if len(features) > 2 else ""
    called = _called(features, bottom)
    return fill(
        '<svg role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}"><title>{title}</title>'
        "<desc>{desc}</desc>{lines}{nodes}</svg><p>{named}Circle with a cross: {no}; filled square: {yes}.</p>",
        width=width, height=height, title="Which of the changes are needed?",
        desc="Every subset of the changed features, one level per number of features. The same is in the table.",
        lines=joined(_edges(places)), nodes=joined(_node(corners[s], places[s], called(s)) for s in places),
        named=named, no=words[0], yes=words[1],
    )  # fmt: skip


def _called(features: Sequence[str], bottom: str) -> Callable[[frozenset[int]], str]:
    """What stands below a corner: the name of a feature where one changes, else numbers, or that all do."""
    few = len(features) <= 2

    def called(subset: frozenset[int]) -> str:
        if not subset:
            return bottom
        if len(subset) == len(features) > 1:
            return "both" if few else "all"
        if len(subset) > 1:
            return "+".join(str(j + 1) for j in sorted(subset))
        (j,) = subset
        return clip(features[j], 22) if few else f"{j + 1} {clip(features[j], 14)}"

    return called


def _order(subset: frozenset[int]) -> tuple[int, list[int]]:
    return len(subset), sorted(subset)


def _places(corners: Corners, width: int) -> dict[frozenset[int], tuple[float, float]]:
    """Where each corner is drawn: a row per level, evenly spread."""
    out = {}
    for size in sorted({len(subset) for subset in corners}):
        level = sorted((subset for subset in corners if len(subset) == size), key=_order)
        for k, subset in enumerate(level):
            out[subset] = (round(width * (k + 0.5) / len(level), 1), size * LEVEL + 24.0)
    return out


def _edges(places: Mapping[frozenset[int], tuple[float, float]]) -> Iterable[Markup]:
    """Lines from below the words of a corner to the sign of the next: none crosses a word."""
    for below, (x, y) in places.items():
        for above, (to_x, to_y) in places.items():
            if len(above) == len(below) + 1 and below < above:
                ends = {"a": x, "b": y + UNDER, "c": to_x, "d": to_y - SIGN}
                yield fill('<line class="fw-edge" x1="{a}" y1="{b}" x2="{c}" y2="{d}"></line>', **ends)


def _node(corner: Corner, place: tuple[float, float], label: str) -> Markup:
    x, y = place
    if corner.turned:
        sign = fill('<rect class="fw-turned" x="{x}" y="{y}" width="20" height="20"></rect>', x=x - 10, y=y - 10)
    else:
        sign = fill(
            '<circle class="fw-stays" cx="{x}" cy="{y}" r="10"></circle><path class="fw-cross" d="{cross}"></path>',
            x=x, y=y, cross=f"M{x - 4} {y - 4}l8 8m0-8l-8 8",
        )  # fmt: skip
    text = clip(f"{label} {corner.text}".strip(), 26)
    return fill('{sign}<text x="{x}" y="{y}" text-anchor="middle">{text}</text>', sign=sign, x=x, y=y + 27, text=text)


def _table(corners: Corners, words: tuple[str, str], bottom: str) -> Markup:
    rows = (
        fill(
            "<tr><th scope=\"row\">{names}</th><td>{outcome}</td><td>{text}</td></tr>",
            names=" and ".join(corners[subset].names) or bottom, outcome=words[corners[subset].turned],
            text=corners[subset].text,
        )
        for subset in sorted(corners, key=_order)
    )  # fmt: skip
    return html_table(("changed", "outcome", "score"), rows)
