"""Trees, references and densities as plain values and arrays in an explainer's file.

What holds training rows is refused unless somebody says yes to it. Trees are checked when they come back, for compiled
code walks them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from fewest.credibility import Credibility
from fewest.credibility.leaf_support import LeafDensity
from fewest.credibility.mixture import GaussianDensity
from fewest.credibility.points import NeighbourDensity, Part, Points
from fewest.decision import Decision
from fewest.engine.search.problem import Mixture
from fewest.errors import DataError, UsageError
from fewest.models.trees.file import from_dict as tree_from_dict
from fewest.models.trees.tree import Tree
from fewest.persistence._fitted_state import check_sound
from fewest.persistence._readers import SAVE_AGAIN, array_bytes, needs_a_yes, read_array, refused, refusing
from fewest.persistence._settings import frame_from_json, frame_to_json, same_schema
from fewest.references import Anyone, Leaves, References
from fewest.references.by_embedding import from_plain as rule_from_plain
from fewest.references.domains import domain_from
from fewest.references.file import from_dict as references_from_dict
from fewest.tables.arrays import Floats
from fewest.tables.saved_schema import plain, schema_from_json
from fewest.tables.schema import Schema

DTYPES = {
    "feature": np.int32, "threshold": np.float64, "left": np.int32, "right": np.int32, "missing_left": np.bool_,
    "level_set": np.int32, "levels_left": np.bool_, "positive": np.bool_, "score": np.float64, "counts": np.int64,
}  # fmt: skip
REFERENCES, DENSITY = "references", "credibility"
TYPICAL = f"{REFERENCES}.typical.npy"
# Scores of the same model on another machine may differ in the last bits; more than this is another model.
CLOSE = 1e-5
POINTS = 1001


def tree_members(tree: Tree, prefix: str) -> dict[str, bytes]:
    """The arrays of a tree under names that begin alike."""
    return {
        f"{prefix}.tree.{part}.npy": array_bytes(np.ascontiguousarray(getattr(tree, part), dtype=kind))
        for part, kind in DTYPES.items()
    }


def tree_from_members(members: Mapping[str, bytes], prefix: str, schema: Schema, name: str) -> Tree:
    """The tree that `tree_members` was given."""
    arrays = {part: read_array(members[f"{prefix}.tree.{part}.npy"], name) for part in DTYPES}
    if any(arrays[part].dtype != kind for part, kind in DTYPES.items()):
        raise refused(name, "a damaged tree: its arrays have other types")
    tree = Tree(schema, **arrays)
    check_sound(tree, name)
    if arrays["counts"].shape != (tree.n_nodes, 2):
        raise refused(name, "a damaged tree: its arrays have different lengths")
    return tree


def tree_model(content: Mapping[str, Any], name: str) -> Any:
    """The classifier of a tree that `fewest train topt` or `fewest.models.trees.file.save_tree` wrote."""
    from fewest.models.trees import LoadedTreeClassifier

    with refusing(name, "it is not a whole tree"):
        try:
            tree = tree_from_dict(content)
            check_sound(tree, name)
            return LoadedTreeClassifier.of(tree, [str(label) for label in content["names"]])
        except DataError as error:
            raise refused(name, error.message, do=error.do or SAVE_AGAIN) from error


def references_members(references: References, training_rows: bool = False) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Plain values and arrays of references; those that are a person's row need a yes."""
    if not isinstance(references, Anyone):
        references.check_kept(training_rows)
    elif not training_rows and (what := values_of_people(references)):
        raise needs_a_yes(what, "use references.anyone(..., within=(0.05, 0.95)) on features without such values")
    saved = references.saved_whole(training_rows)
    person = None if training_rows else row_of_a_person(references)
    if person is not None:
        what = f'the reference "{person}" is the row of a person the model was trained on'
        raise needs_a_yes(what, "use a mean or a median of more people")
    same_schema(references.schema, "references")
    content = {**plain(saved.to_dict()), "exact": frame_to_json(references.frame)}
    if not isinstance(references, Leaves):
        return content, {}
    content["leaves"] = {
        "value": references.value,
        "negatives": references.negatives,
        "schema": same_schema(references.tree.schema, "tree"),
    }
    return content, {**tree_members(references.tree, REFERENCES), TYPICAL: array_bytes(_shareable(references))}


def values_of_people(references: Anyone) -> str:
    """Which values of domains are those of single people: ends of a whole range, dates, parts of groups; or none."""
    low, high = references.provenance["within"]
    for domain in references.domains:
        name = domain.feature.name
        if domain.feature.is_numeric and (low <= 0 or high >= 1):
            return f'the least and the largest value of "{name}" are those of people the model was trained on'
        if domain.feature.kind in ("datetime", "group"):
            return f'the values of "{name}" are those of people the model was trained on'
    return ""


