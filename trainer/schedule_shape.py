"""The course of the learning rate, whatever computes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.config import Config


@dataclass(frozen=True)
class ScheduleShape:
    """Warm-up along a line, then constant, or down along a line or a cosine.

    Attributes:
        kind: constant, linear or cosine.
        rate: the highest learning rate.
        warmup_steps: steps until it is reached; the first step gets the first part of it.
        total_steps: step at which `final_share` of the rate is reached.
        final_share: what is left of the rate at the end, 0 to 1.
    """

    kind: str
    rate: float
    warmup_steps: int
    total_steps: int
    final_share: float

    @classmethod
    def of(cls, config: Config, total_steps: int) -> ScheduleShape:
        """Return the course that the settings name."""
        return cls(
            config.schedule,
            config.learning_rate,
            config.warmup_steps,
            max(total_steps, config.warmup_steps + 1),
            config.final_rate,
        )

    @property
    def steps_after_warmup(self) -> int:
        """Steps from the highest rate to the last."""
        return self.total_steps - self.warmup_steps

    def description(self) -> str:
        """Return what a resumed run compares, to tell whether it goes on as it began."""
        if self.kind == "constant":
            return f"constant, warm-up {self.warmup_steps}"
        return (
            f"{self.kind} to {self.final_share} at {self.total_steps}, warm-up {self.warmup_steps}"
        )
