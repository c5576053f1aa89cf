"""The head over a booster's trees: aligned scores, gradients and exports against slow and literal recomputation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import random_boosters as rb

from fewest.engine.structure import Ensemble, read
from fewest.errors import DataError, ModelError, UsageError
from fewest.models.training._heads import Blocks
from fewest.models.training._leaves_head import LeafTargets, LeavesHead, check_readable
from fewest.models.training._trainer import anchored, reference_loss, sev_loss
from fewest.models.training.leaf_sum import LeafSumClassifier

torch = pytest.importorskip("torch")


def walked(ensemble: Ensemble, value: np.ndarray, base: float, Z: np.ndarray) -> np.ndarray:
    """Sums of leaf values, one row, one tree, one split at a time."""
    scores = []
    for z in ensemble.reading.prepare(Z).tolist():
        total = base
        for root in ensemble.root.tolist():
            node = root
            while ensemble.column[node] >= 0:
                cell = z[ensemble.column[node]]
                if ensemble.category[node] >= 0:
                    table = ensemble.left_levels[ensemble.category[node]]
                    known = cell == cell and 0 <= cell < len(table)
                    left = bool(table[int(cell)]) if known else bool(ensemble.missing_left[node])
                else:
                    left = cell <= ensemble.threshold[node] if cell == cell else bool(ensemble.missing_left[node])
                node = int(ensemble.left[node] if left else ensemble.right[node])
            total += float(value[node])
        scores.append(total)
    return np.array(scores)


def literally_aligned(made: rb.Boosted, Z: np.ndarray, references: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Every row with every feature's columns written over by those of each of its references: (n, k, p, columns)."""
    n, k = candidates.shape
    rows = np.empty((n, k, made.blocks.count, Z.shape[1]))
    for i in range(n):
        for c in range(k):
            for feature in range(made.blocks.count):
                row = Z[i].copy()
                block = made.blocks.feature_of == feature
                row[block] = references[candidates[i, c]][block]
                rows[i, c, feature] = row
    return rows


