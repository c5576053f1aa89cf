"""LightGBM's model text, checked before LightGBM reads it: its parser believes sizes, children and offsets."""

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
END = "\nend of trees"
LEVELS = "pandas_categorical:"
INTS, FLOATS = np.int64, np.float64
INNER = {"split_feature": INTS, "threshold": FLOATS, "decision_type": INTS, "left_child": INTS, "right_child": INTS}
# Not needed for scores, but read by LightGBM all the same: a word that is not a number ends the process.
ALSO_INNER = {"split_gain": FLOATS, "internal_value": FLOATS, "internal_weight": FLOATS, "internal_count": INTS}
ALSO_LEAVES = {"leaf_weight": FLOATS, "leaf_count": INTS}
SINGLE = {"Tree", "num_leaves", "num_cat", "is_linear", "shrinkage"}
KEYS = {*INNER, *ALSO_INNER, *ALSO_LEAVES, *SINGLE, "leaf_value", "cat_boundaries", "cat_threshold", ""}
# Narrower than Python's own reading of numbers: no underscores, no digits of other scripts, no long names of infinity.
WORDS = {INTS: re.compile(r"-?[0-9]{1,18}"), FLOATS: re.compile(r"-?([0-9]+(\.[0-9]*)?(e[-+]?[0-9]{1,3})?|inf|nan)")}
MOST_LEAVES = 1 << 24


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
        header = check_lightgbm(text, name)
        self.text = rewritten(text, name)
        with refusing(name, "LightGBM does not take it"):
            self.booster_ = lightgbm.Booster(model_str=self.text)
        self.classes_ = np.arange(max(2, int(header["num_class"])))
        self.n_features_in_ = int(header["max_feature_idx"]) + 1
        self.feature_names_in_ = np.array(self.booster_.feature_name(), dtype=object)

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
    """A checked model text without what scores do not need: LightGBM's readers of settings believe what they read.

    What is kept of the end is the line of levels, which Python reads as JSON.
    """
    check_lightgbm(text, name)
    trees, _, rest = text.partition(END)
    line = next((line for line in rest.splitlines() if line.startswith(LEVELS)), f"{LEVELS}null")
    levels = parse(line.removeprefix(LEVELS).encode("utf-8"), name)
    for known in [] if levels is None else levels:
        if not isinstance(known, list) or any(isinstance(level, dict | list) for level in known):
            raise refused(name, "its levels are not lists of values")
    return f"{trees}{END}\n\n{LEVELS}{json.dumps(levels)}\n"


def check_lightgbm(text: str, name: str) -> dict[str, str]:
    """The header of a model text; an error where its trees are damaged or it is not a classifier."""
    with refusing(name, "it is not a LightGBM model text"):
        if not text.isprintable() and any(ord(letter) < 32 and letter not in "\n\r\t" for letter in text):
            raise refused(name, "it is not a LightGBM model text")
        head, mark, rest = text.partition("\n\nTree=")
        body, end, _ = rest.partition(END)
        header = _pairs(head)
        if not head.startswith("tree\n") or not mark or not end or "max_feature_idx" not in header:
            raise refused(name, "it is not a LightGBM model text")
        width = _check_header(header, name)
        blocks = ["Tree=" + block for block in body.split("\nTree=")]
        _check_sizes(header, text, blocks, name)
        for number, block in enumerate(blocks):
            flaw = _flaw(_pairs(block), number, width)
            if flaw is not None:
                raise refused(name, f"a damaged tree, number {number}: {flaw}")
        if len(blocks) % int(header["num_tree_per_iteration"]):
            raise refused(name, "its rounds do not fit its trees")
    return header


def _pairs(block: str) -> dict[str, str]:
    """Lines as key and value; a key that comes twice counts as damage."""
    out: dict[str, str] = {}
    for line in block.splitlines():
        key, _, value = line.partition("=")
        if key and key in out:
            raise ValueError(f"{key} comes twice")
        out[key] = value
    return out


def _check_header(header: Mapping[str, str], name: str) -> int:
    """Number of features."""
    width, classes = int(header["max_feature_idx"]) + 1, int(header["num_class"])
    per_round = int(header["num_tree_per_iteration"])
    objective = header.get("objective", "").split()
    if not objective or objective[0] not in OBJECTIVES:
        said = objective[0] if objective else "missing"
        raise refused(name, f"its objective is {said}, which is not a classifier's", do="save a classifier")
    if not 0 < width <= 1 << 24 or not 0 < classes <= 1 << 16 or per_round != classes:
        raise refused(name, "its numbers of features and classes make no sense")
    for part in ("feature_names", "feature_infos"):
        if part in header and len(header[part].split(" ")) != width:
            raise refused(name, f"its {part} do not fit its {width} features")
    return width


def _check_sizes(header: Mapping[str, str], text: str, blocks: list[str], name: str) -> None:
    """LightGBM jumps from tree to tree by these numbers of bytes."""
    if "tree_sizes" not in header:
        return
    sizes = [int(size) for size in header["tree_sizes"].split()]
    raw = text.encode("utf-8")
    at = raw.index(b"Tree=0\n")
    if len(sizes) != len(blocks):
        raise refused(name, f"it says {len(sizes)} trees and has {len(blocks)}")
    for number, size in enumerate(sizes):
        if size <= 0 or not raw.startswith(b"Tree=%d\n" % number, at):
            raise refused(name, "its sizes of trees are not those of its trees")
        at += size
    if not raw.startswith(END.strip().encode(), at):
        raise refused(name, "its sizes of trees are not those of its trees")


def _flaw(block: Mapping[str, str], number: int, width: int) -> str | None:
    leaves, sets, own = (int(_numbers(block, key, INTS)[0]) for key in ("num_leaves", "num_cat", "Tree"))
    if own != number or not 0 < leaves <= MOST_LEAVES or not 0 <= sets < leaves:
        return "its number of leaves or of sets makes no sense"
    if set(block) - KEYS or len(_numbers(block, "shrinkage", FLOATS)) != 1:
        return "it has lines of an unknown kind"
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
    words = block[key].split(" ") if block[key] else []
    for word in words:
        if not WORDS[kind].fullmatch(word):
            raise ValueError(f"{key}: {word[:20]!r} is not a number")
    return np.array(words, dtype=kind)
