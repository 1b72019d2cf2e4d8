"""ResNet-50 version 1.5, the usual yardstick of accelerators.

Facts: He et al., "Deep Residual Learning for Image Recognition" (2015), table 1; in version 1.5 the
3x3 convolution of a block halves the image instead of the 1x1 before it, as in MLPerf's benchmark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

if TYPE_CHECKING:
    from trainer.model_specs import ModelSpec

_STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
"""Filters within a block, and number of blocks, of each stage."""
_WIDENING = 4


def build_resnet50(spec: ModelSpec) -> Any:
    """Return the uncompiled model: float32 logits [batch, classes] from uint8 images."""
    layers = keras.layers
    images = keras.Input(spec.image_shape, dtype="uint8")
    x = layers.Rescaling(1.0 / 127.5, offset=-1.0, name="scale")(images)
    x = _convolution(x, 64, 7, strides=2, name="stem")
    x = layers.ReLU(name="stem_relu")(x)
    x = layers.MaxPooling2D(3, strides=2, padding="same", name="stem_pool")(x)
    for stage, (filters, blocks) in enumerate(_STAGES):
        for block in range(blocks):
            strides = 2 if stage > 0 and block == 0 else 1
            x = _bottleneck(x, filters, strides, widens=block == 0, name=f"stage{stage}_{block}")
    x = layers.GlobalAveragePooling2D(name="pool")(x)
    x = layers.Dense(spec.classes, name="logits")(x)
    logits = layers.Activation("linear", dtype="float32", name="logits_float32")(x)
    return keras.Model(images, logits, name="resnet50")


def _bottleneck(x: Any, filters: int, strides: int, *, widens: bool, name: str) -> Any:
    layers = keras.layers
    shortcut = x
    if widens:
        shortcut = _convolution(x, _WIDENING * filters, 1, strides=strides, name=f"{name}_shortcut")
    x = layers.ReLU(name=f"{name}_relu1")(_convolution(x, filters, 1, name=f"{name}_reduce"))
    x = _convolution(x, filters, 3, strides=strides, name=f"{name}_middle")
    x = layers.ReLU(name=f"{name}_relu2")(x)
    # A block that begins as the identity trains more stably at large batches.
    x = _convolution(x, _WIDENING * filters, 1, name=f"{name}_widen", gamma="zeros")
    return layers.ReLU(name=f"{name}_relu3")(layers.Add(name=f"{name}_add")([x, shortcut]))


def _convolution(
    x: Any, filters: int, size: int, *, name: str, strides: int = 1, gamma: str = "ones"
) -> Any:
    """Return a convolution without bias and its batch normalisation."""
    x = keras.layers.Conv2D(
        filters,
        size,
        strides=strides,
        padding="same",
        use_bias=False,
        kernel_initializer="he_normal",
        name=name,
    )(x)
    return keras.layers.BatchNormalization(
        momentum=0.9, epsilon=1e-5, gamma_initializer=gamma, name=f"{name}_norm"
    )(x)
