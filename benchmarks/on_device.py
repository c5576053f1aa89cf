"""Sets looked at per second where a torch module lies, and whether the answers are those of the processor.

    python benchmarks/on_device.py [--device cuda] [--cases N]

Each module has 50 inputs, and torch.fx cannot trace it, so that nothing of it is read; all sets of up to four features
are looked at for every case (251,175 each). ``search`` is the search alone, ``explain`` the whole call. A tenth of
the cases is explained on the processor as well; the sets must be the same.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import pandas as pd
import torch

import fewest as fw
from fewest.engine.search import on_device

FEATURES, MOST = 50, 4


class Residual(torch.nn.Module):
    """A feed-forward net with a link past its second layer."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        sizes = ((FEATURES, width), (width, width), (width, 1))
        self.first, self.middle, self.last = (torch.nn.Linear(a, b) for a, b in sizes)

    def forward(self, rows: Any) -> Any:
        assert rows.shape[1] == FEATURES  # a question that cannot be traced
        hidden = torch.relu(self.first(rows))
        return self.last(hidden + torch.relu(self.middle(hidden)))


class Attention(torch.nn.Module):
    """Each feature a token of its own, two layers of attention over them: the shape of an FT-Transformer."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(FEATURES + 1, width))
        self.bias = torch.nn.Parameter(torch.randn(FEATURES + 1, width))
        layer = torch.nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.last = torch.nn.Linear(width, 1)

    def forward(self, rows: Any) -> Any:
        rows = torch.cat([torch.ones_like(rows[:, :1]), rows], dim=1)
        return self.last(self.layers(rows[..., None] * self.weight + self.bias)[:, 0])


class Clock:
    """Seconds spent in the search of a module's levels."""

    def __init__(self) -> None:
        self.seconds, right = 0.0, on_device.ModuleLevels.look

        def look(levels: Any, *rest: Any) -> Any:
            began = time.perf_counter()
            out = right(levels, *rest)
            self.seconds += time.perf_counter() - began
            return out

        on_device.ModuleLevels.look = look  # type: ignore[method-assign]


def explained(
    module: Any, cases: pd.DataFrame, X: pd.DataFrame, cut: float, clock: Clock
) -> tuple[fw.Explanations, float]:
    """Answers of at most four features towards one accepted row, not far from the cut, and the seconds that took."""
    decision = fw.Decision(module, positive=1, threshold=cut)
    score = decision.score(X)
    accepted = X.iloc[[int(np.abs(score - np.quantile(score, 0.45)).argmin())]].reset_index(drop=True)
    refs = fw.references.supplied(decision, accepted, X=X)
    explainer = fw.Explainer(decision, refs, constraints=[fw.constraints.AtMost(MOST)], max_nodes=1_000_000)
    explainer.explain(cases.iloc[:1])
    clock.seconds = 0.0
    began = time.perf_counter()
    return explainer.explain(cases), time.perf_counter() - began


def main() -> None:
    """Print a line for each module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--cases", type=int, default=200)
    options = parser.parse_args()
    clock = Clock()
    for kind, cases in ((Residual, options.cases), (Attention, max(1, options.cases // 10))):
        torch.manual_seed(0)
        module = kind().eval()
        X = pd.DataFrame(np.random.default_rng(0).normal(size=(4_000, FEATURES)), columns=[*map(str, range(FEATURES))])
        score = fw.Decision(module, positive=1).score(X)
        cut, refused = float(np.quantile(score, 0.5)), X[score >= np.quantile(score, 0.95)].iloc[:cases]
        compared = max(1, cases // 10)
        few = explained(module, refused.iloc[:compared], X, cut, clock)[0]
        out, seconds = explained(module.to(options.device), refused, X, cut, clock)
        looked = sum(one.proof.nodes for one in out)
        same = [one.changes for one in out[:compared]] == [one.changes for one in few]
        sizes = out.to_frame()["sev"]
        speed = looked / clock.seconds
        print(
            f"{kind.__name__:10} {options.device}: {len(refused)} cases, {looked:,} sets, {speed:,.0f} a"
            f" second in the search, {looked / seconds:,.0f} in explain ({1e3 * seconds / len(refused):.1f} ms a case);"
            f" found {sizes.notna().mean():.0%}, mean {sizes.mean():.2f}; first {compared} as on the processor: {same}",
            flush=True,
        )


if __name__ == "__main__":
    main()
