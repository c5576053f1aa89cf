"""References in an explainer's file: the JSON of `References.save`, and beside it each value to the last bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fewest.decision import Decision
from fewest.errors import UsageError
from fewest.persistence._arrays import array_bytes, read_array
from fewest.persistence._limits import needs_a_yes, refused
from fewest.persistence._settings import frame_from_json, frame_to_json, same_schema
from fewest.persistence._trees import tree_from_members, tree_members
from fewest.references import Leaves, References
from fewest.references.file import from_dict
from fewest.tables.saved_schema import schema_from_json

PREFIX = "references"
TYPICAL = f"{PREFIX}.typical.npy"
# Scores of the same model on another machine may differ in the last bits; more than this is another model.
CLOSE = 1e-5


def references_members(references: References, training_rows: bool = False) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Plain values and arrays of references; those that are a person's row need a yes."""
    if references.assignment == "embedding":
        raise UsageError(
            "references assigned by embedding cannot be saved: the rule of the embedding holds training rows",
            do='use references.with_assignment("sparsest") or "features"',
        )
    person = None if training_rows else row_of_a_person(references)
    if person is not None:
        what = f'the reference "{person}" is the row of a person the model was trained on'
        raise needs_a_yes(what, "use a mean or a median of more people")
    same_schema(references.schema, "references")
    content = {**_plain(references.saved().to_dict()), "exact": frame_to_json(references.frame)}
    if not isinstance(references, Leaves):
        return content, {}
    content["leaves"] = {
        "value": references.value,
        "negatives": references.negatives,
        "schema": same_schema(references.tree.schema, "tree"),
    }
    return content, {**tree_members(references.tree, PREFIX), TYPICAL: array_bytes(_shareable(references))}


def row_of_a_person(references: References) -> str | None:
    """The first reference that is one training row: a medoid, or the middle of a group of one; None where none is.

    Examples
    --------
    >>> import fewest as fw
    >>> import pandas as pd
    >>> X = pd.DataFrame({"debt": range(101)}); y = X["debt"] > 80
    >>> decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100, positive=True)
    >>> row_of_a_person(fw.references.single(decision, X, y))
    >>> row_of_a_person(fw.references.single(decision, X, y, centre="medoid"))
    'medoid'
    """
    if references.provenance.get("centre") == "medoid":
        return references.names[0]
    alone = np.flatnonzero(references.support == 1)
    return references.names[int(alone[0])] if len(alone) else None


def _shareable(leaves: Leaves) -> Any:
    """Typical codes where they are used: in accepted leaves, unless values next to the case's own are taken."""
    unused = np.ones(leaves.tree.n_nodes, dtype=bool) if leaves.value == "nearest" else leaves.tree.positive
    return np.where(unused[:, None], np.nan, leaves.typical)


def references_from_members(
    content: Mapping[str, Any], members: Mapping[str, bytes], decision: Decision, name: str
) -> References:
    """The references that `references_members` was given, scored by the model beside them."""
    saved = from_dict(content)
    if saved.schema is None:
        raise refused(name, "its references do not say what the features are")
    frame = frame_from_json(content["exact"], saved.schema)
    count = len(frame)
    if count == 0 or any(len(part) != count for part in (saved.names, saved.support, saved.score)):
        raise refused(name, "its references do not fit together")
    scores = decision.verdicts(frame).score
    if np.nanmax(np.abs(scores - np.array(saved.score)), initial=0.0) > CLOSE:
        raise refused(
            name, "its model scores its references otherwise than when it was written",
            do="use the versions of libraries it was written with; they are in its manifest.json",
        )  # fmt: skip
    parts: dict[str, Any] = {
        "decision": decision, "schema": saved.schema, "frame": frame, "names": saved.names,
        "support": np.array(saved.support, dtype=np.int64), "score": scores, "assignment": saved.assignment,
        "provenance": saved.provenance, "spread": saved.spread, "flexible_of": saved.flexible_of,
        "signatures": saved.signatures,
    }  # fmt: skip
    if "leaves" not in content:
        return References(**parts)
    leaves = content["leaves"]
    tree = tree_from_members(members, PREFIX, schema_from_json(**leaves["schema"]), name)
    typical = read_array(members[TYPICAL], name)
    if typical.dtype != np.float64 or typical.shape != (tree.n_nodes, len(tree.schema)):
        raise refused(name, "its leaves do not fit its tree")
    return Leaves(**parts, tree=tree, typical=typical, value=leaves["value"], negatives=int(leaves["negatives"]))


def _plain(content: Any) -> Any:
    """Plain values all the way down: provenance may hold anything."""
    if isinstance(content, Mapping):
        return {str(key): _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    if isinstance(content, float | np.floating) and not np.isfinite(content):
        return None
    if isinstance(content, np.generic):
        return content.item()
    return content if content is None or isinstance(content, str | bool | int | float) else str(content)
