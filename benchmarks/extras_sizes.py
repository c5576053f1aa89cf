"""What each extra adds on disk, in MB: its libraries and theirs that the core does not have, as installed here.

python benchmarks/extras_sizes.py
"""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
SHOWN = (
    "runs",
    "plots",
    "letters",
    "excel",
    "mlflow",
    "explore",
    "models",
    "serve",
    "boosters",
    "cluster",
    "trees",
    "peers",
    "spark",
    "train",
)


def closure(requirements: list[str], extra: str = "") -> set[str]:
    """Names of all installed libraries that these need."""
    found: set[str] = set()
    for text in requirements:
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
            continue
        name = wanted.name.lower().replace("_", "-")
        try:
            needs = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        if name not in found:
            found |= {name} | closure(needs)
    return found


def megabytes(names: set[str]) -> float:
    """Their files, summed."""
    files = [Path(str(file.locate())) for name in names for file in distribution(name).files or []]
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


if __name__ == "__main__":
    core = closure(PROJECT["dependencies"])
    print(f"{'core':<10}{megabytes(core):>8.0f}")
    for extra in SHOWN:
        added = closure(PROJECT["optional-dependencies"][extra]) - core
        print(f"{extra:<10}{megabytes(added):>8.0f}  {', '.join(sorted(added))[:90]}")
