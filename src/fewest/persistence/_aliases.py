"""Where classes are today that files of earlier versions name by the place they had then."""

from __future__ import annotations

PACKAGES = {"fewest.structure": "fewest.engine.structure", "fewest.training": "fewest.models.training"}
CLASSES: dict[str, str] = {}  # module and class, as in the file -> as here


def home_of(module: str, name: str) -> tuple[str, str]:
    """The module and the name of a class or function, whichever version wrote them down."""
    for before, now in PACKAGES.items():
        if module.startswith(f"{before}."):
            module = now + module.removeprefix(before)
    module, _, name = CLASSES.get(f"{module}.{name}", f"{module}.{name}").rpartition(".")
    return module, name
