"""``fewest references build``: training rows and a model in, a references file out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fewest import references
from fewest.apps.cli._sources import DEMOS, Source, from_demo, from_files, other_class_first
from fewest.apps.cli._text import clean
from fewest.errors import UsageError
from fewest.references import References


@dataclass(frozen=True)
class BuildRequest:
    """What was asked on the command line."""

    data: str
    out: Path
    kind: str = "single"
    model: Path | None = None
    target: str | None = None
    positive: str | None = None
    threshold: float | None = None
    centre: Any = None
    n_clusters: int | None = None
    embedding: str | None = None
    width: float = 0.1
    flexible: float | None = None
    random_state: int = 0
    as_json: bool = False
    allow_pickle: bool = False


def run(request: BuildRequest) -> int:
    """Build, write, and say what was built."""
    check_place(request.out, ".json", "--out")
    source = _source(request)
    with other_class_first(source):
        refs = _build(request, source)
    if request.flexible is not None:
        refs = refs.flexible(request.flexible)
    refs.save(request.out)
    if request.as_json:
        print(json.dumps({"file": str(request.out), **refs.to_dict()}, indent=1, default=str))
        return 0
    width = max(map(len, refs.names))
    for name, support, score in zip(refs.names, refs.support, refs.score, strict=True):
        print(clean(f"{name:<{width}}  {support:>6,} people  score {score:.3f}"))
    print(f"\nWritten: {request.out}. Look at it with `fewest references show {request.out}`, then sign it.")
    return 0


def check_place(path: Path, ending: str, option: str) -> None:
    """Refuse a file of another kind, or in no folder, before any work is done."""
    if path.suffix.lower() != ending:
        raise UsageError(f"{option} {path.name}: this is not a {ending} file", do=f"let it end in {ending}")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError(f"{option} {path}: this is no place for a file", do="name a file in a folder that exists")


def _source(request: BuildRequest) -> Source:
    if request.data in DEMOS:
        return from_demo(request.data, request.model, request.positive, request.threshold, request.allow_pickle)
    if request.model is None:
        raise UsageError(f"there is no model for {request.data}", do="pass --model FILE")
    if request.target is None:
        raise UsageError("without labels nobody knows which cases were accepted", do="pass --target COL")
    return from_files(
        request.model, Path(request.data), request.target, request.positive, request.threshold, request.allow_pickle
    )


def _build(request: BuildRequest, source: Source) -> References:
    """References of the kind that was asked for; what was not asked for is as in the library."""
    given: dict[str, Any] = {"schema": source.schema}
    decision, X, y = source.decision, source.X, source.labels
    if request.centre is not None:
        given["centre"] = request.centre
    if request.kind == "single":
        return references.single(decision, X, y, **given)
    given["random_state"] = request.random_state
    for name in ("n_clusters", "embedding"):
        if getattr(request, name) is not None:
            given[name] = getattr(request, name)
    if request.kind == "clusters":
        return references.clusters(decision, X, y, **given)
    return references.near_threshold(decision, X, y, width=request.width, **given)
