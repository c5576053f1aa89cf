"""A density as plain values and arrays. Those that hold training rows are refused unless somebody says yes to it."""

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
from fewest.credibility.neighbours import NeighbourDensity
from fewest.credibility.points import Part, Points
from fewest.engine.search.floor import Mixture
from fewest.errors import UsageError
from fewest.persistence._arrays import array_bytes, read_array
from fewest.persistence._limits import needs_a_yes, refused
from fewest.persistence._settings import same_schema
from fewest.persistence._trees import tree_from_members, tree_members
from fewest.tables.saved_schema import plain, schema_from_json
from fewest.tables.schema import Schema

Floats = npt.NDArray[np.float64]
PREFIX = "credibility"
POINTS = 1001


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
        "provenance": {str(key): plain(value) for key, value in credibility.provenance.items()},
    }
    arrays: dict[str, npt.NDArray[Any]] = {"negatives": sketch(credibility.negatives)}
    if isinstance(density, LeafDensity):
        arrays["of_node"] = density.of_node
        files = {**_packed(arrays), **tree_members(density.tree, PREFIX)}
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
        tree = tree_from_members(members, PREFIX, schema, name)
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
    """Quantiles of sorted values at a thousand even steps, each the value of a real row.

    Examples
    --------
    >>> sketch(np.arange(5000.0))[[0, 500, 1000]].tolist()
    [0.0, 2499.0, 4999.0]
    """
    return np.asarray(np.quantile(values, np.linspace(0.0, 1.0, POINTS), method="lower"), dtype=np.float64)


def _parts(encoder: Points) -> list[dict[str, Any]]:
    return [{key: plain(value) for key, value in asdict(part).items()} for part in encoder.parts]


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
    return {f"{PREFIX}.{key}.npy": array_bytes(np.ascontiguousarray(array)) for key, array in arrays.items()}


def _array(members: Mapping[str, bytes], key: str, shape: tuple[int | None, ...], name: str) -> Floats:
    array = read_array(members[f"{PREFIX}.{key}.npy"], name)
    fits = array.ndim == len(shape) and all(want in (None, size) for want, size in zip(shape, array.shape, strict=True))
    if not fits or array.dtype != np.float64 or np.isnan(array).any():
        raise refused(name, f"its density does not fit together: {key}")
    return array
