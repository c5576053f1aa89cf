"""What every peer must keep: answers really turn, the rest really stays, types stay, and a seed fixes everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from slow_cases import pairs

import fewest as fw
from fewest.errors import DataError, ModelError, UsageError, VerificationError
from fewest.experiments.peers import (
    NICE,
    REVISE,
    Counterfactuals,
    DiCE,
    GrowingSpheres,
    Peer,
    TopSHAP,
    Wachter,
    check_counterfactuals,
    turns_alone,
)

PEERS: dict[str, Peer] = {
    "wachter": Wachter(),
    "spheres": GrowingSpheres(samples=200),
    "revise": REVISE(epochs=8, hidden=32, steps=40),
    "nice": NICE(),
    "nice proximity": NICE("proximity"),
    "shap": TopSHAP(background=20),
    "dice": DiCE(),
}
KINDS = ("additive", "ensemble", "network", "opaque")
METHODS = ("shap", "nice", "wachter", "spheres", "nice proximity", "dice", "revise")  # shap needs one of the first two
PACKAGES = {"revise": "torch", "dice": "dice_ml"}


def needed(name: str) -> Peer:
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name], reason=f"{PACKAGES[name]} is not installed")
    return PEERS[name]


def explained(name: str, case: Any) -> Counterfactuals:
    peer = needed(name)
    if name == "shap" and not hasattr(case.decision.model, "steps"):
        pytest.skip("Shapley values need a model whose inside is read")
    if name == "shap" and "MLP" in type(case.decision.model[-1]).__name__:
        pytest.skip("Shapley values are for additive models and trees")
    return peer.fit(case.decision, case.X, case.y).explain(case.cases)


@pytest.mark.parametrize(("name", "case"), pairs(METHODS, KINDS), indirect=["case"])
def test_every_answer_really_turns_and_what_is_not_changed_is_the_same(name: str, case: Any) -> None:
    out = explained(name, case)
    against = case.decision.verdicts(case.cases).positive
    assert against.sum() >= 4
    assert check_counterfactuals(out, case.decision) == out.found.sum()
    assert not out.found[~against].any()
    # Trees have no gradient to follow: differences see only the splits near by.
    assert out.found[against].mean() > (0.3 if name == "wachter" else 0.6)
    assert turns_alone(case.decision, out.frame[out.found]).all()
    for j, feature in enumerate(out.schema.features):
        same = out.frame[feature.name].astype(object).eq(case.cases[feature.name].astype(object)).to_numpy()
        assert (same == ~out.changed[:, j]).all()
    assert out.frame.index.equals(case.cases.index)


@pytest.mark.parametrize("name", list(PEERS))
def test_types_and_levels_are_those_of_the_training_table(name: str, mixed: Any) -> None:
    case = mixed("ensemble")
    out = explained(name, case)
    assert out.frame.dtypes.equals(case.X.dtypes)
    for column in case.X.select_dtypes(["str", "bool"]):
        assert set(out.frame[column]) <= set(case.X[column])


@pytest.mark.parametrize("name", list(PEERS))
def test_the_same_seed_gives_the_same_answers_and_global_generators_are_left_alone(name: str, mixed: Any) -> None:
    case = mixed("additive", seed=1)
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    first, again = explained(name, case), explained(name, case)
    pd.testing.assert_frame_equal(first.frame, again.frame)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


@pytest.mark.parametrize("name", ["wachter", "spheres", "nice", "shap", "dice"])
def test_an_answer_does_not_hang_on_the_cases_beside_it(name: str, mixed: Any) -> None:
    case = mixed("ensemble", seed=2)
    fitted = needed(name).fit(case.decision, case.X, case.y)
    together = fitted.explain(case.cases)
    row = int(np.flatnonzero(together.found)[1])
    alone = fitted.explain(case.cases.iloc[[row]])
    pd.testing.assert_frame_equal(alone.frame, together.frame.iloc[[row]])


@dataclass(frozen=True)
class ReturnsTheQuery:
    """A broken peer: it returns the cases and calls them answers, as a mis-targeted search does."""

    name = "broken"

    def fit(self, decision: fw.Decision, X: Any, y: Any) -> ReturnsTheQuery:
        return self

    def explain(self, X: pd.DataFrame) -> Counterfactuals:
        return Counterfactuals(fw.Schema.infer(X), X, X, np.ones(len(X), dtype=bool))


def test_a_peer_that_returns_the_query_is_caught(additive: Any) -> None:
    """Negative control of the checks above."""
    cases = additive.cases[additive.decision.verdicts(additive.cases).positive]
    out = ReturnsTheQuery().fit(additive.decision, additive.X, additive.y).explain(cases)
    assert not turns_alone(additive.decision, out.frame).any()
    with pytest.raises(VerificationError, match="does not decide it otherwise"):
        check_counterfactuals(out, additive.decision)


@pytest.mark.parametrize("name", ["wachter", "spheres", "nice", "revise"])
def test_a_peer_aimed_at_the_positive_class_is_caught(name: str, additive: Any) -> None:
    """Negative control: the authors' runs were aimed at the class the cases were in already."""
    wrong = fw.Decision(additive.decision.model, positive=0)
    out = needed(name).fit(wrong, additive.X, additive.y).explain(additive.cases)
    assert out.found.any()
    with pytest.raises(VerificationError, match="does not decide it otherwise"):
        check_counterfactuals(out, additive.decision)


