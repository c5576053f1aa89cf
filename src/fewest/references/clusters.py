"""One reference per group of like accepted cases, so that a case is compared with its own kind (SEV-cluster).

`clusters` groups all accepted cases, `near_threshold` those that were only just accepted.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from fewest.decision import Decision
from fewest.errors import DataError, FewestWarning, PositiveReferenceError, check_count, check_number, check_word
from fewest.references.base import Assignment, References, check_assignment, scored
from fewest.references.by_embedding import ByEmbedding
from fewest.references.single import CENTRES, Centre, centre_of
from fewest.references.spread import Spread
from fewest.references.training_rows import TrainingRows
from fewest.tables.arrays import Floats
from fewest.tables.schema import Schema

if TYPE_CHECKING:
    from fewest.references.clustering import Embedding, ScoreSoftKMeans

Select = Literal["silhouette", "bic"]
Preset = Literal["paper", "authors"]
SHOWN = 3
KIND = "near threshold"
# What `clusters` does where nothing is said, and what the paper's text and the authors' code do instead.
DEFAULTS: dict[str, Any] = {
    "centre": "median", "embedding": "identity", "assignment": "sparsest", "min_share": 0.02,
    "centre_of": "accepted", "sent_to": "centroid", "softness": "score",
}  # fmt: skip
_BOTH = {"embedding": "pacmap", "assignment": "embedding", "min_share": 0.0, "sent_to": "reference"}
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {**DEFAULTS, **_BOTH, "centre": "mean", "centre_of": "all"},
    "authors": {**DEFAULTS, **_BOTH, "softness": "step"},
}
AUTHORS_MIDDLE_NEAR = 1.0  # pairs at middle distance that PaCMAP looks at, per neighbour; its own default is 0.5


def clusters(
    decision: Decision,
    X: Any,
    y: Any,
    *,
    n_clusters: int | Literal["auto"] = 8,
    centre: Centre | None = None,
    embedding: str | Embedding | None = None,
    assignment: Assignment | None = None,
    m: float = 2.0,
    select: Select = "silhouette",
    schema: Schema | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    random_state: int = 0,
    max_rows: int = 20_000,
    min_share: float | None = None,
    preset: Preset | None = None,
) -> References:
    """Typical cases of several kinds that were accepted.

    The rows labelled negative are clustered by score-based soft k-means; each cluster's reference is the centre of
    those of its rows that the model accepts. Clusters with hardly any such rows, and centres the model decides
    against, are left out with a warning.

    The defaults are those that brought explanations closest on held-out training rows of six datasets, in standard
    deviations and in Gower distance, without asking for more features than one reference for all
    (docs/benchmarks/clusters.md). ``preset`` is the paper's own way instead.

    Parameters
    ----------
    decision, X, y, schema, groups
        As in `single`.
    n_clusters : int or "auto"
        How many; 1 is `single`, over the accepted rows. ``auto`` takes the best number from 2 to 10.
    centre : str, optional
        ``mean``, ``median`` or ``medoid`` as in `single`. A medoid is a real row: mind whose before you publish it.
        Default: ``median``.
    embedding : str or Embedding, optional
        Map the clusters are found in: ``identity`` (none: the encoded rows; default), ``pca``, or ``pacmap`` (needs the
        extra ``cluster``).
    assignment : str, optional
        Which reference a case is compared with. ``features``: the closest, feature by feature; ``embedding``: that of
        the cluster it falls into; ``sparsest`` (default): the one that needs the fewest features.
    m : float
        How much softer rows belong to clusters when the model's score is high; the authors use 1.01 to 3.
    select : str
        What ``auto`` goes by: ``silhouette`` or ``bic``.
    random_state : int
    max_rows : int
        More negative rows than this are sampled.
    min_share : float, optional
        Clusters with fewer than this share of the accepted rows are left out: one freak group that turns every decision
        by one feature would otherwise be everybody's reference. Default: 0.02.
    preset : str, optional
        ``paper``: SEV-cluster as the paper's text has it. Clusters on a PaCMAP map, the mean of *all* rows of a cluster
        as its reference, no least share, and a case is compared with the reference that is nearest to it on the map.
        ``authors``: as their code has it, with the median of the cluster's accepted rows, memberships in two steps and
        PaCMAP's pairs as they set them. What is given beside it goes before the preset. The paper has a number of
        clusters and an ``m`` for each dataset: pass them. docs/methods/clusters.md says what still differs.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 1, 1, 1, 1, 9, 9], "age": [20, 21, 22, 60, 62, 30, 50]})
    >>> y = [0, 0, 0, 0, 0, 1, 1]
    >>> decision = Decision(LogisticRegression().fit(X, y))
    >>> refs = clusters(decision, X, y, n_clusters=2)
    >>> refs.frame["age"].tolist(), refs.support.tolist()
    ([21, 61], [3, 2])
    >>> clusters(decision, X, y, n_clusters=2, preset="paper").provenance["centre_of"]
    'all'
    """
    ways = {"centre": centre, "embedding": embedding, "assignment": assignment, "min_share": min_share}
    settings = GroupingSettings.of(
        preset, ways, n_clusters=n_clusters, m=m, select=select, random_state=random_state, max_rows=max_rows
    )
    training = TrainingRows.read(decision, X, y, schema, groups, compare=True)
    rows = training.accepted
    return _grouped(decision, training.schema, rows, settings, {"kind": "clusters", "rows": len(rows)}, rows)


def near_threshold(
    decision: Decision,
    X: Any,
    y: Any = None,
    *,
    width: float = 0.1,
    schema: Schema | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    n_clusters: int | Literal["auto"] = 1,
    centre: Centre = "median",
    embedding: str | Embedding = "identity",
    assignment: Assignment = "sparsest",
    m: float = 2.0,
    select: Select = "silhouette",
    random_state: int = 0,
    max_rows: int = 20_000,
    min_share: float = 0.02,
) -> References:
    """Typical cases among those the model accepted with a score just below the threshold.

    The official commentary on Regulation B (12 CFR 1002.9(b)(2), comments 4 and 5) lets a creditor compare a refused
    applicant with those whose score was at or slightly above the passing score.

    Such references are close to the refused cases, and explanations that lead to them change the outcome
    narrowly and change more features: a reference near the line leaves little to spare.

    Parameters
    ----------
    decision : Decision
    X : table
        Training rows.
    y : (n,) labels, optional
        Where given, only rows that do not have the positive label are used. Read as in `single`.
    width : float
        The band of scores below the threshold, in the units of the score.
    n_clusters, centre, embedding, assignment, m, select, schema, groups, random_state, max_rows, min_share
        As in `clusters`; one reference by default.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"debt": [1, 2, 4, 5, 6, 8, 9]}); y = [0, 0, 0, 0, 1, 1, 1]
    >>> decision = Decision(LogisticRegression().fit(X, y))
    >>> near_threshold(decision, X, y, width=0.4).frame["debt"].tolist()
    [4]
    """
    ways = {"centre": centre, "embedding": embedding, "assignment": assignment, "min_share": min_share}
    settings = GroupingSettings.of(
        None, ways, n_clusters=n_clusters, m=m, select=select, random_state=random_state, max_rows=max_rows
    )
    check_number("width", width, "use a number above 0, in the units of the score", above=0)
    training = TrainingRows.read(decision, X, y, schema, groups, compare=True)
    rows = training.accepted
    score, positive = decision.verdicts(rows)
    band = ~positive & (score >= decision.cut - width)
    if not band.any():
        below = np.unique(score[~positive])[::-1][:SHOWN]
        nearest = f"the nearest below are {', '.join(f'{s:.4g}' for s in below)}" if len(below) else "none is below"
        raise DataError(
            f"no accepted row has a score in [{decision.cut - width:.4g}, {decision.cut:.4g}); {nearest}",
            do="widen the band with width=" if len(below) else "check `positive=` and the threshold",
        )
    accepted = rows if y is not None else rows[~positive]
    provenance = {"kind": KIND, "width": width}
    return _grouped(decision, training.schema, rows[band], settings, provenance, accepted, called=KIND)


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
    centre_of: Literal["accepted", "all"]  # rows of a cluster that its centre is taken of
    sent_to: Literal["centroid", "reference"]  # whose place on the map a case is sent to, with ``embedding``
    softness: Literal["score", "step"]  # what a row's membership goes by: its score, or whether it is refused
    preset: Preset | None

    @classmethod
    def of(cls, preset: Preset | None, ways: Mapping[str, Any], **others: Any) -> GroupingSettings:
        """The settings of a preset, or the defaults; of ``ways`` those that are given go before it."""
        if preset is not None:
            check_word("preset", preset, PRESETS)
        given = {name: value for name, value in ways.items() if value is not None}
        return cls(**{**(DEFAULTS if preset is None else PRESETS[preset]), **given}, **others, preset=preset)

    def __post_init__(self) -> None:
        check_word("centre", self.centre, CENTRES)
        check_assignment(self.assignment)
        if self.n_clusters != "auto":
            check_count("n_clusters", self.n_clusters, do=', or "auto"')
        check_word("select", self.select, ("silhouette", "bic"))
        check_number("m", self.m, "use a number above 0", above=0)
        check_count("max_rows", self.max_rows)
        check_number("min_share", self.min_share, "use a share from 0 to below 1", least=0, most=np.nextafter(1, 0))


def _grouped(
    decision: Decision, schema: Schema, rows: pd.DataFrame, settings: GroupingSettings, provenance: Mapping[str, Any],
    population: pd.DataFrame, called: str | None = None,
) -> References:  # fmt: skip
    """One reference per cluster of rows, made of its accepted rows or of all; ``population`` gives the spread."""
    if len(rows) > settings.max_rows:
        random = np.random.default_rng(settings.random_state)
        rows = rows.iloc[np.sort(random.choice(len(rows), settings.max_rows, replace=False))]
    if settings.n_clusters != "auto" and settings.n_clusters > len(rows):
        raise DataError(
            f"there are {len(rows)} rows but n_clusters is {settings.n_clusters}", do=f"use at most {len(rows)}"
        )
    verdicts = decision.verdicts(rows)
    if verdicts.positive.all():
        raise PositiveReferenceError(
            f"the model refuses all {len(rows)} rows that references are made of "
            f"(lowest score {verdicts.score.min():.4g} >= {decision.cut:.4g})",
            do="check the labels, `positive=` and the threshold",
        )
    labels, assigner = _cluster(decision, schema, rows, verdicts.score, settings)
    counted = ~verdicts.positive if settings.centre_of == "accepted" else np.ones(len(rows), dtype=bool)
    groups = [np.flatnonzero((labels == k) & counted) for k in range(len(assigner.places))]
    order = sorted(range(len(groups)), key=lambda k: -len(groups[k]))  # the largest is cluster 1
    names = {k: f"{called or 'cluster'} {place + 1}" for place, k in enumerate(order)}
    if called is not None and len(order) == 1:
        names = {order[0]: called}
    least = max(1.0, settings.min_share * sum(map(len, groups)))
    filled = [k for k in order if len(groups[k]) >= min(least, len(groups[order[0]]))]
    refs = scored(
        decision, schema, [centre_of(schema, rows.iloc[groups[k]], settings.centre) for k in filled],
        [names[k] for k in filled], [len(groups[k]) for k in filled], on_positive="allow",
        assignment=settings.assignment,
        provenance={
            **provenance, "centre": settings.centre, "embedding": str(settings.embedding), "n_clusters": len(groups),
            "m": settings.m, "random_state": settings.random_state, "rows_clustered": len(rows), **_preset(settings),
        },
        assigner=assigner.take(filled), rescue=True,
    )  # fmt: skip
    gone = [f"{names[k]} ({_too_few(len(groups[k]))})" for k in order if k not in filled]
    people = {names[k]: rows.iloc[groups[k]] for k in filled}
    refs = _accepted(refs, gone, list(people.values()))
    if settings.sent_to == "reference" and isinstance(refs.assigner, ByEmbedding):
        refs = replace(refs, assigner=replace(refs.assigner, places=refs.assigner.locate(refs.frame)))
    return replace(refs, spread=Spread.of(schema, population, [people[name] for name in refs.names]))


def _preset(settings: GroupingSettings) -> dict[str, Any]:
    """What a preset decides beside what is always noted."""
    names = ("preset", "centre_of", "sent_to", "softness", "min_share")
    return {} if settings.preset is None else {name: getattr(settings, name) for name in names}


def _too_few(accepted: int) -> str:
    if accepted == 0:
        return "the model accepts none of its rows"
    return f"too few to be typical: {accepted} row{'s' if accepted != 1 else ''}"


def _cluster(
    decision: Decision, schema: Schema, rows: pd.DataFrame, score: Floats, settings: GroupingSettings
) -> tuple[npt.NDArray[np.int32], ByEmbedding]:
    """Cluster of each row, and the rule for other rows."""
    # scikit-learn and the compiled rule are loaded here, so that importing fewest stays light.
    from fewest.references.clustering import ClusterSpace, ScoreSoftKMeans
    from fewest.references.clustering.embedding import identity, named, pacmap
    from fewest.references.clustering.soft_kmeans import choose_clusters

    space = ClusterSpace.read(decision, schema, rows)
    # One cluster needs no map: its centre is the only one there is.
    chosen = named(settings.embedding, settings.random_state)
    if settings.preset == "authors" and isinstance(chosen, pacmap):
        chosen = replace(chosen, middle_near=AUTHORS_MIDDLE_NEAR)
    fitted = (identity() if settings.n_clusters == 1 else chosen).fit(space.encode(rows))
    places, softness = fitted.coordinates, centred_score(decision, score)
    if settings.softness == "step":
        softness = np.where(score >= decision.cut, 1.0, 0.0)

    def fit(n_clusters: int) -> ScoreSoftKMeans:
        return ScoreSoftKMeans(n_clusters, m=settings.m, random_state=settings.random_state).fit(places, score=softness)

    count = settings.n_clusters
    clustering = choose_clusters(places, fit, settings.select) if count == "auto" else fit(count)
    return clustering.labels_, ByEmbedding(space, fitted, clustering.cluster_centers_)


def centred_score(decision: Decision, score: Floats) -> Floats:
    """Scores with 0.5 where the decision turns, in [0, 1] or near it whatever the model's scores are.

    Probabilities are moved; scores without bounds pass through a logistic curve.
    """
    from scipy.special import expit

    if decision.kind in ("proba", "torch", "label") or (score.min() >= 0 and score.max() <= 1):
        return np.asarray(score - decision.cut + 0.5)
    return np.asarray(expit(score - decision.cut))


def _accepted(refs: References, gone: list[str], people: Sequence[pd.DataFrame]) -> References:
    """The references the model accepts; a warning names the others, an error says that there are none."""
    cut = refs.decision.cut
    good = refs.score < cut
    gone = [f"{refs.names[k]} (score {refs.score[k]:.4g} >= {cut:.4g})" for k in np.flatnonzero(~good)] + gone
    if not good.any():
        raise PositiveReferenceError(
            f"no cluster has a centre that the model accepts: {', '.join(gone)}",
            do=_centres_that_work(refs, people),
        )
    if not gone:
        return refs
    warnings.warn(f"no references are made of {', '.join(gone)}", FewestWarning, stacklevel=4)
    kept = np.flatnonzero(good)
    assigner = refs.assigner
    if isinstance(assigner, ByEmbedding):
        assigner = assigner.take(kept.tolist())
    return replace(refs.take(kept.tolist()), provenance={**refs.provenance, "left_out": gone}, assigner=assigner)


def _centres_that_work(refs: References, people: Sequence[pd.DataFrame]) -> str:
    """Centres the model accepts of the same people; a medoid is one of them, and nearly always is."""
    found = []
    for centre in CENTRES:
        points = [centre_of(refs.schema, rows, centre) for rows in people]
        names, support = refs.names, refs.support.tolist()
        other = scored(refs.decision, refs.schema, points, names, support, on_positive="allow", rescue=True)
        if (other.score < other.decision.cut).any():
            found.append(f'centre="{centre}"' + (" (a real case: mind whose)" if centre == "medoid" else ""))
    return " or ".join(found) or "check the labels, `positive=` and the threshold"
