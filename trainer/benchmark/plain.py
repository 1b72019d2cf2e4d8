"""The plain training loop that guides show, to compare with; a process of its own.

Float images in NumPy arrays, `shuffle(10_000).batch().repeat()`, Keras `compile` and `fit` in
float32, weights saved each epoch. `python -m trainer.benchmark.plain DATA.npz EPOCHS BATCH FOLDER`
prints one JSON object.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import numpy as np


def main(arguments: list[str]) -> None:
    """Train and print the figures."""
    data, epochs, batch, folder = arguments[0], int(arguments[1]), int(arguments[2]), arguments[3]
    began = time.monotonic()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("TPU_LOAD_LIBRARY", "0")
    import keras
    import tensorflow as tf

    from trainer.step_reports import peak_memory_bytes

    with np.load(data) as arrays:
        train = arrays["x_train"][..., np.newaxis].astype("float32") / 255.0
        test = arrays["x_test"][..., np.newaxis].astype("float32") / 255.0
        labels, test_labels = arrays["y_train"], arrays["y_test"]
    steps = len(labels) // batch
    dataset = tf.data.Dataset.from_tensor_slices((train, labels))
    dataset = dataset.shuffle(10_000).batch(batch).repeat().prefetch(tf.data.AUTOTUNE)
    model = _model(keras)
    watch = _watch(keras)
    saving = keras.callbacks.ModelCheckpoint(
        f"{folder}/plain-{{epoch}}.weights.h5", save_weights_only=True
    )
    model.fit(dataset, epochs=epochs, steps_per_epoch=steps, verbose=0, callbacks=[saving, watch])
    loss, accuracy = model.evaluate(test, test_labels, batch_size=batch, verbose=0)
    # The first epoch holds the tracing of the graph, so it is left out if there are others.
    times = watch.seconds[1:] or watch.seconds
    figures = {
        "examples_per_second": round(steps * batch * len(times) / sum(times), 1),
        "cpu_seconds_per_1000_examples": round(
            watch.cpu_s * 1000 / (steps * batch * len(times)), 4
        ),
        "first_step_s": round(watch.first_step - began, 3),
        "peak_memory_bytes": peak_memory_bytes(),
        "eval_loss": round(float(loss), 4),
        "eval_accuracy": round(float(accuracy), 4),
    }
    sys.stdout.write(json.dumps(figures) + "\n")


def _model(keras: Any) -> Any:
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10),
        ]
    )
    model.compile(
        optimizer="adam",
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def _watch(keras: Any) -> Any:
    class Watch(keras.callbacks.Callback):  # type: ignore[misc]
        """Notes when the first step was done and how long each epoch took."""

        def __init__(self) -> None:
            super().__init__()
            self.first_step = 0.0
            self.seconds: list[float] = []
            self.cpu_s = 0.0
            self._cpu_began = 0.0
            self._began = 0.0

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
            self._began = time.monotonic()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
            self.seconds.append(time.monotonic() - self._began)
            self.cpu_s = time.process_time() - self._cpu_began
            if epoch == 0:
                self._cpu_began = time.process_time()

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
            self.first_step = self.first_step or time.monotonic()

    return Watch()


if __name__ == "__main__":
    main(sys.argv[1:])
