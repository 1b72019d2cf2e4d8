"""The models, their cost, and the identity of their weights."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import keras
import tensorflow as tf

from trainer.model_specs import CNN, ModelSpec

CLASSES = CNN.classes
IMAGE_SHAPE = CNN.image_shape


class PooledConv2D(keras.layers.Conv2D):  # type: ignore[misc]
    """Convolution, then the largest of each 2 x 2, then bias and rectification.

    Taking the largest first gives the same numbers as convolution, bias, rectification and pooling,
    and leaves a quarter of them to add to and to rectify. It also keeps TensorFlow from joining the
    gradients of kernel and bias into one operation of oneDNN, which is several times slower in
    float32 than both apart (measured: 42 instead of 30 ms of CPU time a step).
    """

    def call(self, inputs: Any) -> Any:
        """Return the layer's output."""
        largest = tf.nn.max_pool2d(self.convolution_op(inputs, self.kernel), 2, 2, "VALID")
        return tf.nn.relu(tf.nn.bias_add(largest, self.bias))

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Return the shape of the output."""
        batch, height, width, filters = super().compute_output_shape(input_shape)
        return batch, height // 2, width // 2, filters


def build_model(spec: ModelSpec = CNN) -> Any:
    """Return an uncompiled model: logits [batch, classes] from uint8 images [batch, *image_shape].

    The cast happens inside, so that a quarter of the bytes of float images crosses to the device.
    The logits are float32 whatever the compute type, for a stable loss.
    """
    if spec.name == "resnet50":
        from trainer.resnet import build_resnet50

        return build_resnet50(spec)
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input(spec.image_shape, dtype="uint8"),
            layers.Rescaling(1.0 / 255, name="scale"),
            PooledConv2D(32, 3, name="conv1"),
            PooledConv2D(64, 3, name="conv2"),
            layers.Flatten(name="flatten"),
            layers.Dense(64, activation="relu", name="hidden"),
            layers.Dense(spec.classes, name="logits"),
            layers.Activation("linear", dtype="float32", name="logits_float32"),
        ],
        name="digits_cnn",
    )


def flops_per_example(model: Any) -> int:
    """Return the floating-point operations of training on one example, as MFU counts them.

    Multiply and add count as two; the backward pass costs twice the forward pass. Layers other
    than convolutions and dense ones are left out, as is usual.
    """
    forward = 0
    for layer in model.layers:
        if isinstance(layer, keras.layers.Conv2D):
            _, height, width, _ = keras.layers.Conv2D.compute_output_shape(layer, layer.input.shape)
            forward += 2 * height * width * _size(layer.kernel.shape)
        elif isinstance(layer, keras.layers.Dense):
            forward += 2 * _size(layer.kernel.shape)
    return 3 * forward


def _size(shape: Any) -> int:
    size = 1
    for each in shape:
        size *= int(each)
    return size


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
