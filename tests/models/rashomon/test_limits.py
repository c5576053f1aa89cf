"""What cannot be searched is refused with the fix; a search that hangs, dies or grows too large takes nobody along."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from fewest.errors import DataError, MissingExtraError, ModelError, TimeLimitError, UsageError
from fewest.models.rashomon import base, rashomon_set
from fewest.models.trees import BinaryColumns
from fewest.tables.schema import Schema

# The child's own script, with another search in it.
SCRIPT = """
import os, signal, sys, time
import numpy as np
sys.path.insert(0, {folder!r})
import _praxis
def grow(core, **job):
    {does}
_praxis.grow = grow
sys.exit(_praxis.main(*sys.argv[1:]))
"""
DOES = {
    "dies": "os.kill(os.getpid(), signal.SIGKILL)",
    "crashes": "os.abort()",
    "raises": "raise RuntimeError('no such luck')",
    "sleeps": "time.sleep(60)",
    "hungry": "np.ones(2**32, dtype=np.uint8)",
}


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 2, (200, 8)), columns=[f"f{c}" for c in range(8)])
    y = (frame["f0"] + frame["f1"] + frame["f2"] + rng.normal(0, 0.8, 200) > 1.5).to_numpy()
    return columns_of(frame), frame, y


def columns_of(frame, times=1):
    p = frame.shape[1]
    feature = np.tile(np.arange(p, dtype=np.int32), times)
    return BinaryColumns(Schema.infer(frame), feature, np.full(p * times, 0.5), (None,) * (p * times))


@pytest.fixture
def search_that(tmp_path, monkeypatch):
    folder = str(base.SCRIPT.parent)

    def use(name):
        script = tmp_path / f"{name}.py"
        script.write_text(SCRIPT.format(folder=folder, does=DOES[name]))
        monkeypatch.setattr(base, "SCRIPT", script)

    return use


@pytest.mark.slow
def test_a_set_beyond_the_limit_is_refused_with_its_size(table):
    whole = rashomon_set(*table, bound=0.1)
    with pytest.raises(ModelError, match=f"has {len(whole):,} trees, more than max_trees = 10(.|\n)*regularization"):
        rashomon_set(*table, bound=0.1, max_trees=10)
    assert len(rashomon_set(*table, bound=0.1, max_trees=len(whole))) == len(whole)


def test_a_set_far_beyond_the_limit_is_refused_before_it_is_unfolded(table, monkeypatch):
    monkeypatch.setattr(base, "COUNTED", 1000)
    with pytest.raises(ModelError, match=r"up to [0-9,]+ trees"):
        rashomon_set(*table, bound=0.6, max_trees=3)


def test_columns_are_needed_and_64_at_most(table):
    columns, frame, y = table
    with pytest.raises(DataError, match="no column"):
        rashomon_set(columns.select([]), frame, y)
    with pytest.raises(UsageError, match=r"72 binary columns(.|\n)*n_estimators"):
        rashomon_set(columns_of(frame, times=9), frame, y)


def test_64_columns_fit(table):
    columns, frame, y = table
    wide = columns_of(frame, times=8)
    once = rashomon_set(columns, frame, y, bound=0.0, max_depth=1)
    many = rashomon_set(wide, frame, y, bound=0.0, max_depth=1)
    assert (len(once), len(many)) == (1, 8)
    assert int(many.needs.max()) >= 1 << 56


def test_labels_of_one_class_and_odd_settings_are_refused(table):
    columns, frame, y = table
    with pytest.raises(DataError, match="one class"):
        rashomon_set(columns, frame, np.ones(len(frame), dtype=bool))
    with pytest.raises(DataError, match="one label per row"):
        rashomon_set(columns, frame, y[1:])
    for setting in ({"regularization": 0.0}, {"bound": -0.1}, {"max_depth": 0}, {"max_trees": 0}):
        with pytest.raises(UsageError, match="Try: "):
            rashomon_set(columns, frame, y, **setting)
    with pytest.raises(UsageError, match="less than one of 200 rows"):
        rashomon_set(columns, frame, y, regularization=1e-6)


def test_the_time_limit_ends_the_search(table, search_that):
    search_that("sleeps")
    with pytest.raises(TimeLimitError, match=r"0\.5 seconds"):
        rashomon_set(*table, time_limit=0.5)


@pytest.mark.parametrize(("does", "said"), [("dies", "SIGKILL"), ("crashes", "SIGABRT"), ("raises", "no such luck")])
def test_a_search_that_dies_is_reported(table, search_that, does, said):
    search_that(does)
    with pytest.raises(ModelError, match=said):
        rashomon_set(*table)


@pytest.mark.skipif(sys.platform != "linux", reason="address space cannot be limited")
def test_the_memory_limit_holds(table, search_that):
    assert len(rashomon_set(*table, memory_limit=2)) > 0
    search_that("hungry")
    with pytest.raises(ModelError, match="out of memory of 2 GB"):
        rashomon_set(*table, memory_limit=2)


def test_a_package_that_is_not_installed_is_named_with_its_install_line(table, monkeypatch):
    monkeypatch.setattr(base, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r'needs tree-praxis(.|\n)*pip install "fewest\[trees\]"'):
        rashomon_set(*table)


def test_progress_is_told_and_nothing_is_printed(table, capfd):
    lines = []
    rashomon_set(*table, progress=lines.append)
    assert len(lines) == 3
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_the_package_imports_without_its_extras():
    script = "import sys; sys.modules.update(praxis=None); import fewest; fewest.rashomon.TOptClassifier"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
