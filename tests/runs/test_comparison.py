"""Two models on the same cases: outcomes and reasons that changed, against a plain count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewest as fw
from fewest.apps.cli import main
from fewest.errors import UsageError
from fewest.runs import explain_files

RANDOM = np.random.default_rng(3)
X = pd.DataFrame(RANDOM.integers(0, 10, (60, 3)), columns=["debt", "late", "rate"], index=[f"C{k}" for k in range(60)])
WEIGHTS = {"before": (0.08, 0.05, 0.0), "after": (0.05, 0.05, 0.04)}


def explainer(weights: tuple[float, ...]) -> fw.Explainer:
    decision = fw.Decision(lambda rows: rows[["debt", "late", "rate"]].to_numpy(dtype=float) @ np.array(weights))
    refs = fw.references.supplied(decision, {"debt": [2], "late": [2], "rate": [2]}, X=X)
    return fw.Explainer(decision, refs, n_jobs=1)


def explained(which: str, cases: pd.DataFrame = X, **more: Any) -> fw.Explanations:
    return explainer(WEIGHTS[which]).explain(cases, **more)


def counted(first: fw.Explanations, second: fw.Explanations) -> tuple[set[Any], set[Any]]:
    """Labels of cases with another outcome, and of those explained in both by other features."""
    turned, other = set(), set()
    for one in first:
        two = second.loc[one.label]
        accepted = [answer.status == fw.Status.ALREADY_NEGATIVE for answer in (one, two)]
        if accepted[0] != accepted[1]:
            turned.add(one.label)
        if one.status == two.status == fw.Status.EXPLAINED:
            sets = [[{change.feature for change in way} for way in (a.changes, *a.alternatives)] for a in (one, two)]
            if sets[0][0] not in sets[1] and sets[1][0] not in sets[0]:
                other.add(one.label)
    return turned, other


@pytest.mark.parametrize("listed", [0, 20])
def test_what_changed_is_exactly_what_a_plain_count_finds(listed: int) -> None:
    first, second = (explained(which, alternatives=listed) for which in WEIGHTS)
    found, (turned, other) = fw.compare(first, second), counted(first, second)
    assert found.matched == 60
    assert found.by == "their names"
    assert found.refused + found.accepted == len(turned) > 0
    assert found.other_reasons == len(other) > 0
    assert set(found.cases["case"]) == turned | other
    assert found.reason_drift == len(other) / found.explained
    shares = [
        np.mean(["rate" in [c.feature for c in out.loc[k].changes] for k in both(first, second)])
        for out in (first, second)
    ]
    assert found.features.loc["rate", ["before", "after"]].tolist() == pytest.approx(shares)
    assert "cases explained in both have other reasons" in repr(found)


def both(first: fw.Explanations, second: fw.Explanations) -> list[Any]:
    return [a.label for a in first.explained if second.loc[a.label].status == fw.Status.EXPLAINED]


def test_sets_that_either_could_have_shown_are_the_same_reason() -> None:
    """Negative control: without the lists of smallest sets, more reasons seem to be others."""
    few, many = (fw.compare(*(explained(which, alternatives=n) for which in WEIGHTS)).other_reasons for n in (20, 0))
    assert few < many


def test_cases_are_matched_by_name_in_any_order() -> None:
    first, second = explained("before"), explained("after", X[::-1].iloc[:40])
    found = fw.compare(first, second)
    assert (found.matched, found.only) == (40, (20, 0))
    part = explained("before", X.loc[[name for name in X.index if name in X.index[20:]]])
    assert found.other_reasons == len(counted(part, second)[1])


def test_the_same_answers_have_not_changed() -> None:
    found = fw.compare(explained("before"), explained("before"))
    assert found.cases.empty
    assert found.reason_drift == 0


def test_cases_without_names_are_matched_by_place_where_that_can_be() -> None:
    plain = X.reset_index(drop=True)
    assert fw.compare(explained("before", plain), explained("after", plain)).matched == 60
    with pytest.raises(UsageError, match="60 and 59 cases cannot be matched"):
        fw.compare(explained("before", plain), explained("after", plain[1:].reset_index(drop=True)))


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    X.rename_axis("id").reset_index().to_csv(tmp_path / "cases.csv", index=False)
    for which, weights in WEIGHTS.items():
        run = tmp_path / which
        explain_files(explainer(weights), tmp_path / "cases.csv", run, n_jobs=1, id_column="id", alternatives=20)
    return tmp_path


def test_the_command_compares_and_its_gate_closes(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(folders / which) for which in WEIGHTS]
    first, second = (explained(which, alternatives=20) for which in WEIGHTS)
    found = fw.compare(first, second)
    assert fw.compare(*runs).other_reasons == found.other_reasons
    assert main(["compare", *runs, "--json", "--out", str(folders / "changed.csv")]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["first"], said["other_reasons"], said["by"]) == ("before", found.other_reasons, "their names")
    assert set(pd.read_csv(folders / "changed.csv")["case"]) == set(found.cases["case"])
    assert main(["compare", *runs, "--fail-over", "1"]) == 0
    assert "First run: before. Second run: after." in capsys.readouterr().out
    assert main(["compare", *runs, "--fail-over", str(found.reason_drift)]) == 0
    assert main(["compare", *runs, "--fail-over", str(found.reason_drift - 1e-6)]) == 9
    assert "more than" in capsys.readouterr().err
    assert main(["compare", runs[0], runs[0], "--fail-over", "0"]) == 0


def test_a_gate_that_looks_at_nothing_does_not_open(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    explain_files(explainer((0.0, 0.0, 0.0)), folders / "cases.csv", folders / "none", n_jobs=1, id_column="id")
    assert main(["compare", str(folders / "before"), str(folders / "none"), "--fail-over", "1"]) == 3
    assert "no case is explained in both" in capsys.readouterr().err


def test_labels_give_the_accuracy_of_both(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (explained(which) for which in WEIGHTS)
    truth = RANDOM.random(60) < 0.5
    refused = [np.array([answer.status != fw.Status.ALREADY_NEGATIVE for answer in out]) for out in (first, second)]
    wanted = ("accuracy", *(f"{round(100 * (side == truth).mean())} %" for side in refused))
    assert fw.compare(first, second, labels=truth).figures[-1] == wanted
    assert all(name != "accuracy" for name, *_ in fw.compare(first, second).figures)
    assert fw.compare(first, second[::-1], labels=truth).figures[-1] == wanted, "matched by name"
    with pytest.raises(UsageError, match="59 labels for 60 cases"):
        fw.compare(first, second, labels=truth[1:])
    with pytest.raises(UsageError, match="no label is"):
        fw.compare(first, second, labels=["x"] * 60)
    pd.DataFrame({"came_out": truth.astype(int)}).to_csv(folders / "labels.csv", index=False)
    call = ["compare", *(str(folders / which) for which in WEIGHTS), "--labels", str(folders / "labels.csv")]
    assert main([*call, "--target", "came_out"]) == 0
    assert " ".join(wanted) in " ".join(capsys.readouterr().out.split())
    assert main(call) == 2
