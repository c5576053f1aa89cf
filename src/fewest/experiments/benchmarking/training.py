"""What All-Opt-1 costs beside plain training: same model, rows, batches and warm-up, in one run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from fewest.experiments.benchmarking import subjects
from fewest.experiments.benchmarking.measure import Row, at_most, skipped

LIMITS = {"logistic": 5.0, "mlp": 8.0}
WARM_UP, EPOCHS = 80, 20  # the paper's


def training() -> Iterator[Row]:
    """FICO: 80 epochs of cross-entropy against the same 80 and 20 more with the SEV loss."""
    for model, limit in LIMITS.items():
        name = f"All-Opt-1 {model}, fico"
        if subjects.data_folder() is None:
            yield skipped(name, f"<= {limit:g}", "the paper's data are not here: set FEWEST_DATA to their folder")
            continue
        try:
            plain, whole = _seconds(model, 0), _seconds(model, EPOCHS)
        except ImportError:
            yield skipped(name, f"<= {limit:g}", 'torch is not installed: pip install "fewest[train]"')
            continue
        detail = f"{whole:.1f} s CPU against {plain:.1f} s, {WARM_UP} + {EPOCHS} epochs, batches of 128"
        yield at_most(name, whole / plain, limit, "x plain training", detail)


def _seconds(model: Any, epochs: int) -> float:
    """CPU seconds from raw rows to the trained model."""
    from fewest.experiments.paper.data import load_split
    from fewest.models.training import AllOptClassifier

    rows = load_split("fico", 0)
    estimator = AllOptClassifier(model, warmup_epochs=WARM_UP, epochs=epochs, positive=1, device="cpu")
    began = time.process_time()
    estimator.fit(rows.X_train, rows.y_train)
    return time.process_time() - began