def row_of_a_person(references: References) -> str | None:
    """The first reference that is one training row: a medoid, or the middle of a group of one; None where none is."""
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
    saved = references_from_dict(content)
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
    if saved.rule is not None:
        count = sum(of < 0 for of in saved.flexible_of) or count
        parts["assigner"] = rule_from_plain(saved.rule, decision, saved.schema, frame.iloc[:count])
    if saved.provenance.get("kind") == "anyone":
        made = {**saved.provenance}
        values = made.pop("values")
        domains = tuple(domain_from(saved.schema, one, frame, values[one.name]) for one in saved.schema.features)
        return Anyone(**{**parts, "provenance": made}, domains=domains)
    if "leaves" not in content:
        return References(**parts)
    leaves = content["leaves"]
    tree = tree_from_members(members, REFERENCES, schema_from_json(**leaves["schema"]), name)
    typical = read_array(members[TYPICAL], name)
    if typical.dtype != np.float64 or typical.shape != (tree.n_nodes, len(tree.schema)):
        raise refused(name, "its leaves do not fit its tree")
    return Leaves(**parts, tree=tree, typical=typical, value=leaves["value"], negatives=int(leaves["negatives"]))


def credibility_members(
    credibility: Credibility, training_rows: bool = False
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Plain values and arrays of a density with its floor.

    Of the accepted cases' own densities a thousand quantiles are kept, not one number per person.
    """
    density = credibility.density
    content: dict[str, Any] = {
        "name": credibility.name,
        "quantile": credibility.quantile,
        "schema": same_schema(credibility.schema, "density"),
        "floor": None if credibility.floor == -math.inf else credibility.floor,
        "provenance": plain(dict(credibility.provenance)),
    }
    arrays: dict[str, npt.NDArray[Any]] = {"negatives": sketch(credibility.negatives)}
    if isinstance(density, LeafDensity):
        arrays["of_node"] = density.of_node
        files = {**_packed(arrays), **tree_members(density.tree, DENSITY)}
        return {**content, "kind": "leaf_support"}, files
    if isinstance(density, GaussianDensity):
        arrays.update(density.mixture._asdict())
        return {**content, "kind": "mixture", "parts": _parts(density.encoder)}, _packed(arrays)
    if isinstance(density, NeighbourDensity):
        if not training_rows:
            what = "the density of nearest neighbours is made of the training rows themselves"
            raise needs_a_yes(what, "use credibility.mixture")
        arrays["accepted"] = density.accepted
        return {**content, "kind": "neighbours", "k": density.k, "parts": _parts(density.encoder)}, _packed(arrays)
    raise UsageError("a density that is a function cannot be saved", do="use credibility.mixture or leaf_support")


def credibility_from_members(content: Mapping[str, Any], members: Mapping[str, bytes], name: str) -> Credibility:
    """The density that `credibility_members` was given."""
    schema = schema_from_json(**content["schema"])
    density: LeafDensity | GaussianDensity | NeighbourDensity
    kind = content["kind"]
    if kind == "leaf_support":
        tree = tree_from_members(members, DENSITY, schema, name)
        density = LeafDensity(tree, _array(members, "of_node", (tree.n_nodes,), name))
    elif kind == "mixture":
        encoder = _points(schema, content["parts"])
        density = GaussianDensity(encoder, _mixture(members, len(encoder.feature_of), name))
    elif kind == "neighbours":
        encoder = _points(schema, content["parts"])
        accepted = _array(members, "accepted", (None, len(encoder.feature_of)), name)
        if not 0 < content["k"] < len(accepted):
            raise refused(name, "its density has fewer rows than neighbours")
        density = NeighbourDensity(encoder, accepted, int(content["k"]))
    else:
        raise refused(name, f"it has an unknown density {kind!r}", do="use a newer fewest")
    floor = -math.inf if content["floor"] is None else float(content["floor"])
    negatives = _array(members, "negatives", (None,), name)
    return Credibility(
        schema, density, floor, float(content["quantile"]), str(content["name"]), negatives, dict(content["provenance"])
    )


def sketch(values: Floats) -> Floats:
    """Quantiles of sorted values at a thousand even steps, each the value of a real row."""
    return np.asarray(np.quantile(values, np.linspace(0.0, 1.0, POINTS), method="lower"), dtype=np.float64)


def _parts(encoder: Points) -> Any:
    return plain([asdict(part) for part in encoder.parts])


def _points(schema: Schema, parts: list[dict[str, Any]]) -> Points:
    return Points(schema, tuple(Part(**{**part, "levels": tuple(part["levels"])}) for part in parts))


def _mixture(members: Mapping[str, bytes], width: int, name: str) -> Mixture:
    constant = _array(members, "constant", (None,), name)
    count = len(constant)
    mean, root = _array(members, "mean", (count, width), name), _array(members, "root", (count, width, width), name)
    if count == 0 or not all(np.isfinite(part).all() for part in (constant, mean, root)):
        raise refused(name, "its density holds a number that is not finite")
    return Mixture(constant, mean, root)


def _packed(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, bytes]:
    return {f"{DENSITY}.{key}.npy": array_bytes(np.ascontiguousarray(array)) for key, array in arrays.items()}


def _array(members: Mapping[str, bytes], key: str, shape: tuple[int | None, ...], name: str) -> Floats:
    array = read_array(members[f"{DENSITY}.{key}.npy"], name)
    fits = array.ndim == len(shape) and all(want in (None, size) for want, size in zip(shape, array.shape, strict=True))
    if not fits or array.dtype != np.float64 or np.isnan(array).any():
        raise refused(name, f"its density does not fit together: {key}")
    return array
