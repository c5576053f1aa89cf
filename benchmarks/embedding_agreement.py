"""How often the distilled rule for new rows sends a case to the cluster that PaCMAP's own transform sends it to.

For each dataset: the encoded negatives of the training rows, PaCMAP on 4,000 of them, soft k-means on the map with the
authors' numbers of clusters. `itself` is how many training rows stay in their cluster under PaCMAP's transform: more
agreement with it than that cannot be expected of any rule.

    FEWEST_DATA=... python benchmarks/embedding_agreement.py
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from fewest.experiments.benchmarking import subjects
from fewest.references.clustering import ClusterSpace, ScoreSoftKMeans, pacmap
from fewest.references.clustering.embedding import Interpolated, _quiet

CLUSTERS = {"compas": 5, "fico": 4, "german": 3, "adult": 7, "headline": 2, "diabetes": 4}
NEIGHBOURS = (1, 5, 10, 20)
CASES = 400


def theirs(landmarks: np.ndarray) -> Any:
    """PaCMAP's own map of the landmarks, with its tree kept for new rows."""
    with _quiet():
        from pacmap import PaCMAP

        return PaCMAP(n_components=2, n_neighbors=None, random_state=0, save_tree=True).fit(landmarks)


def row(name: str) -> str:
    subject = subjects.subject(name, "l2lr")
    X, _, y, _ = subjects.load(name)
    schema = subject.references.schema
    negatives = schema.conform(X[np.asarray(y) == 0])
    space = ClusterSpace.read(subject.decision, schema, negatives)
    Z, cases = space.encode(negatives), space.encode(subject.cases.iloc[:CASES])
    began = time.process_time()
    fitted = pacmap().fit(Z)
    build = time.process_time() - began
    assert isinstance(fitted, Interpolated)
    landmarks = np.ascontiguousarray(fitted.landmarks.T)
    clustering = ScoreSoftKMeans(CLUSTERS[name]).fit(fitted.coordinates)
    model = theirs(landmarks)
    with _quiet():
        began = time.process_time()
        moved = clustering.predict(model.transform(cases.astype(np.float32)).astype(float))
        own_time = time.process_time() - began
        again = clustering.predict(model.transform(landmarks[:CASES]).astype(float))
    itself = float(np.mean(again == clustering.predict(fitted.places[:CASES])))
    agreement = []
    for k in NEIGHBOURS:
        rule = Interpolated(fitted.landmarks, fitted.places, k, fitted.coordinates)
        agreement.append(float(np.mean(clustering.predict(rule.transform(cases)) == moved)))
    began = time.process_time()
    fitted.transform(np.tile(cases, (-(-4000 // len(cases)), 1)))
    per_row = (time.process_time() - began) / (len(cases) * -(-4000 // len(cases)))
    cells = " | ".join(f"{share:.1%}" for share in agreement)
    return (
        f"| {name} | {len(landmarks)} x {Z.shape[1]} | {build:.1f} | {cells} | {itself:.1%} | "
        f"{1e6 * per_row:.0f} | {1e6 * own_time / len(cases):.0f} |"
    )


def main() -> None:
    subjects.subject("german", "l2lr")
    pacmap().fit(np.random.default_rng(0).normal(size=(60, 3)))  # compiled before anything is timed
    head = " | ".join(f"k = {k}" for k in NEIGHBOURS)
    print(f"| dataset | landmarks | build, CPU s | {head} | PaCMAP itself | rule, us a row | PaCMAP, us a row |")
    print("|---|---|---|" + "---|" * len(NEIGHBOURS) + "---|---|---|")
    for name in CLUSTERS:
        print(row(name), flush=True)


if __name__ == "__main__":
    main()
