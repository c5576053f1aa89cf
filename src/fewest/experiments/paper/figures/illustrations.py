"""The paper's illustrations, made from data: two cases in two clusters, soft k-means without scores, two theorems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fewest import references
from fewest.decision import Decision
from fewest.experiments.paper.base import NotOfThisTableError, Tell
from fewest.experiments.paper.data import Rows, load_split
from fewest.experiments.paper.figures import Drawing, Figure, Records, blank
from fewest.experiments.paper.figures.model_figures import _span
from fewest.experiments.paper.models import clusters_of, fit, quietly
from fewest.explainer import Explainer
from fewest.reporting.plots import HypercubeDisplay
from fewest.reporting.plots.display import shade

MODEL = "L2LR"
MOST_ROWS, QUICK_ROWS = 8_000, 400
CASES, MOST_FEATURES = 300, 4
DEPTH = 3
SOFT, BY_SCORE = "soft k-means", "score-based soft k-means"
RED, BLUE = "#c23b22", "#2b5c8a"  # refused and accepted, as in the paper


def _part(figure: Figure, dataset: str) -> Rows:
    return load_split(dataset, 0, figure.folder).first(QUICK_ROWS if figure.quick else MOST_ROWS)


class TwoCasesFigure(Figure):
    """Two cases of two clusters, each on its cube; the numbers are the steps of either, as the paper's Table 2."""

    name: ClassVar[str] = "two_cases"
    title: ClassVar[str] = "Cluster-based SEV of two cases"
    caption: ClassVar[str] = (
        "Two cases that are compared with the centres of two clusters, where there are two (the paper's Fig. 2); "
        "clusters are ours, and a case is compared with the centre nearest in its features. The "
        "numbers have, of each, the query, the explanation and the reference, feature by feature, with what the model "
        "says (its Table 2)."
    )

    def draw(self, datasets: Sequence[str], records: Records, tell: Tell) -> Drawing:
        """Two panels per dataset."""
        picture, axes = blank(2 * len(datasets), across=2, height=4.2)
        picture.set_size_inches(picture.get_figwidth() * 1.5, picture.get_figheight())
        steps: list[pd.DataFrame] = []
        for number, dataset in enumerate(datasets):
            tell(f"    {self.name}: {dataset}")
            out = self._explained(dataset)
            cases = _two_cases(out)
            for panel, row in zip(axes[2 * number : 2 * number + 2], cases, strict=False):
                HypercubeDisplay.from_explanations(out, row, _span(out, row)).plot(panel, style="paper")
                panel.set_title(f"{dataset}: case {out.frame.index[row]}, {_reference(out, row)}, SEV {out[row].sev}")
                steps.append(_steps(out, row).assign(dataset=dataset))
            for panel in axes[2 * number + len(cases) : 2 * number + 2]:
                panel.set_axis_off()
        numbers = pd.concat(steps, ignore_index=True)
        return Drawing(picture, numbers[["dataset", *(name for name in numbers if name != "dataset")]])

    def _explained(self, dataset: str) -> Any:
        rows, (count, m) = _part(self, dataset), clusters_of(dataset, self.folder)
        X, y = rows.X_train, rows.y_train
        decision = Decision(fit(MODEL, dataset, X, y, self.quick), positive=1)
        with quietly():
            refs = references.clusters(decision, X, y, n_clusters=count, m=m, assignment="features")
        return Explainer(decision, refs, n_jobs=1, unseen="allow").explain(rows.X_test[:CASES])


def _two_cases(out: Any) -> list[int]:
    """The first case with a small answer, of two features if one has, and the first towards another reference."""
    size = out.answers.moved.sum(axis=1)
    small = np.flatnonzero((size > 0) & (size <= MOST_FEATURES))
    if not len(small):
        raise NotOfThisTableError(f"no case is explained with up to {MOST_FEATURES} features")
    first = next((row for row in small if size[row] == 2), small[0])
    others = [row for row in small if out.answers.reference[row] != out.answers.reference[first]]
    return [int(first), *(int(row) for row in others[:1])]


def _reference(out: Any, row: int) -> str:
    return str(out.references.names[int(out.answers.reference[row])])


