"""The best weights of a run so far, beside its checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from trainer.faults import access_error

if TYPE_CHECKING:
    from collections.abc import Callable


class BestWeights:
    """The best weights of a run: `<model_dir>/best/ckpt-<step>`, apart from the checkpoints."""

    def __init__(self, model: Any, model_dir: str, warn: Callable[[str], None]) -> None:
        self._checkpoint = tf.train.Checkpoint(model=model)
        self._folder = f"{model_dir.rstrip('/')}/best"
        self._warn = warn

    def save(self, step: int) -> None:
        """Write the weights of this step, then remove those of others.

        Raises:
            TrainerError: they could not be written; the earlier ones are unharmed.
        """
        try:
            tf.io.gfile.makedirs(self._folder)
            path = str(self._checkpoint.write(f"{self._folder}/ckpt-{step}"))
            for name in tf.io.gfile.listdir(self._folder):
                if not f"{self._folder}/{name}".startswith(f"{path}."):
                    self._remove(f"{self._folder}/{name}")
        except (tf.errors.OpError, OSError) as error:
            raise access_error(error, f"the best weights of step {step} were not saved") from error

    @staticmethod
    def _remove(path: str) -> None:
        if tf.io.gfile.isdir(path):
            tf.io.gfile.rmtree(path)
        else:
            tf.io.gfile.remove(path)

    def restore(self, step: int) -> bool:
        """Put the best weights into the model; if they are gone, warn and keep the last ones."""
        try:
            self._checkpoint.read(f"{self._folder}/ckpt-{step}").assert_existing_objects_matched()
        except (tf.errors.OpError, AssertionError, ValueError, IndexError) as error:
            self._warn(f"the best weights, of step {step}, cannot be read: {error}")
            return False
        return True
