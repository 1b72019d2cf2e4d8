"""What a training job needs of a framework, and of the other processes of its slice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.measures import Call, Measured
    from trainer.profiling import Tracer
    from trainer.resuming import Restored, Saved


@dataclass(frozen=True)
class Wishes:
    """What one process would do next; all must do the same, or they wait for each other for ever.

    Attributes:
        stop: whether it was asked to stop.
        seconds: how long its last device call took.
        save: whether it holds that a checkpoint is due.
    """

    stop: bool = False
    seconds: float = 0.0
    save: bool = False


class Peers(Protocol):
    """The processes that train together."""

    @property
    def index(self) -> int:
        """Number of this process, from 0."""
        ...

    def agree(self, mine: Wishes) -> Wishes:
        """Return what all do: stop if one was asked to, save if the first holds it due."""
        ...

    def part(self) -> None:
        """Leave the others, once all have done their work."""
        ...


class Alone:
    """A process that trains by itself, as TensorFlow's coordinator does on a slice too."""

    index = 0

    def agree(self, mine: Wishes) -> Wishes:
        """Return what this process wants."""
        return mine

    def part(self) -> None:
        """There is nobody to leave."""


class CurveWriter(Protocol):
    """Writes training curves for TensorBoard; each method returns what went wrong, if anything."""

    def how_to_look(self) -> str:
        """Return what to type to see the curves."""
        ...

    def write(self, step: int, values: dict[str, float | None]) -> str | None:
        """Write the values of a step."""
        ...

    def flush(self) -> str | None:
        """Hand what was written to the storage."""
        ...


class Engine(Protocol):
    """A framework with model, data, device and checkpoints set up for one job."""

    @property
    def peers(self) -> Peers:
        """The processes that train together."""
        ...

    @property
    def tracer(self) -> Tracer:
        """Writes traces."""
        ...

    @property
    def target(self) -> int:
        """Last step of the run."""
        ...

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in a pass."""
        ...

    @property
    def evaluation_examples(self) -> int:
        """Number of held-out examples."""
        ...

    @property
    def last_saved(self) -> int | None:
        """Step of the newest checkpoint, None while there is none."""
        ...

    def restore(self) -> Restored:
        """Take up the newest good checkpoint. Raises `TrainerError`."""
        ...

    def save(self, step: int, extra: dict[str, Any], *, wait: bool) -> list[Saved]:
        """Save a checkpoint, unless that step is saved or another process saves it.

        Unless told to wait, it may still be being written when this returns. Returns what was
        written completely since the last call of this method or of `saved`. Raises `TrainerError`.
        """
        ...

    def saved(self) -> list[Saved]:
        """Return what was written completely meanwhile. Raises `TrainerError`."""
        ...

    def start(self, step: int) -> None:
        """Take the data from a step on and compile the training step."""
        ...

    def run(self, steps: int) -> Call:
        """Run steps in one device call. Raises `TrainerError` if the input failed."""
        ...

    def take_measures(self, steps: int, waited_s: float, computed_s: float) -> Measured:
        """Return the measures since the last call of this method, and begin anew."""
        ...

    def evaluate(self, cancelled: Callable[[], bool]) -> Measured | None:
        """Return loss and accuracy over the held-out data; None if cancelled."""
        ...

    def learning_rate(self, step: int) -> float:
        """Return the rate of the step after `step` steps."""
        ...

    def weights_are_finite(self) -> bool:
        """Say whether no weight is NaN or infinite, so that the state is worth saving."""
        ...

    def input_facts(self) -> dict[str, Any]:
        """Return how the input is read: source, cached, prefetch, parallel_map."""
        ...

    def flops_per_example(self) -> int:
        """Return the floating-point operations of training on one example."""
        ...

    def weights_sha256(self) -> str:
        """Return the SHA-256 over all weights: equal exactly if every bit of them is."""
        ...

    def export(self, step: int) -> str | None:
        """Write the trained model for serving and return its place. Raises `TrainerError`."""
        ...

    def save_best(self, step: int) -> None:
        """Keep the weights as the best so far, apart from the checkpoints."""
        ...

    def restore_best(self, step: int) -> bool:
        """Put the best weights into the model; False, and a warning, if they are gone."""
        ...

    def curves(self) -> CurveWriter:
        """Return the writer of training curves."""
        ...
