"""LightGBM's model text, read here and written anew: it sees numbers that were checked, under known keys.

Its own parser believes sizes, children and offsets, and splits a text in other places than one would.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fewest.persistence._readers import library, parse, refused, refusing
from fewest.persistence._sound import flaw_of_tree, is_cut

INSTALL = 'pip install "fewest[boosters]"'
OBJECTIVES = ("binary", "cross_entropy", "multiclass", "multiclassova")
END = "end of trees"
LEVELS = "pandas_categorical:"
INTS, FLOATS = np.int64, np.float64
SINGLE = {"Tree": INTS, "num_leaves": INTS, "num_cat": INTS, "is_linear": INTS, "shrinkage": FLOATS}
INNER = {"split_feature": INTS, "threshold": FLOATS, "decision_type": INTS, "left_child": INTS, "right_child": INTS}
# Not needed for scores, but read by LightGBM all the same: a word that is not a number ends the process.
ALSO_INNER = {"split_gain": FLOATS, "internal_value": FLOATS, "internal_weight": FLOATS, "internal_count": INTS}
ALSO_LEAVES = {"leaf_weight": FLOATS, "leaf_count": INTS}
SETS = {"cat_boundaries": INTS, "cat_threshold": INTS}
KINDS = {**SINGLE, **INNER, **ALSO_INNER, **ALSO_LEAVES, "leaf_value": FLOATS, **SETS}
COUNTS = ("num_class", "num_tree_per_iteration", "max_feature_idx")
HEADER = {*COUNTS, "version", "label_index", "objective", "feature_names", "feature_infos", "tree_sizes",
          "monotone_constraints", "average_output"}  # fmt: skip
# Narrower than Python's own reading of numbers: no underscores, no digits of other scripts, no long names of infinity.
WORDS = {INTS: r"-?[0-9]{1,18}", FLOATS: r"-?(?:[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]{1,3})?|inf|nan)"}
LISTS = {kind: re.compile(f"(?:{word}(?: {word})*)?") for kind, word in WORDS.items()}
SIGMOID = r"sigmoid:[0-9]{1,9}(\.[0-9]{1,18})?"
MOST_LEAVES = 1 << 24
MOST_FEATURES = 1 << 20
AVERAGE = "average_output"


class LightGBMModel:
    """A classifier from LightGBM's model text.

    Parameters
    ----------
    text : str
        What LightGBM's ``save_model`` wrote. It is checked here.
    name : str
        For messages.

    Attributes
    ----------
    booster_ : lightgbm.Booster
    classes_ : (k,) array
        0, 1, ...: the text does not hold the labels.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) array of str
    """

    objective = None

    def __init__(self, text: str, name: str = "model.txt") -> None:
        lightgbm = library("lightgbm", f"reading {name}", INSTALL)
        self.text, classes, names = read_text(text, name)
        with refusing(name, "LightGBM does not take it"):
            self.booster_ = lightgbm.Booster(model_str=self.text)
        self.classes_ = np.arange(max(2, classes))
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)

    def __getstate__(self) -> dict[str, Any]:
        return {"text": self.text}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["text"])  # type: ignore[misc]

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Chances of the classes (n, k)."""
        scores = np.asarray(self.booster_.predict(X))
        return np.column_stack([1.0 - scores, scores]) if scores.ndim == 1 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most likely class of each row (n,)."""
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])


def rewritten(text: str, name: str) -> str:
    """A model text written anew from what was read of it."""
    return read_text(text, name)[0]


def read_text(text: str, name: str) -> tuple[str, int, list[str]]:
    """A model text written anew, its number of classes and its features; an error where it is not a sound classifier.

    What scores do not need is left out: LightGBM's readers of settings believe what they read, and the ranges of
    features are the smallest and the largest value of somebody.
    """
    with refusing(name, "it is not a LightGBM model text"):
        lines = [line.rstrip("\r") for line in text.split("\n")]
        if lines[0] != "tree" or END not in lines or not all(line.isprintable() or "\t" in line for line in lines):
            raise refused(name, "it is not a LightGBM model text")
        last = lines.index(END)
        starts = [at for at, line in enumerate(lines[:last]) if line.startswith("Tree=")]
        if not starts:
            raise refused(name, "it is not a LightGBM model text")
        found = _pairs(lines[1 : starts[0]])
        header, names = _header(found, name)
        raw, ends = text.split("\n"), [*starts[1:], last]
        spans = list(zip(starts, ends, strict=True))
        sizes = [len("\n".join(raw[first:end]).encode("utf-8")) + 1 for first, end in spans]
        if "tree_sizes" in found and _numbers(found, "tree_sizes", INTS).tolist() != sizes:
            raise refused(name, "its sizes of trees are not those of its trees")
        blocks = []
        for number, (first, end) in enumerate(spans):
            block = _pairs(lines[first:end])
            flaw = _flaw(block, number, len(names))
            if flaw is not None:
                raise refused(name, f"a damaged tree, number {number}: {flaw}")
            blocks.append("".join(f"{key}={block[key]}\n" for key in KINDS if key in block) + "\n\n")
        classes = int(header["num_class"])
        if len(blocks) % classes:
            raise refused(name, "its rounds do not fit its trees")
        head = "".join(f"{key}={value}\n" if value else f"{key}\n" for key, value in header.items())
        bytes_of = " ".join(str(len(block.encode("utf-8"))) for block in blocks)
        levels = json.dumps(_levels(lines[last:], name))
        return f"tree\n{head}tree_sizes={bytes_of}\n\n{''.join(blocks)}{END}\n\n{LEVELS}{levels}\n", classes, names


def _levels(lines: list[str], name: str) -> Any:
    """The levels of features by pandas, which Python reads as JSON."""
    line = next((line for line in lines if line.startswith(LEVELS)), f"{LEVELS}null")
    levels = parse(line.removeprefix(LEVELS).encode("utf-8"), name)
    for known in [] if levels is None else levels:
        if not isinstance(known, list) or any(isinstance(level, dict | list) for level in known):
            raise refused(name, "its levels are not lists of values")
    return levels


def _pairs(lines: list[str]) -> dict[str, str]:
    """Lines as key and value; a key that comes twice counts as damage."""
    out: dict[str, str] = {}
    for line in filter(None, lines):
        key, _, value = line.partition("=")
        if key in out:
            raise ValueError(f"{key} comes twice")
        out[key] = value
    return out


def _header(found: Mapping[str, str], name: str) -> tuple[dict[str, str], list[str]]:
    """The header as it is written again, and the names of the features."""
    strange = sorted(set(found) - HEADER)
    if strange:
        raise refused(name, f"its header has an unknown line {strange[0][:40]!r}")
    classes, per_round, last = (int(_numbers(found, key, INTS)[0]) for key in COUNTS)
    names = found["feature_names"].split(" ")
    if not 0 <= last < MOST_FEATURES or not 0 < classes <= 1 << 16 or per_round != classes:
        raise refused(name, "its numbers of features and classes make no sense")
    if len(names) != last + 1 or "" in names:
        raise refused(name, f"its feature_names do not fit its {last + 1} features")
    header = {
        "version": "v4", "num_class": str(classes), "num_tree_per_iteration": str(classes), "label_index": "0",
        "max_feature_idx": str(last), "objective": _objective(found.get("objective", ""), classes, name),
        "feature_names": " ".join(names), "feature_infos": " ".join(["none"] * len(names)),
    }  # fmt: skip
    return header | ({AVERAGE: ""} if AVERAGE in found else {}), names


def _objective(said: str, classes: int, name: str) -> str:
    """The objective with the settings by which it turns sums into chances."""
    kind, *settings = said.split(" ") if said else ["missing"]
    if kind not in OBJECTIVES:
        raise refused(name, f"its objective is {kind}, which is not a classifier's", do="save a classifier")
    wanted = f"num_class:{classes}"
    fits = (wanted in settings) == kind.startswith("multiclass") and (classes > 1) == kind.startswith("multiclass")
    if not fits or not all(part == wanted or re.fullmatch(SIGMOID, part) for part in settings):
        raise refused(name, "its objective does not fit its classes")
    return " ".join([kind, *settings])


def _flaw(block: Mapping[str, str], number: int, width: int) -> str | None:
    if set(block) - set(KINDS) or not all(LISTS[KINDS[key]].fullmatch(value) for key, value in block.items()):
        return "it has lines of an unknown kind"
    if any(len(_numbers(block, key, SINGLE[key])) != 1 for key in SINGLE if key in block):
        return "it has lines of an unknown kind"
    leaves, sets, own = (int(block[key]) for key in ("num_leaves", "num_cat", "Tree"))
    if own != number or not 0 < leaves <= MOST_LEAVES or not 0 <= sets < leaves or "shrinkage" not in block:
        return "its number of leaves or of sets makes no sense"
    if block.get("is_linear", "0") != "0":
        return "its leaves are linear, which is not read"
    values = _numbers(block, "leaf_value", FLOATS)
    arrays = {part: _numbers(block, part, kind) for part, kind in INNER.items()} if leaves > 1 else {}
    if len(values) != leaves or any(len(array) != leaves - 1 for array in arrays.values()):
        return "its arrays have different lengths"
    expected = {**dict.fromkeys(ALSO_INNER, leaves - 1), **dict.fromkeys(ALSO_LEAVES, leaves)}
    for key, count in expected.items():
        if block.get(key, "") and len(_numbers(block, key, {**ALSO_INNER, **ALSO_LEAVES}[key])) != count:
            return "its arrays have different lengths"
    if not np.isfinite(values).all():
        return "it holds a number that is not finite"
    return _flaw_of_splits(arrays, block, leaves, sets, width) if arrays else None


def _flaw_of_splits(
    arrays: Mapping[str, Any], block: Mapping[str, str], leaves: int, sets: int, width: int
) -> str | None:
    """Inner nodes first, leaves after them: LightGBM writes leaf k as the child ~k."""
    inner = leaves - 1
    if any((arrays[side] >= inner).any() for side in ("left_child", "right_child")):
        return "a node leads to one that is not there"
    left, right = (
        np.where(child < 0, inner + ~child, child) for child in (arrays["left_child"], arrays["right_child"])
    )
    pad = np.full(leaves, -1)
    flaw = flaw_of_tree(
        np.concatenate([left, pad]), np.concatenate([right, pad]), np.concatenate([arrays["split_feature"], pad]),
        np.arange(inner + leaves) < inner, width,
    )  # fmt: skip
    if flaw is not None:
        return flaw
    by_levels = (arrays["decision_type"] & 1) == 1
    if not np.isfinite(arrays["threshold"]).all():
        return "it holds a number that is not finite"
    if (arrays["decision_type"] < 0).any() or (arrays["decision_type"] > 15).any():
        return "a test is of an unknown kind"
    return _flaw_of_levels(block, arrays["threshold"][by_levels], sets)


def _flaw_of_levels(block: Mapping[str, str], numbers: Any, sets: int) -> str | None:
    if sets == 0:
        return "it tests levels and has no sets of them" if len(numbers) else None
    bounds, words = _numbers(block, "cat_boundaries", INTS), _numbers(block, "cat_threshold", INTS)
    if not is_cut(bounds, sets, len(words)) or ((words < 0) | (words >= 1 << 32)).any():
        return "its sets of levels do not fit together"
    if ((numbers < 0) | (numbers >= sets) | (numbers != np.floor(numbers))).any():
        return "a test names a set of levels that is not there"
    return None


def _numbers(block: Mapping[str, str], key: str, kind: Any) -> Any:
    if not LISTS[kind].fullmatch(block[key]):
        raise ValueError(f"{key} is not made of numbers")
    return np.array(block[key].split(), dtype=kind)
