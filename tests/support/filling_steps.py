"""A transformer that says it works column by column and does not; at the top of a module, so that it can be sent."""

from __future__ import annotations

import pandas as pd


def filling(frame: pd.DataFrame) -> pd.DataFrame:
    """Fills a column from another."""
    return frame.assign(f1=frame["f1"].fillna(3 * frame["f0"]))
