"""The record of an answer: its columns, once, with name, type and meaning.

Frames, run folders, certificates, CSV, JSON, the HTTP service and the table of columns in the docs are derived from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.results.answers import Answers
from fewest.results.explanation import STATUSES, About, Change, Explanation, Fact, Proof, Status
from fewest.tables.arrays import Bools, Ints, true_cells
from fewest.tables.json_cells import Read, arrow_texts, texts
from fewest.tables.saved_schema import plain
from fewest.tables.schema import Schema
from fewest.tables.values import typed_column

Ends = tuple[Any, Any]
Kind = Literal["whole", "number", "truth", "word", "hash", "features", "values", "text", "changes", "sets"]
Place = Literal["frame", "part", "certificate", "csv", "json", "http"]
MEASURED = ("whole", "number", "truth")
STATUS_NAMES = tuple(status.value for status in STATUSES)


@dataclass(frozen=True, eq=False)
class Answered:
    """Answers to some rows, and what their columns are computed from."""

    answers: Answers
    rows: Ints  # (n,) int64: Row numbers
    schema: Schema
    about: About
    references: tuple[str, ...]
    strategies: tuple[str, ...]
    # Takes sets (s, p), the place of the case of each, the reference each leads to and a way to read columns; gives
    # the changed cells before and after, set by set
    ends: Callable[[Bools, Ints, npt.NDArray[Any], Read], Ends]
    hashes: npt.NDArray[np.uint64] | None = None  # (n,) uint64
    labels: Sequence[str] | None = None  # (n,): What the cases are called, where it is not by their row

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def explained(self) -> Bools:
        """Which rows have a SEV."""
        return np.asarray(self.answers.status == STATUSES.index(Status.EXPLAINED))

    @cached_property
    def turned(self) -> Bools:
        """Which rows have an answer, proved or not."""
        return np.asarray(self.answers.moved.any(axis=1))

    @cached_property
    def sizes(self) -> Ints:
        """Features changed in each row."""
        return np.asarray(self.answers.moved.sum(axis=1))

    @cached_property
    def margin(self) -> npt.NDArray[np.float64]:
        """How far beyond the threshold each answer leads."""
        gap = self.about.threshold - self.answers.score_after
        return np.asarray(-gap if self.about.plus else gap)

    @cached_property
    def texts(self) -> Ends:
        """JSON text of the changed cells before and after, all rows one after the other."""
        return self._cells(texts)

    @cached_property
    def arrow_texts(self) -> Ends:
        """The same as Arrow arrays."""
        return self._cells(arrow_texts)

    @cached_property
    def values(self) -> Ends:
        """The same, typed."""
        return self._cells(typed_column)

    def _cells(self, read: Read) -> Ends:
        a = self.answers
        return self.ends(a.moved, np.arange(len(self)), np.maximum(a.reference, 0), read)

    def listed_sets(self) -> list[list[str]]:
        """The smallest sets listed for each row, each as JSON text: a list of {feature, from, to}."""
        out: list[list[str]] = [[] for _ in range(len(self))]
        listed, own = self.answers.alternatives, np.maximum(self.answers.reference, 0)
        if not listed:
            return out
        moved = np.concatenate(list(listed.values()))
        owner = np.repeat(list(listed), [len(sets) for sets in listed.values()])
        goals = [self.answers.towards.get(row, np.repeat(own[row], len(sets))) for row, sets in listed.items()]
        before, after = self.ends(moved, owner, np.concatenate(goals), texts)
        words = [json.dumps(name, ensure_ascii=False) for name in self.schema.names]
        cells = [
            f'{{"feature": {words[j]}, "from": {start}, "to": {end}}}'
            for j, start, end in zip(true_cells(moved)[1].tolist(), before, after, strict=True)
        ]
        for row, changes in zip(owner.tolist(), split(cells, moved.sum(axis=1)), strict=True):
            out[row].append(f"[{', '.join(changes)}]")
        return out

    def compared_with(self) -> tuple[npt.NDArray[Any], tuple[str, ...]]:
        """The reference of each row as a place among names, each name once."""
        codes, names = pd.factorize(np.array(self.references, dtype=object))
        return np.append(codes, -1)[self.answers.reference], tuple(names)

    def called(self) -> tuple[Ints, Sequence[str]]:
        """What each row is called as a place among names; none where rows have no other name than their number."""
        return (np.full(len(self), -1), ()) if self.labels is None else (np.arange(len(self)), self.labels)

    def n_listed(self) -> tuple[Ints, Bools]:
        """How many sets are listed for each row, and where any were asked for."""
        counts = np.full(len(self), -1)
        counts[list(self.answers.alternatives)] = [len(sets) for sets in self.answers.alternatives.values()]
        return counts, counts >= 0


def split(values: Sequence[Any], sizes: npt.NDArray[Any]) -> list[list[Any]]:
    """Values one after the other as lists of these sizes."""
    ends = np.cumsum(sizes).tolist()
    return [list(values[low:high]) for low, high in zip([0, *ends[:-1]], ends, strict=True)]


@dataclass(frozen=True)
class Field:
    """One column of an answer."""

    name: str
    kind: Kind
    # Where it is found: the frame in memory, the parts of a run folder, their certificates, CSV, JSON, HTTP
    places: str
    meaning: str  # One sentence
    # From `Answered`, vectorised: of a number the values and where they are known (None: everywhere), of a word the
    # codes and the levels, of values the side (0 before, 1 after); else the column. None: it is not in tables.
    column: Callable[[Answered], Any] | None = None
    of: Callable[[Explanation], Any] | None = None  # From an `Explanation`; default: its attribute of that name
    bits: int = 64  # Of a whole number in Parquet
    dtype: Any = None  # Of the column in a frame, where it is not the usual one
    optional: bool = False  # Whether a whole number or a word may be missing; numbers may always
    # certificate, http: Its name there, where that is another; in HTTP a dot leads into an object
    certificate: str = ""
    http: str = ""

    def read(self, answered: Answered) -> Any:
        """Its column as it is computed."""
        if self.column is None:
            raise TypeError(f"{self.name} is not a column of tables")
        return self.column(answered)

    def plain(self, answer: Explanation) -> Any:
        """Its value in an answer as JSON holds it."""
        value = getattr(answer, self.name) if self.of is None else self.of(answer)
        return value if value is None or type(value) in (str, int, bool) else plain(value)

    def series(self, answered: Answered, typed: bool) -> Any:
        """Its column for a pandas table; values of features are typed, or plain as a run folder has them."""
        column = self.read(answered)
        if self.kind in MEASURED:
            values, known = column
            if known is None:
                return values
            if self.kind == "whole":
                return pd.arrays.IntegerArray(np.asarray(values, dtype=np.int64), ~known)
            return np.where(known, values, np.nan)
        if self.kind == "word":
            return pd.Series(np.array([*column[1], None], dtype=object)[column[0]], dtype=object)
        if self.kind == "features":
            return split(column, answered.sizes)
        if self.kind == "values":
            flat = answered.values[column] if typed else json.loads(f"[{','.join(answered.texts[column])}]")
            return split(flat, answered.sizes)
        return [[json.loads(text) for text in row] for row in column] if self.kind == "sets" else column

    def arrow(self, answered: Answered) -> Any:
        """Its column for a Parquet part; values of features are JSON text."""
        import pyarrow as pa

        sets = self.kind == "sets"
        if sets and not answered.answers.alternatives:
            ends = pa.array(np.zeros(len(answered) + 1, dtype=np.int32))
            return pa.ListArray.from_arrays(ends, pa.array([], pa.string()))
        column = self.read(answered)
        if self.kind in MEASURED:
            values, known = column
            kind = {"whole": pa.int64() if self.bits == 64 else pa.int32(), "number": pa.float64(), "truth": pa.bool_()}
            return pa.array(values, kind[self.kind], mask=None if known is None else ~known)
        if self.kind == "word":
            codes = pa.array(column[0], pa.int32(), mask=column[0] < 0)
            return pa.DictionaryArray.from_arrays(codes, pa.array(list(column[1]), pa.string()))
        if self.kind == "hash":
            return pa.array(column)
        if sets:
            return pa.array(column, pa.list_(pa.string()))
        ends = pa.array(np.concatenate([[0], np.cumsum(answered.sizes)]), pa.int32())
        flat = answered.arrow_texts[column] if self.kind == "values" else column
        return pa.ListArray.from_arrays(ends, pa.array(flat, pa.string()) if isinstance(flat, list) else flat)

    def values(self, answered: Answered) -> list[Any]:
        """Its value in each row; None where it is not known."""
        column, known = self.read(answered)
        if self.kind == "word":
            levels = [*known, None]
            return [levels[code] for code in column.tolist()]
        if known is None:
            return column.tolist()  # type: ignore[no-any-return]
        return [value if there else None for value, there in zip(column.tolist(), known.tolist(), strict=True)]


def changes_to_dicts(changes: Iterable[Change]) -> list[dict[str, Any]]:
    """Changes of a set as JSON has them, values still typed."""
    return [{"feature": change.feature, "from": change.before, "to": change.after} for change in changes]


FIELDS = (
    Field("row", "whole", "part certificate csv json",
          "Number of the case, from 0 on: in the data, or among those of them that were not left out.",
          lambda a: (a.rows, None)),
    Field("label", "word", "part certificate csv json",
          "What it is called: its index label or the column named with `--id`; absent where that is its row.",
          lambda a: a.called(), optional=True),
    Field("hash", "hash", "part certificate", "Fingerprint of its values, 64 bits.", lambda a: a.hashes),
    Field("status", "word", "frame part certificate csv json http", "How the case ended.",
          lambda a: (a.answers.status, STATUS_NAMES), lambda e: e.status.value,
          dtype=pd.CategoricalDtype(STATUS_NAMES)),
    Field("sev", "whole", "frame part certificate csv json http", "Number of features changed; only of EXPLAINED.",
          lambda a: (a.sizes, a.explained), bits=32, optional=True),
    Field("cost", "number", "part json", "Their summed weights; only of EXPLAINED.",
          lambda a: (a.answers.cost, a.explained)),
    Field("sentence", "text", "json http", "The answer in one sentence.", of=str),
    Field("features", "features", "frame part certificate csv", "The features changed, in column order.",
          lambda a: np.array(a.schema.names, dtype=object)[true_cells(a.answers.moved)[1]].tolist(),
          certificate="set"),
    Field("from", "values", "frame part csv", "Their values before, one for each feature.", lambda a: 0),
    Field("to", "values", "frame part csv", "Their values after, one for each feature.", lambda a: 1),
    Field("changes", "changes", "json http", "The features changed with their values before and after.",
          of=lambda e: changes_to_dicts(e.changes)),
    Field("score", "number", "frame part certificate csv json http", "The model's score of the case.",
          lambda a: (a.answers.score, None)),
    Field("score_after", "number", "frame part certificate csv json http", "The model's score after the changes.",
          lambda a: (a.answers.score_after, a.turned)),
    Field("margin", "number", "frame part csv json", "How far beyond the threshold the changes lead.",
          lambda a: (a.margin, a.turned)),
    Field("lower_bound", "number", "frame part certificate csv json http",
          "No set with fewer features (or of less cost) changes the outcome; infinite (null in JSON) where none does.",
          lambda a: (a.answers.lower, None), lambda e: e.proof.lower_bound),
    Field("proved", "truth", "frame part certificate csv json http", "Whether the answer is proved to be smallest.",
          lambda a: (a.answers.proved, None), lambda e: e.proof.minimal, http="proof.minimal"),
    Field("verified", "truth", "json http", "Whether the model, called on the values shown, changed its outcome.",
          of=lambda e: e.proof.verified, http="proof.verified"),
    Field("strategy", "word", "frame part certificate json http", "The search that was used.",
          lambda a: (a.answers.strategy, a.strategies), lambda e: e.proof.strategy, certificate="by",
          dtype="str", http="proof.strategy"),
    Field("nodes", "whole", "part certificate json http",
          "Search nodes it visited; where few sets are as small as the answer, those.",
          lambda a: (a.answers.nodes, None), lambda e: e.proof.nodes, http="proof.nodes"),
    Field("n_alternatives", "whole", "frame", "How many smallest sets are listed, where they were asked for.",
          lambda a: a.n_listed()),
    Field("alternatives", "sets", "part json http", "The smallest sets listed, the one shown first.",
          lambda a: a.listed_sets(), lambda e: [changes_to_dicts(changes) for changes in e.alternatives]),
    Field("all_listed", "truth", "frame part json http", "Whether the search proved that these are all smallest sets.",
          lambda a: (a.answers.complete, None)),
    Field("reference", "word", "frame part certificate csv json http", "Name of the reference compared with.",
          lambda a: a.compared_with(), dtype="string", optional=True),
    Field("l_inf", "number", "frame part csv json", "Largest change of a number, in standard deviations.",
          lambda a: (a.answers.l_inf, a.turned)),
    Field("log_density", "number", "frame part csv json",
          "How dense accepted cases are where the changes lead, where a credibility is set.",
          lambda a: (a.answers.log_density, a.turned & ~np.isnan(a.answers.log_density))),
    Field("decimals", "whole", "part",
          "Decimals beyond those of the features that its own numbers are shown with, asked of the model; absent: all.",
          lambda a: (a.answers.decimals, a.answers.decimals >= 0), bits=32, optional=True),
    Field("support", "whole", "json", "Training rows the reference stands for, where that is known."),
    Field("credibility", "number", "json", "Of a leaf: at least this share of the accepted cases is there."),
)  # fmt: skip


@cache
def fields_in(place: Place) -> tuple[Field, ...]:
    """The fields found in a place, in order."""
    return tuple(field for field in FIELDS if place in field.places.split())


def names_in(place: Place) -> tuple[str, ...]:
    """Their names."""
    return tuple(field.name for field in fields_in(place))


def is_kept(field: Field, answered: Answered) -> bool:
    """Whether the answers have something to say in a field: names of cases are not kept where there are none."""
    return field.name != "label" or answered.labels is not None


def table(answered: Answered, columns: Sequence[str], typed: bool = False) -> pd.DataFrame:
    """Columns of answers as a pandas table: as a run folder has them, or typed as in `Explanations.to_frame`."""
    chosen = [field for name in columns for field in FIELDS if field.name == name and is_kept(field, answered)]
    out = pd.DataFrame({field.name: field.series(answered, typed) for field in chosen})
    return out.astype({field.name: field.dtype for field in chosen if typed and field.dtype is not None})


def to_json(answer: Explanation, place: Literal["json", "http"] = "json") -> dict[str, Any]:
    """One answer as plain values; a dot in a name leads into an object, as in ``{"proof": {"minimal": True, ...}}``."""
    out: dict[str, Any] = {}
    for field in fields_in(place):
        inside, _, name = (field.http or field.name if place == "http" else field.name).rpartition(".")
        (out.setdefault(inside, {}) if inside else out)[name] = field.plain(answer)
    return out


ATTRIBUTES = frozenset(part.name for part in fields(Explanation))
SCALARS = tuple(field for field in fields_in("part") if field.kind in (*MEASURED, "word"))
SCALAR_NAMES = tuple(field.name for field in SCALARS)


def to_explanation(
    values: Mapping[str, Any],
    about: About,
    changes: tuple[Change, ...],
    alternatives: tuple[tuple[Change, ...], ...],
    facts: tuple[Fact, ...] = (),
) -> Explanation:
    """The answer in a row: its values by column, None where they are not known, and what was put together of them."""
    known = {name: value for name, value in values.items() if name in ATTRIBUTES}
    proof = Proof(values["strategy"], values["nodes"], values["lower_bound"], values["proved"], bool(changes))
    made = {"status": Status(values["status"]), "changes": changes, "alternatives": alternatives, "proof": proof}
    return Explanation(
        **{**known, **made},
        outcome=about.outcome,
        positive=about.positive,
        shows_percent=about.percent,
        number=about.number,
        threshold=about.threshold,
        plus=about.plus,
        weighted=about.weighted,
        facts=facts,
    )


def as_markdown() -> str:
    """The table of columns for the docs; a test compares, and says how to write it anew."""
    lines = ["| column | kind | found in | meaning |", "|---|---|---|---|"]
    for field in FIELDS:
        other = {"certificate": field.certificate, "http": field.http}
        places = [f"{place} (`{other[place]}`)" if other.get(place) else place for place in field.places.split()]
        lines.append(f"| `{field.name}` | {field.kind} | {', '.join(places)} | {field.meaning} |")
    return "\n".join(lines)
