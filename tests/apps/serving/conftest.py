from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from running_service import KEY, Service
from serving_doubles import good


@pytest.fixture(scope="session")
def keys_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "keys.txt"
    sums = {name: hashlib.sha256(key.encode()).hexdigest() for name, key in (("bank", KEY), ("clinic", "another"))}
    path.write_text("# who may ask\n\n" + "".join(f"{name}:{value}\n" for name, value in sums.items()))
    return path


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A good model, loaded from its file; no keys, no rate."""
    pytest.importorskip("skops", reason="saved explainers need skops")
    path = tmp_path_factory.mktemp("serving") / "credit.fewest"
    good(path).save(path)
    made = Service([str(path)], rate=0)
    yield made
    made.stop()


@pytest.fixture
def start() -> Iterator[Callable[..., Service]]:
    """Start services that end with the test."""
    made: list[Service] = []

    def begin(*models: str, **settings: Any) -> Service:
        made.append(Service(list(models), **settings))
        return made[-1]

    yield begin
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
        if not one.client.is_closed:
            one.stop()
