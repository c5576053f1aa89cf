"""The pictures in docs/img: German Credit explained twice, and the explorer looked at with a real browser.

Run from the repository root: python benchmarks/screenshots.py [--out docs/img]. Needs chromium and playwright, and
nothing from outside the machine. With --figures it also prints what the explorer costs (pages, start, many users).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

DESK = {"viewport": {"width": 1180, "height": 820}}
PHONE = {"viewport": {"width": 375, "height": 760}, "device_scale_factor": 2}
DARK = {**DESK, "color_scheme": "dark"}
PICTURES = (
    ("start", "/", DESK),
    ("decision", "/decision/95", DESK),
    ("decision-phone", "/decision/95", PHONE),
    ("decision-dark", "/decision/95", DARK),
    ("population", "/population", DESK),
    ("references", "/references", DESK),
    ("compare", "/compare", DESK),
    ("tree", "/tree", DESK),
)


def make_runs(folder: Path) -> tuple[Path, Path, Path]:
    """The demo's logistic model and its boosted one on the same cases, and a small tree."""
    from sklearn.tree import DecisionTreeClassifier

    import fewest as fw
    from fewest.apps.cli._demo import pipeline, train_german
    from fewest.runs import explain_files

    german, model, X, y = train_german("logistic")
    german.X.to_csv(folder / "cases.csv", index=False)
    tree = pipeline(german, "logistic").set_params(decide=DecisionTreeClassifier(max_depth=4, random_state=0))
    models = {"run": model, "boosted": train_german("boosted")[1], "tree": tree.fit(X, y)}
    titles = {"run": "German Credit", "boosted": "German Credit, boosted", "tree": "German Credit, a tree"}
    for name, fitted in models.items():
        decision = fw.Decision(fitted, positive="bad")
        refs = fw.references.single(decision, X, y, schema=german.schema)
        explainer = fw.Explainer(decision, refs, n_jobs=1)
        explain_files(explainer, folder / "cases.csv", folder / name, n_jobs=1, alternatives=5, title=titles[name])
    return folder / "run", folder / "boosted", folder / "tree"


def take(chromium: Any, address: str, name: str, path: str, device: dict[str, Any], out: Path) -> None:
    """One picture of the upper part of a page."""
    context = chromium.new_context(**device)
    page = context.new_page()
    page.goto(address)
    page.goto(address.partition("/?")[0] + path)
    height = min(int(page.evaluate("document.documentElement.scrollHeight")), 1500)
    page.set_viewport_size({"width": device["viewport"]["width"], "height": height})
    page.screenshot(path=out / f"{name}.png")
    context.close()


def pictures(out: Path) -> None:
    """Take all pictures."""
    from explorer_runs import served
    from playwright.sync_api import sync_playwright

    from fewest.apps.explorer import create_app

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        run, other, tree = make_runs(Path(folder))
        chromium = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        with served(create_app(run, other=other)) as address, served(create_app(tree)) as tree_address:
            for name, path, device in PICTURES:
                take(chromium, tree_address if name == "tree" else address, name, path, device, out)
                print(out / f"{name}.png")
        chromium.close()


def figures() -> None:
    """What the explorer costs: the slow tests print it."""
    command = [sys.executable, "-m", "pytest", "tests/apps/explorer/test_budgets.py", "-s", "-q", "--no-header"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if "{" in line:
            print(json.dumps(json.loads(line[line.index("{") :]), indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/img"))
    parser.add_argument("--figures", action="store_true")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    pictures(asked.out)
    if asked.figures:
        figures()
