"""``fewest doctor``: is everything here, and does it work."""

from __future__ import annotations

import itertools
import json
import os
import platform
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from fewest.persistence.versions import versions

CORE = ("numpy", "scipy", "pandas", "scikit-learn", "numba", "narwhals", "typer", "rich", "jinja2")
OPTIONAL = ("lightgbm", "xgboost", "catboost", "interpret-core", "torch", "polars", "pyarrow", "skops", "matplotlib")
ALIASES = {"xgboost": ("xgboost", "xgboost-cpu")}


@dataclass(frozen=True)
class Check:
    """One thing that was looked at. Only those that are needed decide the exit code."""

    name: str
    ok: bool
    detail: str
    needed: bool = True


def run(as_json: bool, warm: bool = False) -> int:
    """Print what was found; 1 if something that is needed does not work. ``warm``: compile every search first."""
    python = f"{platform.python_version()} on {platform.system()}"
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    checks = [
        *_libraries(),
        Check("python", sys.version_info >= (3, 11), python),
        _cache(),
        Check("threads", True, f"{usable} of {os.cpu_count()} cores", needed=False),
        _data(),
        self_test(),
    ]
    if warm:
        from fewest.apps.cli._warm_up import warm_up

        checks.append(warm_up())
    fine = all(check.ok for check in checks if check.needed)
    if as_json:
        print(json.dumps({"ok": fine, "checks": [asdict(check) for check in checks]}, indent=1))
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:
            mark = "ok  " if check.ok else ("FAIL" if check.needed else "-   ")
            print(f"{mark}  {check.name:<{width}}  {check.detail}")
        print("\nEverything that is needed works." if fine else "\nSomething that is needed does not work.")
    return 0 if fine else 1


def _libraries() -> list[Check]:
    found = {name: versions(ALIASES.get(name, (name,))) for name in ("fewest", *CORE, *OPTIONAL)}
    return [
        Check(name, bool(known), next(iter(known.values()), "not installed"), name not in OPTIONAL)
        for name, known in found.items()
    ]


def _cache() -> Check:
    """Where numba keeps compiled kernels; without a place they are compiled in every process."""
    places = [Path(__file__).parents[2] / "engine" / "search" / "__pycache__", Path.home() / ".cache" / "numba"]
    if os.environ.get("NUMBA_CACHE_DIR"):
        places = [Path(os.environ["NUMBA_CACHE_DIR"])]
    kept = next((f"kept in {place}" for place in places if _writable(place)), "")
    return Check("compiled kernels", bool(kept), kept or "no folder is writable: set NUMBA_CACHE_DIR", needed=False)


def _writable(place: Path) -> bool:
    while not place.exists() and place != place.parent:
        place = place.parent
    return place.is_dir() and os.access(place, os.W_OK)


def _data() -> Check:
    """Which of the paper's tables are at hand."""
    from fewest.datasets import catalogue

    folder = os.environ.get("FEWEST_DATA", "")
    if not folder:
        return Check("data", True, "german (inside the package); FEWEST_DATA is not set", needed=False)
    listed = catalogue()
    found = [one.name for one in listed if one.found]
    wrong = [f"{one.name} ({one.problem})" for one in listed if one.problem]
    tail = f"; not usable: {', '.join(wrong)}" if wrong else ""
    return Check("data", not wrong and len(found) > 1, f"{', '.join(found)} in {folder}{tail}", needed=False)


def self_test() -> Check:
    """Explain a tiny model and compare with trying every set of features on the model itself."""
    began = time.monotonic()
    try:
        wrong = _mistakes()
    except Exception as error:
        return Check("self-test", False, f"{type(error).__name__}: {error}")
    verdict = f"{wrong} answers wrong" if wrong else "all answers right"
    return Check("self-test", wrong == 0, f"{verdict}, {time.monotonic() - began:.1f} s")


def _mistakes() -> int:
    """How many of the answers for a tiny model differ from brute force."""
    from sklearn.linear_model import LogisticRegression

    from fewest import references
    from fewest.decision import Decision
    from fewest.explainer import Explainer

    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(60, 4)).round(2), columns=list("abcd"))
    y = (X.sum(axis=1) > 0).astype(int).to_numpy()
    model = LogisticRegression().fit(X, y)
    decision = Decision(model, positive=1)
    reference = references.single(decision, X, y)
    out = Explainer(decision, reference, n_jobs=1).explain(X)
    best = np.full(len(X), np.inf)
    for moved in itertools.product((False, True), repeat=4):
        mixed = X.assign(**{name: reference.frame[name][0] for name, go in zip(X.columns, moved, strict=True) if go})
        best = np.where(model.predict(mixed) == 0, np.minimum(best, sum(moved)), best)
    return sum(int((answer.sev or 0) != size) for answer, size in zip(out, best, strict=True))
