"""``fewest letters``: one file for each refused case, what each letter rests on, and who gets none for what reason."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fewest.apps.cli._files import check_folder, read_table, save
from fewest.apps.cli._outlets import weighing
from fewest.apps.cli._text import clean
from fewest.errors import DataError, UndefinedError, UsageError
from fewest.reporting import Codes, Letter, LetterError, LetterTemplate, letters
from fewest.reporting.views import as_csv
from fewest.results.drawing import counted
from fewest.results.explanation import Explanation
from fewest.runs import Run
from fewest.runs.storage import digest

if TYPE_CHECKING:
    from fewest.apps.cli._main import LettersRequest

AUDIT, NOT_WRITTEN = "audit.csv", "not_written.csv"
SAFE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
ROW = "row-"
REFUSALS = ("row", "case", "status", "why", "what to do")


def run(request: LettersRequest) -> int:
    """Write the letters; the tables come last, so that a folder without them is known to be unfinished."""
    check_folder(request.out)
    if request.out.is_dir() and any(request.out.iterdir()):
        raise UsageError(f"--out {request.out} holds other files", do="name an empty folder, or a new one")
    template = None if request.template is None else LetterTemplate.read(request.template)
    if template is not None and request.html and not template.is_page:
        raise UsageError(f"--html: {template.name} makes text", do="let its name end in .html.j2, or drop --html")
    opened = Run.open(request.run)
    fields = None if request.fields is None else read_fields(request.fields)
    found = letters(
        opened, None if request.codes is None else Codes.read(request.codes), fields=fields,
        decision=weighing(opened, request.model, request.allow_pickle), protected=tuple(request.protected or ()),
        max_reasons=request.at_most, subject=request.subject, locale=request.locale,
        dated=None if request.dated is None else request.dated.date(), sender="\n".join(request.sender or ()),
    )  # fmt: skip
    is_page = template.is_page if template is not None else request.html
    audit: list[dict[str, str]] = []
    refusals: list[dict[str, Any]] = []
    taken = {AUDIT.casefold(), NOT_WRITTEN.casefold()}
    for answer, one in found:
        if isinstance(one, LetterError):
            refusals.append(_refusal(answer, one))
            continue
        name = file_name(answer, ".html" if is_page else ".txt", taken)
        text = one.fill(template) if template is not None else one.html if is_page else one.text
        request.out.mkdir(parents=True, exist_ok=True)
        save(request.out / name, text)
        audit.append(_audit_line(name, text, one))
    request.out.mkdir(parents=True, exist_ok=True)
    save(request.out / NOT_WRITTEN, as_csv(pd.DataFrame(refusals, columns=list(REFUSALS))).decode())
    save(request.out / AUDIT, as_csv(pd.DataFrame(audit)).decode() if audit else "")
    return _ending(request, len(audit), refusals)


def _audit_line(name: str, text: str, letter: Letter) -> dict[str, str]:
    return {"file": name, "sha256": digest(text.encode()), **letter.audit}


def _refusal(answer: Explanation, error: LetterError) -> dict[str, Any]:
    """A line of the table of those who get no letter."""
    why, do = "; ".join(error.why), str(error.do)
    return dict(zip(REFUSALS, (answer.row, str(answer.label), answer.status.words, why, do), strict=True))


def file_name(answer: Explanation, ending: str, taken: set[str]) -> str:
    """The case's own name where that is safe as the name of a file and not taken yet, whatever its case; else its row.

    Examples
    --------
    >>> from types import SimpleNamespace as Case
    >>> taken = set()
    >>> [file_name(Case(row=row, label=name), ".txt", taken) for row, name in enumerate(["A-7", "../x", "a-7", 3])]
    ['A-7.txt', 'row-1.txt', 'row-2.txt', '3.txt']
    """
    name = f"{answer.label}{ending}"
    is_safe = SAFE.fullmatch(str(answer.label)) and not name.casefold().startswith(ROW)
    if not is_safe or name.casefold() in taken:
        name = f"{ROW}{answer.row}{ending}"
    taken.add(name.casefold())
    return name


def read_fields(path: Path) -> dict[str, Mapping[str, str]]:
    """What each letter has of its own, by the case: a table in which everything is text."""
    header = read_table(path).columns
    table = read_table(path, text=list(header)).fillna("").astype(str)
    if "case" not in table.columns:
        raise DataError(f'{path.name} has no column "case"', do="name the case of each line as the run does")
    twice = table.loc[table["case"].duplicated(), "case"]
    if len(twice):
        raise DataError(f'{path.name} has the case "{twice.iloc[0]}" more than once', do="keep one of them")
    return {row["case"]: row for row in table.to_dict("records")}


def _ending(request: LettersRequest, written: int, refusals: list[dict[str, Any]]) -> int:
    """Say what was done; it is an error where nothing was, and with --strict where anything was not."""
    causes = Counter(cause for one in refusals for cause in one["why"].split("; "))
    if request.as_json:
        known = {"letters": str(request.out), "written": written, "not_written": len(refusals), "causes": dict(causes)}
        print(json.dumps(known, indent=1, ensure_ascii=False))
    else:
        lines = [f"{counted(written, 'letter')} written to {request.out}, {len(refusals):,} not written"]
        lines += [f"  {count:,}: {cause}" for cause, count in causes.most_common(5)]
        print(clean("\n".join([*lines, f"Listed in {request.out / NOT_WRITTEN}"] if refusals else lines)))
    if refusals and (request.strict or not written):
        cause, count = causes.most_common(1)[0]
        do = next(one["what to do"] for one in refusals if cause in one["why"])
        raise UndefinedError(f"{counted(len(refusals), 'letter')} not written; for {count:,} of them {cause}", do=do)
    return 0