def _steps(out: Any, row: int) -> pd.DataFrame:
    """Query, explanation and reference of a case, over the features of its cube."""
    schema, moved = out.schema, out.answers.moved[row]
    chosen = [schema.index(name) for name in _span(out, row)]
    reference = out.references.frame.iloc[[int(out.answers.reference[row])]]
    kinds = {"query": out.frame.iloc[[row]], "explanation": out.turned().iloc[[row]], "reference": reference}
    lines = []
    for kind, frame in kinds.items():
        kept = {"query": [True] * len(chosen), "reference": [False] * len(chosen)}.get(
            kind, [not moved[j] for j in chosen]
        )
        verdict = out.references.decision.verdicts(frame)
        lines += [
            {"case": out.frame.index[row], "vertex": "".join(str(int(bit)) for bit in kept), "type": kind,
             "feature": schema.features[j].title, "value": str(frame[schema.features[j].columns[0]].iloc[0]),
             "score": float(verdict.score[0]), "accepted": not bool(verdict.positive[0])}
            for j in chosen
        ]  # fmt: skip
    return pd.DataFrame(lines)


class SoftKMeansFigure(Figure):
    """Scores of the rows labelled negative on a map, and the centres that two ways of clustering put there."""

    name: ClassVar[str] = "soft_kmeans"
    title: ClassVar[str] = "Soft k-means, and soft k-means by score"
    caption: ClassVar[str] = (
        "Rows labelled negative of split 0 on their PaCMAP map, darker with a higher score; stars are the centres of "
        "clusters found without the score (left) and by it (right), hollow where the model decides the mean of the "
        "cluster's rows positive (the paper's Fig. 9)."
    )

    def draw(self, datasets: Sequence[str], records: Records, tell: Tell) -> Drawing:
        """Two panels per dataset."""
        picture, axes = blank(2 * len(datasets), across=2)
        tables = []
        for number, dataset in enumerate(datasets):
            tell(f"    {self.name}: {dataset}")
            places, score, ways = self._clustered(dataset)
            for panel, (way, centres) in zip(axes[2 * number :], ways.items(), strict=False):
                panel.scatter(places[:, 0], places[:, 1], c=score, cmap="Greys", vmin=0, vmax=1, s=5, rasterized=True)
                for positive, face in ((False, BLUE), (True, "white")):
                    own = centres[centres["positive"] == positive]
                    label = "centre decided positive" if positive else "centre accepted"
                    panel.scatter(own["x"], own["y"], s=230, marker="*", facecolors=face, edgecolors=RED, label=label)
                panel.set(title=f"{dataset}: {way}", xticks=[], yticks=[])
                panel.legend(frameon=False, fontsize="x-small", loc="best", markerscale=0.6)
                tables.append(centres.assign(dataset=dataset, clustering=way))
        numbers = pd.concat(tables, ignore_index=True)
        return Drawing(picture, numbers[["dataset", "clustering", "cluster", "rows", "score", "positive", "x", "y"]])

    def _clustered(self, dataset: str) -> tuple[Any, Any, dict[str, pd.DataFrame]]:
        """Places on the map, scores, and the centres either way finds."""
        from fewest.references.clustering import ClusterSpace, ScoreSoftKMeans
        from fewest.references.clustering.embedding import pacmap
        from fewest.references.clusters import centred_score
        from fewest.references.single import centre_of
        from fewest.tables.schema import Schema

        rows, (count, m) = _part(self, dataset), clusters_of(dataset, self.folder)
        decision = Decision(fit(MODEL, dataset, rows.X_train, rows.y_train, self.quick), positive=1)
        schema = Schema.infer(rows.X_train)
        negative = schema.conform(rows.X_train[rows.y_train == 0])
        score = decision.score(negative)
        places = pacmap().fit(ClusterSpace.read(decision, schema, negative).encode(negative)).coordinates
        found = {}
        for way, given in ((SOFT, np.full(len(score), 0.5 + 0.5 / m)), (BY_SCORE, centred_score(decision, score))):
            fitted = ScoreSoftKMeans(count, m=m, random_state=0).fit(places, score=given)
            lines = []
            for k in range(count):
                inside = fitted.labels_ == k
                centre = centre_of(schema, negative[inside], "mean") if inside.any() else None
                verdict = None if centre is None else decision.verdicts(pd.DataFrame([centre])[negative.columns])
                lines.append({
                    "cluster": k + 1, "rows": int(inside.sum()),
                    "score": float("nan") if verdict is None else float(verdict.score[0]),
                    "positive": verdict is not None and bool(verdict.positive[0]),
                    "x": float(fitted.cluster_centers_[k, 0]), "y": float(fitted.cluster_centers_[k, 1]),
                })  # fmt: skip
            found[way] = pd.DataFrame(lines)
        return places, score, found


