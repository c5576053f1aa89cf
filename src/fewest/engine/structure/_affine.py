"""Values inside a traced module: affine functions of blocks of columns and neurons, and what can be done with them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewest.tables.arrays import Floats


class NotReadError(Exception):
    """What is not read of a module; the text says it."""


@dataclass(frozen=True)
class AffineValue:
    """An affine function of blocks: the sum of block @ matrix, and a bias."""

    parts: dict[int, Floats]
    bias: Floats
    columns: tuple[int, ...] | None = None  # Where it is columns of the input as they are: which
    whole: bool = False  # Whether they were cut to whole numbers
    dims: int = 2  # 1: one number per row; 2: a table; 3: a table per row, as embeddings give it
    end: str = ""  # The last activation, where it only remains to be put out

    @property
    def width(self) -> int:
        return len(self.bias)


def linear(x: AffineValue, weight: Floats, bias: Floats) -> AffineValue:
    if x.dims != 2 or x.end or x.whole:
        raise NotReadError("a layer over anything but a table is not read")
    if x.width != len(weight):
        raise NotReadError(f"a layer of {len(weight)} columns gets {x.width}")
    return AffineValue({b: matrix @ weight for b, matrix in x.parts.items()}, x.bias @ weight + bias)


def scaled(x: AffineValue, by: Any) -> AffineValue:
    factor = np.broadcast_to(np.asarray(by, dtype=np.float64), (x.width,))
    return replace(x, parts={b: matrix * factor for b, matrix in x.parts.items()}, bias=x.bias * factor, columns=None)


def summed(x: AffineValue, y: AffineValue) -> AffineValue:
    if (x.width, x.dims) != (y.width, y.dims):
        raise NotReadError("a sum of tables of different shapes is not read")
    parts = dict(x.parts)
    for b, matrix in y.parts.items():
        parts[b] = parts[b] + matrix if b in parts else matrix
    return replace(x, parts=parts, bias=x.bias + y.bias, columns=None)


def arithmetic(name: str, args: Sequence[Any], more: Any) -> AffineValue:
    x, y = args[:2]
    if more or any(isinstance(one, AffineValue) and (one.end or one.whole) for one in args):
        raise NotReadError(f"the operation {name} of these is not read here")
    if isinstance(x, AffineValue) and isinstance(y, AffineValue):
        if name in ("add", "sub"):
            return summed(x, scaled(y, 1.0 if name == "add" else -1.0))
        raise NotReadError(f"{name} of two values is not read")
    value, constant = (x, y) if isinstance(x, AffineValue) else (y, x)
    plain = isinstance(constant, int | float) or (isinstance(constant, np.ndarray) and constant.size == 1)
    if not plain and not (
        isinstance(constant, np.ndarray) and constant.shape[-1:] == (value.width,) == (constant.size,)
    ):
        raise NotReadError(f"{name} with a constant of this shape is not read")
    number = np.asarray(constant, dtype=np.float64).ravel()
    if name == "mul":
        return scaled(value, number)
    if name in ("div", "truediv") and value is x:
        return scaled(value, 1.0 / number)
    if name in ("add", "sub"):
        signed = value if value is x or name == "add" else scaled(value, -1.0)
        moved = -number if name == "sub" and value is x else number
        return replace(signed, bias=signed.bias + moved, columns=None)
    raise NotReadError(f"{name} with a constant is not read here")


def side_by_side(inner: Sequence[AffineValue], along: Any) -> AffineValue:
    """Tables side by side."""
    if along not in (1, -1) or any(x.dims != 2 or x.end or x.whole for x in inner):
        raise NotReadError("only tables that are put side by side are read")
    ends = np.cumsum([0, *(x.width for x in inner)])
    parts: dict[int, Floats] = {}
    for x, first in zip(inner, ends[:-1], strict=True):
        for b, matrix in x.parts.items():
            out = parts.setdefault(b, np.zeros((len(matrix), int(ends[-1]))))
            out[:, first : first + x.width] += matrix
    return AffineValue(parts, np.concatenate([x.bias for x in inner]))


def chosen_columns(x: AffineValue, places: Any) -> AffineValue:
    """Columns of a table: x[:, 2], x[:, 1:4], x[:, [0, 3]]."""
    every = slice(None)
    if x.dims != 2 or not isinstance(places, tuple) or len(places) != 2 or places[0] != every:
        raise NotReadError("only columns of a table are taken out of it")
    wanted = places[1]
    if not isinstance(wanted, int | slice | list) or (isinstance(wanted, list) and not all(map(_is_int, wanted))):
        raise NotReadError("only columns of a table are taken out of it")
    chosen = np.atleast_1d(np.arange(x.width)[wanted])
    columns = None if x.columns is None else tuple(x.columns[c] for c in chosen.tolist())
    parts = {b: matrix[:, chosen] for b, matrix in x.parts.items()}
    return replace(x, parts=parts, bias=x.bias[chosen], columns=columns, dims=1 if isinstance(wanted, int) else 2)


def _is_int(value: Any) -> bool:
    try:
        return operator.index(value) is not None
    except TypeError:
        return False
