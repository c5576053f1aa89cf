"""`fewest references`: build, show, sign, diff, and what happens when somebody writes in the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fewest.apps.cli import main

BUILD = ["references", "build", "german", "--out"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of a references file of the demo."""
    path = tmp_path_factory.mktemp("refs") / "refs.json"
    assert main([*BUILD, str(path), "--kind", "clusters", "--n-clusters", "3", "--embedding", "pca"]) == 0
    return path.read_text()


@pytest.fixture
def path(built: str, tmp_path: Path) -> Path:
    file = tmp_path / "refs.json"
    file.write_text(built)
    return file


def edit(path: Path, **values: Any) -> None:
    content = json.loads(path.read_text())
    content["references"][0]["values"].update(values)
    path.write_text(json.dumps(content))


def test_from_building_to_explaining_in_four_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*BUILD, "refs.json", "--kind", "clusters", "--embedding", "pca"]) == 0
    assert "people  score 0." in capsys.readouterr().out
    assert main(["references", "show", "refs.json", "--html", "refs.html"]) == 0
    assert "none of them signed" in capsys.readouterr().out
    assert "<h1>What are cases compared with? refs.json</h1>" in Path("refs.html").read_text()
    assert main(["references", "sign", "refs.json", "--by", "Credit Risk"]) == 0
    assert "Credit Risk signed cluster 1" in capsys.readouterr().out
    assert main(["explain", "--demo", "german", "--references", "refs.json", "--json"]) == 0
    printed = capsys.readouterr()
    answers = json.loads(printed.out)
    assert answers["counts"]["EXPLAINED"] > 100
    assert {answer["reference"] for answer in answers["answers"] if answer["sev"]} <= {
        entry["name"] for entry in answers["references"]["references"]
    }
    assert "warning" not in printed.err


