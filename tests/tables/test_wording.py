"""Values and names in a sentence: nothing is lost, nothing can be taken for something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fewest.tables import wording
from fewest.tables.wording import show_score


@pytest.mark.parametrize(
    ("call", "given", "wanted"),
    [
        (wording.is_missing, (None, float("nan"), pd.NaT, pd.NA, ""), (True, True, True, True, False)),
        (wording.shortest, (np.float32(0.1), 0.1), (0.1, 0.1)),
        (wording.show, ("no account", 48, 0.5, True, None), ("'no account'", "48", "0.5", "yes", "missing")),
        (wording.show, ("driver's", np.float32(0.1), 3.0, 1e16), ('"driver\'s"', "0.1", "3", "1e+16")),
        (wording.show, ({"own": 1, "a b": None}, pd.Timestamp(2026, 1, 31)), ("(own 1, a b missing)", "2026-01-31")),
        (wording.show_name, ("duration_months", "a had been 3"), ("duration_months", "'a had been 3'")),
        (wording.show_name, ("two\nlines", ""), ("'two\\nlines'", "''")),
        (wording.show_label, (np.str_("bad"), np.int64(0), "0"), ("'bad'", "0", "'0'")),
        (wording.printable, ("good", "go\nod"), ("good", "go\\nod")),
        (wording.listed, (["a"], ["a", "b"], ["a", "b", "c"]), ("a", "a and b", "a, b and c")),
        (wording.cell, ("no account", 48, "48"), ("no account", "48", "'48'")),
        (wording.cell, ("missing", None, " a"), ("'missing'", "missing", "' a'")),
    ],
)
def test_values_and_names_read_as_people_write_them(
    call: Callable[[Any], Any], given: tuple[Any, ...], wanted: tuple[Any, ...]
) -> None:
    assert tuple(map(call, given)) == wanted


def test_a_unit_belongs_to_numbers_only() -> None:
    assert [wording.show_measured(value, "years") for value in (9, None, "none")] == ["9 years", "missing", "'none'"]
    assert wording.show_measured(9, None) == "9"
    assert wording.heading("Years in current job", "years") == "Years in current job (years)"
    assert wording.heading("housing", None) == "housing"


def test_a_score_is_never_rounded_over_the_threshold() -> None:
    assert [show_score(score, 0.5, percent=True) for score in (0.484, 0.4999)] == ["48 %", "49.99 %"]
    assert show_score(0.4999, 0.5, percent=False) == "0.4999"


def test_long_text_is_cut() -> None:
    assert wording.clip("a long name", 6) == "a lon\u2026"
    assert wording.clip("short", 6) == "short"
