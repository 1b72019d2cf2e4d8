"""Models to serve."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def export(folder: Path, version: int, *, factor: int = 2, width: int = 4) -> Path:
    """Write a model that multiplies rows of numbers, whole in one step as the trainer does."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf

    class Multiply(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.factor = tf.Variable(float(factor))

        @tf.function(input_signature=[tf.TensorSpec([None, width], tf.float32, name="x")])
        def serve(self, x: Any) -> dict[str, Any]:
            return {"y": x * self.factor}

    module = Multiply()
    temporary = folder / f"{version}.tmp"
    tf.saved_model.save(module, str(temporary), signatures={"serving_default": module.serve})
    return temporary.rename(folder / str(version))


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Return a folder that holds version 1 of a model that doubles."""
    folder = tmp_path / "double"
    folder.mkdir()
    export(folder, 1)
    return folder
