"""References by a word: the way of making them is an option like any other."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, Literal

from fewest.decision import Decision
from fewest.errors import check_word
from fewest.references._anyone import anyone
from fewest.references._leaves import leaves
from fewest.references.base import References
from fewest.references.clusters import clusters, near_threshold
from fewest.references.single import single

Kind = Literal["single", "clusters", "near_threshold", "leaves", "anyone"]
KINDS: dict[str, Callable[..., References]] = {
    "single": single, "clusters": clusters, "near_threshold": near_threshold, "leaves": leaves, "anyone": anyone,
}  # fmt: skip


def build(kind: Kind | str, decision: Decision, X: Any, y: Any, **options: Any) -> References:
    """References of the kind a word stands for, made of training rows.

    Parameters
    ----------
    kind : str
        ``single``, ``clusters``, ``near_threshold``, ``leaves`` or ``anyone``: the function of that name.
    decision : Decision
    X : table
        Training rows.
    y : (n,) labels
        Their labels, read as in `single`.
    **options
        Those of the function.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]}); y = [0, 0, 1, 1]
    >>> decision = Decision(LogisticRegression().fit(X, y))
    >>> build("single", decision, X, y, centre="median").names
    ('median',)
    """
    check_word("kind", kind, KINDS)
    for name in options:
        check_word(f"{kind}: option", name, [*signature(KINDS[kind]).parameters][3:])
    return KINDS[kind](decision, X, y, **options)
