"""Answers that move a feature away from what is better are warned of everywhere, and no letter gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fewest as fw
from fewest.apps.cli._words import described
from fewest.errors import DataError, FewestWarning, UsageError
from fewest.reporting import Code, Codes, LetterError, html, letter
from fewest.reporting.views import PopulationView
from fewest.results.population import wrong_ways
from fewest.runs import Run, explain_files
from fewest.tables.saved_schema import schema_from_json, schema_to_json
from fewest.tables.schema import Feature, Schema
from fewest.tables.values import is_worse

CASES = pd.DataFrame({"debt": [0, 10, 400], "income": [10, 10, 90]}, index=["A", "B", "C"])
SCHEMA = Schema.infer(CASES)


def explainer(schema: Schema, **options: Any) -> fw.Explainer:
    """A model that likes debts: a case without them is refused, and the typical accepted one has 335."""
    decision = fw.Decision(lambda rows: 1 - (rows["debt"].to_numpy() + rows["income"].to_numpy()) / 400)
    refs = fw.references.supplied(decision, {"debt": [335], "income": [20]}, X=CASES, schema=schema)
    return fw.Explainer(decision, refs.sign_off("Credit Risk"), n_jobs=1, **options)


MARKED = SCHEMA.with_("debt", better="down", label="Debt", unit="euros").with_("income", better="up")


def test_a_warning_names_the_feature_the_way_and_what_to_try() -> None:
    with pytest.warns(FewestWarning, match='2 explanations move "Debt" up, although less of it is better') as seen:
        out = explainer(MARKED).explain(CASES)
    assert 'Only("debt", "down")' in str(seen[0].message)
    assert [one.worse for one in out.loc["A"].changes] == [True]
    assert "Doubtful as a reason: Debt would have had to get worse." in out.loc["A"]._repr_html_()


def test_without_a_mark_or_with_the_other_there_is_none() -> None:
    for schema in (SCHEMA, MARKED.with_("debt", better="up")):
        out = explainer(schema).explain(CASES)  # a warning would be an error here
        assert wrong_ways(out) == []
        assert "Doubtful" not in out.loc["A"]._repr_html_()


def test_the_constraint_that_is_proposed_ends_the_warning() -> None:
    out = explainer(MARKED, constraints=fw.Only("debt", "down")).explain(CASES)
    assert wrong_ways(out) == []


def test_sev_plus_has_no_wrong_way() -> None:
    assert wrong_ways(explainer(MARKED, direction="plus").explain(CASES)) == []


def test_no_letter_gives_it_and_the_report_warns() -> None:
    with pytest.warns(FewestWarning):
        out = explainer(MARKED).explain(CASES, alternatives=10)
    codes = Codes.of([Code(name, "any", "R", name) for name in CASES])
    with pytest.raises(LetterError, match="had to get worse in a smallest set") as error:
        letter(out.loc["A"], codes, out.references)
    assert "--only debt=down" in str(error.value)
    assert any("although less of it is better" in line for line in PopulationView(out).warnings())
    assert "although less of it is better" in html(out)


def test_a_run_folder_knows_it_too(tmp_path: Path) -> None:
    CASES.to_csv(tmp_path / "cases.csv", index=False)
    explain_files(explainer(MARKED), tmp_path / "cases.csv", tmp_path / "run", n_jobs=1)
    run = Run.open(tmp_path / "run")
    assert [(feature.name, count) for feature, count in wrong_ways(run)] == [("debt", 2)]
    assert [one.worse for one in run.explanation(0).changes] == [True]


@pytest.mark.parametrize(
    ("kind", "before", "after", "worse"),
    [
        ({"kind": "number", "better": "up"}, 2.0, 1.0, True),
        ({"kind": "number", "better": "up"}, 1.0, 2.0, False),
        ({"kind": "number"}, 2.0, 1.0, False),
        ({"kind": "number", "better": "up"}, None, 1.0, False),
        ({"kind": "boolean", "better": "down"}, False, True, True),
        ({"kind": "datetime", "better": "up"}, pd.Timestamp(2020, 1, 1), pd.Timestamp(2019, 1, 1), True),
        ({"kind": "category", "better": "up", "levels": ("z", "a"), "ordered": True}, "a", "z", True),
        ({"kind": "category", "better": "up", "levels": ("z", "a")}, "a", "z", False),
    ],
)
def test_what_has_an_order_can_get_worse(kind: dict[str, Any], before: Any, after: Any, worse: bool) -> None:
    assert is_worse(Feature("f", columns=("f",), **kind), before, after) is worse


def test_files_keep_it_and_are_as_before_without_it() -> None:
    assert schema_from_json(**schema_to_json(MARKED)).features == MARKED.features
    assert all("better" not in feature for feature in schema_to_json(SCHEMA)["features"])


def test_a_table_of_features_can_say_it(tmp_path: Path) -> None:
    (tmp_path / "features.csv").write_text("name,better\ndebt,down\nincome,\n")
    schema = described(SCHEMA, tmp_path / "features.csv")
    assert [feature.better for feature in schema.features] == ["down", None]
    (tmp_path / "features.csv").write_text("name,better\ndebt,less\n")
    with pytest.raises(DataError, match="better is 'less'"):
        described(SCHEMA, tmp_path / "features.csv")
    with pytest.raises(UsageError, match="better"):
        SCHEMA.with_("debt", better="less")
