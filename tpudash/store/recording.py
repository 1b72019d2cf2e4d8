"""Writes what the store is told, with times, to a file that can be played again.

The file is gzip over JSON lines: a header, then one change a line. It is brought to the disk every
few seconds in pieces that can be read by themselves, so that a crash costs no more than those.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import zlib
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec

from tpudash.errors import ConfigurationError, UsageError
from tpudash.store.changes import ControlChanged, LogsArrived, SeriesRead
from tpudash.store.masked import MaskedStore
from tpudash.store.recording_codec import encode
from tpudash.store.recording_masking import slimmed, without_secrets_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from tpudash.clock import Clock
    from tpudash.store.changes import Change, ChangeSet

logger = logging.getLogger(__name__)

FORMAT: Final = 1
FORMAT_KEY: Final = "tpudash_recording"
FLUSH_S: Final = 2.0
MOST_WAITING: Final = 5_000
"""Changes that may wait for a slow disk; log entries beyond that are counted and left out."""
MOST_BYTES: Final = 2 << 30
GZIP: Final = 31


@dataclass(frozen=True, slots=True)
class _Waiting:
    at: datetime
    change: Change


class Recorder:
    """Takes changes on the event loop, and writes them in a thread of its own.

    Args:
        path: The file, which must not exist.
        clock: Gives each change its time.
        most_bytes: The recording ends when the file is so large.

    Attributes:
        problem: Why nothing is written any more, or None.
        is_full: Whether the file has reached its size.
        changes: How many changes were written.
        bytes_written: How large the file is.
        stopped: Is called in the thread when it ends, for whatever reason.
        left_out: How many changes were left out because the disk was too slow.
    """

    def __init__(self, path: Path, clock: Clock, most_bytes: int = MOST_BYTES) -> None:
        self.path = path
        self.problem: ConfigurationError | None = None
        self.is_full = False
        self.changes = 0
        self.bytes_written = 0
        self.left_out = 0
        self.stopped: Callable[[], object] = lambda: None
        self._clock = clock
        self._most_bytes = most_bytes
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._lines = _Lines(clock.now())
        self._compressor = zlib.compressobj(6, zlib.DEFLATED, GZIP)
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Make the file and begin.

        Raises:
            UsageError: There is such a file already.
            ConfigurationError: It can't be made.
        """
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError as error:
            raise UsageError(
                f"{self.path} exists already", hint="name another file; nothing is written over"
            ) from error
        except OSError as error:
            raise self._unwritable(error) from error
        file = os.fdopen(descriptor, "wb")
        self._thread = threading.Thread(target=self._work, args=(file,), name="recorder")
        self._thread.daemon = True
        self._thread.start()

    def take(self, change: Change) -> None:
        """Have a change written; returns at once."""
        if isinstance(change, ControlChanged) or self.problem is not None or self.is_full:
            return
        if self._queue.qsize() >= MOST_WAITING and isinstance(change, LogsArrived | SeriesRead):
            self.left_out += 1
            return
        self._queue.put(_Waiting(self._clock.now(), change))

    def close(self, timeout: float = 10.0) -> None:
        """Write what waits, and end the file properly."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(timeout)

    def _work(self, file: IO[bytes]) -> None:
        try:
            with file:
                self._write(file, self._lines.header())
                self._flush(file)
                while self._step(file):
                    pass
                self._put(file, self._compressor.flush())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            self.problem = self._unwritable(error)
        except Exception as error:
            logger.exception("recording to %s failed", self.path)
            self.problem = ConfigurationError("the recording failed", detail=str(error))
        finally:
            self.stopped()

    def _step(self, file: IO[bytes]) -> bool:
        """Write what waits for at most a few seconds; returns whether to go on."""
        deadline = self._clock.monotonic() + FLUSH_S
        goes_on = True
        while goes_on and (rest := deadline - self._clock.monotonic()) > 0:
            try:
                waiting = self._queue.get(timeout=rest)
            except Empty:
                break
            if waiting is None:
                return False
            self._write(file, self._lines.line(waiting.at, waiting.change))
            self.changes += 1
            goes_on = self.bytes_written < self._most_bytes
        self._flush(file)
        self.is_full = self.bytes_written >= self._most_bytes
        return not self.is_full

    def _write(self, file: IO[bytes], line: bytes) -> None:
        if line:
            self._put(file, self._compressor.compress(line))

    def _flush(self, file: IO[bytes]) -> None:
        self._put(file, self._compressor.flush(zlib.Z_SYNC_FLUSH))
        file.flush()

    def _put(self, file: IO[bytes], data: bytes) -> None:
        file.write(data)
        self.bytes_written += len(data)

    def _unwritable(self, error: OSError) -> ConfigurationError:
        with contextlib.suppress(AttributeError):
            return ConfigurationError(
                "the recording can't be written",
                detail=f"{self.path}: {error.strerror or error}",
                hint="what was written until then can be played: tpudash replay FILE",
            )
        return ConfigurationError("the recording can't be written", detail=str(error))


class _Lines:
    """Turns changes into lines, each of which says only what is new."""

    def __init__(self, started: datetime) -> None:
        self._started = started
        self._last = 0.0
        self._said: dict[str, Any] = {}
        self._points: dict[tuple[str, ...], dict[str, Any]] = {}

    def header(self) -> bytes:
        """Return the first line."""
        return _line({FORMAT_KEY: FORMAT, "started": self._started})

    def line(self, at: datetime, change: Change) -> bytes:
        """Return the line of one change, or nothing where it says nothing."""
        # A clock that is set back must not make a recording run backwards.
        self._last = max(self._last, round((at - self._started).total_seconds(), 3))
        kind = type(change).__name__
        data = without_secrets_in(encode(slimmed(change)))
        entry: dict[str, Any] = {"t": self._last, "k": kind}
        if isinstance(change, SeriesRead):
            data["series"] = [one for one in map(self._fresh, data["series"]) if one["points"]]
            return _line({**entry, "v": data}) if data["series"] else b""
        as_of = data.pop("as_of", None) if isinstance(data, dict) else None
        if as_of is not None:
            entry["as_of"] = as_of
        if not isinstance(change, LogsArrived) and as_of is not None:
            if self._said.get(kind) == data:
                return _line(entry)
            self._said[kind] = data
        return _line({**entry, "v": data})

    def _fresh(self, series: dict[str, Any]) -> dict[str, Any]:
        """Return a series with the points that were not in the reading before."""
        labels = "".join(f"{name}={value};" for name, value in sorted(series["labels"].items()))
        names = (series["metric"], str(series["node_id"]), series["worker_id"], labels)
        before = self._points.get(names, {})
        now = {point["time"]: point["value"] for point in series["points"]}
        self._points[names] = now
        fresh = [point for point in series["points"] if before.get(point["time"]) != point["value"]]
        return {**series, "points": fresh}


def _line(value: Any) -> bytes:
    return msgspec.json.encode(value) + b"\n"


class RecordedStore(MaskedStore):
    """A store whose changes are recorded as they are taken in."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def apply(self, change: Change) -> ChangeSet:
        """Take in one change, and have it written."""
        self._recorder.take(change)
        return super().apply(change)
