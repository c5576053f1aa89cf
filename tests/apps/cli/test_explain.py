import gzip
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fewest as fw
from fewest.apps.cli import _explain, main
from fewest.apps.cli._text import label_key
from fewest.errors import DataError
from fewest.runs import Run


def ask(files: Any, *more: str) -> int:
    return main([*files.arguments, *more])


def answers(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_results_go_to_stdout_and_progress_to_stderr(files: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(files, "--positive", "bad") == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("cases ")
    assert "the model would have predicted good (bad: " in printed.out
    assert "more: --json or --out gives all" in printed.out
    assert "120/120" in printed.err
    assert "\x1b" not in printed.out + printed.err


def test_json_answers_hold_up_against_the_model_itself(files: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(files, "--positive", "bad", "--json") == 0
    records = answers(capsys)["answers"]
    X = pd.read_csv(files.data)
    explained = [record for record in records if record["status"] == "EXPLAINED"]
    assert len(explained) == (files.model.predict(X) == "bad").sum() > 10
    for record in explained:
        row = X.iloc[[record["row"]]].copy()
        for change in record["changes"]:
            row[change["feature"]] = change["to"]
        assert files.model.predict(row)[0] == "good"


def test_enough_says_which_other_values_would_do(files: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(files, "--positive", "bad", "--enough") == 0
    assert re.search(r"(or less|or more|between) .*instead of", capsys.readouterr().out)
    assert ask(files, "--positive", "bad", "--enough", "--json") == 0
    explained = [record for record in answers(capsys)["answers"] if record["status"] == "EXPLAINED"]
    assert explained
    assert all(len(record["enough"]) == len(record["changes"]) for record in explained)


def test_least_moves_numbers_no_further_than_they_have_to_go(files: Any, capsys: pytest.CaptureFixture[str]) -> None:
    far = []
    for more in ((), ("--least",)):
        assert ask(files, "--positive", "bad", "--json", *more) == 0
        far.append([record["l_inf"] for record in answers(capsys)["answers"] if record["status"] == "EXPLAINED"])
    assert all(little <= much for much, little in zip(*far, strict=True))
    assert sum(far[1]) < sum(far[0])
    assert ask(files, "--positive", "bad", "--least", "--out", "run") == 2
    assert "--least asks the model" in capsys.readouterr().err


def test_sufficient_says_which_values_alone_lead_to_the_outcome(
    files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X = pd.read_csv(files.data)
    X[files.model.predict(X) == "bad"].iloc[:2].to_csv(tmp_path / "few.csv", index=False)
    files = replace(files, data=tmp_path / "few.csv")
    anyone = ("--positive", "bad", "--references", "anyone", "--sufficient")
    assert ask(files, *anyone) == 0
    assert "to bad, whatever" in capsys.readouterr().out
    assert ask(files, *anyone, "--json") == 0
    found = answers(capsys)
    assert {one["kind"] for one in found} == {"smallest"}
    assert all(one["values"] for one in found)
    assert ask(files, "--positive", "bad", "--sufficient") == 2
    assert "use references.anyone" in capsys.readouterr().err
    assert ask(files, *anyone, "--out", "out.json") == 2
    assert "--sufficient prints" in capsys.readouterr().err


def test_a_run_folder_over_all_values_is_written_and_verified(
    files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert ask(files, "--positive", "bad", "--references", "anyone", "--out", str(out)) == 0
    known = ("--data", str(files.data), "--model", str(files.skops), "--positive", "bad")
    assert main(["verify", str(out), *known]) in (0, 8)
    assert "Nothing is wrong." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "why"),
    [(("--plus",), "not defined"), (("--out", "out.csv"), "no column"), (("--out", "run"), "run folder does not hold")],
)
def test_enough_is_refused_where_it_has_no_place(
    files: Any, more: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(files, "--positive", "bad", "--enough", *more) == 2
    assert why in capsys.readouterr().err


def test_any_value_of_accepted_cases_is_a_reference_on_the_command_line(
    files: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(files, "--positive", "bad", "--json") == 0
    single = [len(record["changes"]) for record in answers(capsys)["answers"] if record["status"] == "EXPLAINED"]
    assert ask(files, "--positive", "bad", "--references", "anyone", "--json") == 0
    anyone = [len(record["changes"]) for record in answers(capsys)["answers"] if record["status"] == "EXPLAINED"]
    assert len(anyone) >= len(single)
    assert sum(anyone) <= sum(single)


@pytest.mark.parametrize("name", ["out.json", "out.csv", "out.html"])
def test_each_kind_of_result_file_is_written_whole(
    files: Any, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / name
    out.write_text("old")
    assert ask(files, "--positive", "bad", "--out", str(out)) == 0
    assert [file.name for file in tmp_path.iterdir()] == [name]
    text = out.read_text()
    if name.endswith("json"):
        assert json.loads(text)["kind"] == "explanations"
    elif name.endswith("csv"):
        table = pd.read_csv(out)
        assert len(table) == 120
        assert table.loc[table["status"] == "EXPLAINED", "features"].map(json.loads).map(len).min() >= 1
    else:
        assert "cases were predicted bad; for" in text


def test_constraints_weights_and_alternatives_reach_the_search(files: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(files, "--positive", "bad", "--json", "--immutable", "debt", "--immutable", "age") == 0
    held = answers(capsys)["answers"]
    assert {change["feature"] for record in held for change in record["changes"]} <= {"code"}
    assert any(record["status"] == "UNREACHABLE" for record in held)
    assert ask(files, "--positive", "bad", "--json", "--weight", "debt=5", "--alternatives", "3") == 0
    weighted = answers(capsys)["answers"]
    assert any(record["cost"] != record["sev"] for record in weighted if record["status"] == "EXPLAINED")
    assert any(record["alternatives"] for record in weighted)
    assert ask(files, "--positive", "bad", "--json", "--at-most", "1") == 0
    assert all(record["sev"] in (None, 1) for record in answers(capsys)["answers"])
    assert ask(files, "--positive", "bad", "--json", "--plus") == 0
    assert answers(capsys)["direction"] == "plus"


def test_threshold_and_centre_are_used(files: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(files, "--positive", "bad", "--json", "--threshold", "0.9", "--centre", "medoid") == 0
    document = answers(capsys)
    assert document["decision"]["threshold"] == 0.9
    assert document["references"]["provenance"]["centre"] == "medoid"


@pytest.mark.parametrize("name", ["refs.csv", "refs.json"])
def test_references_can_come_from_a_file_and_then_no_target_is_needed(
    files: Any, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    values = {"debt": 5, "age": 60, "code": "B10"}
    if name.endswith("csv"):
        pd.DataFrame([{"name": "calm", **values}]).to_csv(path, index=False)
    else:
        path.write_text(json.dumps({"format": 1, "references": [{"name": "calm", "support": 3, "values": values}]}))
    call = ["explain", str(files.data), "--model", str(files.skops), "--train", str(files.train), "--positive", "bad"]
    assert main([*call, "--references", str(path), "--json"]) == 0
    assert {record["reference"] for record in answers(capsys)["answers"]} == {None, "calm"}
    assert main(call) == 2
    assert "pass --target COL" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("r.json", "[", "is not a references file"),
        ("r.json", "[]", "is not a references file"),
        ("r.json", '{"format": 1}', "is not a references file"),
        ("r.json", '{"format": 9}', "format"),
        ("r.csv", "", "cannot be read as a table"),
        ("r.csv", "debt,age,code\n", "empty"),
        ("r.csv", "debt,age\n1,2\n", "lacks 1 of 3 columns"),
    ],
)
def test_a_wrong_references_file_ends_with_3(
    files: Any, tmp_path: Path, name: str, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(text)
    assert ask(files, "--positive", "bad", "--references", str(tmp_path / name)) == 3
    assert said in capsys.readouterr().err


def test_a_reference_the_model_refuses_ends_with_4(
    files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.csv").write_text("debt,age,code\n99,20,A07\n")
    assert ask(files, "--positive", "bad", "--references", str(tmp_path / "r.csv")) == 4
    assert "is itself decided positive" in capsys.readouterr().err


def test_gzip_and_parquet_give_the_same_answers(files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(files, "--positive", "bad", "--json") == 0
    expected = answers(capsys)["answers"]
    packed, parquet = tmp_path / "data.csv.gz", tmp_path / "data.parquet"
    packed.write_bytes(gzip.compress(files.data.read_bytes()))
    pd.read_csv(files.data).to_parquet(parquet)
    for path in (packed, parquet):
        assert main([files.arguments[0], str(path), *files.arguments[2:], "--positive", "bad", "--json"]) == 0
        assert answers(capsys)["answers"] == expected


def test_codes_that_are_text_in_training_stay_text_in_the_cases(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "codes.csv"
    path.write_text("code\n007\n010\n")
    assert _explain.read_table(path, text=["code", "absent"])["code"].tolist() == ["007", "010"]
    assert _explain.read_table(path)["code"].tolist() == [7, 10]


def test_categories_of_text_count_as_text() -> None:
    dtypes = pd.DataFrame({"a": pd.Categorical(["x"]), "b": pd.Categorical([1]), "c": ["x"], "d": [1]}).dtypes
    assert [_explain._is_text(dtype) for dtype in dtypes] == [True, False, True, False]


def test_a_million_ways_to_write_a_label_mean_the_same_class() -> None:
    assert label_key(1) == label_key(1.0) == label_key("1") == label_key("1.0") == label_key(True)
    assert label_key("bad ") == "bad"


def test_strict_ends_with_5_after_the_results(files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.csv"
    held = ["--immutable", "debt", "--immutable", "age", "--positive", "bad", "--out", str(out)]
    assert ask(files, *held) == 0
    out.unlink()
    assert ask(files, *held, "--strict") == 5
    printed = capsys.readouterr()
    assert "have no answer with this reference" in printed.err
    assert out.is_file()
    assert "not possible" in printed.out
    assert ask(files, "--positive", "bad", "--strict") == 0


def test_a_time_limit_ends_with_7_after_the_results(
    files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    assert ask(files, "--positive", "bad", "--time-limit", "0", "--out", str(out), "--strict") == 7
    assert "time limit of 0 s was reached" in capsys.readouterr().err
    assert json.loads(out.read_text())["counts"]["BUDGET"] > 0
    assert ask(files, "--positive", "bad", "--time-limit", "600") == 0


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["--positive", "ugly"], 2, "its classes are bad, good"),
        (["--weight", "debt"], 2, "not COL=W"),
        (["--weight", "=3"], 2, "not COL=W"),
        (["--weight", "debt=heavy"], 2, "not COL=W"),
        (["--weight", "dept=2"], 2, "did you mean debt?"),
        (["--immutable", "dept"], 2, "did you mean debt?"),
        (["--out", "result.xlsx"], 2, ".json, .csv or .html"),
        (["--out", "no/such/folder/x.json"], 2, "a folder that exists"),
        (["--at-most", "0"], 2, "above 0"),
        (["--target", "riks"], 3, 'no column "riks"'),
        (["--threshold", "nan"], 2, "finite"),
        (["--time-limit", "-1"], 2, "--time-limit"),
        (["--references", "absent.csv"], 3, "no file absent.csv"),
    ],
)
def test_wrong_options_name_the_remedy(
    files: Any, more: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(files, *more) == code
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.out == ""


def _cases(files: Any, tmp_path: Path, text: str, name: str = "cases.csv") -> list[str]:
    path = tmp_path / name
    path.write_text(text)
    return [files.arguments[0], str(path), *files.arguments[2:], "--positive", "bad"]


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("debt,age\n1,2\n", "c.csv", "the table lacks 1 of 3 columns: code"),
        ("debt,age,code\n1,2,Z99\n", "c.csv", "never seen"),
        ("debt,age,code\nmuch,2,A07\n", "c.csv", "is not a number"),
        ("debt,age,code\n,2,A07\n", "c.csv", "missing"),
        ("debt,age,code\n", "c.csv", "empty"),
        ("", "c.csv", "cannot be read as a table"),
        ("not gzip", "c.csv.gz", "cannot be read as a table"),
        ("not parquet", "c.parquet", "cannot be read as a table"),
        ("x", "c.xlsx", "no known kind of table"),
        ("debt,debt,age,code\n1,2,3,A07\n", "c.csv", 'column "debt" more than once'),
    ],
)
def test_bad_cases_end_with_3_and_name_the_cell(
    files: Any, tmp_path: Path, text: str, name: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(_cases(files, tmp_path, text, name)) == 3
    assert said in capsys.readouterr().err


def test_a_label_the_model_does_not_know_is_named(
    files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = tmp_path / "train.csv"
    train.write_text(files.train.read_text().replace("bad", "awful"))
    call = ["explain", str(files.data), "--model", str(files.skops), "--train", str(train), "--target", "risk"]
    assert main(call) == 3
    assert "is not a class of the model" in capsys.readouterr().err


def test_missing_files_are_named(files: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "absent.csv", *files.arguments[2:]]) == 3
    assert "there is no file absent.csv" in capsys.readouterr().err
    assert main(["explain", str(files.data), "--model", "absent.skops", "--train", "t.csv", "--target", "x"]) == 4
    assert "there is no model file absent.skops" in capsys.readouterr().err


def saved(files: Any, folder: Path) -> tuple[Path, fw.Explainer]:
    """An explainer with choices of its own, in a file."""
    X, y = pd.read_csv(files.train).drop(columns="risk"), pd.read_csv(files.train)["risk"]
    decision = fw.Decision(files.model, positive="bad", threshold=0.4)
    schema = fw.Schema.infer(X).with_("debt", label="Debts")
    references = fw.references.single(decision, X, y, centre="median", schema=schema)
    explainer = fw.Explainer(decision, references, constraints=fw.Constraints(fw.Immutable("age")), n_jobs=1)
    explainer.save(folder / "credit.fewest")
    return folder / "credit.fewest", explainer


def test_a_saved_explainer_needs_neither_training_table_nor_references(
    files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, explainer = saved(files, tmp_path)
    call = ["explain", str(files.data), "--model", str(path)]
    expected = explainer.explain(pd.read_csv(files.data)).to_dict()["answers"]
    assert main([*call, "--json"]) == 0
    assert answers(capsys)["answers"] == json.loads(json.dumps(expected))
    assert main([*call, "--out", str(tmp_path / "run")]) == 0
    assert "\n  Debts: " in capsys.readouterr().out
    assert Run.open(tmp_path / "run").counts == explainer.explain(pd.read_csv(files.data)).counts()
    capsys.readouterr()
    assert main([*call, "--immutable", "debt", "--positive", "bad", "--threshold", "0.4", "--json"]) == 0
    moved = {change["feature"] for answer in answers(capsys)["answers"] for change in answer["changes"]}
    assert moved == {"code"}


@pytest.mark.parametrize(
    "more", [("--threshold", "0.5"), ("--positive", "good"), ("--target", "risk")], ids=lambda more: more[0]
)
def test_a_saved_explainer_is_not_bent_to_another_decision(
    more: tuple[str, str], files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = saved(files, tmp_path)
    assert main(["explain", str(files.data), "--model", str(path), *more]) == 2
    said = capsys.readouterr().err
    assert f'credit.fewest explains "bad" from a score of 0.4 on, with references of its own: {more[0]}' in said


def test_a_plain_model_without_a_training_table_is_told_what_else_would_do(
    files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["explain", str(files.data), "--model", str(files.skops)]
    assert main(call) == 2
    said = capsys.readouterr().err
    assert "--train is missing" in said
    assert "--references FILE (from `fewest references build`)" in said
    assert "--model FILE.fewest" in said
    refs = str(tmp_path / "refs.json")
    built = ["references", "build", str(files.train), "--model", str(files.skops), "--target", "risk", "--out", refs]
    assert main([*built, "--positive", "bad"]) == 0
    capsys.readouterr()
    assert main([*call, "--references", refs, "--json"]) == 0
    assert answers(capsys)["counts"]["EXPLAINED"] > 0


def test_a_class_that_nobody_chose_is_named(files: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(files) == 0
    assert capsys.readouterr().err.startswith("explaining class 'good' (default); choose with --positive\n")
    assert ask(files, "--positive", "good") == 0
    assert "explaining class" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["explain", "references build"])
def test_a_reference_that_is_refused_by_the_default_class_suggests_the_other_class_first(
    command: str, files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The mean of the "bad" cases, taken for the accepted ones, is decided positive where "good" starts at 0.01."""
    call = files.arguments
    if command != "explain":
        call = [
            "references",
            "build",
            str(files.train),
            *call[2:4],
            "--target",
            "risk",
            "--out",
            str(tmp_path / "r.json"),
        ]
    assert main([*call, "--threshold", "1e-9"]) == 4
    (do,) = (line for line in capsys.readouterr().err.splitlines() if line.startswith("  Try: "))
    assert do.startswith('  Try: --positive bad, if "bad" is the outcome to explain; else --centre median')
    assert "=" not in do
    assert main([*call, "--threshold", "1e-9", "--positive", "good"]) == 4
    assert "is the outcome to explain" not in capsys.readouterr().err


def test_remedies_are_in_the_words_of_the_command_line(
    files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(_cases(files, tmp_path, "debt,age,code\n1,2,Z99\n")) == 3
    said = capsys.readouterr().err
    assert "  Try: map it to a known value, or pass --unseen skip, or allow if the model accepts it\n" in said
    with pytest.raises(DataError, match='unseen="allow"'):
        fw.Schema.infer(pd.DataFrame({"a": ["x", "y"]})).conform({"a": ["z"]})