class TheoremsFigure(Figure):
    """A small tree of the data: a case one split away from an accepted leaf, and the same with that leaf taken away."""

    name: ClassVar[str] = "theorems"
    title: ClassVar[str] = "SEV-T on a small tree"
    caption: ClassVar[str] = (
        "Accepted leaves are circles, refused ones squares, with the features that the case would have to change for "
        "each; the case's own leaf has a thick edge; splits that decide nothing are left out. Left: where a leaf or "
        "child beside its path is accepted SEV-T is 1 (Theorem 4.1; the paper's Fig. 11). Right: without the leaves at "
        "that distance it needs more, so all accepted leaves have to be references (Theorem 4.2; its Fig. 12)."
    )

    def draw(self, datasets: Sequence[str], records: Records, tell: Tell) -> Drawing:
        """Two panels per dataset."""
        picture, axes = blank(2 * len(datasets), across=2)
        picture.set_size_inches(picture.get_figwidth() * 1.5, picture.get_figheight())
        tables = []
        for number, dataset in enumerate(datasets):
            tell(f"    {self.name}: {dataset}")
            tree, case, leaves = self._case(dataset)
            fewest = int(leaves["sev"].min())
            for panel, left in zip(axes[2 * number :], (leaves, leaves[leaves["sev"] > fewest]), strict=False):
                _draw_tree(panel, tree, case, left)
                sev = f"SEV-T {int(left['sev'].min())}" if len(left) else "no accepted leaf is left"
                panel.set_title(f"{dataset}: {len(left)} of {len(leaves)} accepted leaves, {sev}")
            tables.append(leaves.assign(dataset=dataset, nearest=leaves["sev"] == fewest))
        numbers = pd.concat(tables, ignore_index=True)
        columns = ["dataset", "leaf", "sev", "features", "to", "support", "credibility", "nearest"]
        return Drawing(picture, numbers[columns])

    def _case(self, dataset: str) -> tuple[Any, int, pd.DataFrame]:
        """The tree without splits that decide nothing, the leaf of a case decided positive, all accepted leaves.

        The case is the first that one feature turns and that has accepted leaves further off, where there is one.
        """
        from fewest.models.trees import CARTClassifier

        rows = _part(self, dataset)
        model = CARTClassifier(max_depth=DEPTH).fit(rows.X_train, rows.y_train)
        decision = Decision(model, positive=1)
        cases = rows.X_test[decision.refuses(rows.X_test)]
        if len(cases) == 0 or model.tree_.positive[model.tree_.leaves].all():
            raise NotOfThisTableError(f"a tree of depth {DEPTH} decides every case alike")
        refs: Any = references.leaves(decision, rows.X_train, rows.y_train)
        own = refs.tree.apply(refs.tree.encode(cases.iloc[:CASES]))
        _, first = np.unique(own, return_index=True)  # cases of one leaf differ little: one of each is enough
        found = [(int(own[row]), refs.leaves_of(cases.iloc[[row]])) for row in sorted(first)]
        node, leaves = min(found, key=lambda each: (each[1]["sev"].min() > 1, each[1]["sev"].max() == 1))
        return refs.tree, node, leaves


def _draw_tree(panel: Any, tree: Any, own: int, leaves: pd.DataFrame) -> None:
    """Nodes from the top down, leaves evenly across."""
    sev = dict(zip(leaves["leaf"], leaves["sev"], strict=True))
    ends = [int(node) for node in tree.leaves]
    names = {node: f"leaf {number}" for number, node in enumerate(ends, start=1)}
    place: dict[int, tuple[float, float]] = {}

    def put(node: int, depth: int) -> float:
        if node in names:
            place[node] = (float(ends.index(node)), -depth)
        else:
            sides = [put(int(tree.left[node]), depth + 1), put(int(tree.right[node]), depth + 1)]
            place[node] = (sum(sides) / 2, -depth)
            for child in (int(tree.left[node]), int(tree.right[node])):
                panel.plot(*zip(place[node], place[child], strict=True), color="0.5", linewidth=1, zorder=1)
        return place[node][0]

    put(0, 0)
    for node, (x, y) in place.items():
        if node not in names:
            panel.annotate(tree.schema.features[int(tree.feature[node])].title, (x, y), ha="center", fontsize=7,
                           bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0})  # fmt: skip
            continue
        refused = bool(tree.positive[node])
        label = "" if refused else str(sev.get(names[node], ""))
        face = shade(3) if refused else "white" if label else "0.9"
        panel.scatter(x, y, s=170, marker="s" if refused else "o", facecolors=face, edgecolors="black",
                      linewidths=2.5 if node == own else 0.8, zorder=2)  # fmt: skip
        panel.annotate(label, (x, y), ha="center", va="center", fontsize=8, zorder=3)
    panel.margins(0.1)
    panel.set_axis_off()
