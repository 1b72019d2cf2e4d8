"""Figures of the host: CPU, memory, disk, and the trainer's own memory."""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def sample(folder: Path, trainer_pid: int | None) -> dict[str, Any]:
    """Return the host's figures; what cannot be known is None.

    Args:
        folder: the disk that holds it is measured.
        trainer_pid: the trainer's process, if it runs.
    """
    figures: dict[str, Any] = {
        "event": "host",
        "message": "host figures",
        "cpu_count": os.cpu_count(),
        "load_1m": round(os.getloadavg()[0], 2),
        "disk_free_bytes": _disk_free(folder),
        "cpu_fraction": None,
        "memory_used_bytes": None,
        "memory_total_bytes": None,
        "trainer_memory_bytes": None,
    }
    try:
        import psutil
    except ImportError:
        return figures
    memory = psutil.virtual_memory()
    figures["cpu_fraction"] = round(psutil.cpu_percent(interval=None) / 100, 4)
    figures["memory_used_bytes"] = memory.total - memory.available
    figures["memory_total_bytes"] = memory.total
    if trainer_pid is not None:
        with contextlib.suppress(psutil.Error):
            figures["trainer_memory_bytes"] = psutil.Process(trainer_pid).memory_info().rss
    return figures


def _disk_free(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
