"""All-Opt+, All-Opt-R, Vol-Opt and terms of the user's, against formulae read literally on raw rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from loss_formulae import C1, C2, MODELS, batch, literal, odds, session, table
from slow_cases import mostly_slow, pairs

import fewest as fw
from fewest.errors import FewestError, UsageError
from fewest.models.training import AlignedBatch, AllOptClassifier, AllOptSearchCV, Optimizer, SevLoss
from fewest.models.training._heads import Targets
from fewest.models.training._trainer import AllOptTerm, raised_loss, volume_loss

torch = pytest.importorskip("torch")

PLUS = SevLoss(kind="plus", margin=0.02, theta=0.05, anchor=False)
FREE = ("debt", "owner")


@pytest.fixture(autouse=True)
def _double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("references", mostly_slow(("single", "sparsest clusters"), ("sparsest clusters",)))
@pytest.mark.parametrize(("model", "features"), pairs(list(MODELS), (None, FREE)))
def test_all_opt_plus_equals_its_formula(model: str, references: str, features: Any) -> None:
    loss = replace(PLUS, features=features)
    begun, term = session(model, references, loss)
    assert float(term(begun.head, batch(begun)).detach()) == pytest.approx(literal(begun, loss), abs=1e-9)


@pytest.mark.parametrize("model", MODELS)
def test_all_opt_r_equals_its_formula(model: str) -> None:
    loss = replace(PLUS, kind="minus", features=FREE)
    begun, term = session(model, "single", loss)
    assert float(term(begun.head, batch(begun)).detach()) == pytest.approx(literal(begun, loss), abs=1e-9)


def test_a_plus_that_aligns_the_query_is_caught() -> None:
    """Negative control: with the targets of SEV- the formula of SEV+ is missed."""
    begun, term = session("logistic", "single", PLUS)

    class Twin(Targets):
        pass

    term.targets = Twin(term.targets.references, term.targets.candidates)
    assert float(term(begun.head, batch(begun)).detach()) != pytest.approx(literal(begun, PLUS), abs=1e-3)


def test_a_restriction_that_is_not_kept_is_caught() -> None:
    """Negative control of All-Opt-R."""
    loss = replace(PLUS, kind="minus", features=("owner",))
    begun, term = session("logistic", "single", loss)
    term.free = None
    assert float(term(begun.head, batch(begun)).detach()) != pytest.approx(literal(begun, loss), abs=1e-3)


def test_the_two_formulae_by_hand() -> None:
    assert float(raised_loss(odds(0.2, 0.7)[:, None, None])) == pytest.approx((0.8 + 0.5) / 2)
    assert float(raised_loss(odds(0.2, 0.7)[:, None, None], 0.3)) == pytest.approx((0.8 + 0.3) / 2)
    depth, weights = torch.tensor([[-2.0], [-0.5]]), torch.tensor([1.0, -4.0])
    sides = [2.0, 2.0 / 4, 0.5, 0.5 / 4]
    assert float(volume_loss(depth, weights)) == pytest.approx(np.log(sides).mean())


@pytest.mark.parametrize("features", [None, FREE])
def test_vol_opt_is_the_mean_log_of_the_sides_of_the_box(features: Any) -> None:
    """A side: how far one encoded column of the reference has to go until the model's own score is one half."""
    loss = SevLoss(kind="volume", features=features, theta=0.05, anchor=False)
    begun, term = session("logistic", "single", loss, encoder="linear")
    assert begun.references is not None
    model = begun.model()
    encoded = begun.encode(begun.schema.conform(begun.references.frame, unseen="allow"))[0]
    final = model.named_steps["model"]
    odds_of = float(final.decision_function(encoded[None])[0]) * begun.sign
    sides, crossing = [], []
    for column, feature in enumerate(begun.blocks.feature_of):
        if features is not None and begun.schema.names[feature] not in features:
            continue
        side = -odds_of / (final.coef_[0, column] * begun.sign)
        at = encoded.copy()
        at[column] += side
        crossing.append(float(final.decision_function(at[None])[0]))
        sides.append(abs(side))
    assert np.allclose(crossing, 0.0)
    chance = 1 / (1 + np.exp(-odds_of))
    wanted = C1 * np.log(sides).mean() + C2 * max(chance, 0.45)
    assert float(term(begun.head, batch(begun)).detach()) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("loss", [PLUS, SevLoss(kind="volume", anchor=False)])
def test_gradients_of_the_other_kinds_agree_with_finite_differences(loss: SevLoss) -> None:
    begun, term = session("logistic", "single", loss, encoder="linear")
    weight, bias = begun.head.parameters
    weight.grad = bias.grad = None
    value = term(begun.head, batch(begun))
    value.backward()
    for parameter, slope in ((weight.data, weight.grad), (bias.data.view(1), bias.grad.view(1))):
        ends = []
        for step in (1e-6, -1e-6):
            parameter[0] += step
            ends.append(float(term(begun.head, batch(begun)).detach()))
            parameter[0] -= step
        assert float(slope[0]) == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)


