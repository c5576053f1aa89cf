"""Files in, a run folder out: killed at any moment it goes on where it was, and ends in the same bytes."""

from __future__ import annotations

import json
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from fewest import __version__
from fewest.engine.cubes import DEFAULT_NODES, DEFAULT_OWN_NODES
from fewest.engine.model_reading import SAMPLE
from fewest.engine.structure import Ensemble
from fewest.errors import DataError, DoubtError, FewestError, FewestWarning, UsageError, check_word
from fewest.explainer import Explainer
from fewest.models.trees import Tree, read
from fewest.models.trees.file import as_dict
from fewest.references import Anyone, Leaves, References
from fewest.reporting.views import as_csv
from fewest.runs.bad_rows import REJECTED
from fewest.runs.bad_rows import bad_rows as find_bad_rows
from fewest.runs.cases import Cases, find, fingerprints
from fewest.runs.folder import Folder, make_folder
from fewest.runs.part_worker import PartWork, in_process, in_workers, out_of_time
from fewest.runs.run import Run
from fewest.runs.run_files import FORMAT, KIND, REFERENCES, TREE, canonical, read_references
from fewest.runs.storage import digest, file_digest, locked, need_arrow, sweep
from fewest.tables.saved_schema import plain, schema_to_json

PART_ROWS = 20_000
Progress = Callable[[int, int | None, dict[str, int]], None]


