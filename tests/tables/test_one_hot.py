"""Columns of 0 and 1 that exclude each other are found, whole or with the first level dropped; chance is not."""

from __future__ import annotations

import pandas as pd

from fewest.tables.one_hot import find_one_hot

JOBS = pd.get_dummies(pd.DataFrame({"job": ["clerk", "cook", "none"] * 50}))


def test_levels_of_one_feature_are_found_by_their_common_beginning() -> None:
    assert find_one_hot(JOBS) == {"job": ("job_clerk", "job_cook", "job_none")}
    assert find_one_hot(JOBS.drop(columns="job_clerk")) == {"job": ("job_cook", "job_none")}


def test_columns_that_overlap_are_features_of_their_own() -> None:
    assert find_one_hot(JOBS.assign(job_lost=[0, 1] * 75)) == {}
