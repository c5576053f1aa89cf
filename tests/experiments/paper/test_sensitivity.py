import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fewest.decision import Decision
from fewest.errors import ModelError
from fewest.experiments.paper import Store, find, run_table, summarise
from fewest.experiments.paper.points import SENSITIVITY, SHARES, SensitivityTable, moved
from fewest.explainer import Explainer

SHARED = Path(__file__).parents[4] / "shared" / "data"
TEX = Path(__file__).parents[4] / "shared" / "paper" / "improving-decision-sparsity.tex"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the data folder ../shared/data is not here")


def plane() -> tuple[Decision, pd.DataFrame, np.ndarray]:
    """Positive where two numbers add up to ten; the means are (1, 1) and (9, 9)."""
    X = pd.DataFrame({"a": [0, 2, 8, 10], "b": [2, 0, 10, 8]})
    return Decision(lambda rows: rows.sum(axis=1).to_numpy() / 20), X, np.array([0, 0, 1, 1])


def test_a_reference_is_moved_by_a_share_of_the_way_to_the_boundary() -> None:
    decision, X, y = plane()
    assert moved(decision, X, y, 0.0).frame.to_numpy().tolist() == [[1, 1]]
    assert moved(decision, X, y, 0.5).frame.to_numpy().tolist() == [[3, 3]]
    assert moved(decision, X, y, 0.75).frame.to_numpy().tolist() == [[4, 4]]


def test_a_case_that_one_feature_turned_needs_two_once_the_reference_is_near() -> None:
    """The picture in the paper's appendix: the star at (8, 7)."""
    decision, X, y = plane()
    star = pd.DataFrame({"a": [8], "b": [7]})
    sev = [
        Explainer(decision, moved(decision, X, y, share), n_jobs=1).explain(star).sev.dropna().tolist()
        for share in (0.0, 0.75)
    ]
    assert sev == [[1], [2]]


def test_a_line_that_does_not_cross_the_boundary_is_refused() -> None:
    decision, X, y = plane()
    with pytest.raises(ModelError, match="does not cross the boundary"):
        moved(decision, X, 1 - y, 0.5)
    with pytest.raises(ModelError, match="does not cross the boundary"):
        moved(Decision(lambda rows: np.zeros(len(rows))), X, y, 0.5)


@needs_shared
def test_sev_rises_towards_the_boundary_and_so_does_the_score() -> None:
    table = find("sensitivity", SHARED, quick=True)
    records = run_table(table, ["fico"], 1, Store())
    assert [record.method for record in records] == list(SensitivityTable.methods)
    for kind in ("L2LR", "L1LR"):
        lines = [record.figures for record in records if record.method.startswith(kind)]
        assert len(lines) == len(SHARES)
        assert [line["score"] for line in lines] == sorted(line["score"] for line in lines)
        assert [line["sev"] for line in lines] == sorted(line["sev"] for line in lines)
        assert lines[0]["sev"] < lines[-1]["sev"]
        assert all(line["score"] < 0.5 and line["unreachable"] == 0 for line in lines)
    cells = summarise(table, records)[1].cells
    assert cells["sev"].paper is not None
    assert cells["sev"].paper.mean == 4.95


@pytest.mark.skipif(not TEX.is_file(), reason="the paper's source is not here")
def test_every_printed_figure_stands_in_the_paper() -> None:
    source = TEX.read_text(encoding="utf-8")
    table = source[source.index(r"\label{tab:sensitive_sev-}") :]
    rows = re.findall(r"tilde r'?\$ & ([\d.]+) & ([\d.]+) & ([\d.]+) & ([\d.]+)", table[: table.index(r"\end{table}")])
    typed = [tuple(figure.mean for figure in figures.values()) for figures in SENSITIVITY.values()]
    assert [tuple(map(float, row)) for row in rows] == typed
    assert len(rows) == 4


def largest_mean(at_least_3: float, at_least_6: float) -> float:
    """The mean if all cases below 3 had 2, all from 3 to 5 had 5, and all others 9, with none from 10."""
    return (2 * (100 - at_least_3) + 5 * (at_least_3 - at_least_6) + 9 * at_least_6) / 100


@pytest.mark.parametrize(("method", "possible"), [("L2LR r", 2.08), ("L1LR r", 2.03), ("L1LR r'", 4.56)])
def test_three_printed_lines_contradict_themselves(method: str, possible: float) -> None:
    figures = SENSITIVITY["fico", method]
    assert figures["at_least_10"].mean == 0
    largest = largest_mean(figures["at_least_3"].mean, figures["at_least_6"].mean)
    assert largest == pytest.approx(possible, abs=0.005)
    assert largest < figures["sev"].mean - 0.005


def test_the_fourth_printed_line_does_not() -> None:
    """Negative control of the test above."""
    figures = SENSITIVITY["fico", "L2LR r'"]
    assert largest_mean(figures["at_least_3"].mean, figures["at_least_6"].mean) > figures["sev"].mean
