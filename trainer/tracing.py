"""TensorFlow's profiler."""

from __future__ import annotations

import tensorflow as tf

from trainer.profiling import TraceError


class TensorFlowTracer:
    """Writes a trace with TensorFlow's profiler, to a folder that may be on gs://."""

    def start(self, folder: str) -> None:
        """Begin to trace. Raises `TraceError`."""
        try:
            tf.profiler.experimental.start(folder)
        except (tf.errors.OpError, RuntimeError) as error:
            raise TraceError(str(error)) from error

    def stop(self, folder: str) -> str | None:
        """End the trace and return its file. Raises `TraceError`."""
        try:
            tf.profiler.experimental.stop()
            files = tf.io.gfile.glob(f"{folder}/plugins/profile/*/*.xplane.pb")
        except (tf.errors.OpError, RuntimeError) as error:
            raise TraceError(str(error)) from error
        return max(files, key=lambda name: tf.io.gfile.stat(name).mtime_nsec, default=None)
