"""A letter that says why a model refused somebody; or the reasons why no such letter can be written.

It supports a notice of the principal reasons; whether that is enough is for a lawyer to say.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from fewest.decision import Decision
from fewest.errors import UndefinedError, UsageError
from fewest.references import References
from fewest.references.file import Saved
from fewest.reporting._reasons import AT_MOST, Codes, Reason, Reasons, reasons
from fewest.reporting.letter_template import LetterTemplate, long_date
from fewest.reporting.page_templates import render
from fewest.results.explanation import Explanation, Status
from fewest.tables.cards import Rows, ShownAsCard
from fewest.tables.schema import Schema
from fewest.tables.values import Cells
from fewest.tables.wording import cell, printable, show_measured, show_name

NOTE = (
    "The letter supports a notice of the principal reasons for a decision. It describes what the model's decision "
    "depended on; it is not legal advice."
)
EXPLAIN = (
    "explain again: `fewest explain DATA --model FILE --references FILE --alternatives 1000 --out RUN`, or "
    "`explain(X, alternatives=1000)`"
)
SIGN = (
    "sign it before you explain: `fewest references build TRAIN --out FILE`, `fewest references sign FILE --by NAME`, "
    "then `fewest explain --references FILE`; or `references.sign_off(NAME)`"
)
Cause = tuple[str, str]  # what stands against a letter, and what to do about it


class LetterError(UndefinedError):
    """A letter is not written; ``why`` says for what reasons.

    Parameters
    ----------
    causes : mapping
        What stands against the letter -> what to do about it.

    Examples
    --------
    >>> print(LetterError({"the reference is not signed off": "sign it"}))
    no letter is written: the reference is not signed off
      Try: sign it
    """

    def __init__(self, causes: Mapping[str, str]) -> None:
        self.why = tuple(causes)
        remedies = dict.fromkeys(causes.values())
        super().__init__(f"no letter is written: {'; '.join(self.why)}", do="; ".join(remedies))


@dataclass(frozen=True, repr=False)
class Letter(ShownAsCard):
    """A letter: what it says, and the reasons it gives.

    Attributes
    ----------
    values : mapping
        What templates are filled with.
    audit : mapping
        What the letter rests on, for the files and not for the applicant: case, reference, signature, reasons.
    reasons : Reasons
    """

    values: Mapping[str, Any]
    audit: Mapping[str, str]
    reasons: Reasons

    @property
    def text(self) -> str:
        """The letter as text."""
        return render("letter.txt.j2", **self.values)

    @property
    def html(self) -> str:
        """The letter as an HTML page."""
        return render("letter.html.j2", **self.values)

    @property
    def audit_sheet(self) -> str:
        """What the letter rests on, as text."""
        width = max(map(len, self.audit))
        return "".join(f"{name:<{width}}  {said}\n" for name, said in self.audit.items())

    def fill(self, template: LetterTemplate) -> str:
        """The letter in a form of one's own."""
        return template.fill(self.values)

    def _card_rows(self) -> tuple[Sequence[str], Rows]:
        return (), [(line,) for line in self.text.splitlines() if line.strip()]

    def __repr__(self) -> str:
        return f"<letter of case {self.audit['case']}: reasons {self.audit['reasons']}>"