@pytest.mark.parametrize(("kind", "centre"), [("single", "median"), ("near-threshold", "medoid")])
def test_other_kinds_are_built_and_flexible_twins_are_written(
    kind: str, centre: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "refs.json"
    call = [*BUILD, str(path), "--kind", kind, "--centre", centre, "--flexible", "0.1", "--json"]
    assert main(call) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [entry.get("twin_of") is None for entry in printed["references"]] == [True, False]
    assert main(["references", "show", str(path)]) == 0
    assert "(moved)" in capsys.readouterr().out
    assert main(["explain", "--demo", "german", "--references", str(path)]) == 0
    assert "flexibility used" in capsys.readouterr().out


def test_references_of_a_table_and_a_model_file(files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "refs.json"
    call = ["references", "build", str(files.train), "--model", str(files.skops), "--out", str(path)]
    call += ["--positive", "bad"]
    assert main(call) == 2
    assert "--target COL" in capsys.readouterr().err
    assert main([*call, "--target", "risk"]) == 0
    capsys.readouterr()
    assert main(["references", "sign", str(path), "--by", "A"]) == 0
    assert main([*files.arguments, "--positive", "bad", "--references", str(path), "--json"]) == 0
    printed = capsys.readouterr()
    assert "no longer holds" not in printed.err
    assert main(["references", "build", str(files.train), "--target", "risk", "--out", str(path)]) == 2
    assert "pass --model FILE" in capsys.readouterr().err


def test_show_prints_values_ranges_and_signatures(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["references", "sign", str(path), "--by", "Credit Risk", "--only", "cluster 2", "--note", "fine"]) == 0
    capsys.readouterr()
    assert main(["references", "show", str(path)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("3 references, 1 of them signed; no warnings.")
    assert "signed by Credit Risk on " in text
    assert "credit_amount" in text
    assert main(["references", "show", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["signed"] for row in document["references"]] == [False, True, False]
    assert len(document["features"]) == 60
    assert document["flags"] == []


@pytest.mark.filterwarnings("always")
def test_a_value_written_into_the_file_is_noticed_by_every_command(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["references", "sign", str(path), "--by", "Credit Risk"]) == 0
    edit(path, credit_amount=2345)
    said = 'the signature of reference "cluster 1" no longer holds: credit_amount changed'
    page = path.with_name("refs.html")
    assert main(["references", "show", str(path), "--html", str(page)]) == 0
    printed = capsys.readouterr()
    assert said in printed.err
    assert "but that no longer holds: credit_amount changed" in printed.out
    assert "score not known" in printed.out
    assert "but that no longer holds: credit_amount changed" in page.read_text()
    assert main(["explain", "--demo", "german", "--references", str(path)]) == 0
    assert said in capsys.readouterr().err
    assert main(["references", "sign", str(path), "--by", "Credit Risk"]) == 0
    assert said in capsys.readouterr().err
    assert main(["references", "show", str(path)]) == 0
    assert capsys.readouterr().err == ""


def test_an_impossible_value_is_shown(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(path, existing_credits=1.4, purpose="yacht")
    assert main(["references", "show", str(path)]) == 0
    text = capsys.readouterr().out
    assert "- cluster 1: existing_credits: not a whole number: use 1" in text
    assert "- cluster 1: purpose: a level that was never seen" in text
    assert main(["explain", "--demo", "german", "--references", str(path)]) == 3
    assert "yacht" in capsys.readouterr().err


def test_diff_says_what_changed_and_ends_with_1(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = path.with_name("other.json")
    other.write_text(path.read_text())
    assert main(["references", "sign", str(other), "--by", "A"]) == 0
    capsys.readouterr()
    assert main(["references", "diff", str(path), str(other)]) == 0
    assert "No difference" in capsys.readouterr().out
    edit(path, credit_amount=2345, housing="rent")
    assert main(["references", "diff", str(path), str(other)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("cluster 1: credit_amount: 2345 -> ") for line in lines)
    content = json.loads(path.read_text())
    content["references"][1]["name"] = "new"
    path.write_text(json.dumps(content))
    assert main(["references", "diff", str(path), str(other), "--json"]) == 1
    changes = json.loads(capsys.readouterr().out)["changes"]
    assert {"reference": "new", "only": "first"} in changes
    assert {"reference": "cluster 2", "only": "second"} in changes


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([*BUILD, "refs.txt"], 2, ".json"),
        ([*BUILD, "no/such/folder/refs.json"], 2, "a folder that exists"),
        ([*BUILD, "refs.json", "--flexible", "0.7"], 2, "eps"),
        ([*BUILD, "refs.json", "--kind", "random"], 2, "--kind"),
        ([*BUILD, "refs.json", "--kind", "near-threshold", "--width", "1e-9"], 3, "no accepted row"),
        (["references", "show", "absent.json"], 3, "no file absent.json"),
        (["references", "sign", "absent.json", "--by", "A"], 3, "no file absent.json"),
        (["references", "sign", "absent.json"], 2, "--by"),
        (["references", "diff", "absent.json", "absent.json"], 3, "no file absent.json"),
        (["references", "bogus"], 2, "bogus"),
        (["explain", "--demo", "mars"], 2, "choose from german"),
        (["explain", "x.csv", "--demo", "german"], 2, "drop DATA"),
    ],
)
def test_wrong_use_names_the_remedy(
    arguments: list[str], code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == code
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("more", "said"), [(["--by", "A", "--only", "nobody"], "choose from cluster 1"), (["--by", ""], "nobody")]
)
def test_a_signature_needs_a_name_and_a_reference(
    path: Path, more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = path.read_text()
    assert main(["references", "sign", str(path), *more]) == 2
    assert said in capsys.readouterr().err
    assert path.read_text() == before


def test_values_cannot_steer_the_terminal(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(path, purpose="\x1b[31mred")
    assert main(["references", "show", str(path)]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_the_demo_without_references_compares_with_the_typical_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--demo", "german", "--centre", "median", "--at-most", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["references"]["provenance"]["centre"] == "median"
    assert len(document["answers"]) == 1000


def test_just_accepted_cases_of_the_demo_are_refused_with_a_remedy_that_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = [*BUILD, str(tmp_path / "refs.json"), "--kind", "near-threshold"]
    assert main(call) == 4
    centre = capsys.readouterr().err.partition("Try: --centre ")[2].split()[0]
    assert main([*call, "--centre", centre, "--seed", "3"]) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--kind", "single", "--n-clusters", "3"], "--n-clusters is for"), (["--width", "0.2"], "--width is for")],
)
def test_an_option_of_another_kind_is_refused(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*BUILD, str(tmp_path / "refs.json"), *options]) == 2
    assert words in capsys.readouterr().err


def test_the_papers_clusters_go_to_a_file_with_a_yes_and_assign_on_their_map(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pacmap")
    path = tmp_path / "refs.json"
    call = [*BUILD, str(path), "--kind", "clusters", "--preset", "paper", "--n-clusters", "3", "--m", "1.01"]
    assert main(call) == 2
    assert "--training-rows" in capsys.readouterr().err
    assert main([*call, "--training-rows"]) == 0
    assert json.loads(path.read_text())["rule"]["training_rows"] > 500
    capsys.readouterr()
    assert main(["explain", "--demo", "german", "--references", str(path), "--json"]) == 0
    printed = capsys.readouterr()
    assert "warning" not in printed.err
    answers = json.loads(printed.out)
    assert answers["references"]["assignment"] == "embedding"
    assert len({answer["reference"] for answer in answers["answers"] if answer["sev"]}) > 1
    assert main([*BUILD, str(path), "--preset", "paper"]) == 2
    assert "--preset is for --kind clusters" in capsys.readouterr().err


def test_references_are_a_word_or_a_file_and_a_misspelt_word_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--demo", "german", "--references", "clusters", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["references"]["provenance"]["kind"] == "clusters"
    assert main(["explain", "--demo", "german", "--references", "cluster"]) == 2
    assert 'did you mean "clusters"' in capsys.readouterr().err
