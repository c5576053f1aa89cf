"""References by a word are those of the function of that name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import fewest as fw
from fewest import references
from fewest.errors import UsageError

X = pd.DataFrame({"debt": np.arange(40) % 20, "age": 20 + np.arange(40)})
Y = (X["debt"].to_numpy() >= 12).astype(int)
DECISION = fw.Decision(DecisionTreeClassifier(max_depth=2, min_samples_leaf=3).fit(X, Y))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("single", {"centre": "median"}),
        ("clusters", {"n_clusters": 2, "random_state": 3}),
        ("near_threshold", {"width": 0.5}),
        ("leaves", {"value": "median"}),
    ],
)
def test_a_word_gives_what_the_function_gives(kind: str, options: dict[str, object]) -> None:
    by_word = references.build(kind, DECISION, X, Y, **options)
    assert by_word.to_dict() == getattr(references, kind)(DECISION, X, Y, **options).to_dict()


def test_a_word_that_is_not_known_and_an_option_of_another_kind_are_refused() -> None:
    with pytest.raises(UsageError, match='did you mean "clusters"'):
        references.build("cluster", DECISION, X, Y)
    with pytest.raises(UsageError, match="width"):
        references.build("single", DECISION, X, Y, width=0.1)