def letter(
    answer: Explanation,
    codes: Codes | None,
    references: References | Saved,
    *,
    decision: Decision | None = None,
    protected: Collection[str] = (),
    max_reasons: int = AT_MOST,
    subject: str = "your application",
    dated: date | None = None,
    enough: bool = False,
    locale: str | None = None,
    sender: str = "",
    recipient: str = "",
    our_reference: str = "",
    fields: Mapping[str, str] | None = None,
) -> Letter:
    """A letter with the reasons of one decision, as text, as HTML, or in a `LetterTemplate` of one's own.

    It is refused, with everything that stands against it, when the answer is not verified and proved, when its smallest
    sets are not all known, when one of them has a protected feature or one that would have had to get worse, when the
    reference was not signed off as it is now, and when a reason has no code.

    Parameters
    ----------
    answer : Explanation
        Explained with ``alternatives``.
    codes : Codes or None
        What the features are called; where it has no line, the ``reason_code`` and label of the schema.
    references : References or Saved
        The references the answer leads to, with their signatures.
    decision : Decision, optional
        Weighs the reasons; default: that of the references.
    protected : collection of str
        Features that are never given as a reason, beside those the schema marks.
    max_reasons : int
        Reasons given.
    subject : str
        What was decided on.
    dated : date, optional
        Default: no date.
    enough : bool
        Say which other values of each change would be enough. Asks the model, so that the answer has to come from
        `Explanations`, not from a run folder.
    locale : str, optional
        How the date is written, ``"de_DE"`` for 12. November 2026; needs Babel. Default: 2026-11-12.
    sender, recipient, our_reference : str
        Who writes, who reads and under which reference; they may have several lines.
    fields : mapping, optional
        More for a template of one's own: name -> text.

    Examples
    --------
    >>> import fewest as fw
    >>> from fewest.reporting import Code
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100, positive="bad")
    >>> refs = fw.references.supplied(decision, {"debt": [10]}).sign_off("Credit Risk")
    >>> out = fw.Explainer(decision, refs).explain({"debt": [80]}, alternatives=10)
    >>> codes = Codes.of([Code("debt", "down", "R01", "Debts are high")])
    >>> print(letter(out[0], codes, refs).text.splitlines()[3])
      1 (R01) Debts are high: 80; typical accepted case: 10 *
    """
    saved = references.saved() if isinstance(references, References) else references
    if isinstance(references, References) and decision is None:
        decision = references.decision
    if saved.schema is None:
        raise UsageError("a references file of format 1 does not say what its features are", do="load and save it")
    why = _against(answer, saved, saved.schema, protected)
    if why:
        raise LetterError(dict(why))
    (found,) = reasons(answer, max_reasons, codes, decision=decision, schema=saved.schema)
    unnamed = [reason.feature for reason in (*found.given, *found.tied) if reason.code is None]
    if unnamed:
        add = 'add a line to the table of codes: {},any,CODE,"What to say"'
        raise LetterError({f'"{n}" has no code for a change of this direction': add.format(n) for n in unnamed})
    if enough and answer.enough is None:
        raise UsageError("the model is not at hand, so nobody knows how much is enough", do="pass out[i] of `explain`")
    said = {
        "dated": "" if dated is None else long_date(dated, locale),
        "date": dated,
        "language": (locale or "en").replace("_", "-"),
        "subject": printable(subject),
        "sender": _lines_of(sender),
        "recipient": _lines_of(recipient),
        "our_reference": printable(our_reference),
        "fields": {name: "\n".join(_lines_of(text)) for name, text in (fields or {}).items()},
    }
    said["amounts"] = _amounts(answer) if enough else [""] * len(answer.changes)
    return Letter({**_values(answer, saved.schema, found), **said}, _audit(answer, saved, found), found)


def _against(answer: Explanation, saved: Saved, schema: Schema, protected: Collection[str]) -> list[Cause]:
    """Everything that stands against a letter."""
    if answer.status != Status.EXPLAINED:
        return [(f"the case is {answer.status.words}, not explained", "choose a case that is explained")]
    why = []
    if not answer.proof.verified:
        why.append(("the answer was not re-checked on the model", EXPLAIN))
    if not answer.proof.minimal:
        why.append(("the answer is not proved to be the smallest", EXPLAIN))
    if answer.plus:
        why.append(("the answer is a SEV+: it says what is enough for the outcome, not what changes it", EXPLAIN))
    if not answer.all_listed:
        why.append(("not all smallest sets are listed (explain with more alternatives)", EXPLAIN))
    used = {change.feature for changes in (answer.changes, *answer.alternatives) for change in changes}
    kept = {feature.name for feature in schema.features if feature.protected} | set(protected)
    worse = {one.feature for changes in (answer.changes, *answer.alternatives) for one in changes if one.worse}
    better = {feature.name: feature.better for feature in schema.features}
    one_way = "explain with --only {0}={1}, or fw.Only({0!r}, {1!r})"
    why += [
        (f'"{name}" would have had to get worse in a smallest set', one_way.format(name, better[name]))
        for name in schema.names
        if name in worse
    ]
    hold = "explain with {0} held: --immutable {0}, or fw.Immutable({0!r})"
    why += [
        (f'"{name}" is protected and in a smallest set', hold.format(name))
        for name in schema.names
        if name in used & kept
    ]
    for name in protected:
        schema.index(name)  # a misspelt name would protect nobody
    return why + _unsigned(answer, saved, schema)


