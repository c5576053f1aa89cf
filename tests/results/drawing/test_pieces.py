"""Pieces of pages: every text escaped, every picture with its table, nothing that runs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import combinations

import pytest
from markupsafe import Markup
from payloads import PAYLOADS, escapes

from fewest.results import drawing
from fewest.results.drawing import Bar, Bars, CaseRow, Corner, Point, Scale


def table_of(text: str) -> Markup:
    rows = [CaseRow(text, text, text, text, True), CaseRow(text, text, text, text, False)]
    return drawing.case_table(rows, (text,) * 4, mark=text)


def cube_of(text: str) -> Markup:
    names = (text, "other")
    corners = drawing.corners_of(2, names, {frozenset({0}): text})
    return drawing.cube(names, corners, words=(text, text), bottom=text)


def bars_of(text: str) -> Markup:
    return drawing.bar_chart(Bars(text, text, (Bar(text, 3, 0.5, text),)), columns=(text, text, text))


def points_of(text: str) -> Markup:
    points = [Point(1, 2, text, text, "/case/1"), Point(2, 1, "b", text, text), Point(math.nan, 1, text, text)]
    return drawing.scatter(text, text, text, text, points)


def scales_of(text: str) -> Markup:
    return drawing.scales([Scale(text, text, text, text, (1.0, 2.0), (0.0, 9.0), (5.0, 1.5)), Scale(*(text,) * 4)])


FRAGMENTS: dict[str, Callable[[str], Markup]] = {
    "case_table": table_of,
    "cube": cube_of,
    "bar_chart": bars_of,
    "scales": scales_of,
    "scatter": points_of,
}


@pytest.mark.parametrize("name", FRAGMENTS)
@pytest.mark.parametrize("text", PAYLOADS, ids=range(len(PAYLOADS)))
def test_hostile_text_stays_text(name: str, text: str) -> None:
    page = FRAGMENTS[name](text)
    assert isinstance(page, Markup)
    assert escapes(page) == []
    page.encode("utf-8")
    plain = text.encode("utf-8", "replace").decode()
    shown = re.sub(r"<[^>]+>", "", page)
    assert Markup(shown).unescape().count(plain[:20]) >= 1


def test_the_reader_sees_text_that_got_out() -> None:
    """Negative control: the same pieces without escaping are caught, for all payloads that hold markup."""
    for text in PAYLOADS:
        page = f'<p title="{text}">{text}</p>'
        if "<" in text or " on" in text:
            assert escapes(page) != [], text
    assert escapes("<table><tr></table>") != []


@pytest.mark.parametrize("name", FRAGMENTS)
def test_pieces_carry_neither_styles_nor_script_and_colours_come_by_class(name: str) -> None:
    page = FRAGMENTS[name]("plain")
    assert "style=" not in page
    assert "<script" not in page
    assert "fill=" not in page
    used = set(re.findall(r"fw[-\w]*", " ".join(re.findall(r'class="([^"]+)"', page))))
    known = set(re.findall(r"\.(fw[-\w]*)", drawing.STYLE))
    assert used <= known | {"fw-chart", "fw-cube", "fw-case"}


@pytest.mark.parametrize("name", ["cube", "bar_chart", "scatter"])
def test_every_picture_has_a_name_a_description_and_a_table(name: str) -> None:
    page = FRAGMENTS[name]("plain")
    assert len(re.findall(r'<svg role="(img|group)"', page)) == 1
    assert page.count("<title>") == 1
    assert page.count("<desc>") == 1
    assert "<details><summary>Show as table</summary>" in page
    assert "<table" in page


def test_changed_rows_come_first_and_the_rest_is_folded() -> None:
    rows = [CaseRow(name, "1", "2", "2", name in "bd") for name in "abcd"]
    page = drawing.case_table(rows)
    assert re.findall(r'<th scope="row">(\w)', page) == ["b", "d", "a", "c"]
    assert page.index("2 more features, unchanged") > page.index(">d")
    assert page.count("(changed)") == 2
    assert "<details" not in drawing.case_table(rows, folded=False)
    assert "<details" not in drawing.case_table([row for row in rows if not row.changed])


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_only_the_whole_of_a_proved_set_turns(k: int) -> None:
    corners = drawing.corners_of(k)
    subsets = {frozenset(chosen) for size in range(k + 1) for chosen in combinations(range(k), size)}
    assert set(corners) == subsets
    assert [subset for subset, corner in corners.items() if corner.turned] == [frozenset(range(k))]


def test_the_cube_has_an_edge_for_every_single_change() -> None:
    names = ("a", "b", "c")
    page = drawing.cube(names, drawing.corners_of(3, names))
    assert page.count("<line") == 12
    assert page.count("<circle") == 7
    assert page.count('class="fw-turned"') == 1
    assert "1: a; 2: b; 3: c" in page


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_no_line_of_the_cube_crosses_a_word(k: int) -> None:
    """Words are drawn with 18 pixels at most, on phones; a line may touch neither them nor a sign."""
    page = str(drawing.cube("abcd"[:k], drawing.corners_of(k, "abcd"[:k])))
    words = [float(y) for y in re.findall(r'<text x="[^"]*" y="([^"]*)"', page)]
    lines = [(float(top), float(end)) for top, end in re.findall(r'<line [^>]*y1="([^"]*)" [^>]*y2="([^"]*)"', page)]
    assert len(lines) == k * 2 ** (k - 1)
    assert not [(line, y) for line in lines for y in words if line[0] < y + 5 and line[1] > y - 18]


def test_a_corner_that_turns_earlier_is_drawn_as_it_is() -> None:
    """The drawing shows what it is told, not what a proof would say."""
    corners = drawing.corners_of(2, ("a", "b")) | {frozenset({0}): Corner(("a",), True)}
    assert drawing.cube(("a", "b"), corners).count('class="fw-turned"') == 2


def test_five_features_are_listed_and_not_drawn() -> None:
    page = drawing.cube("abcde", drawing.corners_of(5, "abcde"))
    assert "<svg" not in page
    assert page.count("<tr>") == 33


def test_at_most_eight_bars_are_drawn_and_all_are_in_the_table() -> None:
    page = drawing.bar_chart(Bars("t", "q", [Bar(f"f{j}", 20 - j, 0.05) for j in range(12)]))
    assert page.count('class="fw-bar"') == 8
    assert page.count('<th scope="row">') == 12
    assert "The 8 most frequent of 12." in page


def test_the_longest_bar_fills_its_room_and_the_others_are_in_proportion() -> None:
    page = drawing.bar_chart(Bars("t", "q", [Bar("a", 40, 0.8), Bar("b", 10, 0.2)]))
    long, short = (float(width) for width in re.findall(r'class="fw-bar"[^>]* width="([\d.]+)"', page))
    assert long == 4 * short


def test_nothing_to_draw_is_said() -> None:
    assert "There is nothing to draw." in drawing.bar_chart(Bars("t", "q", ()))
    assert "There is nothing to draw." in drawing.scatter("t", "q", "x", "y", [])


def test_points_lie_where_their_figures_say() -> None:
    points = [Point(0, 0, "a", "0"), Point(1, 1, "a", "1"), Point(2, 4, "a", "2")]
    places = re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', drawing.scatter("t", "q", "x", "y", points))[:3]
    xs, ys = [float(x) for x, _ in places], [float(y) for _, y in places]
    assert xs[2] - xs[1] == pytest.approx(xs[1] - xs[0], abs=0.2)
    assert ys[1] - ys[2] == pytest.approx(3 * (ys[0] - ys[1]), abs=0.4)


@pytest.mark.parametrize("values", [[3.0] * 4, [1e-9, 2e-9], [-1e12, 1e12], [0.0]])
def test_any_range_of_figures_can_be_drawn(values: list[float]) -> None:
    page = drawing.scatter("t", "q", "x", "y", [Point(v, v, "a", str(v)) for v in values])
    assert escapes(page) == []
    assert "nan" not in page


def test_points_without_a_figure_are_in_the_table_alone() -> None:
    page = drawing.scatter("t", "q", "x", "y", [Point(1, 1, "a", "one"), Point(math.inf, 1, "a", "two")])
    assert page.count("<circle") == 2  # one point, one sign of the legend
    assert "1 without a figure is in the table alone." in page
    assert ">two<" in page


def test_marks_lead_only_within_the_site() -> None:
    for href in ("javascript:alert(1)", "http://example.org", "//example.org", "data:text/html,x", "/\\example.org"):
        assert "<a " not in drawing.scatter("t", "q", "x", "y", [Point(1, 1, "a", "one", href)])
    page = drawing.scatter("t", "q", "x", "y", [Point(1, 1, "a", "one", "/case/1")])
    assert page.count('href="/case/1"') == 2
    assert 'role="img"' not in page


def test_groups_differ_in_shape() -> None:
    points = [Point(k, k, f"g{k}", str(k)) for k in range(8)]
    page = drawing.scatter("t", "q", "x", "y", points)
    assert {f"fw-g{k}" for k in range(6)} == set(re.findall(r"fw-g\d", page))
    assert "others" in page


def test_a_thousand_points_stay_below_three_hundred_kilobytes() -> None:
    points = [Point(k / 7, -k / 3, f"{k % 3} features", f"case {k}", f"/case/{k}") for k in range(1000)]
    assert len(drawing.scatter("t", "q", "x", "y", points).encode()) < 300_000
