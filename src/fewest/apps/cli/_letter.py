"""``fewest letter RUN``: the reasons of one decision as a letter, from a run folder."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from fewest.apps.cli._options import MODEL, AllowPickle


def letter(
    run: Annotated[Path, typer.Argument(help="Run folder of `fewest explain --alternatives N --out RUN`.")],
    row: Annotated[int, typer.Option("--row", min=0, help="Number of the case in the data, from 0 on.")],
    codes: Annotated[
        Path | None,
        typer.Option("--codes", help="CSV of reason codes: feature, direction, code, text. Default: the schema's own."),
    ] = None,
    html: Annotated[bool, typer.Option("--html", help="Write HTML instead of text.")] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write. Default: the terminal.")] = None,
    model: Annotated[Path | None, typer.Option("--model", help=f"Weighs the reasons. {MODEL}")] = None,
    allow_pickle: AllowPickle = False,
    protected: Annotated[list[str] | None, typer.Option("--protected", help="Never a reason; repeatable.")] = None,
    max_reasons: Annotated[int, typer.Option("--at-most", min=1, help="Reasons given.")] = 4,
    subject: Annotated[str, typer.Option("--subject", help="What was decided on.")] = "your application",
    dated: Annotated[
        datetime | None, typer.Option("--dated", formats=["%Y-%m-%d"], help="Date on the letter. Default: none.")
    ] = None,
) -> None:
    """Write a letter with the reasons of one decision, or say why none can be written.

    Reasons come from all smallest sets of the case. The letter supports a notice of principal reasons; it is not legal
    advice.
    """
    from fewest.apps.cli._text import clean
    from fewest.tables.files import write_text

    page = _written(run, row, codes, model, allow_pickle, tuple(protected or ()), max_reasons, subject, dated)
    text = page[1] if html else page[0]
    if out is None:
        typer.echo(clean(text))
    else:
        write_text(out, text)


def _written(
    folder: Path, row: int, codes: Path | None, model: Path | None, allow_pickle: bool, protected: tuple[str, ...],
    max_reasons: int, subject: str, dated: datetime | None,
) -> tuple[str, str]:  # fmt: skip
    """The letter as text and as HTML."""
    from fewest import reporting
    from fewest.errors import UsageError
    from fewest.references.file import read_saved
    from fewest.runs import Run
    from fewest.runs.run import REFERENCES

    run = Run.open(folder)
    if not row < run.rows:
        raise UsageError(
            f"there is no row {row}: the run has {run.rows:,}", do=f"use a number from 0 to {run.rows - 1}"
        )
    decision = None
    if model is not None:
        from fewest.apps.cli._verify import decision_of
        from fewest.persistence.models import load_model

        decision = decision_of(load_model(model, allow_pickle), run.manifest["settings"])
    written = reporting.letter(
        run.explanation(row), None if codes is None else reporting.Codes.read(codes),
        read_saved(run.path / REFERENCES), decision=decision, protected=protected, max_reasons=max_reasons,
        subject=subject, dated=None if dated is None else dated.date(),
    )  # fmt: skip
    return written.text, written.html
