"""The CNN, its device step, and the identity of its weights."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import keras

CLASSES = 10
IMAGE_SHAPE = (28, 28, 1)


def build_model() -> Any:
    """Return the uncompiled CNN: logits [batch, 10] from uint8 images [batch, 28, 28, 1].

    The cast happens inside, so that a quarter of the bytes of float images crosses to the device.
    The logits are float32 whatever the compute type, for a stable loss.
    """
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input(IMAGE_SHAPE, dtype="uint8"),
            layers.Rescaling(1.0 / 255, name="scale"),
            layers.Conv2D(32, 3, activation="relu", name="conv1"),
            layers.MaxPooling2D(name="pool1"),
            layers.Conv2D(64, 3, activation="relu", name="conv2"),
            layers.MaxPooling2D(name="pool2"),
            layers.Flatten(name="flatten"),
            layers.Dense(64, activation="relu", name="hidden"),
            layers.Dense(CLASSES, name="logits"),
            layers.Activation("linear", dtype="float32", name="logits_float32"),
        ],
        name="digits_cnn",
    )


def signature(model: Any) -> str:
    """Return a digest of the shapes and types of the weights in order: which model this is."""
    shapes = [[list(weight.shape), str(weight.dtype)] for weight in model.weights]
    return hashlib.sha256(json.dumps(shapes).encode()).hexdigest()[:16]


def weights_sha256(model: Any) -> str:
    """Return the SHA-256 over all weights: equal exactly if every bit of them is."""
    digest = hashlib.sha256()
    for weight in model.weights:
        array = weight.numpy()
        digest.update(f"{weight.path} {array.dtype} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
