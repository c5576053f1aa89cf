"""Letters for all who were refused, in a form of one's own; who gets none is listed with the reasons."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fewest as fw
from fewest.apps.cli import main
from fewest.errors import DataError
from fewest.references import References
from fewest.reporting import Code, Codes, Letter, LetterError, LetterTemplate, letters
from fewest.runs import explain_files

X = pd.DataFrame({"debt": [65, 20, 90, 60], "age": [30, 50, 40, 20]})
DECISION = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100 - (rows["age"].to_numpy() > 35) * 0.2, positive="bad")
REFS = fw.references.supplied(DECISION, X.iloc[[1]], X=X)
CODES = "feature,direction,code,text\ndebt,down,R01,Debts are high\n"
OWN = """{{ sender | join(", ") }} to {{ recipient | join(", ") }}, {{ fields.town }}
{% for line in given %}
{{ line.code }}: {{ line.text }} ({{ line.case }})
{% endfor %}
"""


def answers(refs: References) -> Any:
    return fw.Explainer(refs.decision, refs, n_jobs=1).explain(X, alternatives=50)


def coded() -> Codes:
    return Codes.of([Code("debt", "down", "R01", "Debts are high")])


def test_every_refused_case_has_a_letter_or_the_reasons_why_not() -> None:
    found = list(letters(answers(REFS.sign_off("Me")), coded()))
    assert [answer.row for answer, _ in found] == [0, 2, 3]
    kinds = {answer.row: type(one) for answer, one in found}
    assert kinds == {0: LetterError, 2: Letter, 3: LetterError}  # of 0 and 3 the age would do as well: it has no code
    assert all('"age" has no code' in str(one) for _, one in found if isinstance(one, LetterError))
    assert all(isinstance(one, LetterError) for _, one in letters(answers(REFS), coded()))


def test_a_case_without_fields_gets_no_letter() -> None:
    (_, other), (_, one), _ = letters(answers(REFS.sign_off("Me")), coded(), fields={"2": {"recipient": "B\nC"}})
    assert isinstance(other, LetterError)
    assert other.why == ("it is not in the table of fields",)
    assert isinstance(one, Letter)
    assert one.text.startswith("B\nC\n\nWe could not approve")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{{ nobody }}", "'nobody' is undefined"),
        ("a\n{% for %}", "line 2"),
        ("a\n\n{{ nobody }}", "line 3"),
        ("{{ label.__class__.__mro__ }}", "unsafe"),
        ("{{ given.append(1) }}", "unsafe"),
        ("{% include 'letter.txt.j2' %}", "no loader"),
        ("{{ range(999999999) | list }}", "Range too big"),
        ("{{ 1 // 0 }}", "zero"),
    ],
)
def test_a_template_that_asks_for_more_than_it_is_given_is_refused(source: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        LetterTemplate(source).fill({"label": "x", "given": []})


def test_only_a_template_for_pages_escapes(tmp_path: Path) -> None:
    for name, said in (("own.html.j2", "&lt;b&gt;"), ("own.j2", "<b>"), ("own.txt", "<b>")):
        (tmp_path / name).write_text("{{ label }}")
        assert LetterTemplate.read(tmp_path / name).fill({"label": "<b>"}) == said
    (tmp_path / "own.j2").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="UTF-8"):
        LetterTemplate.read(tmp_path / "own.j2")
    with pytest.raises(DataError, match="no file"):
        LetterTemplate.read(tmp_path / "none.j2")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    X.to_csv(tmp_path / "cases.csv", index=False)
    explainer = fw.Explainer(DECISION, REFS.sign_off("Me"), n_jobs=1)
    explain_files(explainer, tmp_path / "cases.csv", tmp_path / "run", alternatives=50, n_jobs=1)
    (tmp_path / "codes.csv").write_text(CODES)
    (tmp_path / "own.j2").write_text(OWN)
    (tmp_path / "fields.csv").write_text("case,recipient,town\n0,Anna,01234\n2,Bert,x\n3,Cleo,y\n")
    return tmp_path


def call(run: Path, *more: str, out: str = "letters", codes: bool = True) -> int:
    codes_too = ["--codes", str(run / "codes.csv")] if codes else []
    return main(["letters", str(run / "run"), *codes_too, "--out", str(run / out), *more])


def test_the_command_writes_letters_and_two_tables(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(run, "--dated", "2026-11-12") == 0
    assert "1 letter written" in capsys.readouterr().out
    out = run / "letters"
    assert sorted(path.name for path in out.iterdir()) == ["2.txt", "audit.csv", "not_written.csv"]
    text = (out / "2.txt").read_text()
    assert text.startswith("2026-11-12\n\nWe could not approve your application.")
    (line,) = pd.read_csv(out / "audit.csv", dtype=str).to_dict("records")
    assert line["file"] == "2.txt"
    assert line["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert line["reference"].startswith("signed by Me on ")
    refusals = pd.read_csv(out / "not_written.csv")
    assert refusals["row"].tolist() == [0, 3]
    assert refusals["why"].str.contains('"age" has no code').all()
    assert refusals["what to do"].str.contains("add a line to the table of codes").all()


def test_the_command_fills_a_template_of_ones_own(run: Path) -> None:
    own = ["--template", str(run / "own.j2"), "--fields", str(run / "fields.csv"), "--sender", "A Bank"]
    (run / "codes.csv").write_text(CODES + "age,up,R02,Age\n")
    assert call(run, *own, "--sender", "City") == 0
    assert (run / "letters" / "2.txt").read_text() == "A Bank, City to Bert, x\nR01: Debts are high (90)\n"
    assert (run / "letters" / "0.txt").read_text().startswith("A Bank, City to Anna, 01234\nR0")


def test_the_command_says_so_where_letters_are_not_written(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(run, "--strict") == 5
    assert 'for 2 of them "age" has no code' in capsys.readouterr().err
    assert call(run, "--protected", "debt", out="none") == 5
    assert '"debt" is protected' in capsys.readouterr().err
    assert sorted(path.name for path in (run / "none").iterdir()) == ["audit.csv", "not_written.csv"]
    assert call(run, "--json", out="json") == 0
    assert json.loads(capsys.readouterr().out)["not_written"] == 2


def test_the_command_touches_no_folder_that_holds_something(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "letters").mkdir()
    (run / "letters" / "mine.txt").write_text("x")
    assert call(run) == 2
    assert "holds other files" in capsys.readouterr().err
    assert [path.name for path in (run / "letters").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("text", "said"),
    [("row,recipient\n0,A\n", 'no column "case"'), ("case,recipient\n0,A\n0,B\n", "more than once")],
)
def test_a_table_of_fields_that_names_nobody_is_refused(
    run: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "fields.csv").write_text(text)
    assert call(run, "--fields", str(run / "fields.csv")) == 3
    assert said in capsys.readouterr().err
    assert not (run / "letters").exists()
