"""Control of a project: a small file says which console has it, and whether that still lives.

The first console has control; others are told who, and may take it over. A console that was killed
leaves its file behind, which counts for nothing once its process is gone. The folder may be shared
by the users of a machine: files are replaced as wholes, and everyone may read them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import re
import socket
import tempfile
import uuid
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil

from tpudash.domain.control import Control, Holder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpudash.clock import Clock

logger = logging.getLogger(__name__)

SILENT_AFTER_S: Final = 120.0
"""A console on another machine that has not touched its file for so long is taken for gone."""
START_TIME_TOLERANCE_S: Final = 2.0
_READABLE: Final = 0o644


class ControlLock:
    """Control of one project, as one console sees it.

    Args:
        folder: Where the files of all projects lie; it is made when something is written.
        project: What is controlled; an endpoint of one's own is a project of its own.
        owner: Who sits at this console.
    """

    def __init__(self, folder: Path, project: str, owner: str, clock: Clock) -> None:
        name = re.sub(r"[^A-Za-z0-9.-]", "_", project) or "none"
        self._path = folder / f"{name}.json"
        self._guard = folder / f"{name}.lock"
        self._token = uuid.uuid4().hex
        self._us = Holder(owner, socket.gethostname(), os.getpid(), clock.now(), _place())
        self._clock = clock

    @property
    def path(self) -> Path:
        """The file that says who has control."""
        return self._path

    def check(self) -> Control:
        """Say how things stand, and take control where nobody alive has it."""
        try:
            with self._guarded():
                record = self._read()
                if record is not None and record.get("token") == self._token:
                    self._path.touch()
                    return Control(is_ours=True, holder=self._us)
                holder = _holder_of(record)
                if record is not None and holder is not None and self._is_alive(record, holder):
                    return Control(is_ours=False, holder=holder)
                return self._write()
        except OSError as error:
            return self._unshared(error)

    def take(self) -> Control:
        """Take control away from whoever has it; where that fails, the answer says why."""
        try:
            with self._guarded():
                return self._write()
        except OSError as error:
            found = self.check()
            return found if found.is_ours else replace(found, problem=_words(error, self._path))

    def release(self) -> None:
        """Give control up, if it is ours."""
        with contextlib.suppress(OSError), self._guarded():
            record = self._read()
            if record is not None and record.get("token") == self._token:
                self._path.unlink()

    def _unshared(self, error: OSError) -> Control:
        """Go on alone: a broken folder must not keep an operator from a running bill."""
        words = _words(error, self._path)
        logger.warning("control of the project can't be shared out: %s", words)
        return Control(is_ours=True, problem=words)

    def _read(self) -> dict[str, Any] | None:
        try:
            record = json.loads(self._path.read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        return record if isinstance(record, dict) else None

    def _write(self) -> Control:
        self._us = replace(self._us, since=self._clock.now())
        record = {
            **asdict(self._us),
            "since": self._us.since.isoformat(),
            "started": psutil.Process().create_time(),
            "token": self._token,
        }
        descriptor, fresh = tempfile.mkstemp(dir=self._path.parent, prefix=".control-")
        try:
            with os.fdopen(descriptor, "w") as file:
                json.dump(record, file)
            Path(fresh).chmod(_READABLE)
            Path(fresh).replace(self._path)
        except OSError:
            Path(fresh).unlink(missing_ok=True)
            raise
        return Control(is_ours=True, holder=self._us)

    def _is_alive(self, record: dict[str, Any], holder: Holder) -> bool:
        if holder.host != self._us.host:
            heard = datetime.fromtimestamp(self._path.stat().st_mtime, UTC)
            return (self._clock.now() - heard).total_seconds() < SILENT_AFTER_S
        try:
            process = psutil.Process(holder.pid)
            started = process.create_time()
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
        except psutil.NoSuchProcess:
            return False
        except psutil.Error:
            return True
        known = record.get("started")
        return not isinstance(known, int | float) or (abs(started - known) < START_TIME_TOLERANCE_S)

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Keep other consoles from looking while one decides; the system lets go at our end."""
        self._guard.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        # Whoever may only read the file can lock it all the same.
        descriptor = os.open(self._guard, os.O_RDONLY | os.O_CREAT, _READABLE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _holder_of(record: dict[str, Any] | None) -> Holder | None:
    if record is None:
        return None
    try:
        since = datetime.fromisoformat(str(record["since"]))
        pid = int(record["pid"])
        return Holder(
            owner=str(record["owner"]),
            host=str(record["host"]),
            pid=pid,
            since=since if since.tzinfo else since.replace(tzinfo=UTC),
            place=str(record.get("place", "")),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _words(error: OSError, path: Path) -> str:
    return f"{error.filename or path}: {error.strerror or error}"


def _place() -> str:
    """Return the terminal that this console is on, or ""."""
    for number in (0, 1, 2):
        with contextlib.suppress(OSError):
            return os.ttyname(number).removeprefix("/dev/")
    return ""
