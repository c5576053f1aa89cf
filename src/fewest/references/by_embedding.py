"""The rule that sends a case to a reference by its place on a map, and that rule as plain values for a file.

A map of PaCMAP needs landmarks to place a new row: encoded training rows. They are written only where somebody says
yes to it. The other maps need none.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.errors import DataError, UsageError
from fewest.tables.arrays import Floats
from fewest.tables.schema import Schema

if TYPE_CHECKING:
    from fewest.references.clustering import ClusterSpace
    from fewest.references.clustering.embedding import Fitted

MOST_NUMBERS = 50_000_000  # of one array in a file: 4,000 landmarks of 12,500 columns
CLOSE = 1e-6  # places of the references, in the units of the map: more apart is another encoding


@dataclass(frozen=True, eq=False)
class ByEmbedding:
    """Sends a case to the reference whose place on the map is nearest to the case's own.

    ``places`` are the cluster's centroids, or where the references themselves lie. Each row is encoded, placed and sent
    by itself: alone, in a batch and in any order it gets the same reference.
    """

    space: ClusterSpace
    fitted: Fitted
    places: Floats  # (references, dimensions)

    def assign(self, frame: pd.DataFrame) -> npt.NDArray[np.int32]:
        """Reference of each row, (n,)."""
        from fewest.references.clustering.soft_kmeans import nearest

        return nearest(self.locate(frame), self.places)

    def locate(self, frame: pd.DataFrame) -> Floats:
        """Places of rows on the map, (n, dimensions)."""
        return self.fitted.transform(self.space.encode(frame))

    def take(self, numbers: Sequence[int]) -> ByEmbedding:
        """The rule among some of the references."""
        return replace(self, places=self.places[list(numbers)])

    @property
    def training_rows(self) -> int:
        """How many training rows the rule holds."""
        from fewest.references.clustering.embedding import Interpolated

        return self.fitted.landmarks.shape[1] if isinstance(self.fitted, Interpolated) else 0

    def to_plain(self, references: pd.DataFrame) -> dict[str, Any]:
        """The rule as JSON can hold it, with the places of the references, by which a reader knows its encoding."""
        from fewest.references.clustering.embedding import Interpolated, Projected, Unchanged

        fitted = self.fitted
        arrays: dict[str, npt.NDArray[Any]]
        if isinstance(fitted, Interpolated):
            arrays = {"landmarks": fitted.landmarks, "at": fitted.places}
        elif isinstance(fitted, Projected):
            arrays = {"middle": fitted.middle, "axes": fitted.axes}
        elif isinstance(fitted, Unchanged):
            arrays = {}
        else:
            raise UsageError(
                f"a map of your own, {type(fitted).__name__}, cannot be written to a file",
                do='use "pacmap", "pca" or "identity", or save with another assignment',
            )
        arrays |= {"mean": self.space.middle, "sd": self.space.spread, "places": self.places,
                   "references": self.locate(references)}  # fmt: skip
        return {
            "map": type(fitted).__name__.lower(),
            "training_rows": self.training_rows,
            "own_encoding": self.space.encoding is not None,
            "neighbours": fitted.neighbours if isinstance(fitted, Interpolated) else 0,
            "arrays": {name: _packed(values) for name, values in arrays.items()},
        }


def rule_for_a_file(assigner: Any, references: pd.DataFrame, training_rows: bool) -> dict[str, Any]:
    """The rule as plain values; an error where it holds training rows that nobody said yes to."""
    if not isinstance(assigner, ByEmbedding):
        raise UsageError(
            "an assignment of your own cannot be written to a file",
            do='use references.with_assignment("sparsest") or "features"',
        )
    rows = assigner.training_rows
    if rows and not training_rows:
        raise UsageError(
            f"cases are assigned on a map that holds {rows:,} training rows, encoded as numbers",
            do="pass training_rows=True (--training-rows) if these people's data may be in the file, or use "
            'references.with_assignment("features") or "sparsest", which are other assignments',
        )
    return assigner.to_plain(references)


def from_plain(content: Mapping[str, Any], decision: Decision, schema: Schema, references: pd.DataFrame) -> ByEmbedding:
    """The rule that `ByEmbedding.to_plain` was given; an error where it would send cases elsewhere than it did."""
    from fewest.engine.encoding import Encoding
    from fewest.references.clustering import ClusterSpace
    from fewest.references.clustering.embedding import Interpolated, Projected, Unchanged

    again = "save the references again, with the model they are used with"
    try:
        arrays = {str(name): _unpacked(part) for name, part in content["arrays"].items()}
        columns, places = len(arrays["mean"]), arrays["places"]
        none = np.empty((0, places.shape[1]))
        fitted: Fitted
        if content["map"] == "interpolated":
            landmarks, at, k = arrays["landmarks"], arrays["at"], int(content["neighbours"])
            whole = landmarks.shape == (columns, len(at)) and at.shape[1:] == places.shape[1:] and 1 <= k <= len(at)
            fitted = Interpolated(landmarks.astype(np.float32), at, k, none)
        elif content["map"] == "projected":
            whole = arrays["axes"].shape == (places.shape[1], columns) and arrays["middle"].shape == (columns,)
            fitted = Projected(arrays["middle"], arrays["axes"], none)
        else:
            whole = content["map"] == "unchanged" and places.shape[1] == columns
            fitted = Unchanged(none)
        known = len(references) == len(arrays["references"]) and 1 <= len(places) <= len(references)
        if not (whole and known and arrays["sd"].shape == (columns,)):
            raise ValueError("its arrays do not fit together")
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, zlib.error) as error:
        raise DataError(f"the rule that sends cases to references is damaged ({error})", do=again) from error
    encoding = Encoding.read(decision, schema) if content.get("own_encoding") else None
    rule = ByEmbedding(ClusterSpace(schema, encoding, arrays["mean"], arrays["sd"]), fitted, places)
    try:
        same = np.allclose(rule.locate(references), arrays["references"], rtol=0, atol=CLOSE)
    except (ValueError, IndexError):  # the model is fed other columns than these
        same = False
    if not same:
        raise DataError(
            "on the map of the file the references lie elsewhere than when it was written: their values were changed, "
            "or this model encodes rows in another way",
            do=again,
        )
    return rule


def _packed(values: npt.NDArray[Any]) -> dict[str, Any]:
    """An array as text; what repeats in it takes little room."""
    whole = np.ascontiguousarray(values)
    text = base64.b64encode(zlib.compress(whole.astype(whole.dtype.newbyteorder("<")).tobytes(), 6)).decode("ascii")
    return {"dtype": whole.dtype.name, "shape": list(whole.shape), "zlib": text}


def _unpacked(part: Mapping[str, Any]) -> npt.NDArray[Any]:
    """The array that `_packed` was given: finite numbers, and no more of them than it says."""
    shape, kind = [int(size) for size in part["shape"]], str(part["dtype"])
    if kind not in ("float32", "float64") or min(shape, default=0) < 0 or math.prod(shape) > MOST_NUMBERS:
        raise ValueError(f"an array of {kind} and shape {shape}")
    size = math.prod(shape) * np.dtype(kind).itemsize
    data = zlib.decompressobj().decompress(base64.b64decode(part["zlib"], validate=True), size + 1)
    values = np.frombuffer(data, np.dtype(kind).newbyteorder("<")).astype(kind).reshape(shape)
    if not np.isfinite(values).all():
        raise ValueError("an array with numbers that are not finite")
    return values
