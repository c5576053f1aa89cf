"""Explainers for the tests' workers, which are processes of their own: loaded by name, not sent."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fewest as fw

KILLED, HANGS, HOGS, RAISES, NAN, PRINTS, SLOW, FAULTS = range(901, 909)


def cases(n: int = 300, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "debt": random.integers(0, 100, n),
            "rate": np.round(random.normal(size=n), 3),
            "code": random.choice(["A07", "B10", 'ä, "q"'], n),
            "home": pd.Categorical(random.choice(["own", "rent", "free"], n)),
            "member": random.random(n) < 0.5,
        }
    )
    signal_ = X["debt"] + 15 * (X["code"] == "A07") + 12 * X["rate"] + 9 * (X["home"] == "own") - 8 * X["member"]
    return X, np.where(signal_ > 60, "bad", "good")


def good(path: Path) -> fw.Explainer:
    """A logistic regression on columns of five kinds."""
    X, y = cases()
    encode = make_column_transformer(
        (OneHotEncoder(), ["code", "home"]), (StandardScaler(), ["debt", "rate"]), remainder="passthrough"
    )
    decision = fw.Decision(make_pipeline(encode, LogisticRegression()).fit(X, y), positive="bad")
    return fw.Explainer(decision, fw.references.single(decision, X, y), n_jobs=1)


def bad(path: Path) -> fw.Explainer:
    """A model that does something bad when it is shown one of the numbers above."""
    X = pd.DataFrame({"debt": [1, 2, 90, 95], "age": [30, 50, 30, 50], "rate": [1, 2, 3, 4]})
    decision = fw.Decision(_moody, positive=1, threshold=100.0)
    return fw.Explainer(decision, fw.references.single(decision, X, [0, 0, 1, 1]), n_jobs=1)


def _moody(frame: pd.DataFrame) -> np.ndarray:
    shown = set(frame["debt"].tolist())
    if KILLED in shown:
        os.kill(os.getpid(), signal.SIGKILL)
    if FAULTS in shown:
        ctypes.string_at(0)
    if HANGS in shown:
        time.sleep(1_000)
    if HOGS in shown:
        np.ones(2**33)
    if RAISES in shown:
        raise ValueError("no such debt: 904")
    if PRINTS in shown:
        print("debt is", shown, flush=True)
        os.write(1, b"\x00\x00\x00\x01!")
    if SLOW in shown:
        time.sleep(0.1)
    scores = frame["debt"].to_numpy(dtype=float) + frame["age"].to_numpy(dtype=float)
    return np.where(frame["debt"] == NAN, np.nan, scores)


def never(path: Path) -> fw.Explainer:
    """A file that cannot be loaded."""
    raise fw.FewestError("the file holds nothing", do="save it again")


def crashes(path: Path) -> fw.Explainer:
    """A file that brings the process down."""
    os._exit(3)


def faults(path: Path) -> fw.Explainer:
    """A file that lets native code read where nothing is."""
    ctypes.string_at(0)
    raise AssertionError


def reaches(path: Path) -> fw.Explainer:
    """A file that writes beside itself and calls others; what it could do is in the message."""
    done = []
    for what, work in (
        ("wrote", lambda: path.with_name("new").write_text("x")),
        ("called", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM)),
    ):
        try:
            work()
        except OSError:
            continue
        done.append(what)
    raise fw.FewestError(f"it {' and '.join(done) or 'did nothing'}", do="look at it")


def fades(path: Path) -> fw.Explainer:
    """A file that can be loaded once: it is gone when the worker has to be replaced."""
    if not path.exists():
        raise fw.FewestError("the file has gone", do="save it again")
    path.unlink()
    return bad(path)
