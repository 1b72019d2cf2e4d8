"""Stopping when the held-out loss no longer falls."""

from __future__ import annotations

import math
from typing import Any

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
