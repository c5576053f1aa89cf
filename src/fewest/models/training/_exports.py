"""From a trained head to the plain estimator that predicts: no torch is needed to use a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fewest.models.training._heads import LinearHead, NetworkHead


def export(head: Any, classes: npt.NDArray[Any], sign: float) -> Any:
    """A fitted scikit-learn estimator with the head's numbers.

    Parameters
    ----------
    head : Head
    classes : (2,) array
    sign : float
        1 where the head scores the second class, -1 where it scores the first.

    Examples
    --------
    >>> from fewest.models.training._heads import Blocks
    >>> model = export(LinearHead(Blocks(np.array([0]), 1), "cpu"), np.array(["no", "yes"]), 1.0)
    >>> model.predict_proba([[3.0]]).tolist()
    [[0.5, 0.5]]
    """
    if isinstance(head, LinearHead):
        return _linear(head, classes, sign)
    if isinstance(head, NetworkHead):
        return _network(head, classes, sign)
    from fewest.models.training.leaf_sum import LeafSumClassifier

    return LeafSumClassifier.from_head(head, classes, sign)


def _numbers(tensor: Any) -> npt.NDArray[np.float64]:
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)


def _linear(head: LinearHead, classes: npt.NDArray[Any], sign: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression()
    model.classes_ = classes
    model.coef_ = sign * _numbers(head.weight)[None, :]
    model.intercept_ = sign * _numbers(head.bias)[None]
    model.n_features_in_ = model.coef_.shape[1]
    model.n_iter_ = np.zeros(1, dtype=np.int32)
    return model


def _network(head: NetworkHead, classes: npt.NDArray[Any], sign: float) -> Any:
    from sklearn.neural_network import MLPClassifier

    weights, biases = [_numbers(w) for w in head.weights], [_numbers(b) for b in head.biases]
    weights[-1], biases[-1] = sign * weights[-1], sign * biases[-1]
    model = MLPClassifier(tuple(len(bias) for bias in biases[:-1]), activation="relu", random_state=0)
    # One step on two rows lays out everything that prediction needs; then the learned numbers replace it.
    model.partial_fit(np.zeros((2, len(weights[0]))), classes, classes=classes)
    model.coefs_, model.intercepts_ = weights, biases
    return model
