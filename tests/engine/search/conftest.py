"""The oracle is shared by the tests of all exact searches."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def brute() -> ModuleType:
    """The module ``brute.py`` next to this file."""
    spec = importlib.util.spec_from_file_location("brute", Path(__file__).with_name("brute.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