def broken(out: Counterfactuals, **columns: Any) -> Counterfactuals:
    return Counterfactuals(out.schema, out.cases, out.frame.assign(**columns), out.found)


def test_levels_dtypes_fractions_and_silent_changes_are_caught(additive: Any) -> None:
    """Negative controls of `check_counterfactuals`."""
    out = NICE().fit(additive.decision, additive.X, additive.y).explain(additive.cases)
    assert check_counterfactuals(out, additive.decision) > 0
    with pytest.raises(VerificationError, match="dtypes"):
        check_counterfactuals(broken(out, children=out.frame["children"] + 0.5), additive.decision)
    with pytest.raises(VerificationError, match="nothing was found"):
        check_counterfactuals(
            broken(out, children=out.frame["children"] + 1), fw.Decision(lambda rows: rows.index * 0.0)
        )
    nobody = fw.Decision(lambda rows: np.zeros(len(rows)))
    with pytest.raises(VerificationError, match="nothing is changed"):
        check_counterfactuals(Counterfactuals(out.schema, out.cases, out.cases, np.ones(len(out), dtype=bool)), nobody)
    everything = Counterfactuals(out.schema, out.cases, out.frame.assign(town="nowhere"), np.ones(len(out), dtype=bool))
    everything.frame["town"] = everything.frame["town"].astype(out.cases["town"].dtype)
    with pytest.raises(VerificationError, match='"town" has a value it cannot have'):
        check_counterfactuals(everything, nobody)


def test_cases_that_are_accepted_have_nothing_to_be_found(additive: Any) -> None:
    accepted = additive.cases[~additive.decision.verdicts(additive.cases).positive]
    out = Wachter().fit(additive.decision, additive.X, additive.y).explain(accepted)
    assert not out.found.any()
    pd.testing.assert_frame_equal(out.frame, accepted)


def test_what_makes_no_sense_is_refused(additive: Any, mixed: Any) -> None:
    with pytest.raises(UsageError, match='reward "speed"'):
        NICE("speed").fit(additive.decision, additive.X, additive.y)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="one label per row"):
        Wachter().fit(additive.decision, additive.X, additive.y[:-1])
    with pytest.raises(DataError, match="empty"):
        Wachter().fit(additive.decision, additive.X, additive.y).explain(additive.X.iloc[:0])
    network = mixed("network")
    with pytest.raises(ModelError, match="not for Pipeline"):
        TopSHAP().fit(network.decision, network.X, network.y)
    with pytest.raises(ModelError, match="refuses every training row"):
        NICE().fit(fw.Decision(lambda rows: np.ones(len(rows)), positive=1), additive.X, additive.y)


def test_a_missing_package_is_named_with_its_install_line(additive: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for package, peer in (("dice_ml", DiCE()), ("torch", REVISE())):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ImportError, match="pip install"):
            peer.fit(additive.decision, additive.X, additive.y)
