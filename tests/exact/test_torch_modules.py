"""Torch modules with links past layers, embeddings and norms, and nets of skorch: read as one chain of layers, and held
against brute force through the module itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import fewest as fw
from fewest import checks
from fewest.engine.structure import Network, Opaque, networks, read

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional

RNG = np.random.default_rng(3)
X = pd.DataFrame(RNG.normal(size=(240, 5)).round(2), columns=list("abcde")).assign(town=RNG.integers(0, 4, 240))
Y = (X.a + X.b * X.c - (X.town == 2) > 0).astype(int).to_numpy()


class Residual(nn.Module):  # type: ignore[misc,name-defined]
    """Two blocks with a link past each, as published residual nets of tables have them."""

    def __init__(self, bend: Callable[[Any], Any] = torch.relu, outputs: int = 1) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(6, 8), nn.BatchNorm1d(8)
        self.inner = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)) for _ in range(2))
        self.drop, self.last = nn.Dropout(0.2), nn.Linear(8, outputs)
        self.bend = bend

    def forward(self, x: Any) -> Any:
        x = self.norm(self.first(x))
        for block in self.inner:
            x = self.bend(x + self.drop(block(x)))
        return self.last(x)


class Linked(nn.Module):  # type: ignore[misc,name-defined]
    """The input itself goes past two layers, and a level has an embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.towns = nn.Embedding(4, 3)
        self.one, self.two = nn.Linear(8, 7), nn.Linear(7, 8)
        self.wide, self.last = nn.Linear(5, 1), nn.Linear(8, 1)

    def forward(self, x: Any) -> Any:
        numbers = x[:, :5]
        seen = torch.cat([numbers, self.towns(x[:, 5].long())], dim=1)
        deep = functional.leaky_relu(self.two(functional.relu(self.one(seen))), 0.2) + 0.5 * seen
        deep = functional.dropout(deep, 0.3, training=self.training)
        return (self.last(deep) - self.wide(numbers)).squeeze(1)


class Flattened(Linked):
    """The embedding of a table of columns, laid side by side; a constant, and columns chosen by their numbers."""

    def forward(self, x: Any) -> Any:
        seen = torch.cat((x[:, [0, 1, 2, 3, 4]], torch.flatten(self.towns(x[:, 5:].long()), 1)), -1)
        deep = torch.relu(self.one(2.0 - seen / 3))
        return self.last(nn.functional.relu(self.two(deep)) - self.two(deep))


