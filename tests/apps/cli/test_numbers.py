"""Regressors on the command line: a threshold, a side, a run folder and its verification."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor

from fewest.apps.cli import main
from fewest.runs import Run

skops_io = pytest.importorskip("skops.io")
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(80, 4)).round(2), columns=list("abcd"))
Y = 100 + 10 * X.a + 5 * X.b * X.c


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("numbers")
    skops_io.dump(GradientBoostingRegressor(n_estimators=10, random_state=0).fit(X, Y), made / "model.skops")
    X.assign(value=Y).to_csv(made / "train.csv", index=False)
    X.to_csv(made / "cases.csv", index=False)
    return made


def asked(folder: Path, *more: str) -> list[str]:
    files = ["--model", str(folder / "model.skops"), "--train", str(folder / "train.csv")]
    return ["explain", str(folder / "cases.csv"), *files, *more]


def test_a_threshold_and_a_side_are_enough(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pd.read_csv(folder / "train.csv").drop(columns="value")
    table.to_csv(folder / "features.csv", index=False)
    without = [part if part != str(folder / "train.csv") else str(folder / "features.csv") for part in asked(folder)]
    assert main([*without, "--threshold", "105"]) == 0
    assert "would have predicted below 105 (" in capsys.readouterr().out
    assert main(asked(folder, "--target", "value", "--threshold", "95", "--below", "--names", "1=low")) == 0
    printed = capsys.readouterr().out
    assert "would have predicted not low (" not in printed
    assert "above 95 (" in printed
    assert main(asked(folder, "--target", "value")) != 0
    assert "threshold" in capsys.readouterr().err


def test_a_run_folder_of_numbers_is_verified_and_says_the_same(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    out = tmp_path / "run"
    assert (
        main(asked(folder, "--target", "value", "--threshold", "95", "--below", "--out", str(out), "--jobs", "1")) == 0
    )
    run = Run.open(out)
    answer = next(run.explanation(row) for row in range(len(X)) if run.explanation(row).changes)
    assert "would have predicted above 95 (" in str(answer)
    capsys.readouterr()
    files = ["--data", str(folder / "cases.csv"), "--model", str(folder / "model.skops")]
    assert main(["verify", str(out), *files]) == 0, capsys.readouterr().out
    assert main(["verify", str(out), *files, "--threshold", "95"]) == 0
    capsys.readouterr()
    assert main(["verify", str(out), *files, "--threshold", "90"]) == 6
    assert "threshold" in capsys.readouterr().out


def test_a_saved_explainer_keeps_its_side(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "numbers.fewest"
    build = ["build", str(folder / "train.csv"), "--model", str(folder / "model.skops"), "--out", str(saved)]
    assert main([*build, "--target", "value", "--threshold", "95", "--below"]) == 0
    capsys.readouterr()
    assert main(["explain", str(folder / "cases.csv"), "--model", str(saved)]) == 0
    assert "would have predicted above 95 (" in capsys.readouterr().out
    assert main(["explain", str(folder / "cases.csv"), "--model", str(saved), "--above"]) != 0
    assert "--above/--below cannot change that" in capsys.readouterr().err
