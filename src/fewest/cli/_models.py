"""Models from files. skops files are audited against a fixed list of types; pickles run code and need a yes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fewest.cli._audit import check_trees
from fewest.errors import MissingExtraError, ModelError

# What scikit-learn's own classifiers hold beyond the types skops trusts by itself.
TRUSTED = frozenset(
    {
        "sklearn.tree._tree.Tree",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.utils._bunch.Bunch",
    }
)
PICKLES = (".joblib", ".pkl", ".pickle")


def load_model(path: Path, allow_pickle: bool = False) -> Any:
    """Load a fitted model.

    Parameters
    ----------
    path : Path
        ``.skops``, or ``.joblib`` / ``.pkl`` where pickles are allowed.
    allow_pickle : bool
        Whether files may run code while they are loaded.
    """
    if not path.is_file():
        raise ModelError(f"there is no model file {path}", do="check the path")
    kind = path.suffix.lower()
    if kind == ".skops":
        return _load_skops(path, trust_all=allow_pickle)
    if kind not in PICKLES:
        raise ModelError(f"{path.name} is of no known kind of model file", do="save it as .skops with skops.io.dump")
    if not allow_pickle:
        raise ModelError(
            f"{path.name} is a pickle file; loading it runs code stored in the file",
            do="save the model again with skops.io.dump, or pass --allow-pickle if you made this file yourself",
        )
    import joblib

    try:
        return joblib.load(path)
    except Exception as error:
        raise ModelError(f"{path.name} cannot be loaded: {_first_line(error)}", do="save the model again") from error


def _load_skops(path: Path, trust_all: bool) -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise MissingExtraError(f"reading {path.name} needs skops", do="pip install skops") from error
    try:
        foreign = set(skops.io.get_untrusted_types(file=path)) - TRUSTED
    except Exception as error:
        raise ModelError(f"{path.name} is no skops file: {_first_line(error)}", do="use skops.io.dump") from error
    if foreign and not trust_all:
        shown = ", ".join(sorted(foreign)[:5])
        raise ModelError(
            f"{path.name} holds types that are not on the list of safe ones: {shown}; loading them can run code",
            do="use scikit-learn's own estimators, or pass --allow-pickle if you made this file yourself",
        )
    try:
        model = skops.io.load(path, trusted=sorted(TRUSTED | foreign))
    except Exception as error:
        raise ModelError(f"{path.name} cannot be loaded: {_first_line(error)}", do="save the model again") from error
    check_trees(model, path.name)
    return model


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
