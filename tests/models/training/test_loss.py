"""The SEV loss against a slow, literal transcription of the paper's formula, for all models and reference kinds."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from loss_formulae import C1, C2, MODELS, REFERENCES, batch, literal, odds, session, small_booster, table
from slow_cases import mostly_slow

import fewest as fw
from fewest.decision import Decision
from fewest.errors import FewestWarning, UsageError
from fewest.models.training import AllOptClassifier, SevLoss
from fewest.models.training._session import Session
from fewest.models.training._trainer import AllOptTerm, Batch, reference_loss, sev_loss

torch = pytest.importorskip("torch")

LOSS = SevLoss(margin=0.02, theta=0.05, anchor=False)


@pytest.fixture(autouse=True)
def _double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("references", mostly_slow(REFERENCES, ("sparsest clusters", "flexible")))
@pytest.mark.parametrize("model", MODELS)
def test_the_terms_equal_the_formula_read_literally(model: str, references: str) -> None:
    begun, term = session(model, references, LOSS)
    assert float(term(begun.head, batch(begun)).detach()) == pytest.approx(literal(begun, LOSS), abs=1e-9)


@pytest.mark.parametrize("model", MODELS)
def test_a_loss_that_takes_the_reference_number_for_a_feature_is_caught(model: str) -> None:
    """The authors' loss for clusters replaces only the feature whose number is that of the cluster."""
    begun, term = session(model, "nearest cluster", LOSS)

    class Twin(AllOptTerm):
        def __call__(self, head: Any, batch: Batch) -> Any:
            found = (batch.logits >= 0).nonzero()[:, 0]
            numbers = batch.numbers[found]
            labels = self.targets.candidates[numbers]
            aligned = head.aligned(batch.rows[found], self.targets[numbers])
            own = aligned.gather(2, labels[:, :, None])
            scores = torch.sigmoid(head.logits(self.targets.references))[labels].clamp(min=0.5 - 0.05)
            floor = torch.sigmoid(own.flatten(1).amin(1)).clamp(min=0.5 - LOSS.margin)
            return C1 * floor.mean() + C2 * scores.mean()

    twin = Twin(C1, C2, LOSS, term.targets, lambda epoch: None)
    assert float(twin(begun.head, batch(begun)).detach()) != pytest.approx(literal(begun, LOSS), abs=1e-3)


@pytest.mark.parametrize("references", mostly_slow(("single", "sparsest clusters"), ("sparsest clusters",)))
@pytest.mark.parametrize("model", MODELS)
def test_gradients_agree_with_finite_differences(model: str, references: str) -> None:
    begun, term = session(model, references, LOSS, seed=3)
    for parameter in begun.head.parameters:
        parameter.grad = None
    term(begun.head, batch(begun)).backward()
    rng = np.random.default_rng(0)
    checked = 0
    for parameter in begun.head.parameters:
        if parameter.grad is None:
            continue
        flat, slope = parameter.data.view(-1), parameter.grad.reshape(-1)
        for place in rng.choice(len(flat), min(4, len(flat)), replace=False):
            assert float(slope[place]) == pytest.approx(_slope(begun, term, flat, int(place)), abs=1e-6)
            checked += 1
    assert checked >= 3


def _slope(begun: Session, term: AllOptTerm, flat: Any, place: int, step: float = 1e-6) -> float:
    value, ends = float(flat[place]), []
    for sign in (1.0, -1.0):
        flat[place] = value + sign * step
        with torch.no_grad():
            ends.append(float(term(begun.head, batch(begun))))
    flat[place] = value
    return (ends[0] - ends[1]) / (2 * step)


def test_anchoring_changes_no_value_and_takes_the_mean_score_out_of_the_gradient() -> None:
    begun, term = session("logistic", "single", LOSS)
    plain = term(begun.head, batch(begun))
    held = AllOptTerm(C1, 0.0, replace(LOSS, anchor=True), term.targets, lambda epoch: None)
    value = held(begun.head, batch(begun))
    assert float(value.detach()) == pytest.approx(float(plain.detach()) - C2 * _reference_part(begun, term), abs=1e-12)
    bias = begun.head.parameters[1]
    bias.grad = None
    value.backward()
    assert float(bias.grad) == pytest.approx(0.0, abs=1e-12)


def _reference_part(begun: Session, term: AllOptTerm) -> float:
    chances = torch.sigmoid(begun.head.logits(term.targets.references))
    found = (batch(begun).logits >= 0).nonzero()[:, 0]
    return float(chances.detach()[term.targets.candidates[found]].clamp(min=0.45).mean())


