"""Maps: each row's place depends on that row alone, training rows stay where they are, and PaCMAP keeps quiet."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from fewest.errors import UsageError
from fewest.references.clustering import embedding
from fewest.references.clustering.embedding import identity, named, pacmap, pca

RANDOM = np.random.default_rng(0)
Z = np.vstack([RANDOM.normal(loc=3 * k, size=(90, 6)) for k in range(3)])
NEW = RANDOM.normal(loc=3, scale=3, size=(50, 6))
MAPS = [identity(), pca(2), pca(4), pacmap(), pacmap(landmarks=100, neighbours=3)]


def row_alone_is_row_in_batch(transform: Any) -> bool:
    """To the last bit, alone, in a batch, and in another order."""
    together = transform(NEW)
    order = np.random.default_rng(1).permutation(len(NEW))
    alone = np.vstack([transform(NEW[[i]]) for i in range(len(NEW))])
    return bool(np.array_equal(together, alone) and np.array_equal(together[order], transform(NEW[order])))


@pytest.mark.parametrize("kind", MAPS, ids=str)
def test_a_row_alone_is_a_row_in_a_batch_in_any_order(kind: embedding.Embedding) -> None:
    assert row_alone_is_row_in_batch(kind.fit(Z).transform)


def test_the_check_catches_a_map_that_looks_at_the_batch() -> None:
    fitted = pca(2).fit(Z)
    assert not row_alone_is_row_in_batch(lambda rows: fitted.transform(rows) - fitted.transform(rows).mean(axis=0))


@pytest.mark.parametrize("kind", MAPS, ids=str)
def test_training_rows_are_where_they_were_put(kind: embedding.Embedding) -> None:
    fitted = kind.fit(Z)
    assert np.array_equal(fitted.transform(Z), fitted.coordinates)
    assert np.array_equal(kind.fit(Z).coordinates, fitted.coordinates)


def test_pca_is_that_of_scikit_learn() -> None:
    ours, theirs = pca(3).fit(Z), PCA(3).fit(Z)
    assert np.allclose(np.abs(ours.transform(NEW)), np.abs(theirs.transform(NEW)))


def test_new_rows_lie_between_their_nearest_landmarks() -> None:
    fitted = pacmap(neighbours=5).fit(Z)
    assert isinstance(fitted, embedding.Interpolated)
    apart, near = NearestNeighbors(n_neighbors=5).fit(fitted.landmarks.T).kneighbors(NEW)
    weight = apart**-2.0
    expected = (fitted.places[near] * weight[..., None]).sum(axis=1) / weight.sum(axis=1)[:, None]
    assert np.allclose(fitted.transform(NEW), expected, rtol=1e-4)


def test_groups_that_are_far_apart_stay_apart() -> None:
    places = pacmap().fit(Z).coordinates.reshape(3, 90, 2)
    middles = places.mean(axis=1)
    within = float(np.linalg.norm(places - middles[:, None], axis=2).mean(axis=1).max())
    between = min(float(np.linalg.norm(middles[a] - middles[b])) for a, b in ((0, 1), (0, 2), (1, 2)))
    assert between > 2 * within


def test_equal_rows_are_in_one_place_and_few_rows_are_projected() -> None:
    doubled = np.repeat(Z, 2, axis=0)
    places = pacmap().fit(doubled).coordinates
    assert np.array_equal(places[::2], places[1::2])
    assert isinstance(pacmap().fit(Z[:15]), embedding.Projected)
    assert np.isfinite(pca(2).fit(np.zeros((5, 3))).coordinates).all()


def test_nothing_is_printed_or_logged(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    level = logging.getLogger("pacmap.pacmap").level
    pacmap().fit(Z)
    assert caplog.records == []
    assert capsys.readouterr() == ("", "")
    assert logging.getLogger("pacmap.pacmap").level == level


def test_words_stand_for_maps() -> None:
    assert named("pacmap", 3) == pacmap(random_state=3)
    assert named("identity") == identity()
    with pytest.raises(UsageError, match="unknown"):
        named("tsne")


@pytest.mark.slow
def test_a_missing_pacmap_is_named_with_its_install_line() -> None:
    script = """
import sys
sys.modules["pacmap"] = None
import numpy as np
from fewest.references.clustering import pacmap
pacmap().fit(np.random.default_rng(0).normal(size=(60, 3)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert 'pip install "fewest[cluster]"' in done.stderr
