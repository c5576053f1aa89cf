"""Which packages are here, and in which version."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of those that are installed, in the order asked for."""
    found = {}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
