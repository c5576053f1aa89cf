import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import fewest as fw
from fewest.errors import UsageError
from fewest.models.trees import Leaf, Split, Tree
from fewest.reporting import explanation_tree_svg, tree_svg, tree_text
from fewest.reporting.tree_drawing import BOX_HEIGHT, BOX_WIDTH, MOST_NODES, clip, fit, lay_out, subtree_sizes, width

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</text><script>alert('x')</script>&\x00\x1b\""


def drawn(svg: str) -> ElementTree.Element:
    """The parsed drawing; parsing fails unless it is well-formed XML that UTF-8 can hold."""
    root = ElementTree.fromstring(svg.encode("utf-8"))
    assert root.tag == f"{SVG}svg"
    return root


def texts(root: ElementTree.Element) -> list[str]:
    """What is written, tooltips left out."""
    return ["".join(part for part in [node.text, *(child.tail for child in node)] if part) for node in _texts(root)]


def _texts(root: ElementTree.Element) -> list[ElementTree.Element]:
    return root.findall(f"{SVG}text")


def paths(root: ElementTree.Element, kind: str) -> list[str]:
    return [path.get("d", "") for path in root.findall(f"{SVG}path") if path.get("class") == kind]


def credit(name: str = "priors") -> Tree:
    schema = fw.Schema.infer(pd.DataFrame({name: [0, 9], "job": ["none", "clerk"]}))
    inner = Split("job", frozenset(["none"]), Leaf(True, negatives=5, positives=15), Leaf(False, negatives=30))
    return Tree.build(schema, Split(name, 3.5, Leaf(False, negatives=70, positives=10), inner))


def grown(depth: int | None, seed: int = 0, columns: int = 6) -> tuple[fw.Explanations, Any]:
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.normal(size=(400, columns)).round(2), columns=[f"feature_{j}" for j in range(columns)])
    y = (random.random(400) < 1 / (1 + np.exp(-3 * X["feature_0"] * X["feature_1"] - X["feature_2"]))).astype(int)
    decision = fw.Decision(DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y))
    out = fw.Explainer(decision, fw.references.leaves(decision, X, y), n_jobs=1).explain(X)
    return out, X


def test_every_node_of_a_small_tree_is_drawn_once() -> None:
    root = drawn(tree_svg(credit(), names=("good", "bad")))
    said = texts(root)
    assert said.count("priors <= 3.5?") == 1
    assert said.count("job is none?") == 1
    assert said.count("good") == 2
    assert said.count("bad") == 1
    assert len(root.findall(f"{SVG}rect")) == 5
    assert len(paths(root, "edge")) == 4
    assert paths(root, "case") == paths(root, "turned") == []
    assert (said.count("yes"), said.count("no")) == (2, 2)


def test_the_case_goes_solid_the_turned_one_dashed_and_the_split_is_named() -> None:
    svg = tree_svg(credit(), case={"priors": 4, "job": "none"}, turned={"priors": 3, "job": "none"})
    root = drawn(svg)
    assert len(paths(root, "case")) == 2
    assert len(paths(root, "turned")) == 1
    assert len(paths(root, "edge")) == 1
    assert "here: priors 4 -> 3" in texts(root)
    assert texts(root).count("this case") == texts(root).count("with the change") == 1
    assert re.search(r"\.turned\{[^}]*stroke-dasharray", svg)
    assert not re.search(r"\.case\{[^}]*stroke-dasharray", svg)
    whole = root.find(f"{SVG}title")
    assert whole is not None
    assert whole.text == (
        "Decision tree with 3 leaves; this case ends in leaf 2 (positive); "
        "with the change it ends in leaf 1 (negative) (priors 4 -> 3)."
    )


def test_the_change_is_named_where_it_decides_and_not_where_it_does_not() -> None:
    root = drawn(tree_svg(credit(), case={"priors": 9, "job": "none"}, turned={"priors": 8, "job": "clerk"}))
    assert "here: job none -> clerk" in texts(root)
    assert not any("priors 9" in text for text in texts(root))


