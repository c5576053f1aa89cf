"""Nets are read layer by layer."""

import copy

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from fewest.engine.structure import Network, read


@pytest.fixture(scope="module")
def scaled(train, train3, rows):
    scaler = StandardScaler().fit(train[0])
    return scaler.transform(train[0]), scaler.transform(train3[0]), scaler.transform(rows)


def fitted(activation, X, y, layers=(8, 5), solver="lbfgs"):
    model = MLPClassifier(layers, activation=activation, solver=solver, max_iter=30, alpha=1.0, random_state=0)
    with pytest.warns(ConvergenceWarning):  # 30 steps are enough here
        return model.fit(X, y)


def log_odds(model, rows):
    before = copy.copy(model)
    before.out_activation_ = "identity"
    return before.predict_proba(rows)[:, 1]


@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic", "identity"])
def test_perceptrons_are_read(activation, tools, train, scaled):
    model = fitted(activation, scaled[0], train[1])
    for asked in tools.questions(("proba", "label")):
        structure, _ = tools.check_it(model, scaled[2], asked, raw=log_odds)
        assert isinstance(structure, Network)
    assert "decision_function" in read(model, kind="decision").reason


def test_single_precision_and_one_layer(tools, train, scaled):
    for solver in ("lbfgs", "adam"):
        model = fitted("relu", scaled[0].astype(np.float32), train[1], (6,), solver)
        for dtype in (np.float32, np.float64):
            tools.check_it(model, scaled[2].astype(dtype), {"threshold": 0.3}, raw=log_odds)


def test_two_of_three_classes_are_compared(tools, train3, scaled):
    model = fitted("relu", scaled[1], train3[1])
    tools.check_it(model, scaled[2], {"positive": 0, "against": 2})


def test_wrong_readings_are_caught(tools, train, scaled):
    model = fitted("relu", scaled[0], train[1])
    right, _ = tools.check_it(model, scaled[2], {"threshold": 0.4}, raw=log_odds)
    for broken in (
        tools.replace(right, activation="tanh"),
        tools.replace(right, biases=tuple(0 * bias for bias in right.biases)),
        tools.replace(right, weights=(right.weights[0][::-1].copy(), *right.weights[1:])),
        tools.replace(right, reading=tools.replace(right.reading, source=right.reading.source[::-1].copy())),
    ):
        assert tools.wrong(model, broken, scaled[2], 0.4, raw=log_odds)


def sequential(*names, outputs=1, final=None, dtype=None):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layers, width = [torch.nn.Flatten()], 6
    for name in names:
        layers += [torch.nn.Sequential(torch.nn.Linear(width, 8)), getattr(torch.nn, name)(), torch.nn.Dropout(0.1)]
        width = 8
    layers.append(torch.nn.Linear(width, outputs))
    if final:
        layers.append(getattr(torch.nn, final)(**({} if final == "Sigmoid" else {"dim": 1})))
    module = torch.nn.Sequential(*layers).eval()
    return module.double() if dtype == "double" else module


def torch_score(module, rows, positive=1, against=None, kind="proba"):
    torch = pytest.importorskip("torch")
    first = next(module.parameters())
    with torch.no_grad():
        out = module(torch.as_tensor(rows, dtype=first.dtype))
        ends = type(module[-1]).__name__
        if ends == "Sigmoid":
            out = torch.logit(out)
        if ends == "Softmax":
            out = torch.log(out)
        if out.shape[1] > 2:
            return (out[:, positive] - out[:, against]).numpy()
        logit = (out[:, 0] if out.shape[1] == 1 else torch.diff(out)[:, 0]).numpy()
    logit = logit if positive == 1 else -logit
    return 1 / (1 + np.exp(-logit)) if kind == "proba" else logit


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (("ReLU", "ReLU"), {}),
        (("Tanh",), {"final": "Sigmoid"}),
        (("Sigmoid", "Sigmoid"), {"outputs": 2}),
        (("ReLU", "Identity"), {"outputs": 2, "final": "LogSoftmax"}),
        (("ReLU",), {"outputs": 2, "final": "Softmax"}),
        (("LeakyReLU", "ReLU"), {}),
        (("ReLU",), {"dtype": "double"}),
        ((), {}),
    ],
)
def test_torch_modules_are_read(names, options, tools, scaled):
    module = sequential(*names, **options)
    for asked in tools.questions(("proba", "decision")):
        structure = read(module, **asked)
        threshold = asked["threshold"]
        rest = {key: value for key, value in asked.items() if key != "threshold"}
        assert tools.wrong(module, structure, scaled[2], threshold, scorer=torch_score, **rest) == []
    assert isinstance(structure, Network)


@pytest.mark.parametrize("affine", [True, False])
def test_batch_norms_with_stored_statistics_are_read(affine, tools, scaled):
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    norm, rows = torch.nn.BatchNorm1d, torch.as_tensor(scaled[2], dtype=torch.float32)
    module = torch.nn.Sequential(
        norm(6, affine=affine), torch.nn.Linear(6, 8), norm(8, affine=affine), torch.nn.ReLU(),
        norm(8, affine=affine), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1),
    )  # fmt: skip
    for layer in module.modules():
        if isinstance(layer, norm) and affine:
            torch.nn.init.normal_(layer.weight), torch.nn.init.normal_(layer.bias)
    module(rows * 3 + 1)  # statistics of other rows
    assert "eval" in read(module).reason
    module.eval()
    middle = float(np.median(torch_score(module, scaled[2])))
    right = read(module, threshold=middle)
    assert isinstance(right, Network)
    assert tools.wrong(module, right, scaled[2], middle, scorer=torch_score) == []
    module[2].running_mean += 0.5
    assert tools.wrong(module, right, scaled[2], middle, scorer=torch_score)  # a layer read before it changed


def test_torch_outputs_are_compared_and_wrong_readings_caught(tools, scaled):
    module = sequential("ReLU", outputs=3)
    right = read(module, positive=2, against=0)
    asked = {"positive": 2, "against": 0, "scorer": torch_score}
    assert tools.wrong(module, right, scaled[2], 0.5, **asked) == []
    assert tools.wrong(module, tools.replace(right, activation="tanh"), scaled[2], 0.5, **asked)


def test_torch_modules_that_are_not_read_say_so():
    torch = pytest.importorskip("torch")
    assert "eval" in read(sequential("ReLU").train()).reason
    assert "softmax" in read(sequential("ReLU", outputs=1, final="Softmax")).reason
    assert "differ" in read(sequential("ReLU", "Tanh")).reason
    assert "LayerNorm" in read(torch.nn.Sequential(torch.nn.LayerNorm(6), torch.nn.Linear(6, 1)).eval()).reason
    assert "outputs" in read(sequential("ReLU", outputs=3)).reason
    assert "4 outputs" in read(torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.ReLU()).eval()).reason
