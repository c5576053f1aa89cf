"""What was read of a model (encoding and structure), trusted only after it reproduced the model on mixed rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.encoding import Encoding
from fewest.frames import mix
from fewest.schema import Schema
from fewest.structure import Opaque, read
from fewest.structure.base import Structure

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Inside:
    """A model's encoding and structure.

    Attributes
    ----------
    encoding : Encoding
    structure : Structure or Opaque
    doubt : str or None
        Why a structure that had been read was given up; None where there was none to give up.
    blocks : bool
        Whether vertices of an opaque model can be scored as mixed rows of the final model's input.
    """

    encoding: Encoding
    structure: Structure | Opaque
    doubt: str | None = None
    blocks: bool = False

    @classmethod
    def read(cls, decision: Decision, schema: Schema, cases: pd.DataFrame, goals: pd.DataFrame) -> Inside:
        """Read the model and try what was read on rows mixed from cases and goals."""
        encoding = Encoding.read(decision, schema)
        if encoding.feature_of is None:
            return cls(encoding, Opaque(encoding.reason))
        structure = read(
            encoding.final, positive=decision.positive_index, against=decision.against_index,
            kind="proba" if decision.kind == "torch" else str(decision.kind), threshold=decision.cut,
        )  # fmt: skip
        if isinstance(structure, Opaque):
            return cls(encoding, structure, blocks=_mixes(encoding, schema, cases, goals))
        doubt = _doubt(encoding, structure, schema, cases, goals)
        return cls(encoding, structure) if doubt is None else cls(encoding, Opaque(doubt), doubt)

    @classmethod
    def unread(cls, decision: Decision, schema: Schema) -> Inside:
        """Nothing is read: the model's own scores, asked for on raw rows, are all there is."""
        return cls(Encoding.read(decision, schema), Opaque("the caller asked for it"))

    @property
    def width(self) -> int:
        """Columns of the final model's input."""
        return 1 if self.encoding.feature_of is None else len(self.encoding.feature_of)

    def feature_of(self) -> npt.NDArray[np.int32]:
        """Feature of each column the structure is defined on."""
        if self.encoding.feature_of is None:
            return np.empty(0, dtype=np.int32)
        if isinstance(self.structure, Opaque):
            return self.encoding.feature_of if self.blocks else np.empty(0, dtype=np.int32)
        return self.encoding.feature_of[self.structure.reading.source]

    def prepare(self, model_input: Any) -> Floats:
        """The rows the search works on; without columns where nothing was read."""
        if isinstance(self.structure, Opaque):
            return np.asarray(model_input, dtype=float) if self.blocks else np.empty((model_input.shape[0], 0))
        return self.structure.reading.prepare(model_input)

    def known(self) -> bool:
        """Whether the search works on rows of the model's input rather than on raw ones."""
        return self.blocks or not isinstance(self.structure, Opaque)

    def goals(self, references: pd.DataFrame) -> Floats:
        """References as the search works on them; without columns where it works on raw rows."""
        if not self.known():
            return np.empty((len(references), 0))
        return self.prepare(self.encoding.transform(references))


def _mixed(
    schema: Schema, cases: pd.DataFrame, goals: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame, npt.NDArray[np.bool_]]:
    """Rows mixed from cases and goals, the goal of each, and which features were taken from it."""
    goal_of = np.arange(len(cases)) % len(goals)
    took = np.random.default_rng(0).random((len(cases), len(schema))) < 0.5
    mixed = mix(cases, goals, goal_of, {column: took[:, j] for column, j in schema.feature_of.items()})
    return mixed, goals.iloc[goal_of], took


def _mixes(encoding: Encoding, schema: Schema, cases: pd.DataFrame, goals: pd.DataFrame) -> bool:
    """Whether rows of the final model's input can be mixed instead of raw rows, which saves the transformers."""
    model_input = encoding.transform(cases)
    if not (isinstance(model_input, np.ndarray) and model_input.dtype.kind in "fiub"):
        return False
    mixed, goal, took = _mixed(schema, cases, goals)
    return encoding.agrees(cases, goal, mixed, took)


def _doubt(
    encoding: Encoding, structure: Structure, schema: Schema, cases: pd.DataFrame, goals: pd.DataFrame
) -> str | None:
    """Why what was read does not reproduce the model; None if it does."""
    mixed, goal, took = _mixed(schema, cases, goals)
    if not encoding.agrees(cases, goal, mixed, took):
        return "the encoded columns do not belong to single features as declared"
    reading = structure.reading
    for rows in (cases, goals, mixed):
        raw = structure.raw(reading.prepare(encoding.transform(rows)))
        positive = encoding.decision.verdicts(rows).positive
        sure = np.abs(raw - reading.cut) > reading.tolerance
        if ((raw >= reading.cut) != positive)[sure].any():
            return "what was read of the model does not reproduce its decisions"
    return None
