"""What holds for all tests and doctests, and for the processes they start."""

import os

import pytest

# Threads of OpenMP spin while they wait. Where more processes run than there are cores, four small boosting fits took
# 5 to 10 CPU seconds that take 0.5 with threads that wait passively; as many of them compute the same. The library
# reads this when it is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@pytest.fixture(autouse=True)
def compiled_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small tables of the tests are searched by the compiled searches; `test_first_answers` holds the other way."""
    from fewest.engine.search import first_answers
    from fewest.engine.structure.base import Additive, Ensemble, Network

    everything = first_answers.Readiness(loaded={Additive, Ensemble, Network})
    monkeypatch.setattr(first_answers, "READINESS", everything)