def test_two_changes_are_named_at_two_splits() -> None:
    schema = fw.Schema.infer(pd.DataFrame({"a": [0, 9], "b": [0, 9]}))
    inner = Split("b", 2, Leaf(False), Leaf(True))
    tree = Tree.build(schema, Split("a", 2, inner, Leaf(True)))
    root = drawn(tree_svg(tree, case={"a": 5, "b": 7}, turned={"a": 2, "b": 1}))
    assert {"here: a 5 -> 2", "here: b 7 -> 1"} <= set(texts(root))


def test_support_and_bound_stand_under_the_leaves() -> None:
    said = texts(drawn(tree_svg(credit())))
    assert "80 rows, S/N- 0.67" in said  # 70 of 105 negatives
    assert "30 rows, S/N- 0.29" in said
    assert "20 rows" in said
    bare = texts(drawn(tree_svg(credit(), counts=np.zeros((5, 2)))))
    assert not any("rows" in text or "S/N-" in text for text in bare)


def test_counts_of_another_shape_are_refused() -> None:
    with pytest.raises(UsageError, match=r"shape \(3, 2\)"):
        tree_svg(credit(), counts=np.zeros((3, 2)))


def test_two_rows_are_not_one_case() -> None:
    with pytest.raises(UsageError, match="2 rows"):
        tree_svg(credit(), case=pd.DataFrame({"priors": [1, 2], "job": ["none", "none"]}))


def test_a_drawing_of_an_explanation_ends_where_the_answer_leads() -> None:
    out, X = grown(3)
    row = int(np.flatnonzero(out.answers.moved.any(axis=1))[0])
    root = drawn(explanation_tree_svg(out, row))
    change = out[row].changes[0]
    assert any(text.startswith(f"here: {change.feature}") for text in texts(root))
    assert f"S/N- {out[row].credibility:.2f}" in texts(root)
    same = tree_svg(out.reach.tree, case=X.iloc[[row]], answer=out[row])  # type: ignore[union-attr]
    assert paths(drawn(same), "turned") == paths(root, "turned")
    assert len(paths(root, "turned")) >= 1


def test_a_case_that_is_not_decided_against_has_one_path() -> None:
    out, _ = grown(3)
    row = int(np.flatnonzero(~out.answers.moved.any(axis=1))[0])
    root = drawn(explanation_tree_svg(out, row))
    assert paths(root, "turned") == []
    assert len(paths(root, "case")) >= 1


def test_explanations_towards_points_have_no_tree() -> None:
    X = pd.DataFrame({"debt": [1, 2, 8, 9], "age": [30, 50, 30, 50]})
    decision = fw.Decision(LogisticRegression().fit(X, [0, 0, 1, 1]))
    out = fw.Explainer(decision, fw.references.single(decision, X, [0, 0, 1, 1])).explain(X)
    with pytest.raises(UsageError, match="leaves"):
        explanation_tree_svg(out, 2)


@pytest.mark.parametrize("seed", range(4))
def test_a_large_tree_is_collapsed_but_never_on_the_paths(seed: int) -> None:
    out, _ = grown(None, seed)
    tree = out.reach.tree  # type: ignore[union-attr]
    assert tree.n_nodes > MOST_NODES
    assert len(lay_out(tree)) == MOST_NODES
    for row in np.flatnonzero(out.answers.moved.any(axis=1))[:5]:
        root = drawn(explanation_tree_svg(out, int(row)))
        assert {"this case", "with the change"} <= set(texts(root))
        hidden = [int(text.split()[1]) for text in texts(root) if text.startswith("... ")]
        boxes = len(root.findall(f"{SVG}rect"))
        assert boxes - len(hidden) + sum(hidden) == tree.n_nodes
        forced = 1 + 2 * tree.depth * 2
        assert boxes <= max(MOST_NODES, forced)


def test_a_path_longer_than_the_limit_is_drawn_whole() -> None:
    node: Split | Leaf = Leaf(True)
    for at in range(40):
        node = Split("a", float(at), Leaf(False), node)
    tree = Tree.build(fw.Schema.infer(pd.DataFrame({"a": [0, 99]})), node)
    root = drawn(tree_svg(tree, case={"a": 90}))
    assert len(paths(root, "case")) == 40
    assert not any(text.startswith("... ") for text in texts(root))


