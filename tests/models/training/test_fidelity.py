"""The terms of ExpO: what a linear model cannot fit, and its gradient."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from fewest.models.training._heads import Blocks, Head, LinearHead, NetworkHead  # noqa: E402
from fewest.models.training._trainer import (  # noqa: E402
    Batch,
    FidelityTerm,
    misfit,
    misfit_1d,
)

COLUMNS = 3


def head_of(kind: str):
    """A small head in double precision, so that finite differences mean something."""
    blocks = Blocks(np.arange(COLUMNS), COLUMNS)
    source = torch.Generator().manual_seed(1)
    if kind == "logistic":
        head = LinearHead(blocks, "cpu")
        head.weight = torch.randn(COLUMNS, generator=source, dtype=torch.double).requires_grad_()
        head.bias = torch.tensor(0.3, dtype=torch.double, requires_grad=True)
        return head
    head = NetworkHead(blocks, (4,), "cpu", random_state=0)
    for name in ("weights", "biases"):
        setattr(head, name, [part.detach().double().requires_grad_() for part in getattr(head, name)])
    return head


def batch_of(head, rows: int = 5) -> Batch:
    Z = torch.randn(rows, COLUMNS, generator=torch.Generator().manual_seed(2), dtype=torch.double)
    return Batch(torch.arange(rows), Z, head.logits(Z))


def test_the_residual_is_that_of_least_squares():
    random = np.random.default_rng(0)
    offsets, values = random.normal(size=(40, 3)), random.normal(size=(6, 40))
    design = np.column_stack([np.ones(40), offsets])
    fitted = design @ np.linalg.lstsq(design, values.T, rcond=None)[0]
    wanted = ((values.T - fitted) ** 2).mean()
    assert float(misfit(torch.tensor(values), torch.tensor(offsets))) == pytest.approx(wanted)
    without_intercept = offsets @ np.linalg.lstsq(offsets, values.T, rcond=None)[0]
    assert ((values.T - without_intercept) ** 2).mean() != pytest.approx(wanted, rel=1e-3)


def test_along_one_coordinate_the_residual_is_that_of_a_line():
    random = np.random.default_rng(0)
    steps, values = random.normal(size=(4, 15)), random.normal(size=(4, 15))
    lines = [np.polyval(np.polyfit(x, f, 1), x) for x, f in zip(steps, values, strict=True)]
    assert float(misfit_1d(torch.tensor(values), torch.tensor(steps))) == pytest.approx(((values - lines) ** 2).mean())


@pytest.mark.parametrize("regularizer", ["fidelity", "1d"])
def test_what_is_linear_costs_nothing_and_what_bends_costs(regularizer):
    class Level:
        around = Head.around

        def logits(self, rows):
            return torch.logit((0.5 + 0.01 * rows.sum(dim=-1)).clamp(0.01, 0.99))

    class Bent:
        around = Head.around

        def logits(self, rows):
            return torch.logit((0.5 + 0.01 * (rows**2).sum(dim=-1)).clamp(0.01, 0.99))

    for head, low in ((Level(), True), (Bent(), False)):
        term = FidelityTerm(regularizer, 1.0, 30, 1.0, random_state=0)
        assert (float(term(head, batch_of(head))) < 1e-20) == low


def slopes(head, loss) -> tuple[np.ndarray, np.ndarray]:
    """Gradient by the chain rule and by differences, over all parameters; `loss` is evaluated on the same samples."""
    value = loss()
    if value.requires_grad:
        value.backward()
    told, wanted = [], []
    for parameter in head.parameters:
        told.append(np.zeros(parameter.numel()) if parameter.grad is None else parameter.grad.numpy().ravel())
        flat = parameter.data.view(-1)
        for k in range(len(flat)):
            ends = []
            for step in (1e-6, -1e-6):
                flat[k] += step
                ends.append(float(loss().detach()))
                flat[k] -= step
            wanted.append((ends[0] - ends[1]) / 2e-6)
    return np.concatenate(told), np.array(wanted)


@pytest.mark.parametrize("kind", ["logistic", "mlp"])
def test_what_is_said_around_rows_is_what_is_said_of_the_moved_rows(kind):
    head = head_of(kind)
    rows, offsets = batch_of(head).rows, batch_of(head, 7).rows
    assert torch.allclose(head.around(rows, offsets), Head.around(head, rows, offsets), atol=1e-12)


@pytest.mark.parametrize("kind", ["logistic", "mlp"])
@pytest.mark.parametrize("regularizer", ["fidelity", "1d"])
def test_the_gradient_is_that_of_finite_differences(kind, regularizer):
    head = head_of(kind)
    batch = batch_of(head)
    told, wanted = slopes(head, lambda: FidelityTerm(regularizer, 2.0, 12, 0.8, random_state=0)(head, batch))
    assert np.abs(wanted).max() > 1e-4
    np.testing.assert_allclose(told, wanted, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("regularizer", ["fidelity", "1d"])
def test_a_term_without_gradient_is_caught(regularizer):
    """Negative control: the authors' code computes the regulariser under no_grad."""
    head = head_of("logistic")
    batch = batch_of(head)

    def broken():
        with torch.no_grad():
            return FidelityTerm(regularizer, 2.0, 12, 0.8, random_state=0)(head, batch)

    told, wanted = slopes(head, broken)
    assert not told.any()
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(told, wanted, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("regularizer", ["fidelity", "1d"])
def test_samples_lie_around_their_row_as_far_as_asked(regularizer):
    seen = []

    class Spy:
        around = Head.around

        def logits(self, rows):
            seen.append(rows)
            return rows.sum(dim=-1)

    spy = Spy()
    batch = batch_of(spy)
    seen.clear()
    FidelityTerm(regularizer, 1.0, 4000, 0.3, random_state=0)(spy, batch)
    away = (seen[0] - batch.rows[:, None, :]).numpy()
    assert away.shape == (5, 4000, COLUMNS)
    moved = np.abs(away).max(axis=1) > 0
    assert (moved.sum(axis=1) == (COLUMNS if regularizer == "fidelity" else 1)).all()
    assert away[:, :, :].transpose(0, 2, 1)[moved].std() == pytest.approx(0.3, rel=0.05)


def test_the_same_seed_draws_the_same_samples_and_the_next_batch_others():
    head = head_of("mlp")
    batch = batch_of(head)
    first, again = (FidelityTerm("fidelity", 1.0, 12, 0.5, random_state=3) for _ in range(2))
    one = first(head, batch)
    assert one.item() == again(head, batch).item()
    assert first(head, batch).item() != one.item()
