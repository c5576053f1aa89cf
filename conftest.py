"""What holds for all tests and doctests, and for the processes they start."""

import os

import pytest

# Three processes share two cores, and the tables of the tests are small: threads of BLAS and OpenMP only wait for each
# other (a mixture of Gaussians took 1.5 CPU seconds that takes 1.0 on one thread). Libraries read this when they are
# loaded; what more threads change is tested where they are asked for by name.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Files that hardly search: `make test` begins with them, while the searches are compiled.
FIRST = (
    "tests/apps/serving/test_connections.py",
    "tests/datasets/",
    "tests/experiments/peers/",
    "tests/models/rashomon/",
    "tests/models/training/test_kinds_of_loss.py",
    "tests/models/training/test_loss.py",
    "tests/models/trees/",
    "tests/persistence/test_fitted_state.py",
    "tests/persistence/test_hostile.py",
    "tests/reporting/plots/",
    "tests/results/drawing/",
    "tests/tables/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files in the order of their names, those of `FIRST` before the others."""
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))


@pytest.fixture(autouse=True)
def compiled_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small tables of the tests are searched by the compiled searches; `test_first_answers` holds the other way."""
    from fewest.engine.search import first_answers
    from fewest.engine.structure.base import Additive, Ensemble, Network

    everything = first_answers.Readiness(loaded={Additive, Ensemble, Network})
    monkeypatch.setattr(first_answers, "READINESS", everything)
