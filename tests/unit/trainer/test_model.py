"""The small CNN is the one that the guides show, only computed in another order."""

from __future__ import annotations

import keras
import numpy as np

from trainer.model import build_model, flops_per_example


def _as_guides_write_it() -> keras.Sequential:
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((28, 28, 1), dtype="uint8"),
            layers.Rescaling(1.0 / 255),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10),
        ]
    )


def test_same_weights_give_the_same_answers_as_the_guides_network() -> None:
    keras.mixed_precision.set_global_policy("float32")
    random = np.random.default_rng(3)
    ours, guides = build_model(), _as_guides_write_it()
    weights = [random.normal(0, 0.1, each.shape).astype("float32") for each in ours.weights]
    ours.set_weights(weights)
    guides.set_weights(weights)
    images = random.integers(0, 256, (16, 28, 28, 1), dtype=np.uint8)
    np.testing.assert_allclose(ours(images), guides(images), rtol=0, atol=1e-5)


def test_cost_counts_what_the_convolutions_compute_before_pooling() -> None:
    forward = 26 * 26 * 32 * 9 + 11 * 11 * 64 * 32 * 9 + 1600 * 64 + 64 * 10
    assert flops_per_example(build_model()) == 3 * 2 * forward
