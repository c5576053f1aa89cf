"""The oracle is shared by the tests of all exact searches."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def beside(name: str) -> ModuleType:
    """A module next to this file."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def brute() -> ModuleType:
    """The module ``brute.py``."""
    return beside("brute")


@pytest.fixture(scope="session")
def random_case() -> Any:
    """Random ensembles and problems, as the tests of the ensemble search make them."""
    return beside("test_ensemble").random_case
