"""How fast 28x28 images come out of TFRecord files: `python -m tests.bench.bench_trainer_input`.

Prints one JSON object a data source, with examples a second of the best of several passes.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trainer.data.loading import TrainingData

EXAMPLES = 60_000
BATCH = 256
PASSES = 5
GOAL = 100_000


def best_rate(training: TrainingData, first: int) -> tuple[float, float]:
    """Return examples a second of the best of some passes, and seconds to the first batch."""
    steps = training.steps_per_epoch
    began = time.perf_counter()
    batches = iter(training.batches(first, first + PASSES * steps))
    next(batches)
    opened = time.perf_counter() - began
    rates = []
    for _ in range(PASSES):
        began = time.perf_counter()
        count = sum(1 for _ in itertools.islice(batches, steps))
        rates.append(count * BATCH / (time.perf_counter() - began))
    return max(rates), opened


def main() -> None:
    """Convert random images and measure."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    from trainer.config import parse
    from trainer.data.commands import main as data_command
    from trainer.data.loading import load

    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        images = random.integers(0, 256, (EXAMPLES, 28, 28), np.uint8)
        labels = random.integers(0, 10, EXAMPLES, np.int64)
        np.savez(f"{folder}/images.npz", images=images, labels=labels)
        kept = sys.stdout
        for kind in ("none", "gzip"):
            sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - the process ends soon
            options = ["--out", f"{folder}/{kind}", "--compression", kind, "--held_out", "0.02"]
            assert data_command(["convert", f"{folder}/images.npz", *options]) == 0
            sys.stdout = kept
            for source, memory in (("streamed", 0), ("in memory", 512)):
                files = f"--train_files {folder}/{kind}/train-* --eval_files {folder}/{kind}/eval-*"
                settings = f"--model_dir /nowhere --batch_size {BATCH} --memory_mb {memory} {files}"
                training, _ = load(parse(settings.split()))
                for where, first in (("from the start", 0), ("from step 200", 200)):
                    rate, opened = best_rate(training, first)
                    figures = {
                        "source": f"{source}, compression {kind}, {where}",
                        "examples_per_second": round(rate),
                        "seconds_to_first_batch": round(opened, 2),
                        "goal": GOAL,
                    }
                    print(json.dumps(figures))


if __name__ == "__main__":
    main()
