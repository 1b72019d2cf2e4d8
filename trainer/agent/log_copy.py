"""The newest part of this worker's log, left in the run's folder for when the log is gone.

`attempts/<n>.log` (worker 0) or `attempts/<n>.<worker>.log`: JSON lines, the first says whose.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from trainer.agent.folders import FolderError

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.agent.folders import RunFolder
    from trainer.agent.metadata import NodeIdentity
    from trainer.agent.spec import Spec

_LIMIT_BYTES = 256 * 1024
_EARLIER_BYTES = 128 * 1024
_OVERHEAD = 160


def copy_name(attempt: int, worker: int) -> str:
    """Return the name of a worker's log within the run's folder."""
    return f"attempts/{attempt}.log" if worker == 0 else f"attempts/{attempt}.{worker}.log"


class LogCopy:
    """Keeps the newest entries within some bytes, and writes them as one file.

    Args:
        folder: the run's folder.
        spec: the run.
        node: this worker.
        tell: told when the file cannot be written, once.
    """

    def __init__(
        self, folder: RunFolder, spec: Spec, node: NodeIdentity, tell: Callable[[str], None]
    ) -> None:
        self._folder = folder
        self._name = copy_name(spec.attempt, node.worker)
        self._head = {
            "tpudash-log": 1,
            "run": spec.run,
            "attempt": spec.attempt,
            "node": node.node,
            "zone": node.zone,
            "worker": str(node.worker),
        }
        self._tell = tell
        self._entries: deque[tuple[int, dict[str, Any]]] = deque()
        self._bytes = 0
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._is_new = False
        self._failing = False
        self._earlier: list[bytes] | None = None
        """What an earlier agent of this attempt left; None until it was looked for."""

    def keep(self, entry: dict[str, Any]) -> None:
        """Take in an entry as it is shipped; the host's figures are left out."""
        if entry["severity"] == "DEBUG":
            return
        payload = entry.get("json")
        size = _OVERHEAD + len(entry.get("text") or "") + 32 * len(payload or ())
        with self._lock:
            self._entries.append((size, entry))
            self._bytes += size
            while self._bytes > _LIMIT_BYTES and len(self._entries) > 1:
                self._bytes -= self._entries.popleft()[0]
            self._is_new = True

    def write(self) -> None:
        """Write the file anew if there is anything new; faults are told and tried again later."""
        with self._writing:
            with self._lock:
                if not self._is_new:
                    return
                entries = [entry for _, entry in self._entries]
                self._is_new = False
            lines = [json.dumps(value, default=str).encode() for value in (self._head, *entries)]
            try:
                lines[1:1] = self._earlier_lines()
                self._folder.write(self._name, b"\n".join(lines) + b"\n")
            except FolderError as error:
                self._is_new = True
                if not self._failing:
                    self._tell(f"the copy of the log cannot be written: {error}")
                self._failing = True
                return
            self._failing = False

    def _earlier_lines(self) -> list[bytes]:
        if self._earlier is None:
            found = self._folder.read(self._name) or b""
            self._earlier = found[-_EARLIER_BYTES:].splitlines()[1:]
        return self._earlier
