"""A letter is right or it is not written."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import parsed_back
import pytest
import typer
from typer.testing import CliRunner

import fewest as fw
from fewest.apps.cli._outlets import letter as command
from fewest.errors import FewestError, UsageError
from fewest.references import References
from fewest.reporting import Code, Codes, Letter, LetterError, letter
from fewest.results.explanation import Explanation
from fewest.runs import explain_files

ASKED = 50
X = pd.DataFrame(
    {"debt": [80, 20, 90], "late": [7, 0, 1], "age": [30, 50, 40], "job": ["<b>none</b>", "clerk", "clerk"]}
)
CODES = Codes.of(
    [
        Code("debt", "down", "R01", "Debts are high"),
        Code("late", "any", "R02", "Payments were\nlate"),
        Code("age", "any", "R09", "Age"),
        Code("job", "level", "R03", "Kind of work & pay"),
    ]
)


def score(rows: pd.DataFrame) -> Any:
    return rows["debt"].to_numpy(dtype=float) / 100 + rows["late"].to_numpy(dtype=float) / 10


DECISION = fw.Decision(score, positive="bad")
PLAIN = fw.references.supplied(DECISION, X.iloc[[1]], X=X)
SIGNED = PLAIN.sign_off("Credit Risk")


def answer(refs: References = SIGNED, row: int = 0, **options: Any) -> Explanation:
    explainer = fw.Explainer(refs.decision, refs, n_jobs=1)
    return replace(explainer.explain(X, alternatives=ASKED)[row], **options)


def written(**options: Any) -> Letter:
    return letter(answer(), CODES, SIGNED, **options)


def test_a_letter_names_reasons_codes_values_and_who_signed() -> None:
    text = written(dated=date(2026, 11, 12), subject="your loan of 12 Nov").text
    first, second = (line for line in text.splitlines() if re.match(r"  \d \(", line))
    assert text.startswith("2026-11-12\n\nWe could not approve your loan of 12 Nov.\n")
    assert first == "  1 (R02) Payments were late: 7; typical accepted case: 0 *"
    assert second == "  2 (R01) Debts are high: 80; typical accepted case: 20 *"
    assert "No smaller set of changes" in text


def test_what_a_letter_rests_on_is_on_a_sheet_of_its_own() -> None:
    both = written()
    for said in ("r1", "signed by Credit Risk on ", str(both.audit["record"]), "not legal advice"):
        assert said in both.audit_sheet
        assert said not in both.text
        assert said not in both.html
    assert both.audit["reasons"] == "R02 (late), R01 (debt)"
    assert repr(both) == "<letter of case 0: reasons R02 (late), R01 (debt)>"


def test_who_writes_to_whom_and_when_is_at_the_top() -> None:
    whole = written(
        dated=date(2026, 11, 12), sender="A Bank\n1 High Street", recipient="B <b>C</b>", our_reference="A/7"
    )
    head = "A Bank\n1 High Street\n\nB <b>C</b>\n\n2026-11-12\n\nOur reference: A/7\n\nWe could not approve"
    assert whole.text.startswith(head)
    assert "<address>A Bank<br>1 High Street</address>" in whole.html
    assert "<address>B &lt;b&gt;C&lt;/b&gt;</address>" in whole.html
    assert '<time datetime="2026-11-12">2026-11-12</time>' in whole.html


@pytest.mark.parametrize(
    ("locale", "said"), [("de_DE", "12. November 2026"), ("en-GB", "12 November 2026"), ("fr", "12 novembre 2026")]
)
def test_a_date_is_written_as_people_write_it_there(locale: str, said: str) -> None:
    pytest.importorskip("babel", reason="Babel is not installed (extra letters)")
    assert written(dated=date(2026, 11, 12), locale=locale).text.startswith(said)


def test_a_locale_that_is_not_there_is_refused() -> None:
    pytest.importorskip("babel", reason="Babel is not installed (extra letters)")
    with pytest.raises(UsageError, match="there is no locale 'xx_YY'"):
        written(dated=date(2026, 11, 12), locale="xx_YY")


def test_the_values_in_text_and_html_turn_the_model() -> None:
    both = written()
    for changes in (
        parsed_back.of_letter(both.text, SIGNED.schema),
        parsed_back.of_html_letter(both.html, SIGNED.schema),
    ):
        row = parsed_back.turned_row(X.iloc[0].to_dict(), changes, SIGNED.schema)
        assert not DECISION.verdicts(parsed_back.as_frame([row], SIGNED.schema)).positive[0]


def test_a_letter_supports_and_promises_no_more() -> None:
    assert "supports" in written().audit["note"]
    for page in (written().text, written().html, written().audit_sheet):
        assert "compl" not in page.lower()


def test_text_from_tables_and_data_stays_text() -> None:
    decision = fw.Decision(lambda rows: (rows["job"] != "clerk").to_numpy(dtype=float), positive="bad")
    refs = fw.references.supplied(decision, X.iloc[[1]], X=X, names=["<i>r</i>"]).sign_off("A <b>B</b>\nC")
    page = letter(answer(refs), CODES, refs, subject="<script>alert(1)</script>").html
    assert "<script" not in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;b&gt;none&lt;/b&gt;" in page
    text = letter(answer(refs), CODES, refs, subject="two\nlines").text
    assert "We could not approve two\\nlines." in text
    assert "Kind of work & pay: <b>none</b>; typical accepted case: clerk" in text


def test_ties_that_the_cap_drops_are_listed() -> None:
    """Either of debt and late would do, by the same margin."""
    decision = fw.Decision(lambda rows: 0.3 * (rows["debt"] > 50) + 0.3 * (rows["late"] > 0), positive=1)
    refs = fw.references.supplied(decision, X.iloc[[1]], X=X).sign_off("Me")
    both = letter(answer(refs), CODES, refs, max_reasons=1)
    assert [reason.feature for reason in both.reasons.tied] == ["late"]
    after = both.text.split("Left out, though they weigh as much as the last one:\n")[1]
    assert after.startswith("  2 (R02) Payments were late: 7; typical accepted case: 0\n")
    assert "Left out" not in letter(answer(refs), CODES, refs).text


AGAIN = "`fewest explain DATA --model FILE --references FILE --alternatives 1000 --out RUN`"
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "not explained": (
        {"status": fw.Status.BUDGET}, "the case is stopped early, not explained", "choose a case that is explained"
    ),
    "not verified": ({"proof": replace(answer().proof, verified=False)}, "was not re-checked on the model", AGAIN),
    "not proved": ({"proof": replace(answer().proof, minimal=False)}, "not proved to be the smallest", AGAIN),
    "plus": ({"plus": True}, "SEV+", AGAIN),
    "cut": ({"all_listed": False}, "not all smallest sets are listed", AGAIN),
    "not listed": ({"alternatives": (), "all_listed": False}, "not all smallest sets are listed", AGAIN),
    "foreign reference": ({"reference": "r9"}, 'there is no reference "r9"', AGAIN),
    "facts unknown": ({"facts": ()}, "other values of the reference", AGAIN),
    "other values": (
        {"facts": (replace(answer().facts[0], reference=21), *answer().facts[1:])}, "other values of the reference",
        AGAIN,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_an_answer_that_cannot_bear_a_letter_is_refused(case: str) -> None:
    change, why, do = REFUSED[case]
    with pytest.raises(LetterError, match=re.escape(why)) as caught:
        letter(answer(**change), CODES, SIGNED)
    assert any(why in one for one in caught.value.why)
    assert do in str(caught.value.do)
    assert caught.value.exit_code == 5


def test_an_unsigned_reference_is_refused() -> None:
    with pytest.raises(LetterError, match='the reference "r1" is not signed off') as caught:
        letter(answer(PLAIN), CODES, PLAIN)
    assert "`fewest references sign FILE --by NAME`" in str(caught.value.do)
    assert "`references.sign_off(NAME)`" in str(caught.value.do)


def test_a_reference_that_was_changed_after_it_was_signed_is_refused() -> None:
    saved = SIGNED.saved()
    forged = replace(saved, values=({**saved.values[0], "debt": 10},))
    with pytest.raises(LetterError, match=r"changed after it was signed \(debt\)"):
        letter(answer(), CODES, forged)


def test_a_feature_that_the_schema_or_the_caller_protects_is_refused() -> None:
    schema = PLAIN.schema.with_("late", protected=True)
    marked = fw.references.supplied(DECISION, X.iloc[[1]], schema=schema).sign_off("Me")
    for refs, names in ((marked, ()), (SIGNED, ("late",))):
        with pytest.raises(LetterError, match='"late" is protected'):
            letter(answer(refs), CODES, refs, protected=names)
    assert written(protected=["age"]).text == written().text


def test_a_protected_feature_in_another_set_than_the_one_shown_is_refused() -> None:
    """Any of debt and late would do; which of the two is shown must not matter."""
    decision = fw.Decision(lambda rows: 0.3 * (rows["debt"] > 50) + 0.3 * (rows["late"] > 0), positive=1)
    refs = fw.references.supplied(decision, X.iloc[[1]], X=X).sign_off("Me")
    one = answer(refs)
    assert len(one.alternatives) == 2
    hidden = ({"debt", "late"} - {one.changes[0].feature}).pop()
    with pytest.raises(LetterError, match=f'"{hidden}" is protected'):
        letter(one, CODES, refs, protected=[hidden])


def test_a_misspelt_protected_feature_is_refused() -> None:
    with pytest.raises(UsageError, match='no feature "layte"'):
        written(protected=["layte"])


def test_a_reason_without_a_code_is_refused() -> None:
    few = Codes.of([Code("debt", "up", "R01", "x"), Code("late", "any", "R02", "y")])
    with pytest.raises(LetterError, match='"debt" has no code') as caught:
        letter(answer(), few, SIGNED)
    assert caught.value.do == 'add a line to the table of codes: debt,any,CODE,"What to say"'


def test_all_that_stands_against_a_letter_is_named_at_once() -> None:
    proof = replace(answer().proof, verified=False, minimal=False)
    with pytest.raises(LetterError) as caught:
        letter(answer(PLAIN, proof=proof), CODES, PLAIN, protected=["debt"])
    assert len(caught.value.why) == 4
    for said in (AGAIN, "`fewest references sign FILE --by NAME`", "--immutable debt"):
        assert str(caught.value.do).count(said) == 1


def test_protecting_nothing_is_caught() -> None:
    """Negative control of the refusals: what is refused above is written as soon as the cause is gone."""
    assert letter(answer(), CODES, SIGNED).reasons.given


class Linear:
    """A model that fits into a file."""

    classes_ = np.array(["good", "bad"])
    feature_names_in_ = np.array(X.columns, dtype=object)

    def predict_proba(self, rows: pd.DataFrame) -> Any:
        bad = np.clip(score(rows), 0, 1)
        return np.column_stack([1 - bad, bad])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    X.to_csv(tmp_path / "cases.csv", index=False)
    explainer = fw.Explainer(DECISION, SIGNED, n_jobs=1)
    explain_files(explainer, tmp_path / "cases.csv", tmp_path / "run", alternatives=ASKED, n_jobs=1)
    lines = "".join(f'{c.feature},{c.direction},{c.code},"{c.text}"\n' for c in CODES.codes.values())
    (tmp_path / "codes.csv").write_text(f"feature,direction,code,text\n{lines}")
    return tmp_path


def call(run: Path, *options: str) -> str:
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, [str(run / "run"), "--codes", str(run / "codes.csv"), *options])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return str(result.output)


def test_the_command_writes_the_same_letter_from_a_run_folder(run: Path) -> None:
    said = call(run, "--row", "0")
    for line in written().text.splitlines()[-6:]:
        assert line in said
    call(run, "--row", "0", "--html", "-o", str(run / "letter.html"), "--dated", "2026-11-12")
    page = (run / "letter.html").read_text()
    assert "2026-11-12" in page
    assert parsed_back.of_html_letter(page, SIGNED.schema) == parsed_back.of_letter(said, SIGNED.schema)


def test_the_command_refuses_what_the_function_refuses(run: Path) -> None:
    with pytest.raises(LetterError, match="the case is accepted"):
        call(run, "--row", "1")
    with pytest.raises(LetterError, match='"late" is protected'):
        call(run, "--row", "0", "--protected", "late")
    with pytest.raises(UsageError, match="there is no row 3"):
        call(run, "--row", "3")
    (run / "codes.csv").unlink()
    with pytest.raises(FewestError, match="no file codes"):
        call(run, "--row", "0")


def test_the_command_weighs_reasons_with_a_model(run: Path) -> None:
    import joblib

    joblib.dump(Linear(), run / "model.joblib")
    said = call(run, "--row", "0", "--model", str(run / "model.joblib"), "--allow-pickle")
    assert "Principal reasons, most important first:" in said
    assert "the weightiest first" not in call(run, "--row", "0")


NAMED = PLAIN.schema.with_("debt", label="Debts", unit="DM", reason_code="R41").with_("late", reason_code="R42")


def named() -> References:
    return fw.references.supplied(DECISION, X.iloc[[1]], schema=NAMED).sign_off("Credit Risk")


def test_a_feature_without_a_line_in_the_table_of_codes_has_the_code_of_its_schema() -> None:
    refs = named()
    text = letter(answer(refs), Codes.of([Code("late", "any", "R02", "Payments were late")]), refs).text
    assert "  1 (R02) Payments were late: 7; typical accepted case: 0 *" in text
    assert "  2 (R41) Debts: 80 DM; typical accepted case: 20 DM *" in text
    assert "  Debts: 20 DM instead of 80 DM\n  late: 0 instead of 7\n" in text


def test_a_letter_needs_no_table_where_the_schema_has_the_codes(tmp_path: Path) -> None:
    refs = named()
    X.to_csv(tmp_path / "cases.csv", index=False)
    explainer = fw.Explainer(refs.decision, refs, n_jobs=1)
    explain_files(explainer, tmp_path / "cases.csv", tmp_path / "run", n_jobs=1, alternatives=ASKED)
    app = typer.Typer()
    app.command()(command)
    done = CliRunner().invoke(app, [str(tmp_path / "run"), "--row", "0"])
    assert done.exit_code == 0
    assert "(R41) Debts: 80 DM; typical accepted case: 20 DM" in done.output
    assert "(R42) late: 7; typical accepted case: 0" in done.output


def test_a_letter_says_how_much_is_enough_where_the_model_is_at_hand() -> None:
    decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100, positive="bad")
    refs = fw.references.supplied(decision, {"debt": [10]}, X={"debt": [0, 50, 99]}).sign_off("Credit Risk")
    answer = fw.Explainer(decision, refs).explain({"debt": [80]}, alternatives=10)[0]
    codes = Codes.of([Code("debt", "down", "R01", "Debts are high")])
    written = letter(answer, codes, refs, enough=True)
    for text in (written.text, written.html):
        assert "debt: 10 instead of 80 (49 or less is enough)" in text
    assert "is enough" not in letter(answer, codes, refs).text
    with pytest.raises(UsageError, match="not at hand"):
        letter(replace(answer, enough=None), codes, refs, enough=True)
