"""How a score changes over all values of one feature, from what was read of a tree ensemble or an additive model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fewest.engine.model_reading import SAMPLE, ModelReader, ModelReading
from fewest.engine.structure.base import Additive, Ensemble
from fewest.errors import DoubtError
from fewest.references.domains import domain_of
from fewest.tables.arrays import Bools, Floats

if TYPE_CHECKING:
    from fewest.engine.anyone import Sight


class ValueProfiles:
    """What is laid out of a model over the values of its features, and kept.

    Called with rows, the features of each that are asked about (n, p) and the values of some features, it gives for
    each of these which values (rows, values) surely have the other outcome; nothing where the model was not read.
    """

    def __init__(self, reader: ModelReader) -> None:
        self._reader = reader
        self._kept: tuple[ModelReading, dict[int, bytes], Sight | None] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without what is laid out: it holds functions, and is laid out again."""
        return {"_reader": self._reader, "_kept": None}

    def __call__(self, rows: pd.DataFrame, moved: Bools, values: Mapping[int, Floats]) -> dict[int, Bools]:
        """Which values surely change the outcome."""
        sight = self._sight(rows, values)
        if sight is None:
            return {}
        alone = sight.inside.prepared_alone(rows)
        prepared = np.ascontiguousarray(sight.prepared(rows) if alone is None else alone, dtype=np.float64)
        structure = sight.inside.wide_enough(prepared).structure
        assert isinstance(structure, Ensemble | Additive)
        score = sight.search.profiles(prepared, moved)
        below = structure.reading.cut - structure.reading.tolerance - sight.search.rounding
        return {j: score(j, np.flatnonzero(moved[:, j])) < below for j in values}

    def _sight(self, rows: pd.DataFrame, values: Mapping[int, Floats]) -> Sight | None:
        """The values as the model sees them, tried once on values drawn; None where the model has to be asked."""
        inside, held = self._reader.look(rows), {j: own.tobytes() for j, own in values.items()}
        if self._kept is None or self._kept[0] is not inside or self._kept[1] != held:
            self._kept = inside, held, self._laid_out(inside, rows, values)
        return self._kept[2]

    def _laid_out(self, inside: ModelReading, rows: pd.DataFrame, values: Mapping[int, Floats]) -> Sight | None:
        from fewest.engine.anyone import Sight, unread  # imports numba, which answers alone may not need

        if unread(inside):
            return None
        schema, none = self._reader.schema, np.empty(0)
        domains = (domain_of(schema, feature, rows, values.get(j, none)) for j, feature in enumerate(schema.features))
        sight = Sight.build(schema, inside, tuple(domains))
        if any(len(sight.domains[j]) != len(own) for j, own in values.items()):
            return None  # values that the schema does not keep apart
        try:
            sight.check(rows.iloc[:SAMPLE])
        except DoubtError:
            return None
        return sight
