"""Which models there are, and what goes in and out of them. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass

MODELS = ("cnn", "resnet50")


@dataclass(frozen=True)
class ModelSpec:
    """A model's name and the form of its data.

    Attributes:
        name: one of `MODELS`.
        image_shape: height, width and channels of its uint8 images, in pixels.
        classes: number of classes; labels are 0 to classes - 1.
        resizes: whether encoded images of another size are resized to fit, as photographs must be.
    """

    name: str
    image_shape: tuple[int, int, int]
    classes: int
    resizes: bool = False

    @property
    def image_bytes(self) -> int:
        """Bytes of one decoded image."""
        height, width, channels = self.image_shape
        return height * width * channels


CNN = ModelSpec("cnn", (28, 28, 1), 10)
RESNET50 = ModelSpec("resnet50", (224, 224, 3), 1000, resizes=True)
_DEFAULTS = {"cnn": CNN, "resnet50": RESNET50}
SMALLEST_IMAGE = {"cnn": 10, "resnet50": 32}
"""Smaller images would be pooled away to nothing."""


def model_spec(name: str, image_size: int = 0, classes: int = 0) -> ModelSpec:
    """Return the spec of a model; 0 stands for the model's own default."""
    default = _DEFAULTS[name]
    height, width, channels = default.image_shape
    shape = (image_size or height, image_size or width, channels)
    return ModelSpec(name, shape, classes or default.classes, default.resizes)