def explain_files(
    explainer: Explainer,
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    model_file: str | Path | None = None,
    alternatives: int = 0,
    n_jobs: int | None = None,
    chunk_rows: int | None = None,
    part_rows: int = PART_ROWS,
    keep_cases: bool = True,
    id_column: str | None = None,
    bad_rows: Literal["error", "skip"] = "error",
    title: str | None = None,
    model_name: str | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Run:
    """Explain tables on disk, larger than memory, into a run folder.

    Called again after it was stopped, it goes on; a run that has ended is left as it is. The bytes of the folder depend
    neither on ``n_jobs`` nor on ``chunk_rows``, nor on how often the run was killed.

    Parameters
    ----------
    explainer : Explainer
    data : path or sequence of paths
        CSV (also gzip-compressed) or Parquet: files, or folders of them.
    out : path
        The run folder.
    model_file : path, optional
        The file the model came from; without it the model is known by its scores of the first rows.
    alternatives : int
        As in `Explainer.explain`.
    n_jobs : int, optional
        Processes. Default: as many as the explainer has threads.
    chunk_rows : int, optional
        Rows explained at once: less memory, more time. Default: ``part_rows``.
    part_rows : int
        Rows per part: what a kill can cost, for each process.
    keep_cases : bool
        Keep the cases' own values as well: readers then need neither the data nor the model.
    id_column : str, optional
        Column that says what the cases are called; default: they are called by their row.
    bad_rows : {"error", "skip"}
        What happens to rows that cannot be read, or that the schema or the model refuses: the run is refused, or they
        are left out and listed in ``rejected.csv``. Cases are then called by their row in the data.
    title, model_name : str, optional
        What reports call the run and the model.
    time_limit : float, optional
        Seconds after which the run stops with `TimeLimitError`; it can be resumed.
    progress : callable, optional
        Called with rows done, rows in all (None where not known) and counts by status.

    Examples
    --------
    >>> import tempfile, pandas as pd, fewest as fw
    >>> folder = Path(tempfile.mkdtemp())
    >>> pd.DataFrame({"debt": [10, 90], "age": [30, 40]}).to_csv(folder / "cases.csv", index=False)
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100)
    >>> refs = fw.references.supplied(decision, {"debt": [20], "age": [50]})
    >>> run = explain_files(fw.Explainer(decision, refs), folder / "cases.csv", folder / "run", n_jobs=1)
    >>> sorted(file.name for file in run.path.iterdir())
    ['manifest.json', 'part-00000.cases.parquet', 'part-00000.certificates.parquet', 'part-00000.parquet',
     'references.json']
    """
    _check(n_jobs=n_jobs, chunk_rows=chunk_rows, part_rows=part_rows)
    need_arrow("writing a run folder")
    deadline = np.inf if time_limit is None else time.monotonic() + time_limit
    check_word("bad_rows", bad_rows, ("error", "skip"))
    cases = Cases(find(data), explainer.schema, part_rows, explainer.unseen, id_column)
    cases.check_labels()
    rejected = None
    if bad_rows == "skip":
        rejected = find_bad_rows(cases, explainer.decision.score)
        cases = replace(cases, left_out=tuple(rejected["row"].tolist()))
    work = PartWork(
        explainer.with_(n_jobs=1),
        cases,
        cases.head(SAMPLE),
        Path(out),
        chunk_rows or part_rows,
        alternatives,
        keep_cases,
    )
    work.ready()
    beside = _files_beside(work.explainer, work.head)
    if rejected is not None:
        beside[REJECTED] = as_csv(rejected)
    about = _about(explainer, cases.paths, title, model_name)
    planned = _plan(work, None if model_file is None else Path(model_file), beside, about)
    return _run(work, planned, beside, n_jobs or explainer.n_jobs, deadline, progress)


def _run(
    work: PartWork, planned: dict[str, Any], beside: dict[str, bytes], n_jobs: int, deadline: float,
    progress: Progress | None,
) -> Run:  # fmt: skip
    """Begin or go on, as the only writer of the folder, and finish."""
    make_folder(work.folder)
    with locked(work.folder):
        folder = Folder.begin(work.folder, planned, beside)
        if not folder.finished:
            try:
                _fill(folder, work, n_jobs, deadline, progress)
            except DoubtError as doubt:
                # Parts that were answered before rest on the same reading of the model: all are done again without it.
                warnings.warn(f"{doubt.message}; all rows are searched by its own scores", FewestWarning, stacklevel=3)
                folder.forget()
                unread = replace(work, explainer=work.explainer.with_(structure="opaque"))
                _fill(folder, unread, n_jobs, deadline, progress)
            finally:
                sweep(work.folder)
        return folder.finish()


def _fill(folder: Folder, work: PartWork, n_jobs: int, deadline: float, progress: Progress | None) -> None:
    """Do what is not done yet."""
    if time.monotonic() >= deadline:
        raise out_of_time()
    total, counts = work.cases.count(), Counter(folder.tally().counts)
    parts = work.cases.parts(lambda number: number not in folder.done)
    first = list(islice(parts, 2))
    several = n_jobs > 1 and len(first) > 1  # a table of one part is not worth other processes
    do = partial(in_workers, n_jobs=n_jobs) if several else in_process
    with closing(do(work, chain(first, parts), deadline=deadline)) as results:
        for number, record in results:
            folder.add(number, record)
            counts.update(record["counts"])
            if progress is not None:
                progress(counts.total(), total, dict(counts))
    if sorted(folder.done) != list(range(len(folder.done))):
        raise DataError("the data ended before their time", do="run the same command again when they are whole")


def _check(**counts: int | None) -> None:
    for name, count in counts.items():
        if count is not None and count < 1:
            raise UsageError(f"{name} is {count}", do="use a number from 1 on")


def _plan(
    work: PartWork, model_file: Path | None, beside: Mapping[str, bytes], about: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything the bytes of a run depend on, with fingerprints: if any of it changes, it cannot be resumed."""
    schema, data = schema_to_json(work.explainer.schema), fingerprints(work.cases.paths)
    skipped = {"rows": len(work.cases.left_out or ()), "name": REJECTED, "sha256": digest(beside.get(REJECTED, b""))}
    return {
        "format": FORMAT,
        "kind": KIND,
        "version": __version__,
        "model": _model(work.explainer, work.head, model_file),
        "data": {"files": data, "sha256": digest(canonical(data))},
        "references": {"sha256": digest(beside[REFERENCES])},
        "tree": {"name": TREE, "sha256": digest(beside[TREE])} if TREE in beside else None,
        "schema": {"sha256": digest(canonical(schema)), **schema},
        "about": dict(about),
        **({"rejected": skipped} if REJECTED in beside else {}),
        "settings": {
            **_settings(work.explainer, work.head), "alternatives": work.alternatives,
            "part_rows": work.cases.part_rows, "parts": "parquet", "keep_cases": work.keep_cases,
            **({} if work.cases.id_column is None else {"id": work.cases.id_column}),
        },
    }  # fmt: skip


def _about(explainer: Explainer, data: Sequence[Path], title: str | None, model_name: str | None) -> dict[str, Any]:
    """What sentences and pages need beside the numbers: how the outcomes, the run and the model are called."""
    decision = explainer.decision
    steps = getattr(decision.model, "steps", None) or [("", decision.model)]
    return {
        "title": title or f"Which facts decided? {data[0].name}",
        "model": model_name or type(steps[-1][1]).__name__,
        "positive": decision.positive_name,
        "outcome": decision.negative_name,
        "percent": decision.shows_percent,
        **({"number": decision.number} if decision.number else {}),
        "plus": explainer.direction == "plus",
        "weighted": bool(explainer.weights),
    }


def _files_beside(explainer: Explainer, head: pd.DataFrame) -> dict[str, bytes]:
    """The references, and the tree where a single one decides: name -> content."""
    if not isinstance(explainer.references, Anyone):  # whose answers hold values of their own
        explainer.references.check_kept()
    files = {REFERENCES: _references_file(explainer.references)}
    tree = _tree(explainer, head)
    if tree is not None:
        names = (explainer.decision.negative_name, explainer.decision.positive_name)
        text = json.dumps(as_dict(tree, names), indent=1, ensure_ascii=False, allow_nan=False)
        files[TREE] = (text + "\n").encode("utf-8", "surrogatepass")
    return files


def _tree(explainer: Explainer, head: pd.DataFrame) -> Tree | None:
    """The tree that decides, where it is one and can be read."""
    if isinstance(explainer.references, Leaves):
        return explainer.references.tree
    inside = explainer.look_inside(head)
    if not isinstance(inside.structure, Ensemble) or len(inside.structure.root) != 1:
        return None
    try:
        return read(explainer.decision, explainer.schema, head)
    except FewestError:  # not restated on raw columns: nothing depends on it but a drawing
        return None


def _model(explainer: Explainer, head: pd.DataFrame, file: Path | None) -> dict[str, Any]:
    named = {"class": type(explainer.decision.model).__name__}
    if file is not None:
        return {**named, "file": file.name, "sha256": file_digest(file)}
    scores = [explainer.decision.verdicts(rows).score.tolist() for rows in (head, explainer.references.frame)]
    return {**named, "file": None, "sha256": digest(canonical(scores))}


def _settings(explainer: Explainer, head: pd.DataFrame) -> dict[str, Any]:
    """The decision, the constraints and the other choices as plain values."""
    decision = explainer.decision
    return {
        "positive": plain(decision.positive),
        "against": plain(decision.against),
        "outcome": decision.negative_name,
        **({"names": {str(label): name for label, name in decision.names.items()}} if decision.names else {}),
        "threshold": decision.cut,
        "score": decision.kind,
        **({} if decision.above else {"above": False}),
        "direction": explainer.direction,
        "constraints": explainer.constraints.to_plain(),
        "weights": {name: float(weight) for name, weight in sorted(explainer.weights.items())},
        "nodes": [explainer.max_nodes or DEFAULT_NODES, explainer.max_nodes or DEFAULT_OWN_NODES],
        "unseen": explainer.unseen,
        "structure": explainer.structure,
        "assignment": explainer.references.assignment,
        "credibility": _credibility(explainer, head),
    }


def _credibility(explainer: Explainer, head: pd.DataFrame) -> dict[str, Any] | None:
    credible = explainer.credibility
    if credible is None:
        return None
    seen = np.concatenate([credible.log_density(head), credible.log_density(explainer.references.frame)])
    known = digest(canonical([plain(float(value)) for value in np.round(seen, 9)]))
    return {"name": credible.name, "floor": plain(credible.floor), "quantile": credible.quantile, "sha256": known}


def _references_file(references: References) -> bytes:
    """The references as the run folder holds them; refused where the file would not hold them exactly."""
    content = references.saved().to_dict()
    data = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False, default=plain)
    if not read_references(json.loads(data))[1].equals(references.frame):
        raise DataError("a reference has values that a file does not hold exactly", do="round them, or save and load")
    return (data + "\n").encode("utf-8", "surrogatepass")
