"""What people come to do, done in a real browser: at a desk, on a phone, in the dark; nothing leaves the machine."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason='pip install "fewest[explore]"')
pytest.importorskip("uvicorn", reason='pip install "fewest[explore]"')
pytest.importorskip("pyarrow", reason='pip install "fewest[runs]"')

from explorer_runs import Subject, add_states, served

from fewest.apps.explorer import Live, create_app
from fewest.runs import Run

DEVICES: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 900}},
    "phone": {"viewport": {"width": 375, "height": 740}, "has_touch": True, "is_mobile": True},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
}


@dataclass
class Visit:
    """One visitor: a page that is let in, and every request it made."""

    page: Any
    home: str
    rows: dict[str, int]
    run: Path
    asked: list[str] = field(default_factory=list)

    def go(self, path: str) -> Any:
        self.page.goto(self.home + path)
        return self.page

    def follow(self, link: Any) -> None:
        """Press what leads to a page, and wait until that is loaded, its style too."""
        with self.page.expect_navigation():
            link.click()

    @property
    def sentence(self) -> str:
        return str(self.page.locator("#sentence").inner_text())


@dataclass(frozen=True)
class Place:
    """A served run that the tests of this module share, with a model and another run."""

    address: str
    run: Path
    rows: dict[str, int]


@pytest.fixture(scope="module")
def place(
    subject: Subject, live_of: Callable[[Path], Live], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    run = Path(shutil.copytree(subject.run, tmp_path_factory.mktemp("stories") / "run"))
    rows = add_states(run)
    with served(create_app(run, other=subject.other, live=live_of(run), protected=["months"])) as address:
        yield Place(address, run, rows)


def visits(chromium: Any, place: Place, device: str, **more: Any) -> Iterator[Visit]:
    context = chromium.new_context(**DEVICES[device], **more)
    page = context.new_page()
    visit = Visit(page, place.address.partition("/?")[0], place.rows, place.run)
    page.on("request", lambda request: visit.asked.append(request.url))
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: _note(errors, message))
    page.goto(place.address)
    yield visit
    page.wait_for_load_state()  # a page without its style yet is wide
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    context.close()
    assert wide <= 0, "the page is wider than the screen"
    assert [url for url in visit.asked if not url.startswith((visit.home + "/", "data:", "blob:"))] == []
    assert errors == []


def _note(errors: list[str], message: Any) -> None:
    """Keep what went wrong; that a form was refused is none of it."""
    if message.type == "error" and "status of 400" not in message.text:
        errors.append(message.text)


STORIES: list[Callable[[Visit], None]] = []


def story(told: Callable[[Visit], None]) -> Callable[[Visit], None]:
    STORIES.append(told)
    return told


@story
def open_the_address_and_the_token_is_gone(visit: Visit) -> None:
    assert "token" not in visit.page.url
    assert visit.page.locator("h1").inner_text() == "Loans of the north"
    cookies = visit.page.context.cookies()
    assert [(cookie["httpOnly"], cookie["sameSite"]) for cookie in cookies] == [(True, "Strict")]


@story
def reach_every_screen_from_the_top(visit: Visit) -> None:
    for name in ("Population", "Decision", "References", "Compare", "Tree", "Start"):
        visit.follow(visit.page.get_by_role("navigation", name="Screens").get_by_role("link", name=name))
        assert visit.page.locator('.top a[aria-current="page"]').inner_text() == name


@story
def find_my_row(visit: Visit) -> None:
    page = visit.go("/decision")
    page.get_by_label("Find a case").fill(str(visit.rows["EXPLAINED"]))
    visit.follow(page.get_by_role("button", name="Find"))
    assert page.locator("h1").inner_text() == f"Case {visit.rows['EXPLAINED']}"


@story
def read_the_sentence_and_what_proves_it(visit: Visit) -> None:
    page = visit.go(f"/decision/{visit.rows['EXPLAINED']}")
    assert visit.sentence.startswith("If ")
    assert "proved: no smaller set does it" in page.locator(".proof").inner_text()


@story
def copy_the_sentence(visit: Visit) -> None:
    page = visit.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit.go(f"/decision/{visit.rows['EXPLAINED']}")
    page.get_by_role("button", name="Copy the sentence").click()
    page.get_by_text("Copied.").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == visit.sentence


@story
def see_the_features_that_stay(visit: Visit) -> None:
    page = visit.go(f"/decision/{visit.rows['EXPLAINED']}")
    summary = page.get_by_text("unchanged")
    summary.click()
    assert page.get_by_role("rowheader", name="sex").is_visible()


@story
def step_to_the_next_case_and_back_by_keys(visit: Visit) -> None:
    page = visit.go(f"/decision/{visit.rows['EXPLAINED']}")
    first = page.url
    page.keyboard.press("ArrowRight")
    page.wait_for_url(lambda url: url != first)
    page.keyboard.press("k")
    page.wait_for_url(first)


@story
def keys_do_not_step_while_typing(visit: Visit) -> None:
    page = visit.go(f"/decision/{visit.rows['EXPLAINED']}")
    page.keyboard.press("/")
    page.keyboard.type("jk")
    page.keyboard.press("ArrowLeft")
    assert page.get_by_label("Find a case").input_value() == "jk"
    assert page.url.endswith(f"/decision/{visit.rows['EXPLAINED']}")


@story
def look_at_the_cube_and_its_table(visit: Visit) -> None:
    page = visit.go("/decision")
    cube = page.locator("figure.fw-cube")
    assert cube.get_by_role("img").is_visible()
    cube.get_by_text("Show as table").click()
    assert cube.get_by_role("rowheader", name="this case").is_visible()


@story
def forbid_a_feature_and_see_the_new_answer(visit: Visit) -> None:
    page = visit.go(f"/decision/{visit.rows['EXPLAINED']}")
    before = visit.sentence
    page.get_by_text("Choose the features that stay").click()
    page.get_by_role("checkbox", name=f"{before.split()[1]} stays").check()
    visit.follow(page.get_by_role("button", name="Explain again"))
    again = page.locator("#try .sentence").inner_text()
    assert again
    assert again != before


@story
def try_another_value_and_see_the_live_score(visit: Visit) -> None:
    page = visit.go(f"/decision/{visit.rows['EXPLAINED']}")
    for label, value in (("credit amount", "400"), ("age", "75")):
        page.locator("#try").get_by_label(label, exact=True).fill(value)
    page.get_by_text("The model predicts good").wait_for()


@story
def a_value_that_is_none_is_named(visit: Visit) -> None:
    page = visit.go(f"/decision/{visit.rows['EXPLAINED']}")
    page.locator("#try").get_by_label("age", exact=True).fill("old")
    visit.follow(page.get_by_role("button", name="Ask the model"))
    assert "age: not a number" in page.get_by_role("alert").inner_text()


@story
def see_that_it_is_not_possible(visit: Visit) -> None:
    page = visit.go(f"/decision/{visit.rows['UNREACHABLE']}")
    assert page.get_by_role("heading", name="Not possible with this reference").is_visible()


@story
def see_at_least_four(visit: Visit) -> None:
    page = visit.go(f"/decision/{visit.rows['BUDGET']}")
    assert page.get_by_role("heading", name="At least 4").is_visible()


@story
def see_that_nothing_is_to_be_explained(visit: Visit) -> None:
    page = visit.go(f"/decision/{visit.rows['ALREADY_NEGATIVE']}")
    assert page.get_by_role("heading", name="Already accepted").is_visible()
    assert page.get_by_role("rowheader", name="credit amount").is_visible()


@story
def see_that_a_set_is_withheld(visit: Visit) -> None:
    page = visit.go("/population?feature=months")
    visit.follow(page.locator("#cases tbody a").first)
    assert page.get_by_role("heading", name="Withheld").is_visible()
    assert "months had been" not in page.locator("main").inner_text()


@story
def filter_and_sort_the_population(visit: Visit) -> None:
    page = visit.go("/population")
    page.get_by_label("Features changed").select_option("1")
    page.get_by_label("Sorted by").select_option("-score")
    visit.follow(page.get_by_role("button", name="Show"))
    cells = page.locator("#cases tbody tr td:nth-child(2)").all_inner_texts()
    scores = [float(text.removesuffix(" %")) for text in cells]
    assert scores == sorted(scores, reverse=True)
    assert set(page.locator("#cases tbody tr td:nth-child(3)").all_inner_texts()) == {"1"}


@story
def go_from_a_point_to_its_case(visit: Visit) -> None:
    page = visit.go("/population")
    mark = page.locator("figure svg a").first
    place = mark.get_attribute("href")
    mark.dispatch_event("click")
    page.wait_for_url(f"**{place}")


@story
def slice_by_a_group(visit: Visit) -> None:
    page = visit.go("/population")
    page.get_by_label("Slice by").select_option("account")
    visit.follow(page.get_by_role("button", name="Slice"))
    assert page.locator("#groups").get_by_role("rowheader", name="below 0").is_visible()


@story
def download_the_csv_and_open_it_again(visit: Visit) -> None:
    page = visit.go("/population?status=EXPLAINED")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download as CSV").click()
    text = Path(waiting.value.path()).read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == int(page.locator("#cases p:has(a[download])").inner_text().split()[0])


@story
def edit_a_reference_preview_save_and_go_back(visit: Visit) -> None:
    used = (visit.run / "references.json").read_bytes()
    page = visit.go("/references")
    page.get_by_text("Change values of").click()
    amount = page.locator("#edit").get_by_label("credit amount", exact=True)
    before = amount.input_value()
    amount.fill(str(int(before) - 500))
    visit.follow(page.get_by_role("button", name="Preview the effect"))
    assert "would get another explanation" in page.locator("#preview").inner_text()
    visit.follow(page.get_by_role("button", name="Save as version"))
    assert page.get_by_text("Saved as a new version.").is_visible()
    visit.follow(page.get_by_role("button", name="Go back to version 1"))
    assert page.locator("#edit").get_by_label("credit amount", exact=True).input_value() == before
    assert (visit.run / "references.json").read_bytes() == used


@story
def an_impossible_value_of_a_reference_is_not_saved(visit: Visit) -> None:
    page = visit.go("/references")
    page.get_by_text("Change values of").click()
    page.locator("#edit").get_by_label("age", exact=True).fill("36.5")
    visit.follow(page.get_by_role("button", name="Save as version"))
    assert "not a whole number" in page.get_by_role("alert").inner_text()


@story
def sign_a_reference(visit: Visit) -> None:
    page = visit.go("/references")
    page.get_by_label("Name or team").fill("Credit Risk")
    page.get_by_label("Note").fill("looked at in November")
    visit.follow(page.get_by_role("button", name="Sign"))
    assert page.get_by_text("signed by Credit Risk").first.is_visible()


@story
def compare_two_runs_and_list_changed_decisions(visit: Visit) -> None:
    page = visit.go("/compare")
    visit.follow(page.get_by_role("link", name="See them"))
    changed = page.locator("#changed tbody a")
    assert changed.count() > 0
    visit.follow(changed.first)
    assert page.locator("h1").inner_text().startswith("Case ")


@story
def the_tree_page_says_what_is_missing(visit: Visit) -> None:
    page = visit.go("/tree")
    assert page.get_by_role("heading", name="No tree in this run").is_visible()


@story
def get_a_wrong_address_explained(visit: Visit) -> None:
    # Another page than the visit's own: a 404 is an error of the console.
    answer = visit.page.request.get(visit.home + "/decision/999999")
    assert answer.status == 404
    assert "cases go from 0 to" in answer.text()


@story
def skip_to_the_content_by_keyboard_alone(visit: Visit) -> None:
    page = visit.go("/population")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


ROTATED = [(told, list(DEVICES)[k % len(DEVICES)]) for k, told in enumerate(STORIES)]
OTHERS = [(told, device) for told in STORIES for device in DEVICES if (told, device) not in ROTATED]


def names(value: Any) -> str:
    return value if isinstance(value, str) else value.__name__


@pytest.mark.parametrize(("told", "device"), ROTATED, ids=names)
def test_a_story_on_one_device(chromium: Any, place: Place, told: Callable[[Visit], None], device: str) -> None:
    for visit in visits(chromium, place, device):
        told(visit)


@pytest.mark.slow
@pytest.mark.parametrize(("told", "device"), OTHERS, ids=names)
def test_a_story_on_the_other_devices(chromium: Any, place: Place, told: Callable[[Visit], None], device: str) -> None:
    for visit in visits(chromium, place, device):
        told(visit)


def test_two_visitors_at_once_see_their_own_pages(chromium: Any, place: Place) -> None:
    both = [next(visits(chromium, place, "desktop")) for _ in range(2)]
    rows = [place.rows["EXPLAINED"], place.rows["UNREACHABLE"]]
    for visit, row in zip(both, rows, strict=True):
        visit.go(f"/decision/{row}")
    assert [visit.page.locator("h1").inner_text() for visit in both] == [f"Case {row}" for row in rows]
    for visit in both:
        visit.page.context.close()


def test_everything_can_be_read_and_sent_without_script(chromium: Any, place: Place) -> None:
    for visit in visits(chromium, place, "desktop", java_script_enabled=False):
        page = visit.go(f"/decision/{visit.rows['EXPLAINED']}")
        assert page.locator("#sentence").inner_text().startswith("If ")
        page.locator("#try").get_by_label("age", exact=True).fill("74")
        visit.follow(page.get_by_role("button", name="Ask the model"))
        assert "The model predicts" in page.locator("#live-score").inner_text()
        assert page.locator("#try").get_by_label("age", exact=True).input_value() == "74"


def test_a_visitor_without_the_token_sees_nothing(chromium: Any, place: Place) -> None:
    context = chromium.new_context()
    page = context.new_page()
    answer = page.goto(place.address.partition("/?")[0] + "/population")
    assert answer.status == 401
    assert "Loans" not in page.content()
    context.close()


def test_a_form_on_another_page_cannot_write(chromium: Any, place: Place, tmp_path: Path) -> None:
    """A page of another origin sends a form with the browser of somebody who is let in: nothing is written."""
    before = sorted(file.name for file in place.run.rglob("version-*"))
    context = chromium.new_context()
    page = context.new_page()
    page.goto(place.address)
    target = place.address.partition("/?")[0] + "/references/sign"
    evil = tmp_path / "evil.html"
    evil.write_text(f'<form method=post action="{target}"><input name=by value=x><button>go</button></form>')
    page.goto(evil.as_uri())
    with page.expect_response(target) as waiting:
        page.get_by_role("button").click()
    assert waiting.value.status == 403
    context.close()
    assert sorted(file.name for file in place.run.rglob("version-*")) == before


def test_the_rows_that_stories_use_exist(place: Place) -> None:
    assert set(place.rows) >= {"EXPLAINED", "ALREADY_NEGATIVE", "UNREACHABLE", "NOT_CREDIBLE", "BUDGET", "NOTHING"}
    assert Run.open(place.run).counts["BUDGET"] == 2
