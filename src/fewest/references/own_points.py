"""References written by a domain expert: a table, a CSV or a JSON file, checked against the schema."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewest.decision import Decision
from fewest.errors import DataError, FewestWarning
from fewest.references.base import Assignment, OnPositive, References, scored
from fewest.references.by_embedding import from_plain
from fewest.references.file import UNKNOWN_SUPPORT, Saved, read_saved
from fewest.tables.frames import to_frame
from fewest.tables.schema import Schema


def supplied(
    decision: Decision,
    table: Any,
    *,
    schema: Schema | None = None,
    X: Any = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    names: Sequence[str] | None = None,
    on_positive: OnPositive = "error",
    assignment: Assignment | None = None,
) -> References:
    """References that somebody wrote down.

    Parameters
    ----------
    decision : Decision
    table : table or path
        One row per reference. A path ends in .csv, or in .json for what `References.save` wrote.
    schema : Schema, optional
        Default: read off X, taken from a file that holds one, or read off the table itself (distances are then in raw
        units).
    X : table, optional
        Training rows to read the schema from.
    names : sequence of str, optional
        Default: the table's ``name`` column if it is not a feature, otherwise r1, r2, ...
    on_positive : str
        As in `single`.
    assignment : str, optional
        ``features`` or ``sparsest``; default: what the file says, otherwise ``features``. A file that says
        ``embedding`` and does not hold its rule is compared by ``features`` instead, with a warning.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9]}); y = [0, 0, 1, 1]
    >>> supplied(Decision(LogisticRegression().fit(X, y)), {"debt": [2, 3]}, X=X).names
    ('r1', 'r2')
    """
    saved = _file(table)
    if schema is None and X is not None:
        schema = Schema.infer(X, groups, decision.columns)
    if saved is not None:
        return _from_file(decision, saved, schema, groups, names, on_positive, assignment)
    frame = _read(table, decision, schema)
    return _build(
        decision, frame, schema or Schema.infer(frame, groups, decision.columns), names, on_positive,
        assignment=assignment or "features",
    )  # fmt: skip


def load(
    path: str | Path,
    decision: Decision,
    X: Any = None,
    schema: Schema | None = None,
    *,
    on_positive: OnPositive = "error",
) -> References:
    """References that `References.save` wrote, scored by a decision; a warning names signatures that no longer hold.

    Parameters
    ----------
    path : path
        A .json file of any format there was.
    decision : Decision
    X : table, optional
        Training rows to read the schema from, where the file's own should not be used.
    schema : Schema, optional
        Default: the file's.
    on_positive : str
        As in `single`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "refs.json"
    >>> decision = Decision(lambda rows: rows["debt"].to_numpy() / 100)
    >>> supplied(decision, {"debt": [10, 20]}).sign_off("Credit Risk").save(path)
    >>> again = load(path, decision)
    >>> again.names, again.is_signed(0)
    (('r1', 'r2'), True)
    """
    return supplied(decision, Path(path), X=X, schema=schema, on_positive=on_positive)


def _file(table: Any) -> Saved | None:
    """What `References.save` wrote, where the table is the path of such a file."""
    if not isinstance(table, str | Path):
        return None
    if not Path(table).exists():
        raise DataError(f"there is no file {Path(table).name}", do="check the path of the references")
    return read_saved(table) if Path(table).suffix.lower() == ".json" else None


def _from_file(
    decision: Decision, saved: Saved, schema: Schema | None, groups: Mapping[str, Sequence[str]] | None,
    names: Sequence[str] | None, on_positive: OnPositive, assignment: Assignment | None,
) -> References:  # fmt: skip
    """References of a file, with what it knows of their origin, their people and who signed them."""
    frame = saved.frame
    schema = schema or saved.schema or Schema.infer(frame, groups, decision.columns)
    for name, values in zip(saved.names, saved.values, strict=True):
        lacking = [column for column in schema.columns if column in frame.columns and column not in values]
        if lacking:
            raise DataError(f'the reference "{name}" has no value for {", ".join(lacking)}', do="write one, or null")
    stored: Assignment = "sparsest" if saved.assignment == "sparsest" else "features"
    refs = _build(decision, frame, schema, names or saved.names, on_positive, assignment or stored, saved.support)
    provenance = dict(refs.provenance)
    if saved.provenance:
        provenance["made"] = saved.provenance.get("made", dict(saved.provenance))
    if saved.rule is not None and assignment in (None, "embedding"):
        plain = [k for k in range(len(refs)) if not saved.flexible_of or saved.flexible_of[k] < 0]
        rule = from_plain(saved.rule, decision, schema, refs.frame.iloc[plain])
        refs = replace(refs, assigner=rule, assignment="embedding")
    elif saved.assignment == "embedding":
        provenance["note"] = "saved with assignment by embedding, whose rule was not used"
        if assignment is None:
            warnings.warn(
                "these references were saved with assignment by embedding, and the file does not hold its rule: cases "
                "are compared with the closest reference, feature by feature, instead",
                FewestWarning,
                stacklevel=4,
            )
    return replace(
        refs,
        provenance=provenance,
        spread=saved.spread,
        flexible_of=saved.flexible_of,
        signatures=_valid_signatures(saved),
    )


def _valid_signatures(saved: Saved) -> tuple[Any, ...]:
    """The signatures that hold; a warning for each other one."""
    broken = {k: saved.broken(k) for k in range(len(saved)) if saved.broken(k)}
    for number, changed in broken.items():
        warnings.warn(
            f'the signature of reference "{saved.names[number]}" no longer holds: {", ".join(changed)} changed',
            FewestWarning,
            stacklevel=5,
        )
    return tuple(None if k in broken else signature for k, signature in enumerate(saved.signatures))


def _read(table: Any, decision: Decision, schema: Schema | None) -> pd.DataFrame:
    """The table, as it is or from a CSV file."""
    if isinstance(table, str | Path):
        text = [] if schema is None else [c for f in schema.features if f.kind == "category" for c in f.columns]
        try:
            table = pd.read_csv(table, dtype=dict.fromkeys(text, "str"))
        except ValueError as error:
            name = Path(table).name
            raise DataError(f"{name} cannot be read as a table: {error}", do="check that it is whole") from error
    return to_frame(table, decision.columns)


def _build(
    decision: Decision, frame: pd.DataFrame, schema: Schema, names: Sequence[str] | None, on_positive: OnPositive,
    assignment: Assignment, support: Sequence[int] = (),
) -> References:  # fmt: skip
    """Checked, typed and scored references."""
    if names is None and "name" in frame.columns and "name" not in schema.columns:
        names = [str(name) for name in frame["name"]]
    names = list(names or [f"r{k + 1}" for k in range(len(frame))])
    if len(frame) == 0:
        raise DataError("the table of references is empty", do="write at least one row")
    if len(names) != len(frame):
        raise DataError(f"there are {len(frame)} references but {len(names)} names", do="pass one name each")
    typed = schema.conform(frame)
    _refuse_infinite(typed)
    rows = [dict(typed.iloc[k]) for k in range(len(typed))]
    return scored(
        decision, schema, rows, names, support or [UNKNOWN_SUPPORT] * len(rows), on_positive=on_positive,
        assignment=assignment, provenance={"kind": "supplied", "rows": len(rows)},
    )  # fmt: skip


def _refuse_infinite(frame: pd.DataFrame) -> None:
    for column in frame.columns:
        if pd.api.types.is_float_dtype(frame[column].dtype):
            infinite = np.isinf(frame[column].to_numpy(dtype=float, na_value=np.nan))
            if infinite.any():
                row = int(np.flatnonzero(infinite)[0])
                raise DataError(f'reference {row}, column "{column}": it is infinite', do="write a finite number")
