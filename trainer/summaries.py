"""Training curves for TensorBoard, on request."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import tensorflow as tf

from trainer.faults import one_line


class Summaries:
    """Writes scalars to `<model_dir>/summaries`.

    TensorFlow's own `tf.summary.scalar` needs the TensorBoard package just to write, which TF 2.21
    no longer installs. The record itself is plain, so it is written here without that package.
    """

    def __init__(self, model_dir: str) -> None:
        self.folder = f"{model_dir.rstrip('/')}/summaries"
        self._writer: Any = tf.summary.create_file_writer(self.folder)
        self._metadata = tf.compat.v1.SummaryMetadata()
        self._metadata.plugin_data.plugin_name = "scalars"

    def how_to_look(self) -> str:
        """Return what to type to see the curves; says so if TensorBoard is missing here."""
        missing = "" if find_spec("tensorboard") else "TensorBoard is not installed here; "
        install = "pip install tensorboard; " if missing else ""
        return f"{missing}look at the curves with: {install}tensorboard --logdir {self.folder}"

    def write(self, step: int, values: dict[str, float | None]) -> str | None:
        """Write the values of a step. Returns what went wrong, after which nothing is written."""
        if self._writer is None:
            return None
        try:
            with self._writer.as_default():
                for name, value in values.items():
                    if value is not None:
                        tf.summary.write(name, tf.constant(value), step, metadata=self._metadata)
        except (tf.errors.OpError, OSError) as error:
            self._writer = None
            return f"summaries are no longer written: {one_line(str(error), 200)}"
        return None

    def flush(self) -> str | None:
        """Hand what was written to the storage. Returns what went wrong."""
        if self._writer is None:
            return None
        try:
            self._writer.flush()
        except (tf.errors.OpError, OSError) as error:
            self._writer = None
            return f"summaries are no longer written: {one_line(str(error), 200)}"
        return None