def test_boxes_do_not_overlap_and_words_stay_in_their_boxes() -> None:
    out, _ = grown(None, columns=3)
    root = drawn(explanation_tree_svg(out, int(np.flatnonzero(out.answers.moved.any(axis=1))[0])))
    corners = [(float(rect.get("x", "")), float(rect.get("y", ""))) for rect in root.findall(f"{SVG}rect")]
    for k, (x, y) in enumerate(corners):
        for other_x, other_y in corners[:k]:
            assert abs(x - other_x) >= BOX_WIDTH or abs(y - other_y) >= BOX_HEIGHT + 18  # room for a line under it
    assert len(corners) > 10


@pytest.mark.parametrize("name", ["w" * 200, "MONTHS SINCE THE MOST RECENT INQUIRY " * 3, "年齢帯" * 40])
def test_long_names_are_shortened_with_the_whole_text_in_the_tooltip(name: str) -> None:
    tree = credit(name)
    root = drawn(tree_svg(tree, case={name: 4, "job": "none"}, turned={name: 3, "job": "none"}, names=(name, "bad")))
    for node in _texts(root):
        text = "".join([node.text or "", *(child.tail or "" for child in node)])
        if node.get("class") not in ("small", "tag"):
            size = 11 * 1.1 if node.get("class") == "here" else 13
            assert width(text) * size <= BOX_WIDTH
    tips = [tip.text for tip in root.iter(f"{SVG}title")]
    assert f"{name} <= 3.5?" in tips
    assert any(text.endswith("4 -> 3") for text in texts(root))
    assert "<= 3.5?" in texts(root)


def test_hostile_names_and_values_are_escaped_and_the_xml_is_valid() -> None:
    schema = fw.Schema.infer(pd.DataFrame({HOSTILE: [HOSTILE, "b"]}))
    tree = Tree.build(schema, Split(HOSTILE, frozenset([HOSTILE]), Leaf(True), Leaf(False)))
    svg = tree_svg(tree, case={HOSTILE: HOSTILE}, turned={HOSTILE: "b"}, names=(HOSTILE, HOSTILE + "\ud800"))
    tags = {node.tag.removeprefix(SVG) for node in drawn(svg).iter()}
    assert tags == {"svg", "title", "style", "path", "rect", "text"}
    assert "<script" not in svg
    assert "&lt;script&gt;" in svg


def test_the_drawing_stands_alone_and_knows_the_dark() -> None:
    svg = tree_svg(credit())
    assert "prefers-color-scheme:dark" in svg
    assert not re.search(r"url\(|@import|href|<script|\son\w+=", svg)
    assert svg.count("http") == 1  # the namespace


def test_a_single_leaf_is_a_drawing_too() -> None:
    tree = Tree.build(fw.Schema.infer(pd.DataFrame({"a": [0, 1]})), Leaf(True, positives=3))
    root = drawn(tree_svg(tree, case={"a": 0}))
    assert len(root.findall(f"{SVG}rect")) == 1
    assert "3 rows" in texts(root)
    assert tree_text(tree) == "positive (3 rows, 3 of them positive)"


def test_subtree_sizes_count_themselves() -> None:
    assert subtree_sizes(credit()).tolist() == [5, 1, 3, 1, 1]


def test_clipped_texts_fit_and_short_ones_are_left_alone() -> None:
    assert clip("age", 10) == "age"
    for room in (2.0, 5.0, 11.0):
        assert width(clip("checking_status_of_the_account", room)) <= room
        assert width(fit("checking_status_of_the_account", " is no account", room)) <= room
    assert fit("checking_status_of_the_account", " <= 6.5?", 9.0).endswith(" <= 6.5?")


def test_a_tree_in_words_has_every_question_and_every_leaf() -> None:
    assert tree_text(credit(), names=("good", "bad")).splitlines() == [
        "priors <= 3.5?",
        "  yes: good (80 rows, 10 of them bad)",
        "  no: job is none?",
        "    yes: bad (20 rows, 15 of them bad)",
        "    no: good (30 rows, 0 of them bad)",
    ]
