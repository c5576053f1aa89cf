"""The paper's figures: their numbers are the records', their files are the same every time, and gaps are said."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

from fewest.errors import MissingExtraError, UsageError
from fewest.experiments import paper
from fewest.experiments.paper import Record, figures
from fewest.experiments.paper.figures import Drawing, blank, draw, means, save
from fewest.experiments.paper.models import MODELS

pytest.importorskip("matplotlib")
WAYS = ("", " unrounded", " clusters", " clusters 0.05", " clusters 0.10", " clusters 0.20")
PAPERS = tuple(way.replace("clusters", "clusters paper") for way in WAYS[2:])


def points(dataset: str, split: int, ways: tuple[str, ...] = WAYS) -> list[Record]:
    """Records in which every number says where it comes from."""
    return [
        Record(dataset, f"{kind}{way}", {
            "sev": 1 + a + b / 10 + split / 100, "l_inf": a + b / 10, "sane_log_likelihood": -a - b / 10,
        })
        for a, kind in enumerate(MODELS)
        for b, way in enumerate(ways)
    ]  # fmt: skip


@pytest.fixture
def records() -> dict[str, list[Record]]:
    both = [record for dataset in ("german", "fico") for split in (0, 1) for record in points(dataset, split)]
    return {"sev1": both, "sevc": both, "sevcf": both}


def test_every_figure_that_is_listed_can_be_found_and_says_what_it_shows() -> None:
    assert {"closeness", "credibility", "flexibility", "cluster_maps", "regions", "hypercube"} <= set(figures.names())
    for name in figures.names():
        figure = figures.find(name)
        assert figure.name == name
        assert figure.title
        assert figure.caption.endswith(".")
        assert "german" in figure.datasets
        assert not figure.tables or set(figure.tables) & set(paper.names())


def test_figures_of_tables_that_are_not_there_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "names", lambda: ("trees",))
    assert figures.names() == ("cluster_maps", "regions", "hypercube", "two_cases", "soft_kmeans", "theorems")
    with pytest.raises(UsageError, match="no figure"):
        figures.find("closeness")


@pytest.mark.parametrize(("name", "column", "sign"), [("closeness", "l_inf", 1), ("credibility", "log_likelihood", -1)])
def test_trade_offs_show_the_means_over_the_splits(
    name: str, column: str, sign: int, records: dict[str, list[Record]]
) -> None:
    numbers = draw(figures.find(name), ["german", "fico"], records).numbers
    assert len(numbers) == 2 * 4 * 3
    line = numbers[(numbers["dataset"] == "fico") & (numbers["label"] == "L1LR")].set_index("variant")
    assert line.loc["SEV1", "sev"] == pytest.approx(2.005)
    assert line.loc["clusters", "sev"] == pytest.approx(2.205)
    assert line.loc["clusters + F 0.10", column] == pytest.approx(sign * 1.4)


def test_other_records_give_other_numbers(records: dict[str, list[Record]]) -> None:
    """Negative control: a figure that ignored its records would pass the test above once."""
    less = {name: [r for r in found if r.dataset == "german"] for name, found in records.items()}
    numbers = draw(figures.find("closeness"), ["german"], less).numbers
    doubled = {
        name: [Record(r.dataset, r.method, {k: 2 * v for k, v in r.figures.items()}) for r in found]
        for name, found in less.items()
    }
    again = draw(figures.find("closeness"), ["german"], doubled).numbers
    assert (again["sev"] == 2 * numbers["sev"]).all()


def test_flexibility_has_a_point_for_each_amount_and_zero_for_plain_clusters(
    records: dict[str, list[Record]],
) -> None:
    drawing = draw(figures.find("flexibility"), ["german"], records)
    own = drawing.numbers[drawing.numbers["label"] == "GBDT"]
    assert own["flexibility"].tolist() == [0.0, 0.05, 0.1, 0.2]
    assert own["sev"].tolist() == pytest.approx([1.205, 1.305, 1.405, 1.505])
    assert len(drawing.picture.axes) == 2


def test_both_procedures_have_panels_of_their_own_under_their_names() -> None:
    found = points("german", 0, (*WAYS, *PAPERS)) + points("fico", 0)
    records = {"sev1": found, "sevc": found, "sevcf": found}
    for name, panels in (("closeness", 1), ("flexibility", 2)):
        drawing = draw(figures.find(name), ["german", "fico"], records)
        both = [f"german: {whose}" for whose in ("paper's procedure", "ours (default)")]
        titles = [panel.get_title() for panel in drawing.picture.axes]
        assert titles == [title for title in (*both, "fico: ours (default)") for _ in range(panels)]
    sev = draw(figures.find("closeness"), ["german"], records).numbers.set_index(["procedure", "label", "variant"])[
        "sev"
    ]
    for kind in MODELS:
        assert sev["paper's procedure", kind, "SEV1"] == sev["ours (default)", kind, "SEV1"]
        assert sev["paper's procedure", kind, "clusters"] != sev["ours (default)", kind, "clusters"]


def test_all_opt_bars_pair_what_was_measured_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "names", lambda: ("allopt1",))
    found = [
        Record("fico", "LR", {"base_sev": 2.8, "sev": 1.1 + k, "base_l_inf": 1.0, "test_auc": 0.7}) for k in (0, 1)
    ]
    drawing = draw(figures.find("allopt_bars"), ["fico"], {"allopt1": found})
    assert drawing.numbers.to_dict("records") == [
        {"dataset": "fico", "table": "allopt1", "procedure": "ours (default)", "figure": "sev",
         "label": "LR piecewise", "before": 2.8, "after": pytest.approx(1.6)}
    ]  # fmt: skip
    with pytest.raises(UsageError, match="before and after"):
        draw(figures.find("allopt_bars"), ["german"], {"allopt1": found})


def test_counterfactuals_are_parted_into_model_and_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "names", lambda: ("counterfactuals",))
    figure = figures.find("counterfactual_scatter")
    found = [
        Record("german", "L2LR SEV1", {"features": 1.2, "l_inf": 0.4, "sane_log_likelihood_median": -20.0}),
        Record("german", "GBDT SHAP top-k", {"features": 1.5, "l_inf": 0.6}),
        Record("german", "GBDT REVISE", {"cases": 8.0}),
        *(
            Record("german", f"L2LR {line}", {"features": 1.1, "l_inf": 0.3})
            for line in ("SEV-cluster", "SEV-cluster paper")
        ),
    ]
    drawing = draw(figure, ["german"], {"counterfactuals": found})
    assert drawing.numbers[["model", "method"]].to_numpy().tolist() == [
        ["L2LR", "SEV1"], ["GBDT", "SHAP top-k"], ["L2LR", "SEV-cluster, ours (default)"],
        ["L2LR", "SEV-cluster, paper's procedure"],
    ]  # fmt: skip
    with pytest.raises(UsageError, match="no record"):
        draw(figure, ["fico"], {"counterfactuals": found})


def test_a_legend_of_long_names_stays_inside_its_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    methods = [f"L2LR method number {k} with a long name" for k in range(9)]
    found = [Record("german", method, {"features": 1.2, "l_inf": 0.4}) for method in methods]

    def is_inside() -> bool:
        picture = draw(figures.find("counterfactual_scatter"), ["german"], {"counterfactuals": found}).picture
        picture.canvas.draw()
        box = picture.legends[0].get_window_extent()
        return bool(box.x0 >= 0 and box.x1 <= picture.bbox.width)

    assert is_inside()
    monkeypatch.setattr(figures, "LETTER", 0.0)
    assert not is_inside(), "negative control: as many columns as for short names"


def test_the_cube_of_the_figure_marks_one_accepted_vertex() -> None:
    numbers = draw(figures.find("hypercube", quick=True), ["german"], {}).numbers
    assert numbers["answer"].sum() == 1
    assert numbers.loc[numbers["answer"], "accepted"].all()
    assert not numbers.loc[~numbers["vertex"].str.contains("0"), "accepted"].any()


def test_the_moved_reference_never_enlarges_sev_in_the_map() -> None:
    numbers = draw(figures.find("regions", quick=True), ["german"], {}).numbers
    two = numbers[numbers["region"] == "SEV 2"].set_index("reference")["share"]
    assert two.get("mean, moved", 0.0) <= two["mean"]
    assert numbers.groupby("reference")["share"].sum().tolist() == pytest.approx([1.0, 1.0])


def test_cluster_maps_need_pacmap_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pacmap", None)
    with pytest.raises(MissingExtraError, match=r"fewest\[cluster\]"):
        draw(figures.find("cluster_maps", quick=True), ["german"], {})


def test_cluster_maps_have_a_line_per_centre() -> None:
    pytest.importorskip("pacmap")
    numbers = draw(figures.find("cluster_maps", quick=True), ["german"], {}).numbers
    assert 1 <= len(numbers) <= 3
    assert numbers["rows"].sum() == 400


def test_files_have_the_same_bytes_every_time(tmp_path: Path, records: dict[str, list[Record]]) -> None:
    for folder in ("one", "two"):
        for name in ("closeness", "regions"):
            save(draw(figures.find(name, quick=True), ["german"], records), tmp_path / folder, name)
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == [f"{name}.{kind}" for name in ("closeness", "regions") for kind in ("csv", "png", "svg")]
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    other = draw(figures.find("regions", quick=True), ["german"], {})
    other.picture.axes[0].set_title("other")
    save(other, tmp_path / "one", "regions")
    assert (tmp_path / "one" / "regions.svg").read_bytes() != (tmp_path / "two" / "regions.svg").read_bytes()


def test_pictures_are_what_their_names_say_and_have_no_date(tmp_path: Path) -> None:
    picture, _ = blank(2)
    svg, png, numbers = save(Drawing(picture, pd.DataFrame({"sev": [1.25, None]})), tmp_path / "new", "empty")
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    assert "date" not in svg.read_text().lower()
    assert png.read_bytes().startswith(b"\x89PNG")
    assert numbers.read_text() == 'sev\n1.25\n""\n'


def test_a_users_style_does_not_change_the_files(tmp_path: Path, records: dict[str, list[Record]]) -> None:
    import matplotlib as mpl

    figure = figures.find("closeness")
    save(draw(figure, ["german"], records), tmp_path, "plain")
    with mpl.rc_context({"font.size": 30.0, "axes.facecolor": "red", "svg.hashsalt": None}):
        save(draw(figure, ["german"], records), tmp_path, "styled")
    assert (tmp_path / "plain.svg").read_bytes() == (tmp_path / "styled.svg").read_bytes()


def test_what_cannot_be_drawn_is_said(
    tmp_path: Path, records: dict[str, list[Record]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match='no dataset "atlantis"'):
        draw(figures.find("closeness"), ["atlantis"], records)
    with pytest.raises(UsageError, match="no record"):
        draw(figures.find("closeness"), ["german"], {})
    with pytest.raises(UsageError, match="no record"):
        draw(figures.find("flexibility"), ["adult"], records)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="a folder cannot be made here"):
        save(Drawing(blank(1)[0], pd.DataFrame()), tmp_path / "file", "x")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"fewest\[plots\]"):
        blank(1)


def test_means_leave_out_what_was_not_measured_and_count_shared_records_once() -> None:
    found = [Record("german", "LR", {"sev": sev}) for sev in (1.0, float("nan"), 3.0)]
    both = means({"sev1": found, "sevc": [*found, Record("german", "MLP", {"l_inf": 1.0})]}, ("sev1", "sevc"))
    assert both.loc[("german", "LR"), "sev"] == 2.0
    assert pd.isna(both.loc[("german", "MLP"), "sev"])
