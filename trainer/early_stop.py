"""Stopping when the held-out loss no longer falls, and the best weights so far."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from trainer.checkpoint_files import access_error

if TYPE_CHECKING:
    from collections.abc import Callable

STATE_KEY = "early_stop"


class EarlyStop:
    """Counts evaluations without a lower loss; its state travels in the checkpoint's metadata.

    Args:
        patience: evaluations to wait for a lower loss; 0 never stops.
    """

    def __init__(self, patience: int) -> None:
        self._patience = patience
        self.best_loss = math.inf
        self.best_step: int | None = None
        self._since = 0

    def observe(self, step: int, loss: float) -> bool:
        """Take in an evaluation. Returns whether it is the best so far."""
        if loss < self.best_loss:
            self.best_loss, self.best_step, self._since = loss, step, 0
            return True
        self._since += 1
        return False

    @property
    def due(self) -> bool:
        """Whether training should stop."""
        return bool(self._patience) and self._since >= self._patience

    def state(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        best = self.best_loss if math.isfinite(self.best_loss) else None
        return {"best_loss": best, "best_step": self.best_step, "since": self._since}

    def load(self, state: Any) -> None:
        """Take over the state of an earlier life; anything else begins anew."""
        if not isinstance(state, dict) or state.get("best_loss") is None:
            return
        self.best_loss = float(state["best_loss"])
        self.best_step = state.get("best_step")
        self._since = int(state.get("since", 0))


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
