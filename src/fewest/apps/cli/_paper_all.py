"""The work of ``fewest paper all``: everything into one folder, with a page that shows it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from fewest.apps.cli._paper_table import say_where, tell
from fewest.experiments.paper.everything import Plan, everything
from fewest.experiments.paper.page import write_page


def run_all(plan: Plan) -> int:
    """Make everything; the page is written again after each table and figure, so that there always is one."""
    try:
        results = everything(plan, tell, partial(write_page, plan))
    except KeyboardInterrupt:
        say_where(Path(plan.out))
        raise
    for what, why in results.left_out:
        tell(f"left out: {what}: {why}")
    for what, error in results.failed:
        tell(f"failed: {what}: {type(error).__name__}: {error}")
    print(write_page(plan, results))
    return results.exit_code