@pytest.mark.parametrize("loss", [PLUS, replace(PLUS, kind="minus", anchor=True), replace(PLUS, features=FREE)])
@pytest.mark.parametrize("model", MODELS)
def test_gradients_of_the_furthest_way_are_those_of_all_ways(model: str, loss: SevLoss) -> None:
    """A term of the user's needs the gradient of every way to align a feature; one that is zero adds nothing."""
    wide = replace(loss, margin=0.4)
    begun, few = session(model, "sparsest clusters", wide)
    nothing = replace(wide, term=lambda given: 0 * given.aligned.sum())
    full = AllOptTerm(C1, C2, nothing, few.targets, few.refresh, begun.schema.names)
    values = [term(begun.head, batch(begun)) for term in (few, full)]
    slopes = [torch.autograd.grad(value, begun.head.parameters) for value in values]
    assert values[0].item() == pytest.approx(values[1].item(), abs=1e-12)
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(*slopes, strict=True))
    assert any(bool(slope.abs().max() > 1e-3) for slope in slopes[0])


def mean_sev(model: Any, frame: pd.DataFrame, **choices: Any) -> float:
    out = fw.Explainer(fw.Decision(model, positive="bad"), model.references_, **choices).explain(frame)
    return float(out.sev.mean())


def test_training_for_sev_plus_lowers_sev_plus() -> None:
    frame, labels = table(3, 300)
    common = {"warmup_epochs": 15, "positive": "bad", "device": "cpu", "encoder": "linear", "learning_rate": 0.05}
    before = AllOptClassifier.from_settings(**common, epochs=0).fit(frame, labels)
    after = AllOptClassifier.from_settings(**common, epochs=10, c1=2.0, kind="plus").fit(frame, labels)
    assert mean_sev(after, frame, direction="plus") < mean_sev(before, frame, direction="plus") - 0.05


def test_a_restricted_training_turns_more_cases_by_the_features_left() -> None:
    frame, labels = table(3, 300)
    limits = fw.Immutable("debt", "age")
    common = {"warmup_epochs": 15, "positive": "bad", "device": "cpu", "encoder": "linear", "learning_rate": 0.05}

    def turned(**loss: Any) -> float:
        model = AllOptClassifier.from_settings(**common, **loss).fit(frame, labels)
        decision = fw.Decision(model, positive="bad")
        out = fw.Explainer(decision, model.references_, constraints=limits).explain(frame)
        counts = out.counts()
        return counts["EXPLAINED"] / (counts["EXPLAINED"] + counts["UNREACHABLE"])

    assert turned(epochs=10, c1=4.0, features=("job", "owner")) > turned(epochs=10, c1=4.0) + 0.05


@pytest.mark.parametrize("exact", [True, False])
def test_the_path_measures_the_sev_that_the_loss_is_about(exact: bool) -> None:
    frame, labels = table(2, 200)
    quick = AllOptClassifier.from_settings(
        warmup_epochs=6, epochs=1, positive="bad", device="cpu", encoder="linear", learning_rate=0.05, kind="plus"
    )
    search = AllOptSearchCV(quick, c1=(0.5,), exact=exact, tolerance=0.2).fit(frame, labels)
    assert np.isfinite(search.front_["mean_sev"]).all()


def test_a_term_of_the_users_is_added_and_sees_what_it_is_told() -> None:
    seen: list[AlignedBatch] = []

    def ours(given: AlignedBatch) -> Any:
        seen.append(given)
        return 0.3 * given.references.mean()

    plain = SevLoss(margin=0.02, theta=0.05, anchor=False, features=FREE)
    begun, term = session("logistic", "sparsest clusters", replace(plain, term=ours))
    without = AllOptTerm(C1, C2, plain, term.targets, lambda epoch: None, begun.schema.names)
    step = batch(begun)
    added = float(term(begun.head, step).detach()) - float(without(begun.head, step).detach())
    (given,) = seen
    assert added == pytest.approx(0.3 * float(given.references.detach().mean()))
    assert given.features == FREE
    assert given.aligned.shape == (*given.references.shape, 2)
    assert (given.scores >= 0).all()
    assert len(given.numbers) == len(given.scores) == given.references.shape[0]
    alone = AllOptTerm(0.0, 0.0, replace(plain, term=ours), term.targets, lambda epoch: None, begun.schema.names)
    assert float(alone(begun.head, step).detach()) == pytest.approx(added)


def test_a_term_alone_is_trained_with() -> None:
    frame, labels = table(3, 120)

    def ours(given: AlignedBatch) -> Any:
        return 0.3 * given.scores.mean()

    common = {"warmup_epochs": 10, "epochs": 5, "c1": 0.0, "c2": 0.0, "positive": "bad", "device": "cpu"}
    common["optimizer"] = Optimizer(learning_rate=0.1)
    plain, other = (AllOptClassifier(**common, loss=SevLoss(term=term)).fit(frame, labels) for term in (None, ours))
    assert (other.predict(frame) == "bad").mean() < (plain.predict(frame) == "bad").mean()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kind": "sideways"}, "sideways"),
        ({"kind": "volume"}, "linear models"),
        ({"kind": "volume", "model": "mlp"}, "linear models"),
        ({"features": "debt"}, "features is 'debt'"),
        ({"features": ()}, "features is"),
        ({"features": ("debts",)}, "debts"),
        ({"term": 3}, "term is 3"),
        ({"term": lambda given: given.scores}, "shape"),
        ({"term": lambda given: 1.0}, "float"),
    ],
)
def test_a_loss_that_cannot_be_is_refused(settings: dict[str, Any], words: str) -> None:
    frame, labels = table(5, 60)
    estimator = AllOptClassifier.from_settings(
        warmup_epochs=8, epochs=1, positive="bad", device="cpu", learning_rate=0.1, **settings
    )
    with pytest.raises(FewestError, match=words) as caught:
        estimator.fit(frame, labels)
    assert isinstance(caught.value, UsageError) or "debts" in words
