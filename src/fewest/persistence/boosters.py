"""Models that boosting libraries wrote themselves, checked and then read by the library's own loader."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fewest.errors import MissingExtraError
from fewest.persistence._lightgbm_text import check_lightgbm
from fewest.persistence._lightgbm_text import rewritten as rewritten_text
from fewest.persistence._limits import refusing
from fewest.persistence._xgboost_json import check_xgboost, rewritten

INSTALL = 'pip install "fewest[boosters]"'


def load_xgboost(content: Any, name: str) -> Any:
    """An XGBClassifier from the plain values that XGBoost's ``save_model`` wrote; the name is for messages."""
    try:
        import xgboost
    except ImportError as error:
        raise MissingExtraError(f"reading {name} needs xgboost", do=INSTALL) from error
    check_xgboost(content, name)
    with refusing(name, "XGBoost does not take it"):
        model = xgboost.XGBClassifier()
        model.load_model(bytearray(rewritten(content)))
    return model


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
        try:
            import lightgbm
        except ImportError as error:
            raise MissingExtraError(f"reading {name} needs lightgbm", do=INSTALL) from error
        header = check_lightgbm(text, name)
        self.text = rewritten_text(text, name)
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
