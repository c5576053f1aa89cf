"""Every option that is a word or a count: one that is misspelt, zero or negative is refused with what to write."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import fewest as fw
from fewest import credibility, references
from fewest.apps.cli._files import read_table
from fewest.errors import DataError, FewestError, ModelError, UsageError, check_count, check_number, check_word
from fewest.experiments.peers import NICE
from fewest.models.training import AllOptClassifier
from fewest.models.training._session import make_references
from fewest.models.training.settings import check_settings
from fewest.models.trees.file import from_dict as tree_from_dict
from fewest.references.file import read_saved
from fewest.reporting.plots import ClusterMapDisplay, FeatureFrequencyDisplay, RegionDisplay
from fewest.results import metrics
from fewest.runs import explain_files, verify
from fewest.runs.cases import Cases, pieces
from fewest.runs.parts import read_cases

X = pd.DataFrame({"debt": np.arange(40) % 20, "age": 20 + np.arange(40)})
Y = (X["debt"].to_numpy() >= 12).astype(int)
MODEL = LogisticRegression(max_iter=1000).fit(X, Y)
DECISION = fw.Decision(MODEL)
REFS = references.single(DECISION, X, Y)


def _explainer(**options: Any) -> Any:
    return fw.Explainer(DECISION, REFS, **options)


def _explain(**options: Any) -> Any:
    return _explainer().explain(X, **options)


def _leaves(**options: Any) -> Any:
    return references.leaves(fw.Decision(DecisionTreeClassifier(max_depth=2).fit(X, Y)), X, Y, **options)


def _frequency(**options: Any) -> Any:
    return FeatureFrequencyDisplay.from_explanations(_explain(), **options)


def _map(**options: Any) -> Any:
    return ClusterMapDisplay.from_references(references.clusters(DECISION, X, Y, n_clusters=2), X, **options)


def _of(factory: Callable[..., Any], *given: Any) -> Callable[..., Any]:
    return lambda **options: factory(DECISION, X, Y, *given, **options)


def _settings(estimator: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **options: check_settings(estimator.from_settings(**options))  # type: ignore[attr-defined]


WORDS: list[tuple[Callable[..., Any], str, str, str]] = [
    (lambda **options: fw.Decision(MODEL, **options), "kind", "probe", "proba"),
    (lambda **options: REFS.schema.conform(X, **options), "unseen", "alow", "allow"),
    (lambda **options: fw.Feature("a", columns=("a",), **options), "kind", "interger", "integer"),
    (_explainer, "direction", "Minus", "minus"),
    (_explainer, "unseen", "eror", "error"),
    (_explainer, "structure", "opake", "opaque"),
    (_of(references.single), "centre", "medain", "median"),
    (_of(references.single), "on_positive", "alow", "allow"),
    (_of(references.clusters), "centre", "medoids", "medoid"),
    (_of(references.clusters), "embedding", "pcaa", "pca"),
    (_of(references.clusters), "assignment", "sparset", "sparsest"),
    (_of(references.clusters), "select", "BIC", "bic"),
    (_of(references.clusters), "n_clusters", "autom", "auto"),
    (_of(references.near_threshold), "centre", "meam", "mean"),
    (_leaves, "value", "nearst", "nearest"),
    (lambda **options: references.supplied(DECISION, X[:1], **options), "assignment", "feature", "features"),
    (lambda **options: references.supplied(DECISION, X[:1], **options), "on_positive", "eror", "error"),
    (lambda **options: REFS.with_assignment(**options), "assignment", "sparsets", "sparsest"),
    (lambda **options: REFS.flexible(0.1, **options), "at", "quantile", "quantiles"),
    (_of(credibility.mixture), "covariance", "ful", "full"),
    (lambda **options: fw.Only("age", **options), "direction", "upp", "up"),
    (lambda **options: NICE(**options).fit(DECISION, X, Y), "reward", "sparse", "sparsity"),
    (lambda **options: references.build(decision=DECISION, X=X, y=Y, **options), "kind", "cluster", "clusters"),
    (_settings(AllOptClassifier), "model", "logit", "logistic"),
    (_settings(AllOptClassifier), "schedule", "cosin", "cosine"),
    (
        lambda **options: make_references(AllOptClassifier(references=next(iter(options.values())))),
        "references",
        "singel",
        "single",
    ),
]
COUNTS: list[tuple[Callable[..., Any], str, tuple[Any, ...]]] = [
    (_explainer, "max_nodes", (0, -5, 2.5, "many", True)),
    (_explainer, "n_jobs", (0, -1, 1.5, "all")),
    (_explain, "alternatives", (-1, 1.5, "all", True)),
    (_explain, "time_limit", (-1, float("nan"), float("inf"), "10")),
    (_of(references.clusters), "n_clusters", (0, -1, 2.0, True)),
    (_of(references.clusters), "m", (0, -1, float("nan"), "2")),
    (_of(references.clusters), "max_rows", (0, -1, 10.5)),
    (_of(references.clusters), "min_share", (-0.1, 1, float("nan"), "0.1")),
    (_of(references.near_threshold), "width", (0, -1, float("nan"), "wide")),
    (lambda eps: REFS.flexible(eps), "eps", (-0.1, 0.6, float("nan"), "a bit")),
    (lambda **options: REFS.flexible(0.1, **options), "grid", (1, 0, 2.5)),
    (lambda **options: REFS.flexible(0.1, **options), "passes", (0, -1, 1.5)),
    (_of(credibility.mixture), "quantile", (-0.1, 1.1, float("nan"), "low")),
    (_of(credibility.mixture), "n_components", (0, -1, 1.5)),
    (_of(credibility.mixture), "regularization", (0, -1.0, float("nan"))),
    (_of(credibility.mixture), "max_rows", (0, -1)),
    (_of(credibility.neighbours), "k", (0, -1, 2.5)),
    (_of(credibility.neighbours), "max_rows", (0, -1)),
    (lambda threshold: fw.Decision(MODEL, threshold=threshold), "threshold", (float("nan"), float("inf"), "half")),
    (lambda most: fw.AtMost(most), "AtMost", (0, -1, float("nan"), "two")),
    (lambda cost: _explainer(weights={"age": cost}), "weight", (0, -1, float("inf"), "dear")),
    (lambda **options: metrics.stability(_explainer(), X, **options), "repeats", (0, -1, 1.5)),
    (lambda **options: metrics.stability(_explainer(), X, **options), "noise", (-0.1, float("nan"))),
    (_frequency, "most", (0, -1)),
    (_map, "most", (0, -1)),
    (lambda **options: RegionDisplay.from_explainer(_explainer(), X, **options), "steps", (1, 0, 2.5)),
]
BARE = {"eps": "eps", "threshold": "threshold", "AtMost": "most", "weight": "cost"}


@pytest.mark.parametrize(("call", "name", "misspelt", "meant"), WORDS, ids=lambda part: getattr(part, "__name__", part))
def test_a_misspelt_word_is_refused_with_the_nearest_known_one(
    call: Callable[..., Any], name: str, misspelt: str, meant: str
) -> None:
    with pytest.raises(UsageError, match=f"{name} .*{misspelt}") as refused:
        call(**{name: misspelt})
    assert f'"{meant}"' in str(refused.value.do)


@pytest.mark.parametrize(
    ("call", "name", "value"), [(call, name, value) for call, name, values in COUNTS for value in values]
)
def test_a_number_that_makes_no_sense_is_refused_with_what_does(
    call: Callable[..., Any], name: str, value: Any
) -> None:
    with pytest.raises(UsageError, match=name) as refused:
        call(**{BARE.get(name, name): value})
    assert repr(value) in refused.value.message
    assert refused.value.do


def test_numbers_of_numpy_are_numbers() -> None:
    check_count("k", np.int64(3))
    check_number("m", np.float32(0.5), "", above=0)
    check_word("unseen", np.str_("allow"), ("error", "allow"))
    out = _explainer(max_nodes=np.int64(1000), n_jobs=np.int32(1)).explain(X, alternatives=np.int64(2), time_limit=60)
    assert len(out) == len(X)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((MODEL, X), "a LogisticRegression is not a Decision"),
        ((DECISION, X), "a DataFrame is not a References"),
        ((DECISION, "clusters"), "a str is not a References"),
    ],
)
def test_an_explainer_says_what_it_is_made_of(given: tuple[Any, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        fw.Explainer(*given)
    assert "pass fw." in str(refused.value.do)
    if isinstance(given[1], str):
        assert 'fw.references.build("clusters", decision, X, y)' in str(refused.value.do)


def test_one_constraint_alone_and_a_list_of_them_are_constraints() -> None:
    whole = _explainer(constraints=fw.Constraints(fw.Immutable("age"), fw.AtMost(1))).explain(X)
    for given in ([fw.Immutable("age"), fw.AtMost(1)], (fw.AtMost(1), fw.Immutable("age"))):
        assert (_explainer(constraints=given).explain(X).answers.moved == whole.answers.moved).all()
    alone = _explainer(constraints=fw.Immutable("debt")).explain(X)
    assert not alone.answers.moved[:, REFS.schema.index("debt")].any()


def test_immutable_takes_several_names_and_holds_all_of_them() -> None:
    assert fw.Immutable(name="age") == fw.Immutable("age")
    assert list(fw.Constraints(fw.Immutable("age", "debt"))) == [fw.Immutable("age"), fw.Immutable("debt")]
    out = _explainer(constraints=fw.Immutable("age", "debt")).explain(X)
    assert out.counts()["UNREACHABLE"] == int((DECISION.verdicts(X).positive).sum())
    with pytest.raises(UsageError, match='there is no feature "dept"'):
        _explainer(constraints=fw.Immutable("age", "dept"))


@pytest.mark.parametrize(
    ("make", "words", "do"),
    [
        (lambda: fw.Immutable(["age", "debt"]), "Immutable takes names", r"Immutable\('age', 'debt'\)"),
        (lambda: fw.Immutable(), "needs at least one", "Immutable"),
        (lambda: fw.Linked(["age", "debt"]), "Linked takes names", r"Linked\('age', 'debt'\)"),
        (lambda: fw.Forbidden(["age", "debt"]), "Forbidden takes names", r"Forbidden\('age', 'debt'\)"),
        (lambda: fw.Only(["age", "debt"], "up"), "Only takes names", "one Only for each"),
        (lambda: fw.Range(["age"], 1, 2), "Range takes names", "one Range for each"),
        (lambda: fw.OneOf(["age"], [1]), "OneOf takes names", "one OneOf for each"),
        (lambda: fw.OneOf("job", "clerk"), "a list of levels", r'pass \["clerk"\]'),
        (lambda: fw.Implies("age", 3), "Implies takes names", "one Implies for each"),
        (lambda: _explainer(constraints="age"), "'age' is not a constraint", "Immutable"),
        (lambda: _explainer(constraints={"age": "up"}), "is not a constraint", "Immutable"),
        (lambda: _explainer(constraints=["age"]), "'age' is not a constraint", "Immutable"),
        (lambda: _explainer(constraints=3), "3 is not a constraint", "Immutable"),
        (lambda: _explainer(weights=["age"]), "weights is", "mapping"),
        (lambda: _explainer(credibility=0.05), "a float is not a Credibility", "fw.credibility"),
    ],
)
def test_what_is_not_a_constraint_is_refused_with_what_to_pass(make: Callable[[], Any], words: str, do: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        make()
    assert re.search(do, str(refused.value.do))


class BrokenModel:
    """A model that scores until it is told not to."""

    classes_ = np.array([0, 1])
    broken = False

    def predict_proba(self, rows: pd.DataFrame) -> Any:
        """Debt as a share."""
        if self.broken:
            raise RuntimeError("out of order")
        share = rows["debt"].to_numpy() / 20
        return np.column_stack([1 - share, share])


def _reads_a_column_twice(folder: Path) -> Any:
    (folder / "twice.csv").write_text("debt,debt\n1,2\n")
    return read_table(folder / "twice.csv")


def _reads_a_newer_tree(_: Path) -> Any:
    return tree_from_dict({"format": 99, "kind": "tree"})


def _reads_a_strange_signature(folder: Path) -> Any:
    REFS.save(folder / "refs.json")
    content = json.loads((folder / "refs.json").read_text())
    content["references"][0]["signature"] = {"by": "somebody"}
    (folder / "refs.json").write_text(json.dumps(content))
    return read_saved(folder / "refs.json")


def _reads_nul_bytes(folder: Path) -> Any:
    rows = "".join(f"{k % 20},{k}\n" for k in range(400_000))
    (folder / "nul.csv").write_text("debt,age\n" + rows + "1,\0\n")
    return list(pieces(folder / "nul.csv", REFS.schema))


def _reads_kept_cases_that_do_not_fit(folder: Path) -> Any:
    (folder / "cases.jsonl").write_text('{"debt": "much", "age": 30}\n')
    return read_cases(folder / "cases.jsonl", REFS.schema)


def _conforms_with_a_misspelt_word(_: Path) -> Any:
    return Cases((), REFS.schema, 10, "alow")._conform(X)  # type: ignore[arg-type]


def _verifies_with_a_model_that_fails(folder: Path) -> Any:
    model = BrokenModel()
    decision = fw.Decision(model)
    X.to_csv(folder / "cases.csv", index=False)
    explainer = fw.Explainer(decision, references.supplied(decision, X[:1]))
    run = explain_files(explainer, folder / "cases.csv", folder / "run", n_jobs=1)
    model.broken = True
    return verify(run.path, folder / "cases.csv", decision)


@pytest.mark.parametrize(
    ("call", "kind", "begins"),
    [
        (_reads_a_column_twice, DataError, 'twice.csv has the column "debt" more than once'),
        (_reads_a_newer_tree, DataError, "format 99 of a tree is unknown"),
        (_reads_a_strange_signature, DataError, "a signature cannot be read"),
        (_reads_nul_bytes, DataError, "nul.csv cannot be read as a table: it has NUL bytes"),
        (_reads_kept_cases_that_do_not_fit, DataError, 'row 0 (index 0), column "debt": '),
        (_conforms_with_a_misspelt_word, UsageError, 'unseen "alow" is unknown'),
        (_verifies_with_a_model_that_fails, ModelError, "the model"),
    ],
)
def test_an_error_of_ours_is_not_taken_for_a_value_error_of_somebody_else(
    call: Callable[[Path], Any], kind: type[FewestError], begins: str, tmp_path: Path
) -> None:
    """Errors of ours are ValueErrors as well: where those of other libraries get new words, ours keep their own."""
    with pytest.raises(kind) as caught:
        call(tmp_path)
    assert caught.value.message.startswith(begins)
