"""Epoch times of All-Opt-1 for a net, processor against graphics card, in one run.

    python benchmarks/training_devices.py [diabetes] [folder]

Prints a line per device and batch size: seconds per epoch of the warm-up and of the phase with the SEV loss.
"""

from __future__ import annotations

import sys
import time

from fewest.experiments.paper.data import load_split
from fewest.models.training import AllOptClassifier, Optimizer


def epochs(device: str, batch: int, dataset: str, folder: str | None) -> tuple[float, float]:
    """Seconds per epoch: warm-up, SEV."""
    rows = load_split(dataset, 0, folder)
    model = AllOptClassifier("mlp", c1=1.0, optimizer=Optimizer(batch_size=batch), epochs=2, device=device, positive=1)
    session, _ = model._begin(rows.X_train, rows.y_train)
    session.run("warm-up", 1)  # the first steps compile and allocate
    began = time.perf_counter()
    session.run("warm-up", 2)
    middle = time.perf_counter()
    model._sev_phase(session, 1.0)
    return (middle - began) / 2, (time.perf_counter() - middle) / 2


def main() -> None:
    """Print the table."""
    import torch

    dataset = sys.argv[1] if len(sys.argv) > 1 else "diabetes"
    folder = sys.argv[2] if len(sys.argv) > 2 else None
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    for batch in (128, 1024, 8192):
        for device in devices:
            plain, sev = epochs(device, batch, dataset, folder)
            name = torch.cuda.get_device_name() if device == "cuda" else f"{torch.get_num_threads()} threads"
            print(f"{dataset} mlp {device} ({name}) batch {batch}: warm-up {plain:.2f} s, SEV {sev:.2f} s an epoch")


if __name__ == "__main__":
    main()
