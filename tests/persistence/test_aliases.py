"""Files name classes by their place: whatever place an earlier version wrote, the class is found, and no other."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import fewest as fw
from fewest.errors import ModelError
from fewest.persistence import load_model
from fewest.persistence._aliases import PACKAGES, home_of
from fewest.persistence._types import BUILT_BY, is_listed

pytest.importorskip("skops.io")
import hostile_models

WRITTEN_BEFORE = Path(__file__).parent / "written_before"
# Places that some version wrote into files. They are added to when something moves; nothing is taken away.
STRUCTURE = (
    "base.Ensemble", "base.Reading", "boosted_lightgbm._Values", "boosted_xgboost._Codes", "hist_gradient._Prepared",
)  # fmt: skip
PATHS = [
    *(("ObjectNode", f"fewest.structure.{name}") for name in STRUCTURE),
    *(("ObjectNode", f"fewest.engine.structure.{name}") for name in STRUCTURE),
    ("ObjectNode", "fewest.training.leaf_sum.Guarded"),
    ("ObjectNode", "fewest.training.leaf_sum.LeafSumClassifier"),
    ("ObjectNode", "fewest.models.training.leaf_sum.Guarded"),
    ("ObjectNode", "fewest.models.training.leaf_sum.LeafSumClassifier"),
    ("FunctionNode", "fewest.structure.base.as_float32_values"),
    ("FunctionNode", "fewest.structure.base.as_floats"),
    ("FunctionNode", "fewest.engine.structure.base.as_float32_values"),
    ("FunctionNode", "fewest.engine.structure.base.as_floats"),
]


def found(path: str) -> Any:
    """The class or function at a place; an error if it is not there."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


@pytest.mark.parametrize(("loader", "path"), PATHS)
def test_every_place_once_written_leads_to_a_listed_class_that_is_there(loader: str, path: str) -> None:
    module, _, name = path.rpartition(".")
    now = ".".join(home_of(module, name))
    assert callable(found(now))
    assert is_listed(loader, now)


def test_every_class_of_ours_on_the_list_is_where_the_list_says_and_among_those_once_written() -> None:
    """Whoever moves a class has to say in `_aliases` where it was."""
    ours = [(loader, path) for loader, paths in BUILT_BY.items() for path in paths if path.startswith("fewest.")]
    assert ours
    for loader, path in ours:
        thing = found(path)
        assert f"{thing.__module__}.{thing.__qualname__}" == path, "files would name another place"
        assert (loader, path) in PATHS


def test_a_class_that_is_gone_would_be_noticed() -> None:
    """Negative control."""
    with pytest.raises((ImportError, AttributeError)):
        found(".".join(home_of("fewest.structure.base", "Gone")))


@pytest.mark.parametrize("path", sorted(WRITTEN_BEFORE.glob("*.fewest")), ids=lambda path: path.stem)
def test_every_place_that_an_old_file_names_is_there(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        model = io.BytesIO(archive.read("model.skops"))
    with zipfile.ZipFile(model) as archive:
        nodes = hostile_models.nodes_in(json.loads(archive.read("schema.json")))
    assert len(nodes) > 10
    for node in nodes:
        found(".".join(home_of(node["__module__"], node["__class__"])))


def leaf_sum() -> tuple[Any, np.ndarray]:
    """A model whose files name places of ours: its trees, how they are prepared, and what guards them."""
    from fewest.engine.structure import read
    from fewest.models.training.leaf_sum import LeafSumClassifier

    X, y = hostile_models.data()
    booster = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5, random_state=0).fit(X, y)
    return LeafSumClassifier.from_ensemble(read(booster), booster.classes_, X.shape[1]), X


def renamed(data: bytes, rename: Callable[[str], str]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    members["schema.json"] = rename(members["schema.json"].decode()).encode()
    return hostile_models.zipped(members)


def as_before(text: str) -> str:
    for before, now in PACKAGES.items():
        text = text.replace(f'"{now}.', f'"{before}.')
    return text


def test_a_skops_file_that_names_the_old_places_loads_and_scores_the_same(tmp_path: Path) -> None:
    from fewest.persistence._skops import dump_skops

    model, X = leaf_sum()
    path = tmp_path / "old.skops"
    path.write_bytes(renamed(dump_skops(model), as_before))
    with zipfile.ZipFile(path) as archive:
        schema = archive.read("schema.json").decode()
    assert '"fewest.structure.base"' in schema
    assert '"fewest.training.leaf_sum"' in schema
    assert '"fewest.engine.' not in schema
    assert np.array_equal(load_model(path).predict_proba(X), model.predict_proba(X))


def test_an_explainer_that_names_the_old_places_loads(tmp_path: Path) -> None:
    import hostile_boosters

    model, X = leaf_sum()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model.feature_names_in_ = np.array(frame.columns, dtype=object)
    decision = fw.Decision(model, positive=1)
    explainer = fw.Explainer(decision, fw.references.single(decision, frame, hostile_models.data()[1]))
    explainer.save(tmp_path / "new.fewest")
    with zipfile.ZipFile(tmp_path / "new.fewest") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["model.skops"] = renamed(members["model.skops"], as_before)
    old = tmp_path / "old.fewest"
    old.write_bytes(hostile_boosters.resealed(members))
    again = fw.load(old)
    assert [str(answer) for answer in again.explain(frame)] == [str(answer) for answer in explainer.explain(frame)]
    assert np.array_equal(load_model(old).predict_proba(frame), model.predict_proba(frame))


@pytest.mark.parametrize(
    ("loader", "kind"),
    [
        ("ObjectNode", "fewest.structure.base.Structure"),
        ("ObjectNode", "fewest.structure.base.import_module"),
        ("ObjectNode", "fewest.training.all_opt.AllOptClassifier"),
        ("ObjectNode", "fewest.structurebase.Reading"),
        ("ObjectNode", "fewest.structure.base.Reading.__init__"),
        ("ObjectNode", "fewest.trees.tree.Tree"),
        ("FunctionNode", "fewest.structure.base.Reading"),
        ("FunctionNode", "fewest.training.leaf_sum.np"),
        ("TypeNode", "fewest.structure.base.Reading"),
        ("ConstructorFromReduceNode", "fewest.structure.base.Reading"),
        ("OperatorFuncNode", "fewest.training.leaf_sum.Guarded"),
    ],
)
def test_an_old_name_leads_to_no_type_that_is_not_on_the_list(loader: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "sly.skops"
    path.write_bytes(hostile_models.with_attribute(hostile_models.node(loader, kind)))
    with pytest.raises(ModelError, match="not on the list of safe ones"):
        load_model(path)


def test_names_of_others_are_left_alone() -> None:
    assert home_of("sklearn.svm._classes", "SVC") == ("sklearn.svm._classes", "SVC")
    assert home_of("fewest.structural", "X") == ("fewest.structural", "X")
    assert all(now.startswith("fewest.") for now in PACKAGES.values())
