"""References edited, signed and taken back: every change is a file of its own, what the run used is never touched."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason='pip install "fewest[explore]"')
pytest.importorskip("uvicorn", reason='pip install "fewest[explore]"')
pytest.importorskip("pyarrow", reason='pip install "fewest[runs]"')
from explorer_runs import doctor

from fewest.apps.explorer import Live, _live
from fewest.apps.explorer._forms import fields, read_form
from fewest.apps.explorer._pages_of_run import Explored
from fewest.apps.explorer._references import add, changes_between, edited, find, versions
from fewest.errors import DataError, UsageError
from fewest.references.file import read_saved
from fewest.runs import Run
from fewest.tables.schema import Feature, Schema

Ask = Callable[..., Any]
AMOUNT, AGE = "f0", "f2"


def form(number: int = 0, version: int = 1, **typed: str) -> dict[str, str]:
    return {"number": str(number), "version": str(version), **typed}


def files(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_saving_an_edit_makes_a_new_version_and_touches_nothing_else(ask: Ask, own_run: Path) -> None:
    before, browser = files(own_run), ask(own_run)
    answer = browser.follow(browser.post("/references/save", form(**{AMOUNT: "5000"})))
    assert "Saved as a new version." in answer.text
    after = files(own_run)
    assert set(after) - set(before) == {"references/version-0002.json"}
    assert all(after[name] == data for name, data in before.items())
    assert read_saved(own_run / "references/version-0002.json").values[0]["amount"] == 5000


def test_a_saved_edit_can_be_explained_with(ask: Ask, own_run: Path, subject: Any) -> None:
    import fewest as fw

    browser = ask(own_run)
    browser.post("/references/save", form(**{AMOUNT: "5000"}))
    refs = fw.references.load(own_run / "references/version-0002.json", subject.decision)
    assert refs.frame["amount"].tolist() == [5000]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({AMOUNT: "lots"}, "not a number"),
        ({AMOUNT: "1e999"}, "not a finite number"),
        ({AMOUNT: ""}, "there is no value"),
        ({AMOUNT: "99999999"}, "outside what was seen"),
        ({AGE: "36.5"}, "not a whole number: use 36"),
        ({"f4": "99"}, "not one of the choices"),
        ({"f4": "-1"}, "not one of the choices"),
        ({}, "nothing was changed"),
    ],
)
def test_an_edit_that_cannot_be_is_named_and_not_saved(
    ask: Ask, own_run: Path, typed: dict[str, str], said: str
) -> None:
    answer = ask(own_run).post("/references/save", form(**typed))
    assert answer.status == 400
    assert said in answer.text
    assert len(versions(own_run)) == 1


def test_what_was_typed_is_still_there_after_a_refusal(ask: Ask, own_run: Path) -> None:
    answer = ask(own_run).post("/references/save", form(**{AMOUNT: "lots", AGE: "41"}))
    assert 'value="lots"' in answer.text
    assert 'value="41"' in answer.text
    assert 'aria-invalid="true"' in answer.text


def test_signing_is_a_new_version_and_void_after_an_edit(ask: Ask, own_run: Path) -> None:
    browser = ask(own_run)
    signed = browser.follow(browser.post("/references/sign", {**form(), "by": "Credit Risk", "note": "November"}))
    assert "signed by Credit Risk" in signed.text
    edited_page = browser.follow(browser.post("/references/save", form(version=2, **{AMOUNT: "5000"})))
    assert "no longer holds" in edited_page.text


def test_nobody_cannot_sign(ask: Ask, own_run: Path) -> None:
    answer = ask(own_run).post("/references/sign", {**form(), "by": "  "})
    assert answer.status == 400
    assert "nobody is named who signs" in answer.text
    assert len(versions(own_run)) == 1


def test_going_back_makes_the_old_values_the_newest_version(ask: Ask, own_run: Path) -> None:
    browser = ask(own_run)
    browser.post("/references/save", form(**{AMOUNT: "5000"}))
    browser.post("/references/restore", {"version": "1"})
    assert [version.number for version in versions(own_run)] == [1, 2, 3]
    assert changes_between(find(own_run, 1).saved, find(own_run, None).saved) == []


def test_a_preview_without_the_model_says_what_is_missing(ask: Ask, own_run: Path) -> None:
    answer = ask(own_run).post("/references/preview", form(**{AMOUNT: "5000"}))
    assert answer.status == 400
    assert "--live --model FILE" in answer.text
    assert len(versions(own_run)) == 1


def test_a_preview_counts_what_the_edit_changes(ask: Ask, own_run: Path, live_of: Callable[[Path], Live]) -> None:
    """The oracle: the sentences of all cases, explained again with the edited reference."""
    live, run = live_of(own_run), Run.open(own_run)
    page = ask(own_run, live=live).post("/references/preview", form(**{AMOUNT: "5000"})).text
    rows = run.table().query("status != 'ALREADY_NEGATIVE'")["row"].tolist()
    refs = live.explainer.references
    after = live.explainer.with_(references=replace(refs, frame=refs.frame.assign(amount=[5000])))
    again = after.explain(next(iter(run.cases())).loc[rows])
    pairs = [(run.explanation(row), now) for row, now in zip(rows, again, strict=True)]
    different = sum(was.status != now.status or was.changes != now.changes for was, now in pairs)
    told = [int(number) for number in re.findall(r"\d+", page.partition("were refused, ")[2].partition("possible.")[0])]
    assert sum(told) == different > 0


def test_a_preview_calls_nothing_impossible_that_was_not_searched_to_the_end(
    ask: Ask, own_run: Path, live_of: Callable[[Path], Live], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_live, "PREVIEW_SECONDS", 1e-9)
    live = live_of(own_run)
    count = Run.open(own_run).table()["status"].ne("ALREADY_NEGATIVE").sum()
    slow = replace(live, explainer=live.explainer.with_(structure="opaque"))
    page = ask(own_run, live=slow).post("/references/preview", form(**{AMOUNT: "5000"})).text
    assert "0 would get another explanation; 0 would become impossible, and 0 possible." in page
    assert f"Of {count} nothing can be said" in page
    assert "Not known: " in page
    assert "Impossible now" not in page


def test_a_preview_says_nothing_of_cases_that_the_run_did_not_finish(
    ask: Ask, states: tuple[Path, dict[str, int]], live_of: Callable[[Path], Live], tmp_path: Path
) -> None:
    run, rows = Path(shutil.copytree(states[0], tmp_path / "run")), states[1]
    page = ask(run, live=live_of(run)).post("/references/preview", form(**{AMOUNT: "5000"})).text
    assert "Of 2 nothing can be said" in page
    shown = page.partition("Not known: ")[2].partition("</p>")[0]
    assert f"case {rows['BUDGET']}<" in shown
    assert f"case {rows['NOTHING']}<" in shown


def test_a_preview_of_a_run_with_a_floor_compares_like_with_like(
    ask: Ask, own_run: Path, live_of: Callable[[Path], Live]
) -> None:
    """A floor that forbids nearly everything: the run's answers are others than those without it."""
    explained = Run.open(own_run).table().query("status == 'EXPLAINED'")["row"].tolist()
    doctor(own_run, {row: {"status": "NOT_CREDIBLE", "sev": None} for row in explained})
    manifest = json.loads((own_run / "manifest.json").read_text())
    manifest["settings"]["credibility"] = {"name": "mixture", "floor": -3.0, "quantile": 0.05, "sha256": ""}
    (own_run / "manifest.json").write_text(json.dumps(manifest))
    explored = Explored(Run.open(own_run), live=live_of(own_run))
    same = explored.effect(read_saved(own_run / "references.json"))
    assert (same.changed, same.lost, same.gained, same.unknown) == ((), (), (), ())
    assert "Without the run's floor on both sides: of " in str(same)


