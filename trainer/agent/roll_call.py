"""Which workers of a slice have an agent: each shows itself in the run's folder to worker 0."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from trainer.agent.folders import FolderError
from trainer.events import timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.agent.folders import RunFolder
    from trainer.agent.metadata import NodeIdentity

_MOST_LOOKS = 32
"""Files looked for at a time, so that a slice of hundreds does not ask for all at once."""


def presence_name(attempt: int, worker: int) -> str:
    """Return the name of the file by which a worker shows itself."""
    return f"attempts/{attempt}.worker-{worker}"


class RollCall:
    """Worker 0's list of who is still awaited; on other workers it only shows this one."""

    def __init__(
        self,
        folder: RunFolder,
        node: NodeIdentity,
        attempt: int,
        patience_s: float,
        tell: Callable[..., None],
    ) -> None:
        self._folder = folder
        self._node = node
        self._attempt = attempt
        self._patience_s = patience_s
        self._tell = tell
        self._began = time.monotonic()
        self._awaited = list(range(1, node.workers)) if node.worker == 0 else []
        self._told = False

    def show(self) -> None:
        """Let worker 0 know that this worker has an agent."""
        if self._node.worker == 0:
            return
        name = presence_name(self._attempt, self._node.worker)
        content = json.dumps({"worker": self._node.worker, "seen": timestamp()}).encode()
        try:
            self._folder.write(name, content)
        except FolderError as error:
            self._tell(f"{name} cannot be written: {error}", "WARNING")

    def missing(self) -> list[int]:
        """Return the workers that have not shown themselves, once they had time to."""
        for worker in self._awaited[:_MOST_LOOKS]:
            if self._is_there(worker):
                self._awaited.remove(worker)
        if not self._awaited or time.monotonic() - self._began < self._patience_s:
            return []
        if not self._told:
            self._told = True
            named = ", ".join(map(str, self._awaited))
            text = f"PARTIAL_SLICE: of {self._node.workers} workers, {named} never reported"
            self._tell(text, "ERROR")
        return list(self._awaited)

    def _is_there(self, worker: int) -> bool:
        try:
            return self._folder.read(presence_name(self._attempt, worker)) is not None
        except FolderError:
            return False
