"""``fewest explain --out FOLDER``: tables on disk into a run folder that can be resumed after any end."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from fewest.apps.cli._files import RESULTS
from fewest.apps.cli._sources import Source, announced, class_of
from fewest.apps.cli._text import clean, status_word
from fewest.decision import Decision
from fewest.errors import UndefinedError, UsageError
from fewest.explainer import Explainer
from fewest.persistence.models import load_model
from fewest.references.file import read_saved
from fewest.results.explanation import Status
from fewest.runs import Run, explain_files
from fewest.runs.runner import PART_ROWS

Advance = Callable[[int, int | None, dict[str, int]], None]
# Endings of files that people ask for; any other dot may be part of a folder's name.
FILES = frozenset(
    (*RESULTS, ".arrow", ".feather", ".fewest", ".gz", ".htm", ".jsonl", ".md", ".parquet", ".pdf", ".pq", ".tsv",
     ".txt", ".xls", ".xlsx", ".zip")
)  # fmt: skip


def is_run_folder(path: Path | None) -> bool:
    """Whether a place for results is a folder: it is one already, or its name does not end like that of a file."""
    return path is not None and (path.is_dir() or not (path.is_file() or path.suffix.lower() in FILES))


def source_of_references(
    model: Path, references: Path, positive: str | None, threshold: float | None, allow_pickle: bool
) -> Source:
    """What decides and what the features are, from the model and a references file that knows its schema."""
    saved = read_saved(references) if references.suffix.lower() == ".json" else None
    if saved is None or saved.schema is None:
        raise UsageError(
            f"{references.name} does not say what the features are",
            do="pass --train FILE, or make the references with `fewest references build`",
        )
    known = saved.decision
    fitted = load_model(model, allow_pickle)
    if positive is None and known.get("positive") is not None:
        positive = str(known["positive"])
    if threshold is None and known.get("threshold") is not None:
        threshold = float(known["threshold"])
    decision = Decision(fitted, positive=class_of(fitted, positive), threshold=threshold)
    source = Source(references.name, decision, saved.frame, None, saved.schema, by_default=positive is None)
    return announced(source)


def run(
    explainer: Explainer, data: tuple[Path, ...], out: Path, *, model_file: Path | None, alternatives: int,
    n_jobs: int | None, chunk_rows: int | None, part_rows: int | None, keep_cases: bool, time_limit: float | None,
    as_json: bool, strict: bool,
) -> int:  # fmt: skip
    """Explain the tables and say what came of it."""
    with _stoppable(), _progress() as advance:
        done = explain_files(
            explainer, data, out, model_file=model_file, alternatives=alternatives, n_jobs=n_jobs,
            chunk_rows=chunk_rows, part_rows=part_rows or PART_ROWS, keep_cases=keep_cases, time_limit=time_limit,
            progress=advance,
        )  # fmt: skip
    if as_json:
        figures = {name: done.manifest[name] for name in ("rows", "counts", "sev", "features")}
        print(json.dumps({"run": str(out), **figures, "parts": len(done.manifest["parts"])}, indent=1))
    else:
        print(clean(as_text(done)))
    open_ends = {name: done.counts.get(name, 0) for name in (Status.UNREACHABLE.value, Status.BUDGET.value)}
    if strict and any(open_ends.values()):
        raise UndefinedError(
            f"{open_ends['UNREACHABLE']:,} cases have no answer with this reference and "
            f"{open_ends['BUDGET']:,} were stopped early",
            do="look at their status in the run folder, or leave out --strict",
        )
    return 0


def as_text(done: Run) -> str:
    """Counts, sizes and the features that changed most."""
    sev = {int(size): count for size, count in done.manifest["sev"].items()}
    explained = sum(sev.values())
    lines = [f"{'cases':<18}{done.rows:>14,}"]
    lines += [f"{status_word(name):<18}{count:>14,}" for name, count in done.counts.items() if count]
    if explained:
        mean = sum(size * count for size, count in sev.items()) / explained
        lines += [f"{'mean SEV':<18}{mean:>14.4g}", f"{'largest SEV':<18}{max(sev):>14,}"]
        lines += ["", "Features changed most often:"]
        top = list(done.manifest["features"].items())[:5]
        title = {feature.name: feature.title for feature in done.schema.features}
        lines += [f"  {title.get(name, name)}: {count / explained:.0%}" for name, count in top]
    lines += ["", f"Written: {done.path}. Check it with `fewest verify {done.path} --data ... --model ...`."]
    return "\n".join(lines)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let a polite request to stop end the run like Ctrl-C: in order, with what was done kept."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    except KeyboardInterrupt:
        print("fewest: what was done is kept; run the same command again to go on", file=sys.stderr)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _progress() -> Iterator[Advance]:
    """Rows done and counts per status, on stderr: a bar on a terminal, elsewhere a line now and then."""
    if not sys.stderr.isatty():
        yield _line_writer()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns: tuple[Any, ...] = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("explaining", total=None)
        yield lambda done, total, counts: bar.update(
            task, completed=done, total=total, description=_words(done, total, counts)
        )


def _line_writer() -> Advance:
    """A line per ten per cent, or each time the rows have doubled where nobody knows how many there are."""
    due = 0.0

    def advance(done: int, total: int | None, counts: dict[str, int]) -> None:
        nonlocal due
        if done >= due or done == total:
            due = 2 * done if total is None else done + total / 10
            print(_words(done, total, counts), file=sys.stderr, flush=True)

    return advance


def _words(done: int, total: int | None, counts: dict[str, int]) -> str:
    known = ", ".join(f"{status_word(name)} {count:,}" for name, count in counts.items() if count)
    return f"explaining  {done:,}{'' if total is None else f'/{total:,}'}  {known}"
