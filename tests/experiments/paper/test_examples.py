import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fewest.errors import DataError, UsageError
from fewest.experiments.paper.data import load_split
from fewest.experiments.paper.examples import DATASETS, Answer, Examples, PaperCase, examples
from fewest.experiments.paper.models import fit
from fewest.models.trees import CARTClassifier

pytest.importorskip("pacmap")
SHARED = Path(__file__).parents[4] / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the data folder ../shared/data is not here")
WHOSE = ("paper's procedure", "ours (default)")
CLUSTERED = [f"{kind}, {whose}" for whose in WHOSE for kind in ("SEV-cluster", "SEV-cluster+F")]
KINDS = ["SEV1", "SEV-F", *CLUSTERED, "SEV-T"]


@pytest.fixture(scope="module")
def german() -> Examples:
    return examples("german")


@pytest.fixture(scope="module")
def models() -> tuple[Any, Any]:
    rows = load_split("german", 0)
    return fit("L2LR", "german", rows.X_train, rows.y_train), CARTClassifier(max_depth=4).fit(
        rows.X_train, rows.y_train
    )


def asked(model: Any, case: PaperCase, changes: dict[str, Any]) -> int:
    """What the model says of a case with some values changed."""
    return int(model.predict(pd.DataFrame([{**case.values, **changes}]))[0])


def test_the_cases_are_the_first_ones_that_both_models_decide_against(
    german: Examples, models: tuple[Any, Any]
) -> None:
    X = load_split("german", 0).X_test
    against = (models[0].predict(X) == 1) & (models[1].predict(X) == 1)
    assert [case.row for case in german.cases] == X.index[against][:5].tolist()


def test_every_answer_turns_its_model_and_every_change_is_needed(german: Examples, models: tuple[Any, Any]) -> None:
    several = 0
    for case in german.cases:
        assert [answer.kind for answer in case.answers] == KINDS
        for answer in case.answers:
            model = models[1] if answer.kind == "SEV-T" else models[0]
            changes = dict(answer.changes)
            assert asked(model, case, changes) == 0
            several += len(changes) > 1
            for name in changes:  # negative control: with one change less the decision stands
                assert asked(model, case, {other: value for other, value in changes.items() if other != name}) == 1
    assert several > 0


def test_flexible_answers_are_never_larger(german: Examples) -> None:
    for case in german.cases:
        size = {answer.kind: len(answer.changes) for answer in case.answers}
        assert size["SEV-F"] <= size["SEV1"]
        for whose in WHOSE:
            assert size[f"SEV-cluster+F, {whose}"] <= size[f"SEV-cluster, {whose}"]
        assert size["SEV-T"] >= 1


def test_without_a_map_the_papers_procedure_has_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pacmap", None)
    (case,) = examples("german", quick=True).cases
    assert [answer.kind for answer in case.answers] == ["SEV1", "SEV-F", *CLUSTERED[2:], "SEV-T"]


def hand_made() -> Examples:
    case = PaperCase(
        3,
        {"age": 30, "job": "cook|baker", "debt": 9.5},
        (Answer("SEV1", "EXPLAINED", {"debt": 2.0, "job": "clerk"}), Answer("SEV-T", "UNREACHABLE", {})),
    )
    return Examples("german", "By hand", (case,), ("A note.",))


def test_only_features_that_some_answer_changes_are_shown_in_the_tables_order() -> None:
    (case,) = hand_made().cases
    assert case.features == ("job", "debt")
    assert case.grid() == [
        ["", "job", "debt", "features changed"],
        ["Query", "cook|baker", "9.5", ""],
        ["SEV1", "clerk", "2", "2"],
        ["SEV-T", "----", "----", "not possible"],
    ]


def test_the_three_forms_say_the_same() -> None:
    shown = hand_made()
    assert [line.split() for line in shown.text().splitlines()[2:5]] == [
        ["row", "3", "Query", "SEV1", "SEV-T"], ["job", "cook|baker", "clerk", "----"], ["debt", "9.5", "2", "----"],
    ]  # fmt: skip
    markdown = shown.as_markdown().splitlines()
    assert markdown[4:7] == [
        "|  | job | debt | features changed |",
        "|---|---|---|---|",
        "| Query | cook/baker | 9.5 |  |",
    ]
    assert markdown[-1] == "- A note."
    document = json.loads(json.dumps(shown.as_dict(), allow_nan=False))
    assert document["cases"][0]["query"]["job"] == "cook|baker"
    assert document["cases"][0]["answers"][1] == {"kind": "SEV-T", "status": "UNREACHABLE", "changes": {}}


@needs_shared
@pytest.mark.parametrize("dataset", DATASETS)
def test_the_papers_datasets_have_examples(dataset: str) -> None:
    shown = examples(dataset, SHARED, quick=True)
    assert len(shown.cases) == 1
    assert [answer.kind for answer in shown.cases[0].answers] == KINDS
    assert any(note.startswith("Terms of these rows: ") for note in shown.notes)
    json.dumps(shown.as_dict(), allow_nan=False)


def test_what_cannot_be_shown_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEWEST_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r'no clusters set for a dataset "atlantis"'):
        examples("atlantis")
    with pytest.raises(DataError, match="FEWEST_DATA"):
        examples("mimic_demo")
