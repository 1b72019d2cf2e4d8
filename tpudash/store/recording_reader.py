"""Reads recordings, also those that a crash or a full disk cut off, and damaged ones up to there.

What was recorded is unpacked to a nameless temporary file, so that memory stays small however long
the recording is; only times and places of its lines are held.
"""

from __future__ import annotations

import logging
import tempfile
import zlib
from array import array
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec

from tpudash.errors import ConfigurationError, NotFoundError, UsageError
from tpudash.store.recording import FORMAT, FORMAT_KEY, GZIP
from tpudash.store.recording_codec import CodecError, decode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tpudash.store.changes import Change

logger = logging.getLogger(__name__)

CHUNK: Final = 1 << 14
UNPACKED_AT_ONCE: Final = 4 << 20
MOST_UNPACKED: Final = 8 << 30
LONGEST_LINE: Final = 64 << 20
MOST_MARKS: Final = 10_000
_NO_LINE: Final = -1


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment worth going to: a node came, went, or changed its state."""

    at: datetime
    text: str


class _Head(msgspec.Struct):
    """What every line begins with."""

    t: float = 0.0
    k: str = ""
    v: msgspec.Raw = msgspec.Raw()
    as_of: str | None = None


class Recording:
    """One recording, ready to be played from any place.

    Args:
        path: The file.

    Attributes:
        started: When the recording began.
        problem: Why it ends before its end, or "".
        marks: Moments worth going to, oldest first.
        unread: How many lines meant nothing to this version.

    Raises:
        NotFoundError: There is no such file.
        UsageError: It is no recording, or one of a later version.
        ConfigurationError: It can't be read, or there is no room to unpack it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem = ""
        self.unread = 0
        self.marks: list[Mark] = []
        self._times = array("d")
        self._places = array("q")
        self._bases = array("q")
        self._last_of: dict[str, int] = {}
        self._decoded: dict[int, Any] = {}
        self._states: dict[str, str] = {}
        self._has_listed = False
        try:
            self._spool: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - held while playing
            with path.open("rb") as file:
                self._unpack(file)
        except FileNotFoundError as error:
            raise NotFoundError(f"there is no file {path}") from error
        except OSError as error:
            raise ConfigurationError(
                "the recording can't be read", detail=f"{path}: {error.strerror or error}"
            ) from error

    def __len__(self) -> int:
        return len(self._times)

    @property
    def ended(self) -> datetime:
        """When its last change was recorded."""
        return self.started + timedelta(seconds=self._times[-1] if self._times else 0.0)

    def close(self) -> None:
        """Give the disk back."""
        self._spool.close()

    def time_of(self, index: int) -> datetime:
        """Return when a change was recorded."""
        return self.started + timedelta(seconds=self._times[index])

    def count_until(self, moment: datetime) -> int:
        """Return how many changes were recorded until a moment, that moment included."""
        return bisect_right(self._times, (moment - self.started).total_seconds() + 0.0005)

    def changes(self, first: int, end: int) -> Iterator[Change]:
        """Yield the changes of a range; lines that mean nothing to us are counted and left out."""
        for index in range(first, min(end, len(self))):
            try:
                yield self._change(index)
            except (CodecError, msgspec.DecodeError, UnicodeDecodeError) as error:
                self.unread += 1
                logger.warning("%s: change %d: %s", self.path, index, error)

    # Unpacking.

    def _unpack(self, file: IO[bytes]) -> None:
        unpacker = zlib.decompressobj(GZIP)
        rest, size, is_first = b"", 0, True
        while not unpacker.eof:
            packed = unpacker.unconsumed_tail or file.read(CHUNK)
            if not packed:
                self.problem = "it ends early, as after a crash"
                break
            try:
                data = unpacker.decompress(packed, UNPACKED_AT_ONCE)
            except zlib.error as error:
                self.problem = f"it is damaged from there on ({error})"
                break
            size += len(data)
            if size > MOST_UNPACKED or len(rest) > LONGEST_LINE:
                self.problem = "the rest is too large to be played"
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if is_first:
                    self._begin(line)
                    is_first = False
                else:
                    self._note(line)
        if is_first:
            raise self._no_recording("it has no header")

    def _begin(self, line: bytes) -> None:
        try:
            header = msgspec.json.decode(line)
            version = header[FORMAT_KEY]
            self.started = datetime.fromisoformat(header["started"]).astimezone(UTC)
        except (msgspec.DecodeError, KeyError, TypeError, ValueError, UnicodeDecodeError) as error:
            raise self._no_recording("its header is another one") from error
        if not isinstance(version, int) or version > FORMAT:
            raise UsageError(
                f"{self.path} was recorded by a later tpudash",
                detail=f"format {version}, this one knows {FORMAT}",
                hint="play it with that version",
            )

    def _no_recording(self, why: str) -> UsageError:
        return UsageError(
            f"{self.path} is no recording", detail=why, hint="make one: tpudash record FILE"
        )

    def _note(self, line: bytes) -> None:
        """Keep a line and its place; one without a value repeats the last one of its kind."""
        try:
            head = msgspec.json.decode(line, type=_Head)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.unread += 1
            return
        index = len(self._times)
        self._times.append(max(head.t, self._times[-1] if self._times else 0.0))
        self._places.append(self._spool.tell())
        has_value = bool(bytes(head.v))
        self._bases.append(_NO_LINE if has_value else self._last_of.get(head.k, _NO_LINE))
        self._spool.write(line + b"\n")
        if has_value:
            self._last_of[head.k] = index
            if head.k == "NodesListed":
                self._mark(index, head)

    def _mark(self, index: int, head: _Head) -> None:
        try:
            nodes = msgspec.json.decode(head.v)["listing"]["nodes"]
            states = {str(one["name"]): str(one["state"]) for one in nodes}
        except (msgspec.DecodeError, KeyError, TypeError):
            return
        at = self.time_of(index)
        for name in sorted(states.keys() | self._states.keys()):
            before, after = self._states.get(name), states.get(name, "gone")
            if before != after and len(self.marks) < MOST_MARKS and self._has_listed:
                self.marks.append(Mark(at, f"{name.rsplit('/', 1)[-1]} {after}"))
        self._states, self._has_listed = states, True

    # Decoding.

    def _change(self, index: int) -> Change:
        head = self._head(index)
        base = self._bases[index]
        raw = head.v if base == _NO_LINE else self._head(base).v
        data = msgspec.json.decode(raw)
        if head.as_of is not None and isinstance(data, dict):
            data["as_of"] = head.as_of
        return decode(head.k, data)

    def _head(self, index: int) -> _Head:
        self._spool.seek(self._places[index])
        return msgspec.json.decode(self._spool.readline(), type=_Head)
