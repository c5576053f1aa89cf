"""What a run hangs on, as plain values with fingerprints: if any of it changes, the run cannot be gone on with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewest.errors import DataError, UsageError
from fewest.explainer import DEFAULT_NODES, DEFAULT_OWN_NODES, Explainer
from fewest.references import Leaves, References
from fewest.scale.reading import FORMAT, KIND, canonical, read_references
from fewest.scale.storage import digest, file_digest
from fewest.schema_json import plain, schema_to_json


def plan(
    explainer: Explainer, head: pd.DataFrame, data: Sequence[Mapping[str, Any]], *, alternatives: int, part_rows: int,
    parts: str, model_file: Path | None, version: str,
) -> dict[str, Any]:  # fmt: skip
    """Everything the bytes of a run hang on.

    Parameters
    ----------
    head : (n, columns)
        First rows of the data; a model that comes from no file is known by its scores of them.
    data : sequence of mappings
        Name, size and SHA-256 of each file.
    parts : str
        ``parquet`` or ``jsonl``.
    """
    schema = schema_to_json(explainer.schema)
    return {
        "format": FORMAT,
        "kind": KIND,
        "version": version,
        "model": _model(explainer, head, model_file),
        "data": {"files": [dict(file) for file in data], "sha256": digest(canonical(list(data)))},
        "references": {"sha256": digest(references_file(explainer.references))},
        "schema": {"sha256": digest(canonical(schema)), **schema},
        "settings": {**describe(explainer, head), "alternatives": alternatives, "part_rows": part_rows, "parts": parts},
    }


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
        "constraints": [_constraint(item) for item in explainer.constraints],
        "weights": {name: float(weight) for name, weight in sorted(explainer.weights.items())},
        "nodes": [explainer.nodes or DEFAULT_NODES, explainer.nodes or DEFAULT_OWN_NODES],
        "unseen": explainer.unseen,
        "structure": explainer.structure,
        "assignment": explainer.references.assignment,
        "credibility": _credibility(explainer, head),
    }


def _constraint(item: Any) -> dict[str, Any]:
    try:
        fields = {name: plain(value) for name, value in asdict(item).items()}
    except TypeError as error:
        raise UsageError(
            f"the constraint {item!r} cannot be written down", do="use the constraints of fewest with run folders"
        ) from error
    return {"kind": type(item).__name__, **fields}


def _credibility(explainer: Explainer, head: pd.DataFrame) -> dict[str, Any] | None:
    credible = explainer.credibility
    if credible is None:
        return None
    seen = np.concatenate([credible.log_density(head), credible.log_density(explainer.references.frame)])
    known = digest(canonical([plain(float(value)) for value in np.round(seen, 9)]))
    return {"name": credible.name, "floor": plain(credible.floor), "quantile": credible.quantile, "sha256": known}


def references_file(references: References) -> bytes:
    """The references as the run folder holds them; refused where the file would not hold them exactly."""
    if isinstance(references, Leaves):
        raise UsageError(
            "the leaves of a tree cannot be written to a run folder", do="use references that are points, e.g. single"
        )
    content = references.saved().to_dict()
    data = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False, default=plain)
    if not read_references(json.loads(data))[1].equals(references.frame):
        raise DataError("a reference has values that a file does not hold exactly", do="round them, or save and load")
    return (data + "\n").encode("utf-8", "surrogatepass")
