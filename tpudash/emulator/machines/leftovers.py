"""Finds processes of nodes by the mark that every worker's environment carries."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MARK = "TPUDASH_NODE_DIR"
_WAIT_S = 2.0
_POLL_S = 0.02


def processes_of(folder: Path) -> Iterator[psutil.Process]:
    """Yield the living processes whose worker's folder is `folder` or lies below it."""
    prefix = str(folder)
    me = os.getpid()
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            mark = process.environ().get(MARK, "")
            inside = mark == prefix or mark.startswith(prefix + os.sep)
            if inside and process.pid != me and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def kill_processes_of(folder: Path) -> int:
    """Kill them all, and return how many there were."""
    killed: set[int] = set()
    deadline = time.monotonic() + _WAIT_S
    while victims := list(processes_of(folder)):
        for process in victims:
            with suppress(psutil.Error):
                process.kill()
                killed.add(process.pid)
        if time.monotonic() > deadline:
            break
        time.sleep(_POLL_S)
    return len(killed)
