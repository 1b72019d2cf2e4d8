"""What the processes of a slice settle among them between device calls."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from trainer.engine import Wishes
from trainer.faults import ExitCode, TrainerError, one_line

if TYPE_CHECKING:
    from trainer.jax_recipe.workers import Workers


class PeerLostError(TrainerError):
    """Another worker's process is gone; starting again joins them anew."""

    def __init__(self, error: Exception) -> None:
        super().__init__(
            ExitCode.PREEMPTED,
            "CONNECT",
            f"another worker is gone: {one_line(str(error), 200)}",
            "its log tells why; all workers start again from the newest checkpoint",
        )


_LONGEST_WORDS = 4096
_SIGNS = ("gloo", "connection closed", "connection reset", "coordination", "peer", "unavailable")


def as_peer_loss(error: Exception) -> PeerLostError | None:
    """Return the loss behind an error of a collective operation, None if it is something else."""
    text = str(error).lower()
    return PeerLostError(error) if any(sign in text for sign in _SIGNS) else None


class SlicePeers:
    """The processes of all workers of a slice, or one alone."""

    def __init__(self, workers: Workers) -> None:
        self.index = workers.index
        self._count = workers.count

    def agree(self, mine: Wishes) -> Wishes:
        """Return what all do: stop if one was asked to, save if the first holds it due.

        Raises:
            PeerLostError: a worker is gone.
        """
        if self._count == 1:
            return mine
        found = self.gather([mine.stop, mine.seconds, mine.save])
        return Wishes(bool(found[:, 0].any()), float(found[:, 1].max()), bool(found[0, 2]))

    def gather(self, values: list[float]) -> Any:
        """Return the numbers of all processes, float32 [workers, numbers].

        Raises:
            PeerLostError: a worker is gone.
        """
        mine = np.array(values, np.float32)
        if self._count == 1:
            return mine[np.newaxis]
        try:
            return np.asarray(multihost_utils.process_allgather(mine))
        except Exception as error:
            raise PeerLostError(error) from error

    def from_first(self, tree: Any) -> Any:
        """Return the first process's arrays in all; those of the others only give the shapes.

        Raises:
            PeerLostError: a worker is gone.
        """
        if self._count == 1:
            return tree
        try:
            return multihost_utils.broadcast_one_to_all(tree)
        except Exception as error:
            raise PeerLostError(error) from error

    def words_from_first(self, content: dict[str, Any]) -> dict[str, Any]:
        """Return the first process's JSON object in all. Raises `PeerLostError`."""
        text = json.dumps(content).encode()[:_LONGEST_WORDS]
        padded = np.zeros(_LONGEST_WORDS, np.uint8)
        padded[: len(text)] = np.frombuffer(text, np.uint8)
        found: dict[str, Any] = json.loads(bytes(self.from_first(padded)).rstrip(b"\0"))
        return found

    def part(self) -> None:
        """Leave the others in good order; only once all have done their work."""
        if self._count > 1:
            jax.distributed.shutdown()
