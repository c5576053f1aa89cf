"""``fewest explain``: a table, a model and its training table in, or the demo; verified answers out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fewest.apps.cli._files import check_result_path, read_table, write_result
from fewest.apps.cli._run import is_run_folder, source_of_references
from fewest.apps.cli._run import run as run_folder
from fewest.apps.cli._sources import Source, class_of, from_demo, from_files, is_saved, other_class_first
from fewest.apps.cli._text import clean, progress
from fewest.constraints import AtMost, Constraint, Constraints, Immutable
from fewest.errors import TimeLimitError, UndefinedError, UsageError, check_word
from fewest.explainer import Explainer
from fewest.persistence import load
from fewest.references import References, build, supplied
from fewest.references.build import KINDS
from fewest.results.explanation import STATUSES, Status
from fewest.results.explanations import Explanations
from fewest.tables.schema import Schema

if TYPE_CHECKING:
    from fewest.apps.cli._main import ExplainRequest

SENTENCES = 5
WAYS = (
    "fewest explain DATA --model FILE --train FILE --target COL; "
    "or --references FILE (from `fewest references build`) in place of --train; "
    "or --model FILE.fewest, which needs neither; or fewest explain --demo german"
)


def run(request: ExplainRequest) -> int:
    """Explain the table; the results are written before an incomplete end is reported."""
    if is_run_folder(request.out):
        return _run_folder(request)
    _check_one_table(request)
    check_result_path(request.out)
    weights = read_weights(request.weight or ())
    explainer, cases = _asked(request, weights)
    if cases is None and request.table is not None:
        cases = read_table(request.table, text=_text_columns(explainer.schema))
    with progress("explaining") as advance:
        out = explainer.explain(
            cases, alternatives=request.alternatives, time_limit=request.time_limit, progress=advance
        )
    if request.out is not None:
        of = request.demo if request.table is None else request.table.name
        write_result(out, request.out, f"Which facts decided? {of}", f"predicted {out[0].positive}")
    print(out.to_json() if request.as_json else clean(as_text(out)))
    return _ending(request, out)


def _run_folder(request: ExplainRequest) -> int:
    """Explain tables on disk into a folder."""
    weights = read_weights(request.weight or ())
    if request.demo is not None:
        raise UsageError("--demo has no table on disk", do="let --out end in .json, .csv or .html")
    explainer, _ = _asked(request, weights)
    assert request.out is not None
    return run_folder(
        explainer, tuple(request.data or ()), request.out, model_file=request.model, alternatives=request.alternatives,
        n_jobs=request.jobs, chunk_rows=request.chunk_rows, part_rows=request.part_rows,
        keep_cases=not request.no_cases, time_limit=request.time_limit, as_json=request.as_json, strict=request.strict,
    )  # fmt: skip


def _check_one_table(request: ExplainRequest) -> None:
    """Refuse what only a run folder can take."""
    several = len(request.data or ()) > 1 or (request.table is not None and request.table.is_dir())
    only: dict[str, object] = {
        "--jobs": request.jobs, "--chunk-rows": request.chunk_rows, "--part-rows": request.part_rows,
        "--no-cases": request.no_cases or None,
    }  # fmt: skip
    given = ["several tables" if several else None, *(name for name, value in only.items() if value is not None)]
    first = next((name for name in given if name is not None), None)
    if first is not None:
        raise UsageError(f"{first}: this takes a folder for the results", do="pass --out FOLDER")


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


def _asked(request: ExplainRequest, weights: dict[str, float]) -> tuple[Explainer, pd.DataFrame | None]:
    """The explainer that was asked for, and the cases where they come with it."""
    if request.demo is None and request.data and request.train is None and is_saved(request.model):
        return _changed(request, saved_explainer(request), weights), None
    source = _source(request)
    return _explainer(request, source, weights), source.cases


def saved_explainer(request: ExplainRequest) -> Explainer:
    """The explainer of a .fewest file; refused where the call asks for another decision than it was made for."""
    assert request.model is not None
    explainer = load(request.model, request.allow_pickle)
    decision = explainer.decision
    wanted = class_of(decision.model, request.positive)
    others = {
        "--target": request.target is not None,
        "--positive": wanted is not None and wanted != decision.positive,
        "--threshold": request.threshold is not None and request.threshold != decision.cut,
    }
    for option, differs in others.items():
        if differs:
            raise UsageError(
                f'{request.model.name} explains "{decision.positive}" from a score of {decision.cut:g} on, with '
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
    schema = _protecting(request, references.schema)
    if schema != references.schema:
        references = replace(references, schema=schema)
    return explainer.with_(
        references=references,
        constraints=Constraints(*explainer.constraints, *_constraints(request)),
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
        return from_demo(request.demo, positive=request.positive, threshold=request.threshold)
    file = _references_file(request)
    if request.table is None or request.model is None or (request.train is None and file is None):
        lacking = next(name for name, value in files.items() if value is None)
        raise UsageError(f"{lacking} is missing", do=WAYS)
    if request.train is None:
        assert file is not None
        return source_of_references(request.model, file, request.positive, request.threshold, request.allow_pickle)
    if request.target is None and file is None:
        raise UsageError("without a file of references the training labels are needed", do="pass --target COL")
    return from_files(
        request.model, request.train, request.target, request.positive, request.threshold, request.allow_pickle
    )


def _explainer(request: ExplainRequest, source: Source, weights: dict[str, float]) -> Explainer:
    source = replace(source, schema=_protecting(request, source.schema))
    return Explainer(
        source.decision,
        _references(request, source),
        constraints=Constraints(*_constraints(request)),
        weights=weights,
        direction="plus" if request.plus else "minus",
    )


def _protecting(request: ExplainRequest, schema: Schema) -> Schema:
    for name in request.protected or ():
        schema = schema.with_(name, protected=True)
    return schema


def _constraints(request: ExplainRequest) -> list[Constraint]:
    most = [] if request.at_most is None else [AtMost(request.at_most)]
    return [*(Immutable(name) for name in request.immutable or ()), *most]


def _text_columns(schema: Schema) -> list[str]:
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
    with other_class_first(source):
        file = _references_file(request)
        if file is not None:
            return _supplied(file, source)
        kind = (request.references or "single").replace("-", "_")
        centre = {} if request.centre is None else {"centre": request.centre.value}
        return build(kind, source.decision, source.X, source.labels, schema=source.schema, **centre)


def _supplied(path: Path, source: Source) -> References:
    """References from a file; a table is read like the training table."""
    table = path if path.suffix.lower() == ".json" else read_table(path, text=_text_columns(source.schema))
    return supplied(source.decision, table, schema=source.schema)


def as_text(out: Explanations) -> str:
    """Figures, then the first sentences."""
    lines = [str(out.summary())]
    against = np.flatnonzero(out.answers.status != STATUSES.index(Status.ALREADY_NEGATIVE))
    shown = [out[int(row)] for row in against[:SENTENCES]]
    if shown:
        lines += ["", *(f"{answer.label}: {answer}" for answer in shown)]
    if len(against) > len(shown):
        lines.append(f"... and {len(against) - len(shown):,} more: --json or --out gives all")
    return "\n".join(lines)


def _ending(request: ExplainRequest, out: Explanations) -> int:
    """0, or an error that says what is incomplete: it comes after the results."""
    counts = out.counts()
    stopped, impossible = counts[Status.BUDGET.value], counts[Status.UNREACHABLE.value]
    if request.time_limit is not None and stopped and out.seconds >= request.time_limit:
        raise TimeLimitError(
            f"the time limit of {request.time_limit:g} s was reached: {stopped:,} of {len(out):,} cases stopped early",
            do="allow more time; what was found is in the results",
        )
    if request.strict and (stopped or impossible):
        raise UndefinedError(
            f"{impossible:,} cases have no answer with this reference and {stopped:,} were stopped early",
            do="look at their status in the results, or leave out --strict",
        )
    return 0