def test_a_reference_the_model_decides_against_is_refused(
    ask: Ask, own_run: Path, live_of: Callable[[Path], Live]
) -> None:
    answer = ask(own_run, live=live_of(own_run)).post(
        "/references/save", form(**{AMOUNT: "17900", "f1": "71", AGE: "19", "f4": "2"})
    )
    assert answer.status == 400
    assert "no explanation can end there" in answer.text
    assert len(versions(own_run)) == 1


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/json", b"{}", 415),
        ("multipart/form-data; boundary=x", b"--x--", 415),
        ("application/x-www-form-urlencoded", b"a=" + b"x" * 70_000, 413),
        ("application/x-www-form-urlencoded", "b=\xff".encode("latin-1"), 400),
        ("application/x-www-form-urlencoded", b"&".join(b"a%d=1" % k for k in range(5000)), 400),
    ],
)
def test_a_form_that_is_none_is_refused(ask: Ask, own_run: Path, kind: str, body: bytes, status: int) -> None:
    browser = ask(own_run)
    own = [("origin", "http://127.0.0.1:8765"), ("content-type", kind)]
    assert browser.ask("POST", "/references/save", own, body).status == status
    assert len(versions(own_run)) == 1


@pytest.mark.parametrize("name", ["save", "sign", "restore", "preview"])
def test_another_page_cannot_write(ask: Ask, own_run: Path, name: str) -> None:
    foreign = [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")]
    answer = ask(own_run).post(f"/references/{name}", form(**{AMOUNT: "5000"}), foreign)
    assert answer.status == 403
    assert len(versions(own_run)) == 1


def test_reading_never_writes(ask: Ask, own_run: Path) -> None:
    before, browser = files(own_run), ask(own_run)
    for path in ("/", "/population", "/decision/2", "/references", "/compare", "/tree", "/cases.csv?status="):
        assert browser.get(path).status == 200
    assert browser.get("/references/save").status == 405
    assert files(own_run) == before


def test_two_writers_never_take_the_same_number(own_run: Path) -> None:
    saved = find(own_run, 1).saved
    first, second = (add(own_run, edited(saved, saved.names[0], {**saved.values[0], "amount": k}, 0.1)) for k in (1, 2))
    assert (first.number, second.number) == (2, 3)
    assert read_saved(first.path).values[0]["amount"] == 1


def test_a_folder_that_cannot_be_written_says_so(ask: Ask, own_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", full)
    answer = ask(own_run).post("/references/save", form(**{AMOUNT: "5000"}))
    assert answer.status == 400
    assert "cannot be written: no permission" in answer.text


def test_strange_files_in_the_history_are_left_alone(own_run: Path) -> None:
    folder = own_run / "references"
    folder.mkdir()
    (folder / "version-9.json").write_text("{")
    (folder / "notes.txt").write_text("mine")
    assert [version.number for version in versions(own_run)] == [1]


def test_a_damaged_version_is_named(ask: Ask, own_run: Path) -> None:
    (own_run / "references").mkdir()
    (own_run / "references/version-0002.json").write_text("{")
    answer = ask(own_run).get("/references")
    assert answer.status == 400
    assert "version-0002.json is not a references file" in answer.text


def test_an_unknown_reference_cannot_be_edited(own_run: Path) -> None:
    with pytest.raises(UsageError, match="there is no reference"):
        edited(find(own_run, 1).saved, "nobody", {}, 0.1)


def mixed() -> Schema:
    return Schema(
        (
            Feature("age", "integer", ("age",), minimum=18, maximum=75),
            Feature("rate", "number", ("rate",), decimals=2, minimum=0, maximum=9),
            Feature("owns", "boolean", ("owns",), levels=(False, True)),
            Feature("home", "indicators", ("own", "rent"), levels=("own", "rent")),
            Feature("code", "category", ("code",), levels=(7, 8)),
            Feature("day", "datetime", ("day",)),
        )
    )


VALUES = {"age": 30, "rate": 1.5, "owns": True, "own": 1, "rent": 0, "code": 8, "day": "2026-01-05"}


def test_what_a_form_shows_read_back_is_the_same() -> None:
    shown = fields(mixed(), VALUES)
    assert [field.kind for field in shown] == ["number", "number", "choice", "choice", "choice", "fixed"]
    assert read_form(mixed(), VALUES, {field.name: field.value for field in shown}) == VALUES


def test_every_kind_of_feature_can_be_typed() -> None:
    typed = {"f0": "1,000", "f1": "2.345", "f2": "0", "f3": "1", "f4": "0", "f5": "2030-01-01"}
    with pytest.raises(DataError, match="age: outside what was seen"):
        read_form(mixed(), VALUES, typed)
    read = read_form(mixed(), VALUES, typed, anywhere=True)
    assert read == {"age": 1000, "rate": 2.35, "owns": False, "own": 0, "rent": 1, "code": 7, "day": "2026-01-05"}


def test_names_of_form_fields_hold_nothing_of_the_features(ask: Ask, hostile: Path) -> None:
    page = ask(hostile).get("/references").text
    names = {part.partition('"')[0] for part in page.split(' name="')[1:]}
    assert all(
        name in ("version", "number", "by", "note", "viewport", "color-scheme") or name[1:].isdecimal()
        for name in names
    )


def test_the_version_a_run_used_stays_the_one_in_its_manifest(ask: Ask, own_run: Path) -> None:
    import hashlib

    browser = ask(own_run)
    browser.post("/references/save", form(**{AMOUNT: "5000"}))
    known = json.loads((own_run / "manifest.json").read_text())["references"]["sha256"]
    assert hashlib.sha256((own_run / "references.json").read_bytes()).hexdigest() == known