def test_the_estimate_of_mean_sev_counts_queries_that_one_feature_does_not_turn() -> None:
    begun, term = session("logistic", "single", LOSS)
    term.start_epoch(0)
    assert np.isnan(term.sev_estimate)
    term(begun.head, batch(begun))
    assert begun.references is not None
    out = fw.Explainer(begun.decision(), begun.references).explain(begun.frame)
    explained = [one.sev for one in out if one.sev]
    assert term.sev_estimate == pytest.approx(1 + np.mean([sev > 1 for sev in explained]))


def test_at_most_so_many_queries_of_a_batch_are_aligned() -> None:
    begun, term = session("logistic", "single", LOSS)
    few = AllOptTerm(C1, C2, replace(LOSS, queries_per_step=3), term.targets, lambda epoch: None)
    few(begun.head, batch(begun))
    assert few.queries == 3


def test_a_batch_without_positives_costs_nothing() -> None:
    begun, term = session("logistic", "single", LOSS)
    negatives = (begun.head.logits(begun.trainer.rows) < 0).nonzero()[:, 0]
    rows = begun.trainer.rows[negatives]
    assert float(term(begun.head, Batch(negatives, rows, begun.head.logits(rows))).detach()) == 0.0


def test_the_papers_two_terms_have_floors_of_their_own() -> None:
    """max(score, 0.5) of aligned queries, max(score, 0.45) of references; one margin for both gives other figures."""
    assert float(reference_loss(odds(0.48, 0.30)[:, None], 0.05)) == pytest.approx(0.465)
    assert float(sev_loss(odds(0.48, 0.30)[:, None, None], 0.0)) == pytest.approx(0.5)
    assert float(sev_loss(odds(0.70, 0.30)[:, None, None], 0.0)) == pytest.approx(0.6)
    assert float(reference_loss(odds(0.48, 0.30)[:, None], 0.0)) == pytest.approx(0.5)  # what one margin of 0 gave
    paper = AllOptClassifier.paper().loss
    assert paper is not None
    assert (paper.margin, paper.reference_margin, paper.anchor) == (0.0, 0.05, False)
    assert SevLoss(margin=0.1).reference_margin == 0.1


def test_a_term_with_one_margin_for_both_is_caught() -> None:
    """Negative control of the test of the formula: references below one half tell the two apart."""
    begun, term = session("logistic", "single", LOSS)
    one = AllOptTerm(C1, C2, replace(LOSS, theta=None), term.targets, lambda epoch: None)
    assert float(one(begun.head, batch(begun)).detach()) != pytest.approx(literal(begun, LOSS), abs=1e-3)


@pytest.mark.parametrize("model", MODELS)
def test_the_papers_preset_trains_from_raw_rows_to_explanations(model: Any) -> None:
    frame, labels = table(3, 200)
    small = {
        "warmup_epochs": 8,
        "epochs": 3,
        "positive": "bad",
        "device": "cpu",
        "booster": small_booster(),
        "hidden": (8,),
    }
    trained = AllOptClassifier.paper(model, c1=1.0, c2=1.0, **small).fit(frame, labels)
    settings = trained.get_params()
    assert settings["optimizer__learning_rate"] == 0.1
    assert settings["optimizer__l2"] == 0.0
    assert settings["architecture__encoder" if model != "boosted" else "architecture__learn"] in ("linear", "trees")
    assert trained.history_["phase"].tolist()[:8] == ["warm-up"] * 8
    out = fw.Explainer(Decision(trained, positive="bad"), trained.references_).explain(frame)
    assert (trained.predict(frame) == labels).mean() > 0.7
    assert out.sev.mean() < 1.5


def test_the_papers_preset_with_clusters_makes_them_its_own_way() -> None:
    pytest.importorskip("pacmap")
    frame, labels = table(4, 200)
    clustered = AllOptClassifier.paper(references="clusters", warmup_epochs=3, epochs=1, positive="bad", device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewestWarning)
        clustered.fit(frame, labels)
    assert clustered.references_.provenance["preset"] == "paper"
    assert clustered.references_.assignment == "embedding"


@pytest.mark.parametrize("theta", [-0.1, "0.05"])
def test_a_theta_that_is_no_number_from_zero_is_refused(theta: Any) -> None:
    frame, labels = table(5, 60)
    with pytest.raises(UsageError, match="theta"):
        AllOptClassifier.paper(theta=theta).fit(frame, labels)
