"""What was read of a model (encoding and structure), trusted only after it reproduced the model on mixed rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from fewest.decision import Decision, Verdicts
from fewest.engine.encoding import Encoding
from fewest.engine.joint_columns import MOST, ColumnGroup, close, column_groups, tried
from fewest.engine.own_encoding import OwnEncoding, UnknownCellError
from fewest.engine.structure import Opaque, read
from fewest.engine.structure.base import Additive, Module, Rivals, Structure, is_smooth
from fewest.errors import DoubtError, FewestWarning
from fewest.tables.arrays import Bools, Floats, Ints, Ints32
from fewest.tables.frames import mix
from fewest.tables.schema import Schema
from fewest.tables.scores import home_of

SAMPLE = 48  # cases that are mixed with references to try what was read
PATTERNS = 256  # combinations of missing values that are tried, about
MANY = 2_000  # parts of at least this many cases are tried by a sample of their own, encoded cells included
OTHER_COLUMNS = "the encoded columns do not belong to single features as declared"
OTHER_SOURCES = "the encoded columns depend on other features than was declared or found"
OTHER_DECISIONS = "what was read of the model does not reproduce its decisions"


@dataclass(frozen=True)
class ModelReading:
    """A model's encoding and structure."""

    encoding: Encoding
    structure: Structure | Opaque
    doubt: str | None = None  # Why a structure that had been read was given up; None where there was none to give up
    blocks: bool = False  # Whether vertices of an opaque model can be scored as mixed rows of the final model's input
    joint: tuple[ColumnGroup, ...] = ()  # Columns of the structure that depend on several features
    own: OwnEncoding | None = None  # The transformers without a call of them, where that gives the same rows
    # Combinations of missing columns that were tried
    missing: set[bytes] = field(default_factory=set, compare=False, repr=False)

    @classmethod
    def read(cls, decision: Decision, schema: Schema, cases: pd.DataFrame, goals: pd.DataFrame) -> ModelReading:
        """Read the model and try what was read on rows mixed from cases and goals.

        Transformers of which nothing is known are probed with the same rows.
        """
        encoding = Encoding.read(decision, schema)
        if encoding.sources is None and encoding.steps is not None:
            encoding = Encoding.read(decision, schema, pd.concat([cases, goals[:SAMPLE]]))
        if encoding.sources is None:
            return cls(encoding, Opaque(encoding.reason))
        structure = read(
            encoding.final, positive=decision.positive_index, against=decision.against_index,
            kind="proba" if decision.kind == "torch" else str(decision.kind), threshold=decision.cut,
            width=len(encoding.sources),
        )  # fmt: skip
        if isinstance(structure, Opaque):
            blocks = encoding.feature_of is not None and _mixes(encoding, schema, cases, goals)
            if blocks and decision.kind == "torch" and home_of(encoding.final).type in ("cpu", "cuda"):
                structure = Module(structure.reason, encoding.final, decision.positive_index, decision.cut)
            return cls(encoding, structure, blocks=blocks)
        found = cls(encoding, structure)
        try:
            found = found._with_joint_columns(schema, cases, goals)
            if isinstance(found.structure, Opaque):
                return found
            encoded = found._believe(schema, cases, goals)
            for rows, model_input in zip((cases, goals), encoded, strict=True):
                found._check_rows(rows, model_input)
        except DoubtError as doubt:
            return found.given_up(doubt.message)
        return replace(found, own=OwnEncoding.read(encoding, cases, found.prepare(encoded[0]), found.prepare))

    def _with_joint_columns(self, schema: Schema, cases: pd.DataFrame, goals: pd.DataFrame) -> ModelReading:
        """The same with the columns that several features change; opaque where one depends on too many."""
        encoding, structure = self.encoding, self.structure
        assert not isinstance(structure, Opaque)
        if encoding.sources is None or (encoding.feature_of is not None and not structure.reading.several):
            return self
        groups = column_groups(structure, encoding.sources)
        if groups and is_smooth(structure):
            _, goal_of, took = _mixed(schema, cases, goals)
            took = np.concatenate([took, np.ones_like(took)])  # the goals themselves, where all steps are added
            known = tried(groups, self._rows_of(schema, cases, goals, goal_of), took, exact=False)
            if sum(len(group.columns) for group in known) < sum(len(group.columns) for group in groups):
                raise DoubtError(OTHER_SOURCES)
            groups = tuple(known)
        for group in groups:
            if len(group.features) > MOST and not group.summed:
                column = int(structure.reading.source[group.columns[0]])
                names = ", ".join(schema.names[j] for j in group.features[:3])
                reason = (
                    f"column {column} of the model's input depends on {len(group.features)} features together "
                    f"({names}, ...); up to {MOST} are read"
                )
                return ModelReading(encoding, Opaque(reason))
        return replace(self, joint=groups)

    @classmethod
    def unread(cls, decision: Decision, schema: Schema) -> ModelReading:
        """Nothing is read: the model's own scores, asked for on raw rows, are all there is."""
        return cls(Encoding.read(decision, schema), Opaque("the caller asked for it"))

    def given_up(self, reason: str) -> ModelReading:
        """The same model, of which nothing is believed any more."""
        return ModelReading(self.encoding, Opaque(reason), reason)

    def wide_enough(self, *prepared: Floats) -> ModelReading:
        """The same, with a tolerance that covers the rounding of these rows and their mixtures."""
        if not isinstance(self.structure, Additive | Rivals) or not self.structure.reading.growth:
            return self
        structure = self.structure.wide_enough(*prepared)
        return self if structure is self.structure else replace(self, structure=structure)

    def check_decisions(self, prepared: Floats, positive: Bools) -> None:
        """Compare what was read of prepared rows with what the model decided; rounding is the model's own affair."""
        if isinstance(self.structure, Opaque):
            if not self.blocks or len(prepared) == 0:
                return
            decision = self.encoding.decision
            raw, precision = decision.call(prepared, model=self.encoding.final)
            cut, tolerance = decision.cut, decision.half_band(precision)
        else:
            reading = self.structure.reading
            raw, cut, tolerance = self.structure.raw(prepared), reading.cut, reading.tolerance
        if (((raw >= cut) != positive) & (np.abs(raw - cut) > tolerance)).any():
            raise DoubtError(OTHER_DECISIONS)

    def drawn(self, cubes: int) -> int:
        """How many vertices of a number of cubes are drawn to compare what was read with the model."""
        return min(1 + cubes // 128, SAMPLE) if self.known() else 0

    def check_part(self, schema: Schema, cases: pd.DataFrame, goals: pd.DataFrame, absent: Bools) -> None:
        """Try what was read on a part of the table: on a sample, and wherever other values are missing than before.

        A case with values missing that were there before is tried with each feature changed alone: that is where
        columns are filled from one another. ``absent`` says which cells of the cases are missing.
        """
        if not self.known():
            return
        if len(cases) >= MANY:
            self._believe(schema, cases.iloc[np.linspace(0, len(cases) - 1, SAMPLE).astype(int)], goals)
        if not absent.any():
            return
        rows = np.flatnonzero(absent.any(axis=1))
        patterns, first = np.unique(np.packbits(absent[rows], axis=1), axis=0, return_index=True)
        new = {pattern.tobytes(): rows[k] for pattern, k in zip(patterns, first, strict=True)}
        new = {pattern: row for pattern, row in new.items() if pattern not in self.missing}
        if new and len(self.missing) < PATTERNS:
            self.missing.update(new)
            each_alone = np.tile(np.eye(len(schema), dtype=bool), (len(new), 1))
            self._believe(schema, cases.iloc[np.repeat(list(new.values()), len(schema))], goals, each_alone)

    def _believe(
        self, schema: Schema, cases: pd.DataFrame, goals: pd.DataFrame, took: Bools | None = None
    ) -> tuple[Any, Any]:
        """Try what was read on mixtures; cases and goals as the final model is fed them."""
        mixed, goal_of, took = _mixed(schema, cases, goals, took)
        first, second, both = self._encoded(cases, goals, mixed)
        if not self.encoding.agrees(first, second, both, goal_of, took):
            raise DoubtError(OTHER_COLUMNS if self.encoding.feature_of is not None else OTHER_SOURCES)
        if self.joint:
            good = tried(self.joint, self._rows_of(schema, cases, goals, goal_of), took, exact=True)
            if len(good) < len(self.joint):
                raise DoubtError(OTHER_SOURCES)
        self._check_rows(mixed, both)
        return first, second

    def _rows_of(
        self, schema: Schema, cases: pd.DataFrame, goals: pd.DataFrame, goal_of: Ints
    ) -> Callable[[Bools], Floats]:
        """Prepared rows of all cases with some features (n, p) from their goals; any number of times over."""

        def rows(took: Bools) -> Floats:
            again = len(took) // len(cases)
            take = {column: took[:, j] for column, j in schema.feature_of.items()}
            mixed = mix(cases.iloc[np.tile(np.arange(len(cases)), again)], goals, np.tile(goal_of, again), take)
            return self.prepare(self.encoding.transform(mixed))

        return rows

    def check_ends(self, start: Floats, goal: Floats, differs: Bools) -> None:
        """Compare rows with what they end at: columns none of whose features differ (n, p) must be the same.

        Asked for where the features of columns were found by probing, which may have missed a rare value.
        """
        sources = self.encoding.sources
        if not self.encoding.probed or sources is None or isinstance(self.structure, Opaque):
            return
        of_column = [frozenset().union(*(sources[c] for c in places)) for places in self.structure.reading.inputs]
        for features in set(of_column):
            columns = [c for c, own in enumerate(of_column) if own == features]
            same = ~differs[:, sorted(features)].any(axis=1)
            if not close(start[same][:, columns], goal[same][:, columns]).all():
                raise DoubtError(OTHER_SOURCES)

    def _encoded(self, *tables: pd.DataFrame) -> list[Any]:
        """Tables as the final model is fed them; transformers that look at each row alone are called once for all."""
        if self.own is None or any(list(table.dtypes) != list(tables[0].dtypes) for table in tables):
            return [self.encoding.transform(table) for table in tables]
        ends = np.cumsum([0, *map(len, tables)])
        whole = self.encoding.transform(pd.concat(tables, ignore_index=True))
        return [whole[first:last] for first, last in pairwise(ends)]

    def _check_rows(self, rows: pd.DataFrame, encoded: Any) -> None:
        prepared, decision = self.prepare(encoded), self.encoding.decision
        verdicts = decision.verdicts(rows) if self.own is None else self.verdicts(rows, encoded)
        self.wide_enough(prepared).check_decisions(prepared, verdicts.positive)

    def verdicts(self, rows: pd.DataFrame, encoded: Any) -> Verdicts:
        """The model's verdicts on rows that its transformers have seen already."""
        decision = self.encoding.decision
        scores, precision = decision.call(encoded, rows, self.encoding.final)
        alone = None if self.own is None else lambda places: self._each_alone(_at(encoded, places), rows)
        return decision.settle(scores, precision, rows, alone)

    def verdicts_on(self, rows: pd.DataFrame) -> Verdicts:
        """The whole model's verdicts on raw rows; of plain transformers, rows scored once more go through together."""
        decision, encoding = self.encoding.decision, self.encoding
        if self.own is None:
            return decision.verdicts(rows)
        return decision.verdicts(rows, lambda places: self._each_alone(encoding.transform(rows.iloc[places]), rows))

    def _each_alone(self, encoded: Any, rows: pd.DataFrame) -> Floats:
        """Scores of encoded rows, one call of the final model each."""
        call = partial(self.encoding.decision.call, frame=rows, model=self.encoding.final)
        return np.concatenate([call(_at(encoded, [place]))[0] for place in range(encoded.shape[0])])

    @property
    def width(self) -> int:
        """Columns of the final model's input, and numbers that those of several features have on a cube."""
        tables = sum(0 if group.summed else 4 * len(group.columns) << len(group.features) for group in self.joint)
        return max(1, len(self.encoding.sources or ())) + tables

    def feature_of(self) -> Ints32:
        """Feature of each column the structure is defined on; -1 for constants and for those of several features."""
        sources = self.encoding.sources
        if sources is None or (isinstance(self.structure, Opaque) and not self.blocks):
            return np.empty(0, dtype=np.int32)
        if isinstance(self.structure, Opaque):
            assert self.encoding.feature_of is not None
            return self.encoding.feature_of
        reading = self.structure.reading
        if self.encoding.feature_of is not None and not reading.several:
            return self.encoding.feature_of[reading.source]
        each = [set().union(*(sources[c] for c in places)) for places in reading.inputs]
        return np.array([features.pop() if len(features) == 1 else -1 for features in each], dtype=np.int32)

    def prepare(self, model_input: Any) -> Floats:
        """The rows the search works on; without columns where nothing was read."""
        if isinstance(self.structure, Opaque):
            return np.asarray(model_input, dtype=float) if self.blocks else np.empty((model_input.shape[0], 0))
        return self.structure.reading.prepare(model_input)

    def prepared_alone(self, rows: pd.DataFrame) -> Floats | None:
        """Prepared rows without a call of the transformers; None where only they can tell."""
        if isinstance(self.structure, Opaque) or (self.own is None and self.encoding.steps is not None):
            return None
        try:
            return self.prepare(self.encoding.transform(rows) if self.own is None else self.own(rows))
        except UnknownCellError:
            return None

    def known(self) -> bool:
        """Whether the search works on rows of the model's input rather than on raw ones."""
        return self.blocks or not isinstance(self.structure, Opaque)

    def goals(self, references: pd.DataFrame) -> Floats:
        """References as the search works on them; without columns where it works on raw rows."""
        if not self.known():
            return np.empty((len(references), 0))
        return self.prepare(self.encoding.transform(references))


class ModelReader:
    """What is read of a model: once, tried on a few cases before it is trusted, and given up where it is doubted."""

    def __init__(self, decision: Decision, schema: Schema, references: pd.DataFrame, opaque: bool) -> None:
        self._decision, self.schema, self._references, self._opaque = decision, schema, references, opaque
        self.reading: ModelReading | None = None  # None until `look` was called
        self.band = 0.0  # Differences of the model's own scores that decide nothing
        self._goals: Floats | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without what was read: it holds functions, and another process reads it again; what was given up stays so."""
        if self.reading is not None and self.reading.doubt is not None:
            return vars(self)
        return {**vars(self), "reading": None, "band": 0.0, "_goals": None}

    def look(self, cases: pd.DataFrame) -> ModelReading:
        """What can be read of the model; the first call reads it and tries it on the first of the cases."""
        if self.reading is None:
            sample = cases.iloc[:SAMPLE]
            self._decision.check(sample)
            self.band = self._decision.band(sample.iloc[:1])
            if self._opaque:
                self.reading = ModelReading.unread(self._decision, self.schema)
            else:
                self.reading = ModelReading.read(self._decision, self.schema, sample, self._references)
            if self.reading.doubt:
                _warn(self.reading.doubt)
        return self.reading

    def take_over(self, other: ModelReader, cases: pd.DataFrame) -> None:
        """Believe what was read of the same model, with the same references, elsewhere; it may have to look first."""
        self.reading, self.band = other.look(cases), other.band

    def goals(self) -> Floats:
        """The references as the search works on them."""
        assert self.reading is not None
        if self._goals is None:
            self._goals = self.reading.goals(self._references)
        return self._goals

    def give_up(self, doubt: str) -> None:
        """Believe nothing that was read of the model from now on."""
        assert self.reading is not None
        self.reading, self._goals = self.reading.given_up(doubt), None
        _warn(doubt)


def _at(encoded: Any, places: Any) -> Any:
    """Some rows of the final model's input, whichever kind of table it is."""
    return encoded.iloc[places] if hasattr(encoded, "iloc") else encoded[places]


def _warn(doubt: str) -> None:
    warnings.warn(f"{doubt}; its own scores are searched instead", FewestWarning, stacklevel=4)


def _mixed(
    schema: Schema, cases: pd.DataFrame, goals: pd.DataFrame, took: Bools | None = None
) -> tuple[pd.DataFrame, Ints, Bools]:
    """Rows mixed from cases and goals, the goal of each, and which features were taken from it (default: drawn)."""
    goal_of = np.arange(len(cases)) % len(goals)
    if took is None:
        took = np.random.default_rng(0).random((len(cases), len(schema))) < 0.5
    mixed = mix(cases, goals, goal_of, {column: took[:, j] for column, j in schema.feature_of.items()})
    return mixed, goal_of, took


def _mixes(encoding: Encoding, schema: Schema, cases: pd.DataFrame, goals: pd.DataFrame) -> bool:
    """Whether rows of the final model's input can be mixed instead of raw rows, which saves the transformers."""
    first = encoding.transform(cases)
    if not (isinstance(first, np.ndarray) and first.dtype.kind in "fiub"):
        return False
    mixed, goal_of, took = _mixed(schema, cases, goals)
    return encoding.agrees(first, encoding.transform(goals), encoding.transform(mixed), goal_of, took)