class Gated(nn.Module):  # type: ignore[misc,name-defined]
    """A product of two layers, which no chain of layers is."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.last = nn.Linear(6, 4), nn.Linear(6, 4), nn.Linear(4, 1)

    def forward(self, x: Any) -> Any:
        return self.last(torch.relu(self.one(x)) * torch.relu(self.two(x)))


class Asking(Gated):
    """Asks what it was given before it decides what to do."""

    def forward(self, x: Any) -> Any:
        return self.last(torch.relu(self.one(x))) if x.shape[1] > 5 else self.last(self.two(x))


def fitted(module: Any) -> Any:
    torch.manual_seed(0)
    for part in module.modules():
        if hasattr(part, "reset_parameters"):
            part.reset_parameters()
    rows, labels = torch.tensor(X.to_numpy(), dtype=torch.float32), torch.tensor(Y)
    steps = torch.optim.Adam(module.parameters(), lr=0.03)
    for _ in range(40):
        out = module(rows)
        wide = out.ndim == 2 and out.shape[1] == 2
        loss = functional.cross_entropy(out, labels) if wide else functional.binary_cross_entropy_with_logits(
            out.reshape(-1), labels.float()
        )  # fmt: skip
        steps.zero_grad()
        loss.backward()
        steps.step()
    return module.eval()


MODULES: dict[str, Callable[[], Any]] = {
    "links past two blocks": Residual,
    "two outputs": lambda: Residual(outputs=2),
    "links without a bend": lambda: Residual(bend=nn.Identity()),
    "an embedding, the input past all": Linked,
    "an embedding of a table": Flattened,
}
OTHERS = {
    "product": (Gated, "mul of two values"),
    "one that asks": (Asking, "cannot trace"),
    "link past tanh": (lambda: Residual(bend=torch.tanh), "differ"),
}


def explained(model: Any, **options: Any) -> tuple[fw.Explainer, Any]:
    decision = fw.Decision(model, **options)
    explainer = fw.Explainer(decision, fw.references.single(decision, X, None, on_positive="allow"))
    return explainer, explainer.explain(X[decision.verdicts(X).positive].iloc[:25], alternatives=20)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_with_links_is_read_and_agrees_with_brute_force(name: str) -> None:
    module = fitted(MODULES[name]())
    for positive in (0, 1):
        explainer, out = explained(module, positive=positive)
        assert out.strategies[1] == "network", out.notes
        assert isinstance(explainer.look_inside(X).structure, Network)
        checks.check_turns(out)
        assert checks.check_exact(explainer, out) > 0


@pytest.mark.parametrize("name", OTHERS)
def test_a_module_that_no_chain_is_falls_back_and_says_why(name: str) -> None:
    make, reason = OTHERS[name]
    explainer, out = explained(fitted(make()))
    assert out.strategies[1] == "levelwise"
    assert reason in " ".join(out.notes)
    assert checks.check_exact(explainer, out) > 0


def test_what_is_not_read_of_a_module_says_so() -> None:
    module = fitted(Residual())
    assert "eval()" in read(module.train(), width=6).reason
    tall = nn.Sequential(nn.Tanh(), nn.Linear(6, 1))
    assert isinstance(read(tall, width=6), Network)

    class Past(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.one, self.last = nn.Linear(6, 6), nn.Linear(6, 1)

        def forward(self, x: Any) -> Any:
            return self.last(x + torch.tanh(self.one(x)))

    assert "a link past a layer of tanh" in read(Past(), width=6).reason

    class InPlace(Past):
        def forward(self, x: Any) -> Any:
            before = self.one(x)
            return self.last(before + torch.relu_(before))

    found = read(InPlace(), width=6)
    assert isinstance(found, Opaque)
    assert "in place" in found.reason

    class Twice(Past):
        def forward(self, x: Any) -> Any:
            return torch.sigmoid(self.last(self.one(x)))

    assert "taken for logits" in read(Twice(), width=6).reason  # a function that ends it does not show as a layer


def test_a_chain_with_a_link_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: what is carried past a layer is lost."""
    from fewest.engine.structure import networks

    honest = networks.trace

    def without_links(*given: Any) -> Any:
        net = honest(*given)
        weight, bias = net.layers[-1]
        cut = weight.copy()
        cut[: len(cut) // 2] = 0.0
        return replace(net, layers=[*net.layers[:-1], (cut, bias)])

    monkeypatch.setattr(networks, "trace", without_links)
    with pytest.warns(fw.FewestWarning, match="does not reproduce"):
        explainer, out = explained(fitted(Linked()))
    assert checks.check_exact(explainer, out) > 0


def test_an_embedding_of_another_column_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the columns of an embedding are said to be those of another column."""
    from fewest.engine.structure import networks

    honest = networks.trace
    monkeypatch.setattr(
        networks, "trace",
        lambda *given: replace(net := honest(*given), source=np.where(net.source == 5, 0, net.source)),
    )  # fmt: skip
    with pytest.warns(fw.FewestWarning, match="does not reproduce"):
        explainer, out = explained(fitted(Linked()))
    assert checks.check_exact(explainer, out) > 0


def skorch_net(criterion: Any, module: Any, kind: str = "NeuralNetClassifier", **options: Any) -> Any:
    skorch = pytest.importorskip("skorch", reason="skorch is not here: pip install skorch")
    torch.manual_seed(0)
    fixed = {"criterion": criterion, "max_epochs": 15, "lr": 0.1, "verbose": 0, "train_split": None}
    net = getattr(skorch, kind)(module, **{**fixed, **options})
    binary = kind == "NeuralNetBinaryClassifier"
    return net.fit(X.to_numpy(np.float32), Y.astype(np.float32 if binary else np.int64))


SKORCH: dict[str, Callable[[], Any]] = {
    "logits of two classes": lambda: skorch_net(nn.CrossEntropyLoss, Residual(outputs=2)),
    "chances, as by default": lambda: skorch_net(
        nn.NLLLoss, nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2), nn.Softmax(dim=-1))
    ),
    "one logit": lambda: skorch_net(nn.BCEWithLogitsLoss, Linked(), "NeuralNetBinaryClassifier"),
    "in a pipeline": lambda: make_pipeline(
        FunctionTransformer(np.asarray, kw_args={"dtype": np.float32}, feature_names_out="one-to-one"),
        skorch_net(nn.CrossEntropyLoss, Residual(outputs=2)),
    ),
}


@pytest.mark.parametrize("name", SKORCH)
def test_a_net_of_skorch_is_read_and_agrees_with_brute_force(name: str) -> None:
    explainer, out = explained(SKORCH[name]())
    assert out.strategies[1] == "network", out.notes
    assert checks.check_exact(explainer, out) > 0


def test_a_net_of_skorch_with_ends_of_its_own_falls_back() -> None:
    net = skorch_net(nn.CrossEntropyLoss, Residual(outputs=2), predict_nonlinearity=lambda out: out.softmax(-1))
    explainer, out = explained(net)
    assert "predict_nonlinearity" in " ".join(out.notes)
    assert checks.check_exact(explainer, out) > 0
    log = skorch_net(nn.NLLLoss, nn.Sequential(nn.Linear(6, 2), nn.Softmax(dim=-1)))
    log.set_params(predict_nonlinearity=None)
    assert isinstance(read(log, width=6), Network)
    assert "taken for chances" in read(skorch_net(nn.NLLLoss, nn.Sequential(nn.Linear(6, 2))), width=6).reason


def test_a_module_of_ones_own_on_a_gpu_is_left_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(read(Residual().eval()), Network)
    monkeypatch.setattr(networks, "home_of", lambda module: torch.device("cuda"))
    assert "GPU" in read(Residual().eval()).reason
    assert isinstance(read(nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 1)).eval()), Network)
