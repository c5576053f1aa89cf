"""How the source is laid out: few things at the top, every module in a layer, private names at home, clear names.

Each ``LEFT`` lists what is known to break a rule: nothing may be added to it.
"""

from __future__ import annotations

import ast
import configparser
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
MODULES = sorted((SOURCE / "fewest").rglob("*.py"))

MOST_PACKAGES, MOST_MODULES, MOST_LINES = 12, 6, 400
NOUNS = {
    "benchmarking", "clustering", "drawing", "embedding", "encoding", "everything", "reporting", "serving", "training",
    "wording",
}  # fmt: skip


def dotted(path: Path, source: Path = SOURCE) -> str:
    """The name by which a file is imported.

    >>> dotted(SOURCE / "fewest" / "runs" / "__init__.py")
    'fewest.runs'
    """
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_few_things_stand_at_the_top() -> None:
    top = [path for path in (SOURCE / "fewest").iterdir() if not path.name.startswith(("_", "."))]
    packages = sorted(path.name for path in top if (path / "__init__.py").is_file())
    modules = sorted(path.name for path in top if path.suffix == ".py")
    assert len(packages) <= MOST_PACKAGES, packages
    assert len(modules) <= MOST_MODULES, modules


def contracts() -> tuple[list[str], list[str]]:
    """The layers as they are written, and the modules that other contracts forbid to import something."""
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    lines = config["importlinter:contract:layers"]["layers"].split("\n")
    layers = [part.strip() for line in lines if line for part in line.replace(":", "|").split("|")]
    sources = [config[name].get("source_modules", "") for name in config.sections()]
    return layers, [name for source in sources for name in source.split()]


def is_placed(module: str, places: list[str]) -> bool:
    """Whether a module has a place of its own or in its package, or is a package that the places split up."""
    return any(f"{module}.".startswith(f"{place}.") or f"{place}.".startswith(f"{module}.") for place in places)


def test_every_module_is_in_a_layer_and_no_layer_is_optional() -> None:
    layers, sources = contracts()
    names = {dotted(path) for path in MODULES}
    assert sorted(set(layers) - names) == [], "a layer names a module that is not there, or may be absent"
    assert [name for name in sorted(names) if not is_placed(name, layers + sources)] == []


def test_a_module_without_a_layer_is_caught() -> None:
    """Negative control of the test above."""
    layers, sources = contracts()
    assert not is_placed("fewest.engine.elsewhere", layers + sources)
    assert not is_placed("fewest.run", layers + sources)


def private_imports(path: Path, text: str, source: Path = SOURCE) -> Iterator[str]:
    """Imports of underscored modules and names of `fewest` from outside the folder that holds them.

    Folders below it are inside, but for those of the top: a private name there is for the modules beside it.
    """
    here = ".".join(path.relative_to(source).parent.parts)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            up = here.split(".")[: len(here.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*up, *([node.module] if node.module else [])])
            wanted = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in wanted:
            parts = name.split(".")
            for i, part in enumerate(parts):
                if parts[0] == "fewest" and part.startswith("_") and not part.startswith("__"):
                    holder = ".".join(parts[:i])
                    folder = holder if (source / Path(*parts[:i])).is_dir() else holder.rpartition(".")[0]
                    if here != folder and (folder == "fewest" or not here.startswith(f"{folder}.")):
                        yield name


def test_no_underscored_name_is_imported_from_another_folder() -> None:
    found = {(dotted(path), name) for path in MODULES for name in private_imports(path, path.read_text("utf-8"))}
    assert sorted(found) == []


@pytest.mark.parametrize(
    ("line", "crosses"),
    [
        ("from fewest.engine.search._node import x", True),
        ("from fewest.engine.search import _node", True),
        ("import fewest.engine.search._node", True),
        ("from fewest.decision import _score", True),
        ("from ..engine.search._node import x", True),
        ("from fewest.runs._parts import x", False),
        ("from . import _parts", False),
        ("from ._parts import x", False),
        ("from fewest.decision import Decision", False),
        ("from fewest import __version__", False),
        ("from numpy import _core", False),
    ],
)
def test_an_import_of_a_private_name_is_caught(line: str, crosses: bool) -> None:
    """Negative control of the test above."""
    assert bool(list(private_imports(SOURCE / "fewest" / "runs" / "folder.py", line))) == crosses


def test_no_class_name_is_used_twice() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{dotted(path)}:{node.lineno}")
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def is_bare_participle(name: str) -> bool:
    """Whether a module's name is one word that says what happens, not what is there."""
    word = name.strip("_")
    return "_" not in word and word.endswith(("ing", "ed")) and word not in NOUNS


def test_no_module_is_named_with_a_bare_participle() -> None:
    names = {dotted(path) for path in MODULES if is_bare_participle(dotted(path).rpartition(".")[2])}
    assert sorted(names) == []


@pytest.mark.parametrize("name", ["_moved", "running", "printed"])
def test_a_bare_participle_is_caught(name: str) -> None:
    """Negative control of the test above."""
    assert is_bare_participle(name)
    assert not is_bare_participle(f"model_{name.strip('_')}")


def test_no_module_is_long() -> None:
    long = {dotted(path): n for path in MODULES if (n := len(path.read_text("utf-8").splitlines())) > MOST_LINES}
    assert long == {}
