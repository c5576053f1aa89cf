"""From some rows to one reference per group of like rows; what `clusters` and `near_threshold` share."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.errors import DataError, FewestWarning, PositiveReferenceError, check_count, check_number, check_word
from fewest.references._centres import CENTRES, Centre, centre_of
from fewest.references.base import Assignment, References, build, check_assignment
from fewest.references.spread import Spread
from fewest.tables.schema import Schema

if TYPE_CHECKING:
    from fewest.references.clustering import ClusterSpace, Embedding, ScoreSoftKMeans
    from fewest.references.clustering.embedding import Fitted

Floats = npt.NDArray[np.float64]
Select = Literal["silhouette", "bic"]


@dataclass(frozen=True)
class GroupingSettings:
    """How rows are grouped; checked when made."""

    n_clusters: int | Literal["auto"]
    centre: Centre
    embedding: str | Embedding
    assignment: Assignment
    m: float
    select: Select
    random_state: int
    max_rows: int
    min_share: float

    def __post_init__(self) -> None:
        check_word("centre", self.centre, CENTRES)
        check_assignment(self.assignment)
        if self.n_clusters != "auto":
            check_count("n_clusters", self.n_clusters, do=', or "auto"')
        check_word("select", self.select, ("silhouette", "bic"))
        check_number("m", self.m, "use a number above 0", above=0)
        check_count("max_rows", self.max_rows)
        check_number("min_share", self.min_share, "use a share from 0 to below 1", least=0, most=np.nextafter(1, 0))


@dataclass(frozen=True, eq=False)
class ByEmbedding:
    """Sends a case to the cluster whose centre is nearest to the case's place in the embedding.

    Each row is encoded, placed and sent by itself: alone, in a batch and in any order it gets the same reference.
    """

    space: ClusterSpace
    fitted: Fitted
    centres: Floats

    def assign(self, frame: pd.DataFrame) -> npt.NDArray[np.int32]:
        """Reference of each row, (n,)."""
        from fewest.references.clustering.soft_kmeans import nearest

        return nearest(self.fitted.transform(self.space.encode(frame)), self.centres)


def grouped(
    decision: Decision, schema: Schema, rows: pd.DataFrame, settings: GroupingSettings, provenance: Mapping[str, Any],
    population: pd.DataFrame, called: str | None = None,
) -> References:  # fmt: skip
    """One reference per cluster of rows, made of those of its rows the model accepts.

    Parameters
    ----------
    decision : Decision
    schema : Schema
    rows : (n, columns)
        Conformed to the schema.
    settings : Settings
    provenance : mapping
        What to say of their origin, before what the settings say.
    population : (k, columns)
        All accepted cases: how their numbers spread says how far a flexible reference may move.
    called : str, optional
        Name of the one reference, and of each of several before its number. Default: cluster 1, cluster 2, ...
    """
    rows = _sample(rows, settings)
    if settings.n_clusters != "auto" and settings.n_clusters > len(rows):
        raise DataError(
            f"there are {len(rows)} rows but n_clusters is {settings.n_clusters}", do=f"use at most {len(rows)}"
        )
    verdicts = decision.verdicts(rows)
    if verdicts.positive.all():
        raise PositiveReferenceError(
            f"the model decides against all {len(rows)} rows that references are made of "
            f"(lowest score {verdicts.score.min():.4g} >= {decision.cut:.4g})",
            do="check the labels, `positive=` and the threshold",
        )
    labels, assigner = _cluster(decision, schema, rows, verdicts.score, settings)
    groups = [np.flatnonzero((labels == k) & ~verdicts.positive) for k in range(len(assigner.centres))]
    order = sorted(range(len(groups)), key=lambda k: -len(groups[k]))  # the largest is cluster 1
    names = {k: f"{called or 'cluster'} {place + 1}" for place, k in enumerate(order)}
    if called is not None and len(order) == 1:
        names = {order[0]: called}
    least = max(1.0, settings.min_share * sum(map(len, groups)))
    filled = [k for k in order if len(groups[k]) >= min(least, len(groups[order[0]]))]
    refs = build(
        decision, schema, [centre_of(schema, rows.iloc[groups[k]], settings.centre) for k in filled],
        [names[k] for k in filled], [len(groups[k]) for k in filled], on_positive="allow",
        assignment=settings.assignment, provenance=_say(provenance, settings, len(rows), len(groups)),
        assigner=replace(assigner, centres=assigner.centres[filled]), rescue=True,
    )  # fmt: skip
    refs = _accepted(refs, [f"{names[k]} ({_too_few(len(groups[k]))})" for k in order if k not in filled])
    people = {names[k]: rows.iloc[groups[k]] for k in filled}
    return replace(refs, spread=Spread.of(schema, population, [people[name] for name in refs.names]))


def _too_few(accepted: int) -> str:
    if accepted == 0:
        return "the model accepts none of its rows"
    return f"too few to be typical: {accepted} row{'s' if accepted != 1 else ''}"


def _sample(rows: pd.DataFrame, settings: GroupingSettings) -> pd.DataFrame:
    if len(rows) <= settings.max_rows:
        return rows
    random = np.random.default_rng(settings.random_state)
    return rows.iloc[np.sort(random.choice(len(rows), settings.max_rows, replace=False))]


def _cluster(
    decision: Decision, schema: Schema, rows: pd.DataFrame, score: Floats, settings: GroupingSettings
) -> tuple[npt.NDArray[np.int32], ByEmbedding]:
    """Cluster of each row, and the rule for other rows."""
    # scikit-learn and the compiled rule are loaded here, so that importing fewest stays light.
    from fewest.references.clustering import ClusterSpace, ScoreSoftKMeans
    from fewest.references.clustering.choose import choose_clusters
    from fewest.references.clustering.embedding import identity, named

    space = ClusterSpace.read(decision, schema, rows)
    # One cluster needs no map: its centre is the only one there is.
    chosen = named(settings.embedding, settings.random_state)
    fitted = (identity() if settings.n_clusters == 1 else chosen).fit(space.encode(rows))
    places, softness = fitted.coordinates, centred_score(decision, score)

    def fit(n_clusters: int) -> ScoreSoftKMeans:
        return ScoreSoftKMeans(n_clusters, m=settings.m, random_state=settings.random_state).fit(places, score=softness)

    if settings.n_clusters == "auto":
        clustering = choose_clusters(places, fit, settings.select)
    else:
        clustering = fit(settings.n_clusters)
    return clustering.labels_, ByEmbedding(space, fitted, clustering.cluster_centers_)


def centred_score(decision: Decision, score: Floats) -> Floats:
    """Scores with 0.5 where the decision turns, in [0, 1] or near it whatever the model's scores are.

    Probabilities are moved; scores without bounds pass through a logistic curve.
    """
    from scipy.special import expit

    if decision.kind in ("proba", "torch", "label") or (score.min() >= 0 and score.max() <= 1):
        return np.asarray(score - decision.cut + 0.5)
    return np.asarray(expit(score - decision.cut))


def _say(provenance: Mapping[str, Any], settings: GroupingSettings, rows: int, found: int) -> dict[str, Any]:
    return {
        **provenance,
        "centre": settings.centre,
        "embedding": str(settings.embedding),
        "n_clusters": found,
        "m": settings.m,
        "random_state": settings.random_state,
        "rows_clustered": rows,
    }


def _accepted(refs: References, gone: list[str]) -> References:
    """The references the model accepts; a warning names the others, an error says that there are none."""
    cut = refs.decision.cut
    good = refs.score < cut
    gone = [f"{refs.names[k]} (score {refs.score[k]:.4g} >= {cut:.4g})" for k in np.flatnonzero(~good)] + gone
    if not good.any():
        raise PositiveReferenceError(
            f"no cluster has a centre that the model accepts: {', '.join(gone)}",
            do='centre="median" or "medoid", or more clusters',
        )
    if not gone:
        return refs
    warnings.warn(f"no references are made of {', '.join(gone)}", FewestWarning, stacklevel=4)
    kept = np.flatnonzero(good)
    assigner = refs.assigner
    if isinstance(assigner, ByEmbedding):
        assigner = replace(assigner, centres=assigner.centres[kept])
    return replace(
        refs,
        frame=refs.frame.iloc[kept].reset_index(drop=True),
        names=tuple(refs.names[k] for k in kept),
        support=refs.support[kept],
        score=refs.score[kept],
        provenance={**refs.provenance, "left_out": gone},
        assigner=assigner,
    )
