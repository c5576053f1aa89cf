"""Models from files: by the ending, after an audit. Nothing in a file runs unless somebody said it may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fewest.errors import ModelError
from fewest.persistence._readers import SAVE_AGAIN, first_line, parse, read_bytes, refusing
from fewest.persistence._skops import load_skops
from fewest.persistence._xgboost_json import is_ubjson, parse_ubjson

PICKLES = (".joblib", ".pkl", ".pickle")
KNOWN = ".skops, .fewest, .onnx, XGBoost's .json or .ubj, tree.json of fewest, LightGBM's .txt"


def load_model(path: str | Path, allow_pickle: bool = False) -> Any:
    """A fitted model from a file of any kind that can be checked.

    Parameters
    ----------
    path : path
        ``.skops``; ``.fewest``, of which it takes the model; ``.onnx``; ``.json`` or ``.ubj`` of XGBoost; the
        ``tree.json`` of `fewest train topt`; ``.txt`` of LightGBM; and ``.joblib`` or ``.pkl`` where pickles are
        allowed.
    allow_pickle : bool
        Whether files may run code while they are loaded. Whoever wrote such a file can do with this machine what you
        can: say yes to files of your own only.

    Examples
    --------
    >>> import tempfile
    >>> import skops.io
    >>> from sklearn.linear_model import LogisticRegression
    >>> path = Path(tempfile.mkdtemp()) / "m.skops"
    >>> skops.io.dump(LogisticRegression().fit([[0.0], [1.0]], [0, 1]), path)
    >>> load_model(path).predict([[2.0]]).tolist()
    [1]
    """
    path = Path(path)
    data = read_bytes(path)
    kind = path.suffix.lower()
    if kind in PICKLES:
        return _load_pickle(path, allow_pickle)
    if kind == ".skops":
        return load_skops(data, path.name, trust_all=allow_pickle)
    if kind == ".fewest":
        from fewest.persistence.explainers import read_explainer

        return read_explainer(data, path.name, allow_pickle).decision.model
    if kind == ".onnx":
        from fewest.persistence._onnx_model import OnnxClassifier

        return OnnxClassifier(data, path.name)
    if kind in (".json", ".ubj"):
        return _load_json(data, path.name)
    if kind == ".txt":
        from fewest.persistence.boosters import LightGBMModel

        with refusing(path.name, "it is not text"):
            text = data.decode("utf-8")
        return LightGBMModel(text, path.name)
    raise ModelError(f"{path.name} is not a known kind of model file", do=f"known are {KNOWN}; or use skops.io.dump")


def _load_json(data: bytes, name: str) -> Any:
    """A tree of ours, or a model of XGBoost, in JSON or UBJSON."""
    from fewest.persistence._array_parts import tree_model
    from fewest.persistence._xgboost_json import load_xgboost

    content = parse_ubjson(data, name) if is_ubjson(data) else parse(data, name)
    if isinstance(content, dict) and content.get("kind") == "tree":
        return tree_model(content, name)
    return load_xgboost(content, name)


def _load_pickle(path: Path, allow_pickle: bool) -> Any:
    if not allow_pickle:
        raise ModelError(
            f"{path.name} is a pickle file; loading it runs code stored in the file",
            do="save the model again with skops.io.dump, or pass allow_pickle=True if you made this file yourself: "
            "whoever wrote it can then do on this machine what you can",
        )
    import joblib

    try:
        return joblib.load(path)
    except Exception as error:
        raise ModelError(f"{path.name} cannot be loaded: {first_line(error)}", do=SAVE_AGAIN) from error