def drawn(made: rb.Boosted, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Some rows, references, and which of these each row is compared with."""
    random = np.random.default_rng(seed)
    places = random.choice(len(made.Z), 30, replace=False)
    references = made.Z[random.choice(len(made.Z), k + 1, replace=False)]
    candidates = np.array([random.choice(k + 1, k, replace=False) for _ in places], dtype=np.int64)
    return made.Z[places], references, candidates


def shaken(head: LeavesHead, seed: int = 0) -> LeavesHead:
    """The head after some learning."""
    source = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in head.parameters:
            parameter += 0.3 * torch.randn(parameter.shape, generator=source, dtype=parameter.dtype)
    return head


def largest_error(head: LeavesHead, made: rb.Boosted, k: int, twin: Any = None, own: bool = False) -> float:
    """Aligned scores of a head against a walk of literally aligned rows (or against the library's own scores)."""
    Z, references, candidates = drawn(made, k)
    targets = head.targets(Z, references, candidates)[np.arange(len(Z))]
    if twin is not None:
        targets = twin(targets, head, head.targets(Z, references, candidates).references, candidates)
    scores = head.aligned(head.rows(Z), targets).detach().numpy()
    rows = literally_aligned(made, Z, references, candidates)
    flat = rows.reshape(-1, rows.shape[-1])
    truth = made.margin(flat) if own else walked(head.ensemble, *head.values(), flat)
    assert scores.shape == rows.shape[:3]
    return float(np.abs(scores.ravel() - truth).max())


@pytest.fixture(scope="module", params=rb.NAMES)
def made(request: pytest.FixtureRequest) -> rb.Boosted:
    return rb.boosted(request.param, seed=1)


@pytest.mark.parametrize("learn", ["leaves", "trees"])
def test_a_head_that_learned_nothing_scores_as_the_booster_does(made: rb.Boosted, learn: str) -> None:
    head = LeavesHead(made.ensemble, made.blocks, "cpu", learn)
    rows = head.rows(made.Z)
    assert rows.shape == (len(made.Z), len(head.ensemble.root))
    assert np.abs(head.logits(rows).detach().numpy() - made.margin(made.Z)).max() <= 1e-4
    exported = LeafSumClassifier.from_head(head, made.booster.classes_)
    assert np.abs(exported.decision_function(made.Z) - made.margin(made.Z)).max() <= made.tolerance


@pytest.mark.parametrize("k", [1, 3])
def test_aligned_rows_score_as_the_booster_scores_them(made: rb.Boosted, k: int) -> None:
    head = LeavesHead(made.ensemble, made.blocks, "cpu")
    assert largest_error(head, made, k, own=True) <= 1e-4


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("learn", ["leaves", "trees"])
def test_aligned_scores_equal_a_plain_walk_with_what_was_learned(made: rb.Boosted, learn: str, k: int) -> None:
    head = shaken(LeavesHead(made.ensemble, made.blocks, "cpu", learn, dtype="float64"))
    assert largest_error(head, made, k) <= 1e-9
    assert largest_error(head, made, k, own=True) > 1e-2
    walk = walked(head.ensemble, *head.values(), made.Z)
    assert np.abs(head.logits(head.rows(made.Z)).detach().numpy() - walk).max() <= 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_random_tables_of_all_shapes_are_aligned_right(seed: int) -> None:
    made = rb.boosted(rb.SKLEARN[seed % 4], seed, n=120, p=1 + seed % 7, gaps=0.4)
    head = shaken(LeavesHead(made.ensemble, made.blocks, "cpu", dtype="float64"), seed)
    assert largest_error(head, made, k=1 + seed % 3) <= 1e-9


def test_slots_given_to_a_neighbouring_feature_are_caught(made: rb.Boosted) -> None:
    """Negative control."""
    head = LeavesHead(made.ensemble, made.blocks, "cpu", dtype="float64")
    assert largest_error(head, made, 2) <= 1e-9
    head._of_slot = head._of_slot.roll(1, dims=1)
    assert largest_error(head, made, 2) > 1e-2


def test_a_tree_that_takes_all_features_from_the_reference_is_caught(made: rb.Boosted) -> None:
    """Negative control: every slot gets the leaf of the reference itself."""

    def whole_tree(targets: Any, head: LeavesHead, references: Any, candidates: np.ndarray) -> Any:
        return references[candidates][:, :, head.slots.tree]

    head = LeavesHead(made.ensemble, made.blocks, "cpu", dtype="float64")
    assert largest_error(head, made, 2, twin=whole_tree) > 1e-2


def test_the_wrong_one_of_several_references_is_caught(made: rb.Boosted) -> None:
    """Negative control."""
    head = LeavesHead(made.ensemble, made.blocks, "cpu", dtype="float64")
    assert largest_error(head, made, 2, twin=lambda targets, *_: targets.flip(1)) > 1e-2


def test_leaves_that_are_kept_equal_those_looked_up_batch_by_batch(made: rb.Boosted) -> None:
    head = LeavesHead(made.ensemble, made.blocks, "cpu")
    Z, references, candidates = drawn(made, 3)
    kept, looked_up = (LeafTargets(head, Z, references, candidates, max_kept=most) for most in (10**9, 0))
    assert kept._kept is not None
    assert looked_up._kept is None
    for numbers in (torch.tensor([7, 0, 7]), [4], np.arange(len(Z))):
        assert torch.equal(kept[numbers], looked_up[numbers])
    assert torch.equal(kept.references, head.rows(references))


def test_trees_of_more_than_256_leaves_are_numbered_apart() -> None:
    from sklearn.ensemble import GradientBoostingClassifier

    random = np.random.default_rng(0)
    Z = random.normal(size=(900, 3))
    model = GradientBoostingClassifier(n_estimators=2, max_depth=None, random_state=0)
    model.fit(Z, random.integers(0, 2, 900))
    head = LeavesHead(check_readable(model, read(model)), Blocks(np.arange(3), 3), "cpu", dtype="float64")
    assert np.diff(head.nodes.first).max() > 256
    made = rb.Boosted("gradient", None, None, None, model, Z, head.blocks)  # type: ignore[arg-type]
    assert largest_error(shaken(head), made, 2) <= 1e-9


def test_a_column_of_no_feature_is_never_aligned() -> None:
    made = rb.boosted("gradient", 3)
    feature_of = made.blocks.feature_of.copy()
    feature_of[made.booster.feature_importances_.argmax()] = -1
    made = replace(made, blocks=Blocks(feature_of, made.blocks.count))
    assert largest_error(LeavesHead(made.ensemble, made.blocks, "cpu"), made, 2) <= 1e-4


def test_a_booster_that_never_splits_has_nothing_to_align() -> None:
    from sklearn.ensemble import GradientBoostingClassifier

    Z, y = np.zeros((6, 2)), np.array([0, 1, 1, 0, 1, 1])
    model = GradientBoostingClassifier(n_estimators=2).fit(Z, y)
    head = LeavesHead(check_readable(model, read(model)), Blocks(np.arange(2), 2), "cpu")
    targets = head.targets(Z, Z[:1], np.zeros((6, 1), dtype=np.int64))
    aligned = head.aligned(head.rows(Z[:2]), targets[[0, 1]]).detach().numpy()
    assert np.allclose(aligned, model.decision_function(Z[:1])[0])


def full_loss(head: LeavesHead, rows: Any, targets: Any, references: Any, anchor: bool) -> Any:
    """Everything All-Opt adds up, on one batch."""
    logits = head.logits(rows)
    aligned = head.aligned(rows, targets)
    return (
        torch.nn.functional.softplus(logits).mean()
        + sev_loss(anchored(aligned, logits) if anchor else aligned, 0.4)
        + reference_loss(head.logits(references)[None], 0.45)
        + 0.1 * head.penalty()
    )


def gradient_errors(head: LeavesHead, loss: Any) -> float:
    """Largest difference between the gradient and central differences of the loss."""
    gradients = torch.autograd.grad(loss(), head.parameters)
    worst = 0.0
    for parameter, gradient in zip(head.parameters, gradients, strict=True):
        cells = parameter.detach().view(-1)
        for place in range(len(cells)):
            before = float(cells[place])
            sides = []
            for step in (1e-6, -1e-6):
                cells[place] = before + step
                sides.append(float(loss().detach()))
            cells[place] = before
            worst = max(worst, abs((sides[0] - sides[1]) / 2e-6 - float(gradient.view(-1)[place])))
    return worst


@pytest.mark.parametrize("learn", ["leaves", "trees"])
@pytest.mark.parametrize("name", ["gradient", "hist categories"])
def test_gradients_equal_finite_differences(name: str, learn: str) -> None:
    made = rb.boosted(name, seed=2)
    head = shaken(LeavesHead(made.ensemble, made.blocks, "cpu", learn, dtype="float64"))
    Z, references, candidates = drawn(made, 2)
    found = head.targets(Z, references, candidates)
    rows, targets = head.rows(Z), found[np.arange(len(Z))]

    def loss(anchor: bool) -> Any:
        return full_loss(head, rows, targets, found.references, anchor)

    assert gradient_errors(head, lambda: loss(anchor=False)) <= 1e-7
    # Negative control: the anchor leaves the value and changes the gradient.
    assert gradient_errors(head, lambda: loss(anchor=True)) > 1e-5


def test_weight_decay_pulls_towards_the_booster() -> None:
    made = rb.boosted("gradient", 4)
    for learn in ("leaves", "trees"):
        head = LeavesHead(made.ensemble, made.blocks, "cpu", learn)
        assert head.penalty().item() == 0.0
        shaken(head)
        optimizer = torch.optim.SGD(head.parameters[:1], lr=0.1)
        for _ in range(200):
            optimizer.zero_grad()
            head.penalty().backward()
            optimizer.step()
        assert np.abs(head.values()[0] - head.ensemble.value).max() < 1e-6


def test_one_weight_per_tree_scales_whole_trees() -> None:
    made = rb.boosted("gradient", 4)
    head = shaken(LeavesHead(made.ensemble, made.blocks, "cpu", "trees", dtype="float64"))
    assert len(head.parameters[0]) == len(head.ensemble.root)
    leaves = np.flatnonzero(head.is_leaf)
    ratio = head.values()[0][leaves] / head.ensemble.value[leaves]
    for tree, weight in enumerate(head.change.tolist()):
        assert np.allclose(ratio[head.tree_of_leaf == tree], 1.0 + weight)


def test_learning_turns_more_queries_by_one_feature() -> None:
    made = rb.boosted("gradient", 6, n=300)
    head = LeavesHead(made.ensemble, made.blocks, "cpu")
    reference = made.Z[head.ensemble.raw(head.ensemble.reading.prepare(made.Z)).argmin()][None]
    rows = head.rows(made.Z)
    positive = (head.logits(rows) >= 0).nonzero()[:, 0]
    targets = head.targets(made.Z, reference, np.zeros((len(made.Z), 1), dtype=np.int64))
    labels = torch.as_tensor(made.y, dtype=torch.float32)

    def unturned() -> int:
        return int((head.aligned(rows[positive], targets[positive]).amin(dim=(1, 2)) >= 0).sum())

    before = unturned()
    optimizer = torch.optim.Adam(head.parameters, lr=0.02)
    for _ in range(60):
        optimizer.zero_grad()
        logits = head.logits(rows)
        aligned = anchored(head.aligned(rows[positive], targets[positive]), logits)
        (torch.nn.functional.binary_cross_entropy_with_logits(logits, labels) + sev_loss(aligned, 0.05)).backward()
        optimizer.step()
    assert unturned() < before / 2
    exported = LeafSumClassifier.from_head(head, made.booster.classes_)
    assert np.abs(exported.decision_function(made.Z) - head.logits(rows).detach().numpy()).max() < 1e-5


def fitted(model: Any, classes: int = 2) -> Any:
    random = np.random.default_rng(0)
    return model.fit(random.normal(size=(60, 3)), np.arange(60) % classes)


def test_models_that_are_no_boosters_of_two_classes_are_refused_with_a_remedy() -> None:
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    for model, said in (
        (fitted(RandomForestClassifier(3)), "probabilities, not log-odds"),
        (fitted(GradientBoostingClassifier(n_estimators=2), classes=3), "3 classes"),
        (fitted(LogisticRegression()), "not a sum of trees"),
        (fitted(GaussianNB()), "cannot be read"),
    ):
        with pytest.raises(ModelError, match=said) as caught:
            check_readable(model, read(model))
        assert caught.value.do


def test_senseless_settings_are_refused() -> None:
    made = rb.boosted("gradient", 1)
    with pytest.raises(UsageError, match='learn "roots" is unknown'):
        LeavesHead(made.ensemble, made.blocks, "cpu", learn="roots")
    with pytest.raises(UsageError, match="more columns than the 1"):
        LeavesHead(made.ensemble, Blocks(np.zeros(1, dtype=np.int64), 1), "cpu")


def test_rows_that_the_booster_does_not_take_are_refused() -> None:
    for name, cell, said in (("gradient", np.nan, "missing"), ("hist", np.inf, "infinite")):
        made = rb.boosted(name, 1)
        head = LeavesHead(made.ensemble, made.blocks, "cpu")
        Z = made.Z[:4].copy()
        Z[2, 1] = cell
        with pytest.raises(DataError, match=f"row 2, column 1 of the encoded rows: the value is {said}"):
            head.rows(Z)
