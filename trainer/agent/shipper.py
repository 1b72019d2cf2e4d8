"""Ships log entries in batches without ever holding up who submits them."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from trainer.events import timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.agent.spool import Spool

_BATCH = 200
_MEMORY = 5000
_LONGEST_TEXT = 16_000
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0

Entry = dict[str, Any]
"""A log entry as JSON: ts, severity, stream, insert_id, and either text or json."""


class SendError(Exception):
    """A batch could not be sent. `refused` means that sending it again would not help."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class Sender(Protocol):
    """The other end: writes a batch to Cloud Logging."""

    def send(self, entries: list[Entry]) -> None:
        """Write the entries. Raises `SendError`."""
        ...


class Shipper:
    """Queue in memory, spool on disk while the network is lost, one thread that sends.

    Args:
        sender: the other end.
        spool: where entries wait when they cannot be sent.
        identity: prefix of insert ids, so that an entry sent twice is stored once.
        flush_s: interval of sending.
        tell: told when sending begins to fail and when it works again.
        keep: given each entry besides, whether it can be sent or not.
    """

    def __init__(
        self,
        sender: Sender,
        spool: Spool,
        *,
        identity: str,
        flush_s: float,
        tell: Callable[[str], None],
        keep: Callable[[Entry], None] | None = None,
    ) -> None:
        self._keep_copy = keep
        self._sender = sender
        self._spool = spool
        self._identity = identity
        self._flush_s = flush_s
        self._tell = tell
        self._condition = threading.Condition()
        self._queue: deque[Entry] = deque()
        self._seq = 0
        self._closing = False
        self._unreported = 0
        self.dropped = 0
        """Entries lost for ever so far."""
        self._pause_s = 0.0
        self._retry_at = 0.0
        self._thread = threading.Thread(target=self._work, name="shipper", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def submit(
        self,
        stream: str,
        *,
        severity: str = "INFO",
        text: str | None = None,
        payload: dict[str, Any] | None = None,
        ts: str | None = None,
    ) -> None:
        """Queue one entry; returns at once. When the queue is full the entry is counted as lost."""
        with self._condition:
            self._seq += 1
            entry: Entry = {
                "ts": ts or timestamp(),
                "severity": severity,
                "stream": stream,
                "insert_id": f"{self._identity}-{self._seq}",
            }
            if payload is not None:
                entry["json"] = payload
            else:
                entry["text"] = (text or "")[:_LONGEST_TEXT]
            if self._keep_copy is not None:
                self._keep_copy(entry)
            if len(self._queue) >= _MEMORY:
                self._count_lost(1)
                return
            self._queue.append(entry)
            if len(self._queue) >= _BATCH:
                self._condition.notify()

    def _count_lost(self, count: int) -> None:
        self.dropped += count
        self._unreported += count

    def close(self, timeout_s: float) -> None:
        """Try to send what is queued; what is left after the time stays in the spool."""
        with self._condition:
            self._closing = True
            self._retry_at = 0.0
            self._condition.notify()
        self._thread.join(timeout_s)

    def _work(self) -> None:
        while True:
            with self._condition:
                if not self._closing and len(self._queue) < _BATCH:
                    self._condition.wait(self._flush_s)
                closing = self._closing
                taken = min(len(self._queue), _BATCH if not closing else len(self._queue))
                batch = [self._queue.popleft() for _ in range(taken)]
            try:
                self._ship(batch)
            except Exception as error:  # noqa: BLE001 - this thread must live as long as the agent
                self._tell(f"log entries were lost: {type(error).__name__}: {error}")
                with self._condition:
                    self._count_lost(len(batch))
            if closing:
                return

    def _ship(self, batch: list[Entry]) -> None:
        """Send the spool, then the batch; on failure the batch goes to the spool."""
        if time.monotonic() < self._retry_at:
            self._keep(batch)
            return
        if not self._spool.empty:
            self._keep(batch)
            self._drain()
            return
        for begin in range(0, len(batch), _BATCH):
            part = batch[begin : begin + _BATCH]
            if not self._send(part):
                self._keep(batch[begin:])
                return

    def _keep(self, batch: list[Entry]) -> None:
        if batch:
            lost = self._spool.append(batch)
            with self._condition:
                self._count_lost(lost)

    def _drain(self) -> None:
        while not self._spool.empty:
            entries, position = self._spool.peek(_BATCH)
            if entries and not self._send(entries):
                return
            self._spool.consume(position)

    def _send(self, entries: list[Entry]) -> bool:
        """Send one batch. Returns False if it is to be tried again later."""
        try:
            self._sender.send(entries)
        except SendError as error:
            if error.refused:
                self._send_singly(entries)
                return True
            if not self._pause_s:
                self._tell(f"log entries are kept on disk, Cloud Logging does not answer: {error}")
            self._pause_s = min(self._pause_s * 2 or _FIRST_PAUSE_S, _LONGEST_PAUSE_S)
            self._retry_at = time.monotonic() + self._pause_s
            return False
        if self._pause_s:
            self._pause_s = 0.0
            self._tell("Cloud Logging answers again")
        self._report_lost()
        return True

    def _send_singly(self, entries: list[Entry]) -> None:
        """Find the entries of a refused batch that are to blame; only those are lost."""
        for entry in entries:
            self._send_one(entry)

    def _send_one(self, entry: Entry) -> None:
        try:
            self._sender.send([entry])
        except SendError as error:
            self._tell(f"one log entry was refused and is lost: {error}")
            with self._condition:
                self._count_lost(1)

    def _report_lost(self) -> None:
        with self._condition:
            count, self._unreported = self._unreported, 0
        if count:
            self.submit(
                "agent",
                severity="WARNING",
                text=f"{count} log entries were lost while Cloud Logging could not be reached",
            )
