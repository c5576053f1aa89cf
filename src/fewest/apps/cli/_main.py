"""The commands and their options; the work is imported when a command runs, so that ``--help`` stays fast."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from fewest.apps import child_process
from fewest.apps.cli import _command_groups as groups
from fewest.apps.cli import _options as options
from fewest.apps.cli._options import Above, AllowPickle, Json, Positive, Threshold, command
from fewest.apps.cli._outlets import CODES, TEMPLATE, Dated, Locale, Sender, explore, letter, report, serve
from fewest.errors import FewestError, ModelError

INTERRUPTED = 130
INTERNAL = 1
IN_PROCESS = "--in-process"
# Commands that open files which somebody else may have made; `serve` has workers of its own.
CONFINED = ("explain", "verify", "report", "explore", "letter", "letters", "compare", "references")
REFERENCES = (
    "Typical cases: a .csv or .json file; or single, clusters, near-threshold, leaves, anyone, made of --train."
)
Unseen = StrEnum("Unseen", ["error", "allow", "skip"])
DemoModel = StrEnum("DemoModel", ["logistic", "boosted", "mlp"])
FEATURES = (
    "Words for features, .csv: name, and any of label, unit, reason_code, protected, better (up or down: the other way "
    "is warned of), direction (up or down: it never goes the other way)."
)
ALTERNATIVES = "List up to N smallest sets per case. Default: 100 in a run folder, for letters; else none."
LETTER_FIELDS = "Table of what each letter has of its own: case, and any of recipient, our_reference, FIELD."
TABLES = "Cases to explain: .csv, .csv.gz or .parquet; with a run folder also several, and folders of them."

app = typer.Typer(
    name="fewest",
    help="The fewest facts that decide: exact, verified explanations of a classifier's decisions.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "token_normalize_func": lambda name: options.OLD_NAMES.get(name, name),
    },
)
for group in (groups.train, groups.paper, groups.references, groups.datasets):
    app.add_typer(group)


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    in_process: Annotated[
        bool, typer.Option(IN_PROCESS, help="Open files here, not in a child process with limits: for files you trust.")
    ] = False,
) -> None:
    if version:
        from fewest import __version__

        typer.echo(f"fewest {__version__}")
        raise typer.Exit(0)
    options.show_help(context)


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the report and the tables.")] = Path("demo-run"),
    model: Annotated[DemoModel, typer.Option("--model", help="What to train.")] = DemoModel.logistic,
    as_json: Json = False,
) -> int:
    """Train a model on German Credit, explain who it refuses, and write a report."""
    from fewest.apps.cli._demo import run

    return run(out, model.value, as_json)


@dataclass(frozen=True, kw_only=True)
class ReferencesAndRules:
    """What cases are compared with, and what may change: the same options for a table and for a file."""

    centre: Annotated[options.Centre | None, typer.Option(help="The typical accepted case. Default: mean.")] = None
    references: Annotated[str | None, typer.Option(help=REFERENCES)] = None
    immutable: Annotated[list[str] | None, typer.Option(help="Column that never changes; repeat it.")] = None
    protected: Annotated[list[str] | None, typer.Option(help="Column to warn of in answers; repeat it.")] = None
    weight: Annotated[list[str] | None, typer.Option(help="COL=W, cost of changing a column; repeat it.")] = None
    at_most: Annotated[float | None, typer.Option(help="Change at most N features.", metavar="N")] = None
    only: options.OnlyWays = None
    range: options.Ranges = None
    one_of: options.Levels = None
    credibility: options.CredibilityKind = None


@command(app, "explain", "_explain:run")
@dataclass(frozen=True)
class ExplainRequest(ReferencesAndRules):
    """Explain every case of a table that a model refused."""

    data: Annotated[list[Path] | None, typer.Argument(help=TABLES)] = None
    model: Annotated[Path | None, typer.Option(help=options.MODEL)] = None
    train: Annotated[Path | None, typer.Option(help="Training table: features and the target column.")] = None
    demo: Annotated[str | None, typer.Option(help="german: the embedded table and the demo's model.")] = None
    target: Annotated[str | None, typer.Option(help="Target column of the training table.")] = None
    positive: Positive = None
    threshold: Threshold = None
    above: Above = None
    names: Annotated[list[str] | None, typer.Option(help="CLASS=WORD, what people call an outcome; repeat it.")] = None
    schema: Annotated[Path | None, typer.Option(help=FEATURES)] = None
    id: Annotated[str | None, typer.Option(help="Column that names the cases.", metavar="COL")] = None
    unseen: Annotated[Unseen, typer.Option(help="Rows with unknown values: error, allow or skip.")] = Unseen.error
    plus: Annotated[bool, typer.Option("--plus", help="SEV+: the case's values that alone bring it about.")] = False
    alternatives: Annotated[int | None, typer.Option(min=0, help=ALTERNATIVES, metavar="N")] = None
    enough: Annotated[bool, typer.Option("--enough", help="Say which other values of each change would do.")] = False
    least: Annotated[bool, typer.Option("--least", help="Move numbers no further than they have to go.")] = False
    sufficient: Annotated[
        bool, typer.Option("--sufficient", help="Which own values alone suffice; with --references anyone.")
    ] = False
    time_limit: Annotated[float | None, typer.Option(min=0, help="Seconds; a run folder can go on later.")] = None
    out: Annotated[Path | None, typer.Option(help="File (.json, .csv or .html) or run folder to write.")] = None
    jobs: Annotated[int | None, typer.Option(min=1, help="Run folder: processes. Default: all cores.")] = None
    chunk_rows: Annotated[int | None, typer.Option(min=1, help="Run folder: rows explained at once.")] = None
    part_rows: Annotated[int | None, typer.Option(min=1, help="Run folder: rows per part file.")] = None
    no_cases: Annotated[bool, typer.Option("--no-cases", help="Run folder: leave the cases' own values out.")] = False
    as_json: Json = False
    strict: Annotated[bool, typer.Option("--strict", help="Exit 5 if a case has no proved answer.")] = False
    allow_pickle: AllowPickle = False

    @property
    def table(self) -> Path | None:
        """The one table, where that is what is named."""
        return self.data[0] if self.data else None


@command(app, "build", "_explain:run_build")
@dataclass(frozen=True)
class ExplainerFileRequest(ReferencesAndRules):
    """Write a model with its references and rules as one .fewest file, for `explain`, `serve` and Python."""

    train: Annotated[Path, typer.Argument(help="Training table: features and the target column.", show_default=False)]
    model: Annotated[Path, typer.Option(help=options.MODEL)]
    out: Annotated[Path, typer.Option(help="File to write, NAME.fewest.")]
    target: Annotated[str | None, typer.Option(help="Target column of the training table.")] = None
    positive: Positive = None
    threshold: Threshold = None
    above: Above = None
    names: Annotated[list[str] | None, typer.Option(help="CLASS=WORD, what people call an outcome; repeat it.")] = None
    schema: Annotated[Path | None, typer.Option(help=FEATURES)] = None
    training_rows: Annotated[
        bool, typer.Option("--training-rows", help="Allow rows of people in the file, where the model is made of them.")
    ] = False
    allow_pickle: AllowPickle = False

    def to_explain(self) -> ExplainRequest:
        """The question whose explainer is written: the training table stands for the cases."""
        given = {name: value for name, value in vars(self).items() if name not in ("out", "training_rows")}
        return ExplainRequest(data=[self.train], **given)


@command(app, "verify", "_verify:run")
@dataclass(frozen=True)
class VerifyRequest:
    """Check a run folder against its data and its model; exit 6 if anything is wrong, 8 if anything is unproved."""

    run: Annotated[Path, typer.Argument(help=options.RUN, show_default=False)]
    data: Annotated[list[Path], typer.Option(help="What was explained: a file or folder; repeat it.")]
    model: Annotated[Path, typer.Option(help=options.MODEL)]
    positive: Annotated[str | None, typer.Option(help="Class it should explain. Default: what the run claims.")] = None
    threshold: Annotated[float | None, typer.Option(help="Threshold it should have. Default: as claimed.")] = None
    references: Annotated[Path | None, typer.Option(help="References it should have, .json or .csv.")] = None
    cheap: Annotated[int, typer.Option(min=0, help="Ask about N smaller sets in every case.", metavar="N")] = 100
    sample: Annotated[int, typer.Option(min=0, help="Do about N of the longer proofs again.", metavar="N")] = 200
    random_state: Annotated[int | None, typer.Option(min=0, help="Seed for sampling. Default: a fresh one.")] = None
    as_json: Json = False
    allow_pickle: AllowPickle = False


for work in (report, explore, letter, serve):
    app.command()(work)


@command(app, "compare", "_compare_work:run")
@dataclass(frozen=True)
class CompareRequest:
    """Compare two runs case by case, such as before and after a training: whose outcome, and whose reasons, changed."""

    first: Annotated[Path, typer.Argument(help=options.RUN, show_default=False)]
    second: Annotated[Path, typer.Argument(help="Another one.", show_default=False)]
    out: Annotated[Path | None, typer.Option(help="CSV of the cases that changed.")] = None
    labels: Annotated[Path | None, typer.Option(help="Table with what became of the cases: adds the accuracy.")] = None
    target: Annotated[str | None, typer.Option(help="Column of that table.")] = None
    fail_over: Annotated[
        float | None, typer.Option(min=0, max=1, help="Exit 9 if more than this share has other reasons.", metavar="X")
    ] = None
    as_json: Json = False


@command(app, "letters", "_letters_work:run")
@dataclass(frozen=True)
class LettersRequest:
    """Write a letter for every refused case of a run, and a table of those who get none, and why.

    The letters support a notice of principal reasons; they are not legal advice.
    """

    run: Annotated[Path, typer.Argument(help="Run folder of `fewest explain --out RUN`.")]
    out: Annotated[Path, typer.Option(help="Folder to write: empty, or a new one.")]
    codes: Annotated[Path | None, typer.Option(help=CODES)] = None
    template: Annotated[Path | None, typer.Option(help=TEMPLATE)] = None
    html: Annotated[bool, typer.Option("--html", help="Write HTML instead of text.")] = False
    fields: Annotated[Path | None, typer.Option(help=LETTER_FIELDS)] = None
    sender: Sender = None
    dated: Dated = None
    locale: Locale = None
    subject: Annotated[str, typer.Option(help="What was decided on.")] = "your application"
    model: Annotated[Path | None, typer.Option(help=f"Weighs the reasons. {options.MODEL}")] = None
    protected: Annotated[list[str] | None, typer.Option(help="Never a reason; repeat it.")] = None
    at_most: Annotated[int, typer.Option(min=1, help="Reasons given.", metavar="N")] = 4
    strict: Annotated[bool, typer.Option("--strict", help="Exit 5 if any letter is not written.")] = False
    as_json: Json = False
    allow_pickle: AllowPickle = False


@app.command()
def doctor(
    model: Annotated[Path | None, typer.Argument(help=f"How this model is searched. {options.MODEL}")] = None,
    train: Annotated[Path | None, typer.Option(help="With MODEL: its training table.")] = None,
    target: Annotated[str | None, typer.Option(help="Target column of the training table.")] = None,
    positive: Positive = None,
    threshold: Threshold = None,
    above: Above = None,
    as_json: Json = False,
    warm: Annotated[bool, typer.Option("--warm", help="Compile every search now, for images and clusters.")] = False,
    allow_pickle: AllowPickle = False,
) -> int:
    """Check the installation, with a self-test; or, with MODEL, how a model is searched and how fast."""
    if model is not None:
        from fewest.apps.cli import _doctor_model

        return _doctor_model.run(model, train, target, positive, threshold, above, allow_pickle, as_json)
    from fewest.apps.cli._doctor import run

    return run(as_json, warm)


@app.command()
def bench(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller tables, fewer repetitions.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="Run this benchmark only; repeat it.")] = None,
) -> int:
    """Measure the speed targets on this machine."""
    from fewest.experiments.benchmarking import main as bench_main

    return int(bench_main(json=as_json, quick=quick, only=list(only or ())))


def _opens_files(asked: Sequence[str]) -> bool:
    """Whether a command opens files of others; of `doctor`, only where a model is named."""
    named = asked[:1] == ["doctor"] and len(asked) > 1 and "--train" in asked
    return named or (bool(asked) and asked[0] in CONFINED)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default with the arguments of the process, and return its exit code.

    Examples
    --------
    >>> main(["--version"])
    fewest 0.1.0
    0
    """
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            given = sys.argv[1:] if arguments is None else list(arguments)
            asked = [argument for argument in given if argument != IN_PROCESS]
            if arguments is None and asked == given and hasattr(os, "fork") and _opens_files(asked):
                code = child_process.enter(asked, listens=asked[0] == "explore")
                if code is not None:
                    return code
            code = app(args=asked, prog_name="fewest", standalone_mode=False)
            sys.stdout.flush()
        except FewestError as error:
            return _complain(error.message, error.do, error.exit_code)
        except MemoryError:
            return _complain(
                "it takes more memory than it may", f"set {child_process.MEMORY} to more GB", ModelError.exit_code
            )
        except (KeyboardInterrupt, typer.Abort):
            return _complain("interrupted", None, INTERRUPTED)
        except BrokenPipeError:
            # The reader has gone; Python would complain again when it flushes stdout at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return INTERNAL
        except Exception as error:
            return _usage(error) if hasattr(error, "format_message") else _crash(error)
    if code == INTERRUPTED:
        return _complain("interrupted", None, INTERRUPTED)
    return int(code or 0)


def _complain(message: str, do: str | None, code: int) -> int:
    from fewest.apps.cli._text import clean, in_options

    print(f"fewest: error: {clean(message)}", file=sys.stderr)
    if do:
        print(f"  Try: {clean(in_options(do))}", file=sys.stderr)
    return code


def _usage(error: Any) -> int:
    """A wrong option or argument, in the same words as every other error."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "fewest"
    return _complain(str(error.format_message()).rstrip("."), f"{command} --help", int(error.exit_code))


def _crash(error: Exception) -> int:
    """An error nobody foresaw: where it happened, briefly."""
    import traceback

    print(f"fewest: internal error: {type(error).__name__}: {error}", file=sys.stderr)
    print("".join(traceback.format_tb(error.__traceback__, limit=-4)).rstrip(), file=sys.stderr)
    print("  Try: report this with the command you ran and the output of `fewest doctor`", file=sys.stderr)
    return INTERNAL


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    from fewest.apps.cli._text import clean, in_options

    print(f"fewest: warning: {clean(in_options(str(message)))}", file=sys.stderr)
