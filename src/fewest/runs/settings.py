"""What a run depends on, as plain values with fingerprints: if any of it changes, the run cannot be resumed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewest.engine.cubes import DEFAULT_NODES, DEFAULT_OWN_NODES
from fewest.engine.model_reading import ModelReading
from fewest.engine.structure import Ensemble
from fewest.errors import DataError, FewestError
from fewest.explainer import Explainer
from fewest.models.trees import Tree, read
from fewest.models.trees.file import as_dict
from fewest.references import Leaves, References
from fewest.runs.run_files import FORMAT, KIND, REFERENCES, TREE, canonical, read_references
from fewest.runs.storage import digest, file_digest
from fewest.tables.saved_schema import plain, schema_to_json


def plan(
    explainer: Explainer, head: pd.DataFrame, data: Sequence[Mapping[str, Any]], *, alternatives: int, part_rows: int,
    model_file: Path | None, version: str, keep_cases: bool, beside: Mapping[str, bytes],
    about: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Everything the bytes of a run depend on.

    Parameters
    ----------
    head : (n, columns)
        First rows of the data; a model that comes from no file is known by its scores of them.
    data : sequence of mappings
        Name, size and SHA-256 of each file.
    keep_cases : bool
        Whether the cases' own values are kept.
    beside : mapping
        The files beside the parts: name -> content.
    about : mapping
        What people call things: see `names`.
    """
    schema = schema_to_json(explainer.schema)
    return {
        "format": FORMAT,
        "kind": KIND,
        "version": version,
        "model": _model(explainer, head, model_file),
        "data": {"files": [dict(file) for file in data], "sha256": digest(canonical(list(data)))},
        "references": {"sha256": digest(beside[REFERENCES])},
        "tree": {"name": TREE, "sha256": digest(beside[TREE])} if TREE in beside else None,
        "schema": {"sha256": digest(canonical(schema)), **schema},
        "about": dict(about),
        "settings": {
            **describe(explainer, head), "alternatives": alternatives, "part_rows": part_rows, "parts": "parquet",
            "keep_cases": keep_cases,
        },
    }  # fmt: skip


def names(explainer: Explainer, data: Sequence[Path], title: str | None, model_name: str | None) -> dict[str, Any]:
    """What sentences and pages need beside the numbers: how the outcomes, the run and the model are called."""
    decision = explainer.decision
    return {
        "title": title or f"Which facts decided? {data[0].name}",
        "model": model_name or _class_name(decision.model),
        "positive": decision.positive_name,
        "outcome": decision.negative_name,
        "percent": decision.kind in ("proba", "torch") and len(decision.classes) <= 2,
        "plus": explainer.direction == "plus",
        "weighted": bool(explainer.weights),
    }


def _class_name(model: Any) -> str:
    """Class of a model; of a pipeline, that of its last step."""
    steps = getattr(model, "steps", None)
    return type(steps[-1][1] if steps else model).__name__


def files_beside(explainer: Explainer, head: pd.DataFrame) -> dict[str, bytes]:
    """The references, and the tree where a single one decides: name -> content."""
    explainer.references.check_kept()
    files = {REFERENCES: references_file(explainer.references)}
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
    inside: ModelReading = explainer.look_inside(head)
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


def describe(explainer: Explainer, head: pd.DataFrame) -> dict[str, Any]:
    """The decision, the constraints and the other choices as plain values."""
    decision = explainer.decision
    return {
        "positive": plain(decision.positive),
        "against": plain(decision.against),
        "outcome": decision.negative_name,
        "threshold": decision.cut,
        "score": decision.kind,
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


def references_file(references: References) -> bytes:
    """The references as the run folder holds them; refused where the file would not hold them exactly."""
    content = references.saved().to_dict()
    data = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False, default=plain)
    if not read_references(json.loads(data))[1].equals(references.frame):
        raise DataError("a reference has values that a file does not hold exactly", do="round them, or save and load")
    return (data + "\n").encode("utf-8", "surrogatepass")
