"""Reasons come from all smallest sets, and weigh what the model itself says they weigh."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewest as fw
from fewest.errors import DataError, UsageError
from fewest.reporting import Code, Codes, Reasons, _reasons, reasons
from fewest.results.explanations import Explanations

ASKED = 500
NAMES = tuple("abcdef")


def setting(seed: int) -> tuple[fw.Decision, pd.DataFrame, pd.DataFrame]:
    """A model whose features interact, a case it decides against, and a reference; each feature is 0 or 1."""
    random = np.random.default_rng(seed)
    single, pair = random.normal(size=6), random.normal(size=(6, 6)) / 3
    case, goal = pd.DataFrame([[1] * 6], columns=NAMES), pd.DataFrame([[0] * 6], columns=NAMES)

    def score(rows: pd.DataFrame) -> Any:
        x = rows.to_numpy(dtype=float)
        return x @ single + np.einsum("ni,ij,nj->n", x, pair, x)

    ends = score(pd.concat([case, goal]))
    return fw.Decision(score, threshold=float(ends.mean()), positive=1), case, goal


def explained(seed: int) -> Explanations | None:
    decision, case, goal = setting(seed)
    if decision.verdicts(case).positive[0] and not decision.verdicts(goal).positive[0]:
        refs = fw.references.supplied(decision, goal)
        return fw.Explainer(decision, refs, n_jobs=1).explain(case, alternatives=ASKED)
    return None


def brute(seed: int) -> dict[str, tuple[float, str]]:
    """Feature -> effect and kind, by trying all subsets on the model."""
    decision, _, _ = setting(seed)

    def score(aligned: set[str]) -> float:
        row = pd.DataFrame([[int(name not in aligned) for name in NAMES]], columns=NAMES)
        return float(decision.verdicts(row).score[0])

    for size in range(1, 7):
        sets = [set(chosen) for chosen in combinations(NAMES, size) if score(set(chosen)) < decision.cut]
        if sets:
            break
    out: dict[str, tuple[float, str]] = {}
    for name in NAMES:
        shares = []
        for chosen in sets:
            gains = {other: score(chosen - {other}) - score(chosen) for other in chosen}
            shares.append(gains[name] / sum(gains.values()) if name in chosen else 0.0)
        if any(shares):
            kind = "necessary" if all(name in chosen for chosen in sets) else "alternative"
            out[name] = (float(np.mean(shares)), kind)
    return out


def differences(seed: int, found: Reasons) -> list[str]:
    """Features whose effect, kind or place is not that of brute force."""
    truth = brute(seed)
    every = [*found.given, *found.left_out]
    order = sorted(truth, key=lambda name: (-round(truth[name][0], 9), truth[name][1] != "necessary", name))
    wrong = [] if [reason.feature for reason in every] == order else ["order"]
    for reason in every:
        effect, kind = truth[reason.feature]
        assert reason.effect is not None
        if kind != reason.kind or abs(effect - reason.effect) > 1e-9:
            wrong.append(reason.feature)
    return wrong


SEEDS = [seed for seed in range(40) if explained(seed) is not None][:15]


@pytest.mark.parametrize("seed", SEEDS)
def test_effects_kinds_and_order_agree_with_brute_force(seed: int) -> None:
    out = explained(seed)
    assert out is not None
    (found,) = reasons(out)
    assert differences(seed, found) == []
    total = sum(reason.effect or 0.0 for reason in (*found.given, *found.left_out))
    assert total == pytest.approx(1.0)


def test_weighing_one_set_alone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: reasons of the set that happens to be shown are not the reasons."""
    wrong = []
    for seed in SEEDS:
        out = explained(seed)
        assert out is not None
        (alone,) = reasons(replace(out[0], alternatives=out[0].alternatives[:1]), decision=out.references.decision,
                           schema=out.schema)  # fmt: skip
        many = len(out[0].alternatives) > 1
        wrong.append(many and {r.feature for r in alone.given + alone.left_out} != set(brute(seed)))
    assert any(wrong)
    monkeypatch.setattr(_reasons, "_shares", lambda score: np.full(len(score) - 1, 1.0 / (len(score) - 1)))
    assert any(differences(seed, reasons(explained(seed))[0]) for seed in SEEDS)  # type: ignore[arg-type]


def additive(labels: dict[str, str] | None = None) -> Explanations:
    """Any two of four equal debts turn the decision, together with the one that is always needed."""
    names = ["a", "b", "c", "d", "must"]
    weight = np.array([1.0, 1.0, 1.0, 1.0, 5.0])
    decision = fw.Decision(lambda rows: rows.to_numpy(dtype=float) @ weight, threshold=2.5, positive=1)
    goal, case = (pd.DataFrame([[value] * 5], columns=names) for value in (0, 1))
    schema = fw.Schema.infer(goal)
    for name, label in (labels or {}).items():
        schema = schema.with_(name, label=label)
    refs = fw.references.supplied(decision, goal, schema=schema)
    return fw.Explainer(decision, refs, n_jobs=1).explain(case, alternatives=ASKED)


def test_what_is_in_every_set_is_necessary_and_ties_that_the_cap_drops_are_listed() -> None:
    (found,) = reasons(additive(), max_reasons=3)
    assert found.sets == 6
    assert [(reason.feature, reason.kind) for reason in found.given] == [
        ("must", "necessary"), ("a", "alternative"), ("b", "alternative"),
    ]  # fmt: skip
    assert [reason.feature for reason in found.tied] == ["c", "d"]
    assert found.tied == found.left_out
    assert [reason.share for reason in found.given] == [1.0, 0.5, 0.5]
    (one,) = reasons(additive(), max_reasons=1)
    assert one.tied == ()
    assert len(one.left_out) == 4


