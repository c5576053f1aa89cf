import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fewest.errors import DataError
from fewest.models.trees import C45Classifier, CARTClassifier, Leaf, Split, Tree
from fewest.models.trees.file import as_dict, from_dict, load_tree, save_tree
from fewest.tables.schema import Schema


def mixed(rows: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(0)
    frame = pd.DataFrame({
        "age": random.integers(18, 80, rows),
        "income": random.lognormal(10, 1, rows),
        "job": random.choice(["none", "clerk", "cook"], rows),
        "grade": pd.Categorical(random.choice([1, 2, 3], rows)),
        "owner": random.random(rows) < 0.5,
        "member": pd.array(random.choice([True, False, None], rows), dtype="boolean"),
    })  # fmt: skip
    y = (frame["age"] < 40) ^ (frame["job"] == "none") ^ (random.random(rows) < 0.2)
    frame.loc[random.random(rows) < 0.1, ["income", "job"]] = None
    return frame, y.to_numpy().astype(int)


@pytest.mark.parametrize("model", [CARTClassifier(max_depth=8), C45Classifier(multiway=True, pruning=False)])
def test_a_saved_tree_decides_every_row_as_before(model: CARTClassifier | C45Classifier, tmp_path: Path) -> None:
    frame, y = mixed()
    tree = model.fit(frame, y).tree_
    save_tree(tree, tmp_path / "tree.json", ("ok", "bad"))
    again = load_tree(tmp_path / "tree.json")
    rows = model.schema_.conform(frame, unseen="allow")
    strange = rows.assign(job="astronaut")
    assert tree.n_nodes > 10
    assert again.decide(again.schema.conform(frame, unseen="allow")).tolist() == tree.decide(rows).tolist()
    assert again.decide(strange).tolist() == tree.decide(strange).tolist()
    assert again.threshold.tobytes() == tree.threshold.tobytes()
    assert again.score.tobytes() == tree.score.tobytes()
    assert again.counts.tolist() == tree.counts.tolist()
    assert as_dict(again) == as_dict(tree)


def test_the_file_is_strict_json_with_a_version(tmp_path: Path) -> None:
    tree = Tree.build(Schema.infer(pd.DataFrame({"a": [0, 1]})), Split("a", np.inf, Leaf(True), Leaf(False)))
    save_tree(tree, tmp_path / "tree.json")
    content = json.loads((tmp_path / "tree.json").read_text(), parse_constant=pytest.fail)
    assert content["format"] == 1
    assert content["tree"]["at_most"] is None
    assert from_dict(content).threshold[0] == np.inf


@pytest.mark.parametrize(
    "content",
    [None, [], {}, {"format": 2, "kind": "tree"}, {"format": 1, "kind": "forest"},
     {"format": 1, "kind": "tree", "features": [{}], "dtypes": {}, "tree": {}},
     {"format": 1, "kind": "tree", "features": [], "dtypes": {}, "tree": {"feature": "a"}}],
)  # fmt: skip
def test_what_is_no_saved_tree_is_refused(content: object) -> None:
    with pytest.raises(DataError):
        from_dict(content)


def test_files_that_are_not_there_or_not_json_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="absent"):
        load_tree(tmp_path / "absent.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read as JSON"):
        load_tree(tmp_path / "bad.json")
