"""``fewest explain``: a table, a model and its training table in, or the demo; verified answers out."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from fewest.apps import child_process
from fewest.apps.cli import _sources as sources
from fewest.apps.cli._demo import protecting
from fewest.apps.cli._files import RESULTS, check_place, read_table, write_result
from fewest.apps.cli._rejects import NAME, sound_rows
from fewest.apps.cli._rules import read_credibility, read_rules
from fewest.apps.cli._sources import Source, class_of
from fewest.apps.cli._text import clean, progress
from fewest.apps.cli._words import explainer_with_words, identified, with_words
from fewest.constraints import Constraints
from fewest.errors import TimeLimitError, UndefinedError, UsageError, check_word
from fewest.explainer import Explainer
from fewest.persistence import load
from fewest.references import References, build, supplied
from fewest.references.build import KINDS
from fewest.results.explanation import STATUSES, Status
from fewest.results.explanations import Explanations
from fewest.results.population import warned_of_wrong_ways
from fewest.runs import Run, explain_files
from fewest.runs.runner import PART_ROWS
from fewest.tables.model_kinds import NUMBERS
from fewest.tables.saved_schema import plain
from fewest.tables.schema import Schema

if TYPE_CHECKING:
    from fewest.apps.cli._main import ExplainerFileRequest, ExplainRequest

SENTENCES = 5
LISTED = 100  # smallest sets of a case in a run folder: letters are drawn from all of them
# Endings of files that people ask for; any other dot may be part of a folder's name.
FILES = frozenset(
    (*RESULTS, ".arrow", ".feather", ".fewest", ".gz", ".htm", ".jsonl", ".md", ".parquet", ".pdf", ".pq", ".tsv",
     ".txt", ".xls", ".xlsx", ".zip")
)  # fmt: skip
WAYS = (
    "fewest explain DATA --model FILE --train FILE --target COL; "
    "or --references FILE (from `fewest references build`) in place of --train; "
    "or --model FILE.fewest, which needs neither; or fewest explain --demo german"
)


def run(request: ExplainRequest) -> int:
    """Explain the table; the results are written before an incomplete end is reported."""
    _check_asking(request)
    if is_run_folder(request.out):
        return _run_folder(request)
    _check_one_table(request)
    if request.out is not None:
        check_place(request.out, RESULTS, "the kind of file is not known")
    explainer, cases = _asked(request)
    if cases is None and request.table is not None:
        own = [] if request.id is None or request.id in explainer.schema.columns else [request.id]
        text = [*text_columns(explainer.schema), *own]
        cases = read_table(request.table, text=text)
    if cases is not None:
        cases = identified(cases, request.id)
        if request.unseen == "skip":
            cases = sound_rows(explainer, cases, Path(NAME) if request.out is None else request.out.with_name(NAME))
    if request.sufficient:
        return _sufficient(explainer, cases, request.as_json)
    with progress("explaining") as advance:
        out = explainer.explain(
            cases, alternatives=request.alternatives or 0, time_limit=request.time_limit, progress=advance
        )
    out = explainer.least(out) if request.least else out
    if request.out is not None:
        of = request.demo if request.table is None else request.table.name
        write_result(out, request.out, f"Which facts decided? {of}", f"predicted {out[0].positive}", request.enough)
    enough = request.enough
    print(out.to_json(enough=enough) if request.as_json else clean(as_text(out, enough)))
    stopped = out.counts()[Status.BUDGET.value]
    if request.time_limit is not None and stopped and out.seconds >= request.time_limit:
        raise TimeLimitError(
            f"the time limit of {request.time_limit:g} s was reached: {stopped:,} of {len(out):,} cases stopped early",
            do="allow more time; what was found is in the results",
        )
    return _ending(request, out.counts(), "results")


def run_build(request: ExplainerFileRequest) -> int:
    """Write the explainer that was asked for."""
    check_place(request.out, (".fewest",), "an explainer is a .fewest file")
    explainer, _ = _asked(request.to_explain())
    explainer.save(request.out, training_rows=request.training_rows)
    print(clean(f"Written: {request.out}. Use it with `fewest explain DATA --model {request.out}`."))
    return 0


def is_run_folder(path: Path | None) -> bool:
    """Whether a place for results is a folder: it is one already, or its name does not end like that of a file."""
    return path is not None and (path.is_dir() or not (path.is_file() or path.suffix.lower() in FILES))


def _run_folder(request: ExplainRequest) -> int:
    """Explain tables on disk into a folder that can be resumed after any end."""
    if request.demo is not None:
        raise UsageError("--demo has no table on disk", do="let --out end in .json, .csv or .html")
    explainer, _ = _asked(request)
    assert request.out is not None
    with _stoppable(), progress("explaining") as advance:
        done = explain_files(
            explainer, tuple(request.data or ()), request.out, model_file=request.model,
            alternatives=LISTED if request.alternatives is None else request.alternatives,
            n_jobs=request.jobs, chunk_rows=request.chunk_rows,
            part_rows=request.part_rows or PART_ROWS, keep_cases=not request.no_cases, time_limit=request.time_limit,
            id_column=request.id, bad_rows="skip" if request.unseen == "skip" else "error", progress=advance,
        )  # fmt: skip
    skipped = done.manifest.get("rejected", {}).get("rows", 0)
    if skipped:
        print(clean(f"{skipped:,} rows are left out, see {done.path / NAME}"), file=sys.stderr)
    warned_of_wrong_ways(done)
    if request.as_json:
        figures = {name: done.manifest[name] for name in ("rows", "counts", "sev", "features")}
        print(json.dumps({"run": str(request.out), **figures, "parts": len(done.manifest["parts"])}, indent=1))
    else:
        print(clean(run_as_text(done)))
    return _ending(request, done.counts, "run folder")


def _ending(request: ExplainRequest, counts: Mapping[str, int], where: str) -> int:
    """0, or an error that says what is incomplete: it comes after the results."""
    stopped, impossible = (counts.get(status.value, 0) for status in (Status.BUDGET, Status.UNREACHABLE))
    if request.strict and (stopped or impossible):
        raise UndefinedError(
            f"{impossible:,} cases have no answer with this reference and {stopped:,} were stopped early",
            do=f"look at their status in the {where}, or leave out --strict",
        )
    return 0


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


def _check_one_table(request: ExplainRequest) -> None:
    """Refuse what only a run folder can take."""
    given = {
        "several tables": len(request.data or ()) > 1 or (request.table is not None and request.table.is_dir()),
        "--jobs": request.jobs is not None,
        "--chunk-rows": request.chunk_rows is not None,
        "--part-rows": request.part_rows is not None,
        "--no-cases": request.no_cases,
    }
    for name, is_given in given.items():
        if is_given:
            raise UsageError(f"{name}: this takes a folder for the results", do="pass --out FOLDER")


def _sufficient(explainer: Explainer, cases: Any, as_json: bool) -> int:
    """Print which of their own values alone suffice, for the cases that the model refuses."""
    found = [one for one in explainer.sufficient(cases) if one.kind != "accepted"]
    if as_json:
        print(json.dumps([plain(asdict(one)) for one in found], ensure_ascii=False, indent=1))
    else:
        print(clean("\n".join(f"{one.label}: {one}" for one in found)))
    return 0


def _check_asking(request: ExplainRequest) -> None:
    """Refuse --enough, --least and --sufficient where they have no meaning or no place."""
    if request.sufficient and request.out is not None:
        raise UsageError("--sufficient prints what it finds", do="leave --out away, and use --json for plain values")
    if not (request.enough or request.least):
        return
    name = "--enough" if request.enough else "--least"
    if request.plus:
        raise UsageError(f"{name} is not defined for --plus", do="leave one of them out")
    if is_run_folder(request.out):
        raise UsageError(f"{name} asks the model, which a run folder does not hold", do="pass --out FILE.json or .html")
    if not request.enough:
        return
    if request.out is not None and request.out.suffix.lower() == ".csv":
        raise UsageError("--enough: a .csv file has no column for ranges", do="pass --out FILE.json or FILE.html")


def read_weights(pairs: Sequence[str]) -> dict[str, float]:
    """Read ``COL=W`` pairs; the last equals sign divides, as column names may hold one."""
    weights = {}
    for pair in pairs:
        name, sign, number = pair.rpartition("=")
        try:
            if not (sign and name):
                raise ValueError
            weights[name] = float(number)
        except ValueError:
            raise UsageError(f"--weight {pair}: this is not COL=W", do="e.g. --weight age=3") from None
    return weights


def _asked(request: ExplainRequest) -> tuple[Explainer, pd.DataFrame | None]:
    """The explainer that was asked for, and the cases where they come with it."""
    weights = read_weights(request.weight or ())
    is_saved = request.model is not None and request.model.suffix.lower() == ".fewest"
    if request.demo is None and request.data and request.train is None and is_saved:
        saved = explainer_with_words(saved_explainer(request), request.names or (), request.schema)
        return _changed(request, saved, weights).with_(**_about_unseen(request, saved.unseen)), None
    source = _source(request)
    source = with_words(source, request.names or (), request.schema)
    source = replace(source, schema=protecting(source.schema, request.protected or ()))
    explainer = Explainer(
        source.decision,
        _references(request, source),
        constraints=Constraints(*read_rules(request, source.schema)),
        weights=weights,
        direction="plus" if request.plus else "minus",
        credibility=read_credibility(request.credibility, source),
        **_about_unseen(request),
    )
    return explainer, source.cases


def _about_unseen(request: ExplainRequest, otherwise: Literal["error", "allow"] = "error") -> dict[str, Any]:
    """What the explainer does with levels that it does not know."""
    return {"unseen": "allow" if request.unseen == "allow" else otherwise}


def saved_explainer(request: ExplainRequest) -> Explainer:
    """The explainer of a .fewest file; refused where the call asks for another decision than it was made for."""
    assert request.model is not None
    with child_process.loading():
        explainer = load(request.model, request.allow_pickle)
    decision = explainer.decision
    wanted = class_of(decision.model, request.positive)
    others = {
        "--target": request.target is not None,
        "--positive": wanted is not None and wanted != decision.positive,
        "--threshold": request.threshold is not None and request.threshold != decision.threshold,
        "--above/--below": request.above is not None and request.above != decision.above,
        "--credibility": request.credibility is not None,
    }
    for option, differs in others.items():
        if differs:
            raise UsageError(
                f'{request.model.name} explains "{decision.positive_name}" from a score of {decision.cut:g} on, with '
                f"references of its own: {option} cannot change that",
                do=f"leave {option} out, or pass --train FILE --target COL to make references anew",
            )
    return explainer


def _changed(request: ExplainRequest, explainer: Explainer, weights: dict[str, float]) -> Explainer:
    """A saved explainer with what else was asked for: more constraints and weights, or other references."""
    references, file = explainer.references, _references_file(request)
    if file is not None:
        source = Source(file.name, explainer.decision, references.frame, None, explainer.schema)
        references = _supplied(file, source)
    schema = protecting(references.schema, request.protected or ())
    if schema != references.schema:
        references = replace(references, schema=schema)
    return explainer.with_(
        references=references,
        constraints=Constraints(*explainer.constraints, *read_rules(request, schema)),
        weights={**explainer.weights, **weights},
        direction="plus" if request.plus else explainer.direction,
    )


def _source(request: ExplainRequest) -> Source:
    """The demo, or the files that were named; without a training table a references file says what the features are."""
    files = {"DATA": request.table, "--model": request.model, "--train": request.train, "--target": request.target}
    if request.demo is not None:
        extra = [name for name, value in files.items() if value is not None]
        if extra:
            raise UsageError(f"--demo brings its own table and model, but {extra[0]} is given", do=f"drop {extra[0]}")
        return sources.from_demo(request.demo, positive=request.positive, threshold=request.threshold)
    file = _references_file(request)
    if request.table is None or request.model is None or (request.train is None and file is None):
        lacking = next(name for name, value in files.items() if value is None)
        raise UsageError(f"{lacking} is missing", do=WAYS)
    if request.train is None:
        assert file is not None
        return sources.from_references(
            request.model, file, request.positive, request.threshold, request.allow_pickle, request.above
        )
    source = sources.from_files(
        request.model, request.train, request.target, request.positive, request.threshold, request.allow_pickle,
        request.above,
    )  # fmt: skip
    if request.target is None and file is None and source.decision.kind not in NUMBERS:
        raise UsageError("without a file of references the training labels are needed", do="pass --target COL")
    return source


def text_columns(schema: Schema) -> list[str]:
    """Columns that are text in the training table."""
    return [name for name, dtype in schema.dtypes.items() if _is_text(dtype)]


def _is_text(dtype: Any) -> bool:
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    return bool(pd.api.types.is_string_dtype(dtype) or pd.api.types.is_object_dtype(dtype))


def _references_file(request: ExplainRequest) -> Path | None:
    """The file of references, where --references is not a word."""
    word = request.references
    if word is None or word.replace("-", "_") in KINDS:
        return None
    if not Path(word).suffix and not Path(word).exists():
        check_word("--references", word, ["FILE.json", "FILE.csv", *(kind.replace("_", "-") for kind in KINDS)])
    return Path(word)


def _references(request: ExplainRequest, source: Source) -> References:
    with sources.other_class_first(source):
        file = _references_file(request)
        if file is not None:
            return _supplied(file, source)
        kind = (request.references or "single").replace("-", "_")
        centre = {} if request.centre is None else {"centre": request.centre.value}
        return build(kind, source.decision, source.X, source.labels, schema=source.schema, **centre)


def _supplied(path: Path, source: Source) -> References:
    """References from a file; a table is read like the training table."""
    table = path if path.suffix.lower() == ".json" else read_table(path, text=text_columns(source.schema))
    return supplied(source.decision, table, schema=source.schema)


def as_text(out: Explanations, enough: bool = False) -> str:
    """Figures, then the first sentences, with how much is enough where that is asked for."""
    lines = [str(out.summary())]
    against = np.flatnonzero(out.answers.status != STATUSES.index(Status.ALREADY_NEGATIVE))
    shown = [out[int(row)] for row in against[:SENTENCES]]
    if not len(against):
        lines += ["", "Nobody was refused: there is nothing to explain."]
    if shown:
        lines += ["", *(f"{answer.label}: {answer.how_much if enough else answer}" for answer in shown)]
    if len(against) > len(shown):
        lines.append(f"... and {len(against) - len(shown):,} more: --json or --out gives all")
    return "\n".join(lines)


def run_as_text(done: Run) -> str:
    """Counts, sizes and the features that changed most."""
    tally = done.tally
    lines = [f"{'cases':<18}{done.rows:>14,}"]
    lines += [f"{Status(name).words:<18}{count:>14,}" for name, count in done.counts.items() if count]
    if tally.explained:
        lines += [f"{'mean SEV':<18}{tally.mean_sev:>14.4g}", f"{'largest SEV':<18}{tally.largest:>14,}"]
        lines += ["", "Features changed most often:"]
        title = {feature.name: feature.title for feature in done.schema.features}
        top = list(tally.features.items())[:5]
        lines += [f"  {title.get(name, name)}: {count / tally.explained:.0%}" for name, count in top]
    lines += ["", f"Written: {done.path}. Check it with `fewest verify {done.path} --data ... --model ...`."]
    return "\n".join(lines)