def test_without_a_model_reasons_come_by_the_share_of_sets() -> None:
    (found,) = reasons(additive()[0], max_reasons=2)
    assert [(reason.feature, reason.effect) for reason in found.given] == [("must", None), ("a", None)]
    assert [reason.feature for reason in found.tied] == ["b", "c", "d"]


def test_without_a_model_equal_reasons_keep_the_order_of_the_columns_whatever_their_labels() -> None:
    (found,) = reasons(additive({"a": "Z", "b": "Y", "c": "X", "d": "W"})[0])
    assert [reason.feature for reason in (*found.given, *found.left_out)] == ["must", "a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"alternatives": ()}, "were not listed"),
        ({"all_listed": False}, "perhaps not all"),
        ({"status": fw.Status.BUDGET}, "it has no reasons"),
        ({"plus": True}, "SEV"),
    ],
)
def test_what_reasons_cannot_be_drawn_from_is_refused(change: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        reasons(replace(additive()[0], **change))


def test_a_table_whose_sets_were_not_listed_is_refused() -> None:
    out = additive()
    plain = fw.Explainer(out.references.decision, out.references).explain(out.frame)
    with pytest.raises(UsageError, match="alternatives=1000"):
        reasons(plain)
    with pytest.raises(UsageError, match="at least one"):
        reasons(out, max_reasons=0)


def test_cases_that_are_not_explained_are_passed_over() -> None:
    out = additive()
    both = pd.concat([out.frame, out.references.frame], ignore_index=True)
    explainer = fw.Explainer(out.references.decision, out.references, n_jobs=1)
    found = reasons(explainer.explain(both, alternatives=ASKED))
    assert [one.row for one in found] == [0]


def test_leaves_weigh_each_set_with_the_values_of_its_own_leaf() -> None:
    from sklearn.tree import DecisionTreeClassifier

    random = np.random.default_rng(0)
    X = pd.DataFrame({"x": random.uniform(0, 1, 200), "y": random.uniform(0, 1, 200)})
    y = ((X["x"] > 0.5) & (X["y"] > 0.5)).astype(int)
    decision = fw.Decision(DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y), positive=1)
    explainer = fw.Explainer(decision, fw.references.leaves(decision, X, y), n_jobs=1)
    out = explainer.explain(X[y == 1], alternatives=ASKED)
    for one in reasons(out):
        assert {reason.feature for reason in one.given} == {"x", "y"}
        assert [reason.effect for reason in one.given] == [0.5, 0.5]


def test_one_hot_groups_and_missing_values_are_weighed_as_one_feature() -> None:
    X = pd.DataFrame({"own": [1, 0, 1], "rent": [0, 1, 0], "rate": [1.5, np.nan, 2.5]})
    decision = fw.Decision(lambda rows: rows["rent"].to_numpy() + 0.2 * rows["rate"].isna().to_numpy(), positive=1)
    refs = fw.references.single(decision, X, [0, 1, 0], groups={"home": ["own", "rent"]})
    out = fw.Explainer(decision, refs, n_jobs=1).explain(X, alternatives=ASKED)
    (found,) = reasons(out)
    assert [(r.feature, r.direction, r.case, r.typical) for r in found.given] == [("home", "level", "rent", "own")]


def codes(tmp_path: Path, text: str) -> Codes:
    path = tmp_path / "codes.csv"
    path.write_bytes(text.encode("utf-8"))
    return Codes.read(path)


def test_codes_go_by_the_direction_of_the_change(tmp_path: Path) -> None:
    table = codes(tmp_path, "\ufefffeature,direction,code,text\na,down,R1,too much\na,any,R2,a\nmust,up,R3,x\n")
    (found,) = reasons(additive(), codes=table)
    known = {reason.feature: reason.code for reason in found.given}
    assert known["a"] == Code("a", "down", "R1", "too much")
    assert known["must"] is None
    assert known["b"] is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("feature,code,text\na,R1,x\n", 'line 2: there is no "direction"'),
        ("feature,direction,code,text\na,down,,x\n", "line 2: feature, code or text is empty"),
        ("feature,direction,code,text\na,down,R1\n", 'line 2: there is no "text"'),
        ("feature,direction,code,text\na,left,R1,x\n", 'the direction "left"'),
        ("feature,direction,code,text\na,up,R1,x\na,up,R2,y\n", 'two codes for "up"'),
        ('feature,direction,code,text\na,up,R1,"x', "cannot be read"),
    ],
)
def test_a_table_of_codes_that_is_not_one_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(DataError, match=why):
        codes(tmp_path, text)


def test_a_missing_or_foreign_file_of_codes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no file codes"):
        Codes.read(tmp_path / "codes.csv")
    (tmp_path / "bad.csv").write_bytes(b"feature,direction,code,text\n\xff,up,R1,x\n")
    with pytest.raises(DataError, match="cannot be read"):
        Codes.read(tmp_path / "bad.csv")


@pytest.mark.parametrize(
    ("before", "after", "leads"),
    [(48, 18, "down"), (1, 2, "up"), ("rent", "own", "level"), (None, 3, "level"), (False, True, "level")],
)
def test_where_a_change_leads(before: object, after: object, leads: str) -> None:
    assert _reasons.direction_of(before, after) == leads