def _unsigned(answer: Explanation, saved: Saved, schema: Schema) -> list[Cause]:
    """Why the reference cannot be relied on."""
    if answer.reference not in saved.names:
        return [(f'there is no reference "{answer.reference}" among those given', EXPLAIN)]
    number = saved.names.index(answer.reference)
    if not saved.signatures or saved.signatures[number] is None:
        return [(f'the reference "{answer.reference}" is not signed off', SIGN)]
    changed = saved.broken(number)
    if changed:
        return [(f'the reference "{answer.reference}" was changed after it was signed ({", ".join(changed)})', SIGN)]
    now = Cells.of(schema.conform(saved.frame.iloc[[number]], unseen="allow"))
    signed = {feature.name: now.value(0, feature) for feature in schema.features}
    if not answer.facts or any(signed.get(fact.name) != fact.reference for fact in answer.facts):
        made = f'the answer was made with other values of the reference "{answer.reference}" than were signed'
        return [(made, EXPLAIN)]
    return []


def _lines_of(text: str) -> list[str]:
    """The lines of an address, without what cannot be seen."""
    return [printable(line) for line in text.splitlines()]


def _values(answer: Explanation, schema: Schema, found: Reasons) -> dict[str, Any]:
    """What templates are filled with; texts of data and tables are on one line."""
    unit = {feature.name: feature.unit for feature in schema.features}
    return {
        "by_effect": all(reason.effect is not None for reason in found.given),
        "given": [_line(k, reason, unit) for k, reason in enumerate(found.given, start=1)],
        "tied": [_line(k, reason, unit) for k, reason in enumerate(found.tied, start=len(found.given) + 1)],
        "changes": [
            (show_name(one.title), _unquoted(one.after, one.unit), _unquoted(one.before, one.unit))
            for one in answer.changes
        ],
        "sets": found.sets,
        "less": "cheaper" if answer.weighted else "smaller",
        "label": printable(str(answer.label)),
    }


def _amounts(answer: Explanation) -> list[str]:
    """What is enough of each change, where it is more than the value shown."""
    assert answer.enough is not None
    pairs = zip(answer.changes, answer.enough(), strict=True)
    return [part.amount if part.amount != show_measured(one.after, one.unit) else "" for one, part in pairs]


def _audit(answer: Explanation, saved: Saved, found: Reasons) -> dict[str, str]:
    """What the letter rests on."""
    signature = saved.signatures[saved.names.index(str(answer.reference))]
    assert signature is not None
    codes = [f"{reason.code.code} ({reason.feature})" for reason in found.given if reason.code is not None]
    return {
        "case": printable(str(answer.label)),
        "row": str(answer.row),
        "reasons": printable(" ".join(", ".join(codes).split())),
        "smallest sets": str(found.sets),
        "compared with": printable(str(answer.reference)),
        "reference": printable(str(signature)),
        "record": signature.fingerprint[:12],
        "note": NOTE,
    }


def _unquoted(value: Any, unit: str | None) -> str:
    """A value with its unit; text without quotes where it cannot be taken for anything else."""
    split = isinstance(value, str) and any(mark in value for mark in (" instead of ", ";"))
    return cell(value) if isinstance(value, str) and not split else show_measured(value, unit)


def _line(number: int, reason: Reason, units: Mapping[str, str | None]) -> dict[str, Any]:
    """One reason as the letter prints it."""
    assert reason.code is not None
    unit = units[reason.feature]
    return {
        "number": number,
        "code": printable(" ".join(reason.code.code.split())),
        "text": printable(" ".join(reason.code.text.split())),
        "case": _unquoted(reason.case, unit),
        "typical": _unquoted(reason.typical, unit),
        "necessary": reason.kind == "necessary",
    }
