"""What a model's scores are good for: how exact they are, what rows beside them change, and those of torch modules."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.errors import FewestWarning
from fewest.tables.arrays import Floats


class Precision(NamedTuple):
    """How exactly a model's scores are known."""

    near: float  # Scores closer to the threshold than this are asked for again, row by row
    noise: float  # Largest difference expected between a row scored alone and in a batch
    decimals: int  # Decimals that scores are reported with

    def widened(self, noise: float) -> Precision:
        """The same where that much noise was seen on a few rows: other rows may show several times as much."""
        if 4 * noise <= self.noise:
            return self
        near = max(self.near, 80 * noise)
        return Precision(near, max(self.noise, 4 * noise), min(self.decimals, int(np.floor(-np.log10(10 * near)))))


DOUBLE = Precision(near=1e-9, noise=1e-13, decimals=9)
SINGLE = Precision(near=1e-5, noise=5e-7, decimals=4)
ROWS_TRIED = 8  # rows that are scored alone and in batches to measure the noise
LARGEST_NOISE = 1e-3  # of scores: beyond it a model does not know its own mind


class Noise(NamedTuple):
    """How far a row's score, relative to its size, is from that of the row alone."""

    rows: int  # Rows it was measured on
    repeated: float  # In a batch that holds the same row again and again: the arithmetic of batches
    mixed: float  # In batches of other rows
    single: bool  # Whether the scores are numbers of single precision, whatever type they come in
    # The largest difference of all, in units of the threshold: terms that cancel there are rounded on their scale
    near_cut: float

    @classmethod
    def measured(cls, score: Callable[[pd.DataFrame], Floats], frame: pd.DataFrame, cut: float) -> Noise:
        """Score a few rows alone and in batches; none where there are no rows."""
        if len(frame) == 0:
            return cls(ROWS_TRIED, 0.0, 0.0, False, 0.0)
        sample = frame.iloc[np.unique(np.linspace(0, len(frame) - 1, min(len(frame), ROWS_TRIED)).astype(int))]
        n = len(sample)
        alone = np.concatenate([score(sample.iloc[[i]]) for i in range(n)])
        size = np.maximum(1.0, np.abs(alone))
        batches = np.zeros(ROWS_TRIED**2, dtype=int), np.arange(n), np.resize(np.arange(n), ROWS_TRIED**2)
        apart = [np.abs(score(sample.iloc[rows]) - alone[rows]) for rows in batches]
        repeated, *mixed = (np.max(part / size[rows]) for part, rows in zip(apart, batches, strict=True))
        near_cut = max(part.max() for part in apart) / max(1.0, abs(cut))
        fine = alone * 2.0**16
        single = bool((alone == alone.astype(np.float32)).all() and (fine != np.round(fine)).any())
        return cls(n, float(repeated), float(max(repeated, *mixed)), single, float(near_cut))

    @property
    def is_rounding(self) -> bool:
        """Whether the rows beside it matter no more than how many there are."""
        return self.mixed <= max(1e-6, min(LARGEST_NOISE, 100 * self.repeated))

    def precision(self, precision: Precision) -> Precision:
        """What scores of a nominal precision are good for."""
        if self.single or self.near_cut > DOUBLE.near:
            precision = SINGLE
        return precision.widened(self.near_cut)


def home_of(module: Any) -> Any:
    """The device a module's weights lie on."""
    import torch

    weight = next(iter(module.parameters()), None) if hasattr(module, "parameters") else None
    return torch.device("cpu") if weight is None else weight.device


def _torch_outputs(model: Any, X: Any) -> Any:
    import torch

    values = X.to_numpy(dtype=np.float32) if isinstance(X, pd.DataFrame) else np.asarray(X, dtype=np.float32)
    with torch.no_grad():
        return model(torch.tensor(values, device=home_of(model)))  # a copy: tables may be read-only


def as_net_input(model: Any, X: Any) -> Any:
    """Numbers in the precision of its weights for a net of skorch, which takes no other; as they are for the others."""
    if not type(model).__module__.startswith("skorch.") or not isinstance(X, np.ndarray):
        return X
    return X.astype(str(next(iter(model.module_.parameters())).dtype).removeprefix("torch."), copy=False)


def chances_of(model: Any, out: Any) -> Any:
    """Chances of the classes 0 and 1 (n, 2) as a tensor, from a module's two outputs or one logit per row."""
    import torch

    if out.ndim == 2 and out.shape[1] == 2:
        return out if last_layer(model) == "Softmax" else torch.softmax(out, dim=1)
    if out.numel() != len(out):
        return out[..., None]  # wrong shape: reported by the caller
    out = out.reshape(len(out))
    chance = out if last_layer(model) == "Sigmoid" else torch.sigmoid(out)
    return torch.stack([1 - chance, chance], dim=1)


def torch_chances(model: Any, X: Any) -> npt.NDArray[Any]:
    """Chances of the classes 0 and 1 (n, 2) that a module gives to a table."""
    return np.asarray(chances_of(model, _torch_outputs(model, X)).cpu())


def last_layer(model: Any) -> str:
    """Class of the layer that a module ends in; the last part of a sequence may be a sequence itself."""
    layers = list(model.children())
    while layers and type(layers[-1]).__name__ == "Sequential":
        layers = list(layers[-1].children())
    return type(layers[-1]).__name__ if layers else ""


def warn_of_chances(model: Any, X: Any) -> None:
    """Warn where a module's outputs look like chances already: another sigmoid would make all of them 0.5 or more."""
    out = np.asarray(_torch_outputs(model, X).cpu())
    if last_layer(model) not in ("Sigmoid", "Softmax") and len(out) > 1 and bool(((out >= 0) & (out <= 1)).all()):
        warnings.warn(
            "all outputs of the module lie between 0 and 1: they are taken for logits, though they look like chances\n"
            "  Try: let the module end in its last Linear layer, or in a Sigmoid layer of its own",
            FewestWarning,
            stacklevel=4,
        )


def first_bad_cell(frame: pd.DataFrame) -> tuple[int, str, str] | None:
    """Row, column and value of the first missing or infinite cell."""
    for column in frame.columns:
        cells = frame[column]
        if cells.isna().any():
            return int(np.flatnonzero(cells.isna().to_numpy())[0]), str(column), "missing"
        if pd.api.types.is_float_dtype(cells.dtype):
            infinite = np.isinf(cells.to_numpy(dtype=float, na_value=np.nan))
            if infinite.any():
                return int(np.flatnonzero(infinite)[0]), str(column), "infinite"
    return None
