"""All negative leaves of one case: counts agree with SEV-T, and the values do lead into the leaf."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier
from slow_cases import mostly_slow

import fewest as fw
from fewest.errors import UsageError


@pytest.mark.parametrize("seed", mostly_slow(range(3), (0,)))
def test_the_first_leaf_is_the_one_that_the_explainer_proves(seed: int) -> None:
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.integers(0, 9, (300, 4)), columns=list("abcd")).assign(e=random.normal(size=300).round(2))
    y = ((X["a"] + X["b"] > 8) ^ (X["e"] > 0.5)).to_numpy(dtype=int)
    decision = fw.Decision(DecisionTreeClassifier(max_depth=5, random_state=0).fit(X, y), threshold=0.5001)
    refs = fw.references.leaves(decision, X, y)
    out = fw.Explainer(decision, refs, n_jobs=1).explain(X)
    sev = out.sev
    assert len(sev) == len(X)
    assert sev.equals(out.to_frame()["sev"])
    for number in np.flatnonzero(sev.notna())[:40]:
        found = refs.leaves_of(X.iloc[[number]])
        assert len(found) == len(refs)
        assert found["sev"].iloc[0] == sev.iloc[number]
        for row in found.itertuples():
            changed = X.iloc[[number]].assign(**dict(zip(row.features, row.to, strict=True)))
            assert not decision.verdicts(changed).positive[0]
            # Negative control: with one of the features left as it was, the case is not in this leaf.
            fewer = dict(list(zip(row.features, row.to, strict=True))[:-1])
            assert refs.leaves_of(X.iloc[[number]].assign(**fewer)).set_index("leaf").loc[row.leaf, "sev"] == 1


def test_levels_and_missing_values_are_counted_as_the_tree_reads_them() -> None:
    random = np.random.default_rng(0)
    X = pd.DataFrame(
        {"job": pd.Series(random.choice(["a", "b", "c"], 200), dtype="str"), "n": random.integers(0, 9, 200)}
    )
    X.loc[::10, "job"] = None
    y = ((X["job"] == "a") | X["job"].isna() | (X["n"] > 6)).to_numpy(dtype=int)
    decision = fw.Decision(fw.trees.CARTClassifier(max_depth=3).fit(X, y), positive=1)
    refs = fw.references.leaves(decision, X, y)
    sev = fw.Explainer(decision, refs, n_jobs=1).explain(X).sev
    refused = np.flatnonzero(sev.notna())[:30]
    assert X["job"].iloc[refused].isna().any()
    assert [int(refs.leaves_of(X.iloc[[k]])["sev"].iloc[0]) for k in refused] == sev.iloc[refused].tolist()


def test_more_than_one_case_is_refused() -> None:
    X = pd.DataFrame({"debt": [1, 2, 8, 9]})
    decision = fw.Decision(DecisionTreeClassifier().fit(X, [0, 0, 1, 1]))
    with pytest.raises(UsageError, match="one case"):
        fw.references.leaves(decision, X, [0, 0, 1, 1]).leaves_of(X)
