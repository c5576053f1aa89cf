"""XGBoost's models in JSON or Universal Binary JSON, checked before XGBoost reads them.

Its loader believes children and features. UBJSON is read to a bounded depth, with no array longer than its bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from fewest.persistence._readers import JSON_BRACKETS, JSON_DEPTH, as_json, library, refused, refusing
from fewest.persistence._sound import flaw_of_tree, is_cut

# Marker -> numpy's name of the number. All are big-endian.
NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
CONSTANTS = {"Z": None, "T": True, "F": False}
INSTALL = 'pip install "fewest[boosters]"'
OBJECTIVES = ("binary:logistic", "binary:logitraw", "reg:logistic", "multi:softprob", "multi:softmax")
INTS = ("left_children", "right_children", "split_indices", "default_left", "split_type")
FLOATS = ("split_conditions", "base_weights", "loss_changes", "sum_hessian")
LARGEST_LEVEL = 1 << 20
# XGBoost keeps a bit for each level up to the largest, for every test by levels.
MOST_LEVEL_BITS = 1 << 29
MOST_TREES = 1_000_000
NO_PARENT = 2**31 - 1
ABSENT = {"num_target": "1", "num_deleted": "0"}


def parse_ubjson(data: bytes, name: str) -> Any:
    """Plain values of a UBJSON text; arrays of one type come as numpy arrays."""
    reader = _Reader(data, name)
    with refusing(name, "it is not UBJSON"):
        content = reader.value(reader.marker(), 0)
    if reader.at != len(data):
        raise refused(name, "something follows its end")
    return content


class _Reader:
    """A place in the bytes, and what can be read from there."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data, self.name, self.at, self.left = data, name, 0, JSON_BRACKETS

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self.data) - self.at:
            raise refused(self.name, "it is cut off")
        self.at += count
        return self.data[self.at - count : self.at]

    def marker(self) -> str:
        return self.take(1).decode("latin-1")

    def number(self, marker: str) -> Any:
        kind = np.dtype(NUMBERS[marker])
        return np.frombuffer(self.take(kind.itemsize), kind)[0].item()

    def length(self) -> int:
        marker = self.marker()
        if marker not in "iUIlL":
            raise refused(self.name, "a length in it is not a whole number")
        return int(self.number(marker))

    def text(self) -> str:
        return self.take(self.length()).decode("utf-8")

    def value(self, marker: str, depth: int) -> Any:
        if depth > JSON_DEPTH:
            raise refused(self.name, f"it is nested more than {JSON_DEPTH} deep")
        self.left -= 1
        if self.left < 0:
            raise refused(self.name, "it has more values than any model")
        if marker in CONSTANTS:
            return CONSTANTS[marker]
        if marker in NUMBERS:
            return self.number(marker)
        if marker == "S":
            return self.text()
        if marker == "C":
            return self.marker()
        if marker == "[":
            return self.array(depth)
        if marker == "{":
            return self.mapping(depth)
        raise refused(self.name, f"it has an unknown mark {marker!r}")

    def array(self, depth: int) -> Any:
        marker = self.marker()
        if marker == "$":
            kind = NUMBERS[self.marker()]
            if self.marker() != "#":
                raise refused(self.name, "an array in it has a type and no length")
            size = np.dtype(kind).itemsize
            return np.frombuffer(self.take(self.length() * size), kind)
        if marker == "#":
            # Each value has a byte at least, so a length that is a lie ends in "cut off" before it costs anything.
            return [self.value(self.marker(), depth + 1) for _ in range(self.length())]
        out = []
        while marker != "]":
            out.append(self.value(marker, depth + 1))
            marker = self.marker()
        return out

    def mapping(self, depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        while self.data[self.at : self.at + 1] != b"}":
            key = self.text()
            if key in out:
                raise refused(self.name, f'the key "{key}" comes twice in it')
            out[key] = self.value(self.marker(), depth + 1)
        self.take(1)
        return out


def is_ubjson(data: bytes) -> bool:
    """Whether bytes begin as XGBoost's binary models do: a brace, then a length and not a quote."""
    return data[:1] == b"{" and data[1:2] in (b"i", b"U", b"I", b"l", b"L")


def check_xgboost(content: Any, name: str) -> None:
    """Refuse a model whose trees are damaged, or which is not a classifier."""
    with refusing(name, "it is not an XGBoost model"):
        learner = content["learner"]
        params = learner["learner_model_param"]
        width, classes, targets = (_count(params, part) for part in ("num_feature", "num_class", "num_target"))
        if not 0 < width <= 1 << 24 or not 0 <= classes <= 1 << 16 or targets != 1:
            raise refused(name, "its numbers of features, classes and targets make no sense")
        objective = learner["objective"]["name"]
        if objective not in OBJECTIVES:
            raise refused(name, f"its objective is {objective}, which is not a classifier's", do="save a classifier")
        for part in ("feature_names", "feature_types"):
            if len(learner.get(part) or []) not in (0, width):
                raise refused(name, f"it has {len(learner[part])} {part} and {width} features")
        _check_booster(learner["gradient_booster"], width, max(1, classes), name)


def rewritten(content: Any) -> bytes:
    """A checked model as JSON text for XGBoost to read.

    Its parser then sees what was checked and cannot read it otherwise; and its reader of UBJSON, which ends the process
    where an array is of another type than it expects, is not used at all.
    """
    return as_json(_plain(content))


def _plain(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _plain(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_plain(value) for value in content]
    if isinstance(content, np.ndarray):
        # The shortest text of a float32 that brings it back; as a double it would have digits XGBoost cannot read.
        return content.astype(str).astype(float).tolist() if content.dtype.kind == "f" else content.tolist()
    return content


def _check_booster(booster: Mapping[str, Any], width: int, outputs: int, name: str) -> None:
    kind = booster["name"]
    if kind == "gblinear":
        weights = np.asarray(booster["model"]["weights"], dtype=np.float64)
        if weights.shape != ((width + 1) * outputs,) or not np.isfinite(weights).all():
            raise refused(name, "its weights do not fit its features")
        return
    if kind not in ("gbtree", "dart"):
        raise refused(name, f"it has an unknown booster {kind!r}")
    inside = (booster["gbtree"] if kind == "dart" else booster)["model"]
    trees = inside["trees"]
    if kind == "dart" and _numbers(booster["weight_drop"], np.float64, name).shape != (len(trees),):
        raise refused(name, "it has not one weight per tree")
    _check_rounds(inside, len(trees), outputs, name)
    if inside.get("cats", {}).get("enc"):
        _check_names(inside["cats"], width, name)
    bits = 0
    for number, tree in enumerate(trees):
        flaw = _flaw(tree, number, width, name)
        bits += 0 if flaw else _level_bits(tree)
        if bits > MOST_LEVEL_BITS:
            raise refused(name, f"its tests by levels would take {bits >> 23:,} MiB")
        if flaw is not None:
            raise refused(name, f"a damaged tree, number {number}: {flaw}")


def _check_rounds(inside: Mapping[str, Any], trees: int, outputs: int, name: str) -> None:
    """XGBoost picks trees by these numbers."""
    of_class = _numbers(inside["tree_info"], np.int64, name)
    bounds = _numbers(inside["iteration_indptr"], np.int64, name)
    if trees > MOST_TREES or _count(inside["gbtree_model_param"], "num_trees") != trees or of_class.shape != (trees,):
        raise refused(name, "it miscounts its trees")
    if ((of_class < 0) | (of_class >= outputs)).any():
        raise refused(name, "a tree is of a class that is not there")
    if not is_cut(bounds, len(bounds) - 1, trees):
        raise refused(name, "its rounds do not fit its trees")


def _check_names(names: Mapping[str, Any], width: int, name: str) -> None:
    """Names of levels: stretches of one list of bytes, and a sorted order of them for each feature."""
    ends, order = (_numbers(names[part], np.int64, name) for part in ("feature_segments", "sorted_idx"))
    fits = len(names["enc"]) == width and is_cut(ends, width, len(order))
    for known, first, last in zip(names["enc"], ends[:-1], ends[1:], strict=True) if fits else ():
        held, count = len(known["values"]), int(last - first)
        if "offsets" in known and (count or len(known["offsets"])):
            # The last name may be cut short: XGBoost counts letters where it should count bytes.
            starts = _numbers(known["offsets"], np.int64, name)
            fits &= is_cut(starts, count, int(starts[-1])) and int(starts[-1]) <= held
        elif "offsets" not in known:
            fits &= held == count
        places = order[first:last]
        fits &= bool(((places >= 0) & (places < count)).all())
    if not fits:
        raise refused(name, "its names of levels do not fit together")


def _flaw(tree: Mapping[str, Any], number: int, width: int, name: str) -> str | None:
    param = tree["tree_param"]
    if _count(param, "size_leaf_vector") > 1:
        return "its leaves are vectors, which are not read"
    nodes = _count(param, "num_nodes")
    ints = {part: _numbers(tree[part], np.int64, name) for part in INTS}
    floats = {part: _numbers(tree[part], np.float64, name) for part in FLOATS}
    if any(array.shape != (nodes,) for array in (*ints.values(), *floats.values())) or tree["id"] != number:
        return "its arrays have different lengths"
    if _count(param, "num_feature") != width or _count(param, "num_deleted") >= max(1, nodes):
        return "its features are not the model's"
    left, right = ints["left_children"], ints["right_children"]
    inner = left != -1
    if (right[~inner] != -1).any():
        return "a leaf has a child"
    if not all(np.isfinite(array).all() for array in floats.values()):
        return "it holds a number that is not finite"
    parents = _numbers(tree["parents"], np.int64, name)
    flaw = flaw_of_tree(left, right, ints["split_indices"], inner, width)
    if flaw is None and not _agree(parents, left, right, inner):
        flaw = "its parents and children disagree"
    return flaw or _flaw_of_levels(tree, ints["split_type"], inner, name)


def _agree(parents: Any, left: Any, right: Any, inner: Any) -> bool:
    """Whether each node's parent is there and has it as its child; nodes that were pruned have a parent only."""
    if parents.shape != left.shape or parents[0] not in (-1, NO_PARENT):
        return False
    here = np.flatnonzero(inner)
    known = ((parents[1:] >= 0) & (parents[1:] < len(parents))).all()
    return bool(known and (parents[left[inner]] == here).all() and (parents[right[inner]] == here).all())


def _flaw_of_levels(tree: Mapping[str, Any], split_type: Any, inner: Any, name: str) -> str | None:
    """Tests by levels: each has a stretch of the list of levels."""
    levels, nodes, first, size = (
        _numbers(tree[part], np.int64, name)
        for part in ("categories", "categories_nodes", "categories_segments", "categories_sizes")
    )
    if not len(nodes) == len(first) == len(size) or not np.isin(split_type, (0, 1)).all():
        return "its tests by levels do not fit together"
    if not np.array_equal(np.flatnonzero((split_type == 1) & inner), np.sort(nodes)):
        return "its tests by levels do not fit together"
    if ((first < 0) | (size < 0) | (first + size > len(levels))).any():
        return "a test by levels leads outside its list"
    if ((levels < 0) | (levels >= LARGEST_LEVEL)).any():
        return "a level has an impossible number"
    return None


def _level_bits(tree: Mapping[str, Any]) -> int:
    """Bits of all sets of levels, each as long as its largest level."""
    levels, sizes = (np.asarray(tree[part], dtype=np.int64) for part in ("categories", "categories_sizes"))
    starts = np.asarray(tree["categories_segments"], dtype=np.int64)[sizes > 0]
    ends = starts + sizes[sizes > 0]
    return int(sum(levels[first:end].max() + 1 for first, end in zip(starts, ends, strict=True)))


def _count(params: Mapping[str, Any], part: str) -> int:
    """A whole number, which XGBoost writes as text; one that is left out is one or zero."""
    text = params.get(part, ABSENT.get(part))
    if not isinstance(text, str) or not re.fullmatch("[0-9]{1,9}", text):
        raise ValueError(f"{part} is {text!r}")
    return int(text)


def _numbers(values: Any, kind: Any, name: str) -> Any:
    """A flat array of numbers; whole ones where whole ones are asked for."""
    array = np.asarray(values if len(values) else [], dtype=None if len(values) else kind)
    if array.ndim != 1 or array.dtype.kind not in ("iu" if kind is np.int64 else "iuf"):
        raise refused(name, "a list of numbers in it is none")
    return array.astype(kind)


def load_xgboost(content: Any, name: str) -> Any:
    """An XGBClassifier from the plain values that XGBoost's ``save_model`` wrote; the name is for messages."""
    xgboost = library("xgboost", f"reading {name}", INSTALL)
    check_xgboost(content, name)
    with refusing(name, "XGBoost does not take it"):
        model = xgboost.XGBClassifier()
        model.load_model(bytearray(rewritten(content)))
    return model
