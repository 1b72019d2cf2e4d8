"""The job lock: at most one trainer writes to a run's folder."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.faults import ExitCode, TrainerError

if TYPE_CHECKING:
    from collections.abc import Callable

LOCK_FILE = "trainer.lock"


def is_remote(path: str) -> bool:
    """Say whether a path is a URL such as gs://bucket/x."""
    return "://" in path


class JobLock:
    """A lock on a local run folder, held until the process ends however it ends.

    Remote folders have no such lock: there the node's attempt number keeps two trainers apart.
    """

    def __init__(self, model_dir: str) -> None:
        self._path = None if is_remote(model_dir) else Path(model_dir) / LOCK_FILE
        self._descriptor: int | None = None

    def acquire(
        self, *, wait_s: float, on_wait: Callable[[str], None], cancelled: Callable[[], bool]
    ) -> None:
        """Take the lock, waiting for a trainer that is about to end.

        Args:
            wait_s: how long to wait for the other one, in seconds.
            on_wait: told once who holds the lock, when waiting begins.
            cancelled: asked while waiting; true gives up quietly, without the lock.

        Raises:
            TrainerError: another trainer still holds the lock, or the folder cannot be written.
        """
        if self._path is None:
            return
        descriptor = self._open(self._path)
        deadline = time.monotonic() + wait_s
        told = False
        while not _try_lock(descriptor):
            holder = _holder(self._path)
            if not told:
                on_wait(holder)
                told = True
            if cancelled():
                os.close(descriptor)
                return
            if time.monotonic() >= deadline:
                os.close(descriptor)
                raise TrainerError(
                    ExitCode.NO_DEVICE,
                    "DEVICE_BUSY",
                    f"another trainer ({holder}) is writing to {self._path.parent}",
                    "wait for it or stop it; two trainers must not share a run",
                )
            time.sleep(0.2)
        holder_text = json.dumps({"pid": os.getpid(), "host": socket.gethostname()})
        # Who holds it is good to know, but a full disk takes nothing from the lock itself.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, holder_text.encode(), 0)
        self._descriptor = descriptor

    @staticmethod
    def _open(path: Path) -> int:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise TrainerError(
                ExitCode.BAD_ARGUMENTS,
                "BUCKET_ACCESS",
                f"cannot write to the model_dir {path.parent}: {error.strerror}",
                "choose a --model_dir that this user can write to",
            ) from error


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def _holder(path: Path) -> str:
    try:
        record = json.loads(path.read_text())
        return f"pid {record['pid']} on {record['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "unknown process"
