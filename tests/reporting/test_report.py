import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fewest as fw
from fewest.reporting import html
from fewest.reporting.page import MAX_BYTES, NOTE
from fewest.reporting.views import PopulationView
from fewest.reporting.views._groups import often
from fewest.results.drawing import Bar, percent

HOSTILE = '<script>alert("x")</script>'
VOID = {"meta", "br", "img", "link"}


class Checker(HTMLParser):
    """Collects tags, and complains where they do not nest."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag


def parse(page: str) -> Checker:
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    return checker


def explanations(p: int = 4, n: int = 200, names: list[str] | None = None, **options: object) -> fw.Explanations:
    random = np.random.default_rng(1)
    X = pd.DataFrame(random.normal(size=(n, p)).round(2), columns=names or [f"f{j}" for j in range(p)])
    y = (X.sum(axis=1) > 0).astype(int).to_numpy()
    decision = fw.Decision(LogisticRegression().fit(X, y))
    return fw.Explainer(decision, fw.references.single(decision, X, y), **options).explain(X)  # type: ignore[arg-type]


def test_the_page_stands_alone_and_is_well_formed() -> None:
    page = html(explanations(), title="A title")
    tags = parse(page).tags
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in tags}
    assert not any(name.startswith("on") or name in ("src", "href") for _, attrs in tags for name in attrs)
    assert "url(" not in page
    assert "<title>A title</title>" in page
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page
    assert page.count(NOTE) == 2
    assert len(page.encode()) < MAX_BYTES


def test_the_summary_sentence_counts_refusals_and_single_features() -> None:
    out = explanations()
    against = len(out) - out.counts()["ALREADY_NEGATIVE"]
    share = (out.sev.dropna() == 1).sum() / against
    expected = f"{against:,} of 200 cases were refused; for {percent(share)} one feature changes the outcome."
    assert PopulationView(out, verb="refused").summary == expected
    assert expected in html(out, verb="refused")
    assert "cases were predicted 1;" in html(out)


def test_charts_have_a_table_twin_with_the_same_figures() -> None:
    out = explanations()
    page = html(out)
    svgs = re.findall(r'<figure class="fw fw-chart">.*?<svg(.*?)</svg>', page, flags=re.S)
    assert len(svgs) == 3
    sizes, counts = np.unique(out.sev.dropna(), return_counts=True)
    for size, count in zip(sizes, counts, strict=True):
        assert f">{count} (" in svgs[0]
        assert re.search(rf">{size} features?</th><td class=\"n\">{count}</td>", page)


def test_hostile_names_values_and_titles_are_escaped() -> None:
    random = np.random.default_rng(0)
    X = pd.DataFrame({HOSTILE: random.choice([HOSTILE, "'\"&"], 60), "b": random.normal(size=60)}, index=[HOSTILE] * 60)
    y = (X[HOSTILE] == HOSTILE).to_numpy().astype(int)

    def score(rows: pd.DataFrame) -> np.ndarray:
        return np.where(rows[HOSTILE] == HOSTILE, 0.9, 0.1)

    decision = fw.Decision(score, positive=1)
    references = fw.references.supplied(decision, X.iloc[[int(np.argmin(y))]], X=X, names=[HOSTILE])
    out = fw.Explainer(decision, references).explain(X)
    page = html(out, title=HOSTILE, verb=HOSTILE)
    assert out.counts()["EXPLAINED"] > 0
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "script" not in {tag for tag, _ in parse(page).tags}


def test_ten_cases_are_shown_five_at_random_and_five_hardest() -> None:
    out = explanations(p=6)
    chosen = PopulationView(out).survey.examples()
    rows = [row for row, _ in chosen]
    assert len(set(rows)) == 10
    assert [why for _, why in chosen] == ["drawn at random"] * 5 + ["most features changed"] * 5
    assert chosen == PopulationView(out, 0).survey.examples()
    assert chosen != PopulationView(out, 1).survey.examples()
    sev = out.answers.moved.sum(axis=1)
    rest = [row for row in range(len(out)) if row not in rows]
    assert sev[rows[5:]].min() >= sev[rest].max()
    assert html(out).count("<article>") == 10


def test_changed_features_come_first_and_are_marked() -> None:
    out = explanations()
    row = PopulationView(out).survey.examples()[0][0]
    case = PopulationView(out).case(row)
    changed = [change.feature for change in out[row].changes]
    assert [line.feature for line in case.rows if line.changed] == changed
    shown = re.findall(r'<tr class="fw-(changed|same)"><th scope="row">(\w+)', str(case.table()))
    assert shown[: len(changed)] == [("changed", name) for name in changed]
    assert {kind for kind, _ in shown[len(changed) :]} == {"same"}


def test_a_report_of_a_run_folder_says_what_that_of_the_table_says(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from fewest.runs import Run, explain_files

    random = np.random.default_rng(1)
    X = pd.DataFrame(random.normal(size=(200, 4)).round(2), columns=list("abcd"))
    X.to_parquet(tmp_path / "cases.parquet")
    decision = fw.Decision(lambda rows: rows.to_numpy().sum(axis=1), positive="bad", threshold=0.0)
    explainer = fw.Explainer(decision, fw.references.supplied(decision, {name: [-0.5] for name in "abcd"}), n_jobs=1)
    explain_files(explainer, tmp_path / "cases.parquet", tmp_path / "run", n_jobs=1)
    out = explainer.explain(X)
    pages = [html(replace(out, notes=()), "A title"), html(Run.open(tmp_path / "run"), "A title")]
    # Only the folder knows its rules and what it was made of.
    only = r"<style>.*?</style>|Model: [^<]*|<section>\s*<h2>About this run.*?</section>|<p[^>]*>[^<]*<code>.*?/p>"
    words = [re.sub(only, "", page.replace("not an answer", "stays bad"), flags=re.S).split() for page in pages]
    assert words[0] == words[1]


@pytest.mark.slow
def test_a_thousand_features_with_long_names_stay_below_the_limit() -> None:
    names = [f"{'<&>' * 60}{j}" for j in range(300)]
    page = html(explanations(p=300, n=400, names=names))
    assert len(page.encode()) < MAX_BYTES
    parse(page)


def test_unreachable_cases_are_listed_with_what_is_known() -> None:
    out = explanations(constraints=fw.Constraints(*[fw.Immutable(f"f{j}") for j in range(4)]))
    page = html(out)
    parse(page)
    assert out.counts()["UNREACHABLE"] > 20
    assert "Cases without a proved answer" in page
    assert f"{out.counts()['UNREACHABLE'] - 20} more are among the answers" in page
    assert "<svg" not in page


def test_nobody_refused_is_said_and_not_drawn() -> None:
    X = pd.DataFrame({"a": [1.0, 2.0]})
    decision = fw.Decision(lambda rows: np.zeros(len(rows)))
    out = fw.Explainer(decision, fw.references.supplied(decision, X.iloc[[0]], X=X)).explain(X)
    page = html(out)
    parse(page)
    assert "0 of 2 cases were refused: there is nothing to explain." in page


def test_sev_plus_speaks_of_values_that_bring_the_decision_about() -> None:
    out = explanations(direction="plus")
    page = html(out)
    assert "one value alone is enough for the outcome" in page
    assert "(kept)" in page
    assert "(changed)" not in page


def test_a_feature_in_most_explanations_is_pointed_out() -> None:
    bars = [Bar("age", 95, 0.95), Bar("job", 50, 0.5)]
    warned = '"age" is in 95 % of the explanations: they may say little about the single case.'
    assert often(bars, 100) == [warned]


@pytest.mark.parametrize(("share", "text"), [(1.0, "100 %"), (0.0, "0 %"), (0.996, "99.6 %"), (0.004, "0.4 %")])
def test_percent_never_rounds_to_all_or_nothing(share: float, text: str) -> None:
    assert percent(share) == text


def test_with_weights_the_least_cost_is_proved_and_not_the_smallest_set() -> None:
    """Three features that cost 1 each, or one that costs 5: the answer has as many features as it costs."""

    def score(rows: pd.DataFrame) -> np.ndarray:
        cheap = (rows[["a", "b", "c"]].to_numpy() > 0).any(axis=1)
        return np.asarray(cheap & (rows["dear"].to_numpy() > 0), dtype=float)

    decision = fw.Decision(score, positive=1)
    refs = fw.references.supplied(decision, {"a": [0], "b": [0], "c": [0], "dear": [0]})
    case = {"a": [1], "b": [1], "c": [1], "dear": [1]}
    out = fw.Explainer(decision, refs, weights={"dear": 5}, n_jobs=1).explain(case)
    assert out[0].cost == out[0].sev == 3
    page = html(out)
    assert "no smaller set" not in page
    assert "the smallest set was found" not in page
    assert "proved: no cheaper set does it" in page
    plain = html(fw.Explainer(decision, refs, n_jobs=1).explain(case))
    assert "proved: no smaller set does it" in plain
    assert "the smallest set was found, proved" in plain


def test_an_example_says_how_much_is_enough() -> None:
    decision = fw.Decision(lambda rows: rows["debt"].to_numpy() / 100, positive="bad")
    refs = fw.references.supplied(decision, {"debt": [10]}, X={"debt": [0, 50, 99]})
    page = html(fw.Explainer(decision, refs).explain({"debt": [80, 20]}), enough=True)
    parse(page)
    assert "How much is enough?" in page
    assert "<td>49 or less</td>" in page
