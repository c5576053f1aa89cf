"""Honest model files of every format, and changes to them that leave the format whole: a value, list, node or line."""

from __future__ import annotations

import hashlib
import io
import json
import random
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ODD: list[Any] = [
    -1, -2, 0, 1, 2, 3, 7, 255, 256, 2**16, 2**20, 2**31 - 1, 2**31, -(2**31), 2**40, 2**63, 10**12, 1e30, -1e30, 1.5,
    1e-300, "", "-1", "2147483647", "x", "1e999", "nan", None, True, [], {}, [2**31], [[0]],
]  # fmt: skip
NUMBERS = [number for number in ODD if isinstance(number, int | float) and not isinstance(number, bool)]
Chance = random.Random


def table() -> tuple[Any, Any]:
    """The rows and labels behind every honest file."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(80, 3)).round(3)
    return X, (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)


def _skops() -> dict[str, bytes]:
    import lightgbm
    import skops.io
    import xgboost
    from sklearn.ensemble import (
        GradientBoostingClassifier,
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
        RandomForestClassifier,
        StackingClassifier,
    )
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, SplineTransformer
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    hist = {"max_iter": 2, "min_samples_leaf": 5, "max_leaf_nodes": 5}
    models: dict[str, Any] = {
        "tree": DecisionTreeClassifier(max_depth=3), "forest": RandomForestClassifier(2, max_depth=2),
        "boosting": GradientBoostingClassifier(n_estimators=2, max_depth=2),
        "hist": HistGradientBoostingClassifier(**hist), "vectors": SVC(),
        "bins": make_pipeline(KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"), LogisticRegression()),
        "levels": make_pipeline(OneHotEncoder(max_categories=3, handle_unknown="ignore"), LogisticRegression()),
        "splines": make_pipeline(SplineTransformer(), LogisticRegression()),
        "stack": StackingClassifier([("inner", HistGradientBoostingRegressor(**hist))], LogisticRegression(), cv=2),
        "xgboost": xgboost.XGBClassifier(n_estimators=2, max_depth=2),
        "lightgbm": lightgbm.LGBMClassifier(n_estimators=2, num_leaves=4, min_child_samples=2, verbose=-1),
    }  # fmt: skip
    X, y = table()
    return {f"{name}.skops": bytes(skops.io.dumps(model.fit(X, y))) for name, model in models.items()}


def _fewest() -> dict[str, bytes]:
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    import fewest as fw
    from fewest.persistence.explainers import as_bytes

    X, y = table()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    made = {}
    models: dict[str, Any] = {
        "linear": LogisticRegression(), "hist": HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5),
        "tree": fw.trees.CARTClassifier(max_depth=2),
    }  # fmt: skip
    for name, model in models.items():
        decision = fw.Decision(model.fit(frame, y))
        build = fw.references.leaves if name == "tree" else fw.references.single
        more = {"credibility": fw.credibility.mixture(decision, frame, y)} if name == "linear" else {}
        made[f"{name}.fewest"] = as_bytes(fw.Explainer(decision, build(decision, frame, y), **more), True)
    return made


def _xgboost(ending: str) -> dict[str, bytes]:
    import pandas as pd
    import xgboost

    X, y = table()
    levels = pd.DataFrame(X, columns=["a", "b", "c"]).assign(c=pd.Categorical(np.where(X[:, 2] > 0, "up", "down")))
    settings = {"n_estimators": 2, "max_depth": 2}
    models = {
        "numbers": xgboost.XGBClassifier(**settings).fit(X, y),
        "dart": xgboost.XGBClassifier(booster="dart", **settings).fit(X, y),
        "levels": xgboost.XGBClassifier(enable_categorical=True, **settings).fit(levels, y),
    }
    return {f"{name}.{ending}": bytes(model.get_booster().save_raw(ending)) for name, model in models.items()}


def _lightgbm() -> dict[str, bytes]:
    import lightgbm

    X, y = table()
    settings: dict[str, Any] = {"n_estimators": 2, "num_leaves": 4, "min_child_samples": 2, "verbose": -1}
    coarse = np.column_stack([X[:, :2], np.digitize(X[:, 2], [-1, -0.5, 0, 0.5, 1])])
    by_level = lightgbm.LGBMClassifier(**settings, min_data_per_group=2, max_cat_to_onehot=1)
    models = {
        "numbers": lightgbm.LGBMClassifier(**settings).fit(X, y),
        "levels": by_level.fit(coarse, y, categorical_feature=[2]),
    }
    return {f"{name}.txt": model.booster_.model_to_string().encode() for name, model in models.items()}


def _onnx() -> dict[str, bytes]:
    from skl2onnx import to_onnx
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = table()
    models: dict[str, Any] = {
        "linear": make_pipeline(StandardScaler(), LogisticRegression()),
        "forest": RandomForestClassifier(2, max_depth=2),
        "boosting": GradientBoostingClassifier(n_estimators=2, max_depth=2),
        "net": MLPClassifier((3,), max_iter=5, tol=9),
    }  # fmt: skip
    return {
        f"{name}.onnx": to_onnx(
            model.fit(X, y), X[:1].astype(np.float32), options={"zipmap": False}
        ).SerializeToString()
        for name, model in models.items()
    }


MAKERS: dict[str, Callable[[], dict[str, bytes]]] = {
    "skops": _skops, "fewest": _fewest, "resealed": _fewest, "onnx": _onnx, "json": lambda: _xgboost("json"),
    "ubj": lambda: _xgboost("ubj"), "txt": _lightgbm,
}  # fmt: skip


def mutant(kind: str, data: bytes, chance: Chance) -> bytes:
    """A file with one to three changes; now and then of bytes, mostly of what the format is made of."""
    if chance.random() < 0.1:
        return _bytes(data, chance)
    for _ in range(chance.choice([1, 1, 2, 3])):
        data = _CHANGES[kind](data, chance)
    return data


def _bytes(data: bytes, chance: Chance) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        changed[chance.randrange(len(changed))] = chance.choice([0, 255, chance.randrange(256)])
    return bytes(changed)


def _places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way, *(place for key, part in inner for place in _places(part, (*way, key)))]


def _value(content: Any, chance: Chance) -> Any:
    """Plain values with one put in, left out, moved or made longer."""
    places = _places(content)[1:]
    if not places:
        return content
    *way, last = chance.choice(places)
    part = content
    for key in way:
        part = part[key]
    action = chance.random()
    if isinstance(part[last], np.ndarray):
        part[last] = _array(part[last], chance)
    elif action < 0.15:
        del part[last]
    elif action < 0.3:
        *other, end = chance.choice(places)
        source = content
        for key in other:
            source = source[key]
        # As text, so that nothing is inside itself.
        part[last] = json.loads(json.dumps(source[end], default=lambda array: array.tolist()))
    elif action < 0.45 and isinstance(part[last], list):
        part[last] = part[last] * chance.choice([0, 2, 50])
    elif isinstance(part[last], str) and part[last].lstrip("-").isdigit():
        part[last] = str(chance.choice(NUMBERS))
    else:
        part[last] = chance.choice(ODD)
    return content


def _array(array: Any, chance: Chance) -> Any:
    """An array with another number in it, another length, shape or type."""
    array = np.array(array)
    action = chance.random()
    if action < 0.1:
        return array.astype(chance.choice([np.float32, np.int64, np.float64])) if array.dtype.kind in "iuf" else array
    if action < 0.2:
        return array.ravel()[: max(0, array.size - 1)] if chance.random() < 0.5 else np.concatenate([array, array])
    if action < 0.3:
        return array.T.copy() if array.ndim > 1 else array[None]
    flat = array.reshape(-1)
    if not flat.size:
        return array
    at = slice(None) if chance.random() < 0.2 else chance.randrange(flat.size)
    target = flat[chance.choice(array.dtype.names)] if array.dtype.names else flat
    if target.dtype.kind in "iufb":
        number = chance.choice([*NUMBERS, np.nan, np.inf])
        with np.errstate(all="ignore"):
            target[at] = np.array(number).astype(target.dtype) if abs(number) < 2**63 else target.max()
    return flat.reshape(array.shape)


def _json(data: bytes, chance: Chance) -> bytes:
    return json.dumps(_value(json.loads(data), chance)).encode()


def _npy(data: bytes, chance: Chance) -> bytes:
    file = io.BytesIO()
    np.save(file, _array(np.load(io.BytesIO(data)), chance))
    return file.getvalue()


def _zip(data: bytes, chance: Chance, seal: bool = False) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    names = [name for name in members if name != "manifest.json"]
    name = chance.choice([*names, *(name for name in names if name.endswith((".json", ".skops")))])
    change = {"json": _json, "npy": _npy, "skops": _zip}.get(name.rpartition(".")[2], _bytes)
    members[name] = change(members[name], chance)
    if chance.random() < 0.05:
        members[name] = members[chance.choice(names)]
    if seal:
        manifest = json.loads(members["manifest.json"])
        for name, said in manifest["members"].items():
            said.update(bytes=len(members[name]), sha256=hashlib.sha256(members[name]).hexdigest())
        members["manifest.json"] = json.dumps(manifest).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _ubj(data: bytes, chance: Chance) -> bytes:
    from fewest.persistence._xgboost_json import parse_ubjson

    return _as_ubj(_value(parse_ubjson(data, "seed"), chance))


def _as_ubj(value: Any) -> bytes:
    if isinstance(value, dict):
        return b"{" + b"".join(_text(key) + _as_ubj(part) for key, part in value.items()) + b"}"
    if isinstance(value, np.ndarray) and value.dtype.str.lstrip("<>|=") in MARKS:
        kind = value.dtype.str.lstrip("<>|=")
        return b"[$" + MARKS[kind] + b"#L" + len(value).to_bytes(8, "big") + value.astype(f">{kind}").tobytes()
    if isinstance(value, list | np.ndarray):
        return b"[" + b"".join(map(_as_ubj, value)) + b"]"
    if isinstance(value, str):
        return b"S" + _text(value)
    if value is None or isinstance(value, bool):
        return {None: b"Z", True: b"T", False: b"F"}[value]
    if isinstance(value, int | np.integer) and abs(int(value)) < 2**63:
        return b"L" + int(value).to_bytes(8, "big", signed=True)
    return b"D" + np.array(float(value), dtype=">f8").tobytes()


def _text(text: str) -> bytes:
    return b"L" + len(text.encode()).to_bytes(8, "big") + text.encode()


MARKS = {"i1": b"i", "u1": b"U", "i2": b"I", "i4": b"l", "i8": b"L", "f4": b"d", "f8": b"D"}


def _lines(data: bytes, chance: Chance) -> bytes:
    lines = data.decode("utf-8", "replace").split("\n")
    at = chance.randrange(len(lines))
    action = chance.random()
    if action < 0.1:
        del lines[at]
    elif action < 0.2:
        lines.insert(chance.randrange(len(lines)), lines[at])
    elif action < 0.3:
        first, last = sorted((at, chance.randrange(len(lines))))
        lines[at:at] = lines[first:last]
    else:
        key, mark, values = lines[at].partition("=")
        words = values.split(" ")
        words[chance.randrange(len(words))] = str(chance.choice(ODD))
        words = words * chance.choice([1, 1, 1, 2])
        lines[at] = key + mark + " ".join(words)
    # Half of them without sizes, which would give most changes away.
    kept = [line for line in lines if chance.random() < 0.5 or not line.startswith("tree_sizes=")]
    return "\n".join(kept).encode()


def _proto(data: bytes, chance: Chance) -> bytes:
    import onnx

    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
        _change_message(model, chance)
        return bytes(model.SerializeToString())
    except Exception:
        return _bytes(data, chance)


def _change_message(message: Any, chance: Chance) -> None:
    """One field, some way down, gets another value, one more, one less, or a copy of its neighbour."""
    fields = [(field, value) for field, value in message.ListFields() if field.name != "doc_string"]
    if not fields:
        return
    field, value = chance.choice(fields)
    many = hasattr(value, "append") or hasattr(value, "add")
    if field.message_type is not None:
        if many and chance.random() < 0.15:
            value.append(value[chance.randrange(len(value))])
        elif many and chance.random() < 0.1:
            del value[chance.randrange(len(value))]
        else:
            _change_message(value[chance.randrange(len(value))] if many else value, chance)
        return
    if many and len(value) and chance.random() < 0.7:
        value[chance.randrange(len(value))] = _scalar(value[0], chance)
    elif many:
        value.extend([_scalar(value[0], chance)] * chance.choice([1, 1, 100]))
    else:
        setattr(message, field.name, _scalar(value, chance))


def _scalar(value: Any, chance: Chance) -> Any:
    if isinstance(value, bytes):
        return _bytes(value, chance) if value and chance.random() < 0.7 else chance.choice([b"", b"x", b"LEAF"])
    if isinstance(value, str):
        return chance.choice(["", "x", "MatMul", "Gather", "Reshape", "Transpose", "Concat", "TreeEnsembleClassifier"])
    return type(value)(chance.choice([number for number in NUMBERS if abs(number) < 2**31]))


_CHANGES: dict[str, Callable[[bytes, Chance], bytes]] = {
    "skops": _zip, "fewest": _zip, "resealed": lambda data, chance: _zip(data, chance, seal=True), "onnx": _proto,
    "json": _json, "ubj": _ubj, "txt": _lines,
}  # fmt: skip


def written(folder: Path, kinds: Sequence[str]) -> None:
    """Honest files of formats, each in a folder of its own."""
    for kind in kinds:
        (folder / kind).mkdir()
        for name, data in MAKERS[kind]().items():
            (folder / kind / name).write_bytes(data)
