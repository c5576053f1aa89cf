"""One reference per group of like accepted cases, so that a case is compared with its own kind (SEV-cluster)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from fewest.decision import Decision
from fewest.references._centres import Centre
from fewest.references._grouping import GroupingSettings, Select, grouped
from fewest.references.base import Assignment, References
from fewest.references.training_rows import TrainingRows, warn_where_predict_differs
from fewest.tables.schema import Schema

if TYPE_CHECKING:
    from fewest.references.clustering import Embedding


def clusters(
    decision: Decision,
    X: Any,
    y: Any,
    *,
    n_clusters: int | Literal["auto"] = 8,
    centre: Centre = "median",
    embedding: str | Embedding = "identity",
    assignment: Assignment = "sparsest",
    m: float = 2.0,
    select: Select = "silhouette",
    schema: Schema | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    random_state: int = 0,
    max_rows: int = 20_000,
    min_share: float = 0.02,
) -> References:
    """Typical cases of several kinds that were not decided against.

    The rows labelled negative are clustered by score-based soft k-means; each cluster's reference is the centre of
    those of its rows that the model accepts. Clusters with hardly any such rows, and centres the model decides
    against, are left out with a warning.

    The defaults are those that brought explanations closest on held-out training rows of six datasets, in standard
    deviations and in Gower distance, without asking for more features than one reference for all
    (docs/benchmarks/clusters.md). Closest to the paper are ``centre="mean", embedding="pacmap",
    assignment="embedding", min_share=0``, with a number of clusters and an ``m`` for each dataset; two differences stay
    (docs/methods/clusters.md).

    Parameters
    ----------
    decision : Decision
    X : table
        Training rows.
    y : (n,) labels
        Their labels, as the model knows them; the rows that do not have the positive label are used. Or booleans, True
        where a row was accepted (not with a model whose classes are booleans or 0 and 1: there they are labels).
    n_clusters : int or "auto"
        How many; 1 is `single`, over the accepted rows. ``auto`` takes the best number from 2 to 10.
    centre : str
        ``mean``, ``median`` or ``medoid`` as in `single`. A medoid is a real row: mind whose before you publish it.
    embedding : str or Embedding
        Map the clusters are found in: ``identity`` (none: the encoded rows), ``pca``, or ``pacmap`` (needs the extra
        ``cluster``).
    assignment : str
        Which reference a case is compared with. ``features``: the closest, feature by feature; ``embedding``: that of
        the cluster it falls into; ``sparsest``: the one that needs the fewest features.
    m : float
        How much softer rows belong to clusters when the model's score is high; the authors use 1.01 to 3.
    select : str
        What ``auto`` goes by: ``silhouette`` or ``bic``.
    schema : Schema, optional
        Default: read off X.
    groups : mapping, optional
        Feature -> columns, for tables that are encoded already.
    random_state : int
    max_rows : int
        More negative rows than this are sampled.
    min_share : float
        Clusters with fewer than this share of the accepted rows are left out: one freak group that turns every decision
        by one feature would otherwise be everybody's reference.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 1, 1, 1, 1, 9, 9], "age": [20, 21, 22, 60, 62, 30, 50]})
    >>> y = [0, 0, 0, 0, 0, 1, 1]
    >>> refs = clusters(Decision(LogisticRegression().fit(X, y)), X, y, n_clusters=2)
    >>> refs.frame["age"].tolist(), refs.support.tolist()
    ([21, 61], [3, 2])
    """
    settings = GroupingSettings(n_clusters, centre, embedding, assignment, m, select, random_state, max_rows, min_share)
    training = TrainingRows.read(decision, X, y, schema, groups)
    rows = training.accepted
    warn_where_predict_differs(decision, training.frame)
    return grouped(decision, training.schema, rows, settings, {"kind": "clusters", "rows": len(rows)}, rows)
