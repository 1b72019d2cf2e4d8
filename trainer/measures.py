"""What device calls did, and how long the next one may be; the same for every framework."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Call:
    """What one device call did.

    Attributes:
        steps: training steps done; fewer than asked for only if the last one went wrong.
        waited_s: time inside the call spent waiting for the input.
        step_times_s: duration of each step, waiting included.
        finite: whether loss and gradients of the last step are numbers.
    """

    steps: int
    waited_s: float
    step_times_s: Any
    finite: bool


@dataclass(frozen=True)
class Measured:
    """What one or more device calls did.

    Attributes:
        steps: training steps.
        wall_s: wall time of the calls and of what lay between them.
        waited_s: time inside the calls spent waiting for the input.
        computed_s: time inside the calls spent in device steps.
        loss: mean loss per example.
        accuracy: share of right answers.
    """

    steps: int
    wall_s: float
    waited_s: float
    computed_s: float
    loss: float
    accuracy: float


class CallSizer:
    """Chooses how many steps run in one device call.

    Starts with one and doubles at most, so that a slow device is never given a long call blindly.
    """

    def __init__(self, target_s: float) -> None:
        self._target_s = target_s
        self.steps = 1

    def observe(self, steps: int, seconds: float) -> None:
        """Take in how long a call of `steps` steps lasted."""
        wanted = int(self._target_s * steps / max(seconds, 1e-6))
        self.steps = max(1, min(wanted, self.steps * 2, 10_000))
