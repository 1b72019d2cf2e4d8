"""Which TPU device files a host has, who holds them, and whether a lock file is stale."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

_DEVICES = ("accel*", "vfio/[0-9]*")
_LOCK_FILE = "libtpu_lockfile"
_MOST_HOLDERS = 10


def report(
    *,
    devices: Path = Path("/dev"),
    processes: Path = Path("/proc"),
    temporary: Path = Path("/tmp"),  # noqa: S108 - where libtpu itself puts it
) -> dict[str, Any]:
    """Return the event that tells of the chips; what cannot be looked at is left out.

    Args:
        devices: where device files are.
        processes: the process file system; without one nobody is known to hold anything.
        temporary: where libtpu keeps its lock file.
    """
    files = sorted(str(path) for pattern in _DEVICES for path in devices.glob(pattern))
    holders = _holders(frozenset(files), processes)
    lock = temporary / _LOCK_FILE
    has_lock = lock.exists()
    stale = has_lock and holders == []
    count = "no TPU device files" if not files else f"{len(files)} TPU device files"
    held = f", held by {len(holders)} processes" if holders else ""
    return {
        "event": "devices",
        "message": f"{count}{held}{', a stale lock file' if stale else ''}",
        "files": files,
        "holders": holders,
        "lock_file": str(lock) if has_lock else None,
        "lock_is_stale": stale,
    }


def _holders(files: frozenset[str], processes: Path) -> list[dict[str, Any]] | None:
    """Return who has one of the files open, or None where that cannot be told."""
    if not files:
        return []
    if not processes.is_dir():
        return None
    found = []
    for folder in sorted(processes.glob("[0-9]*")):
        if _opens_one(folder / "fd", files):
            found.append({"pid": int(folder.name), "command": _command(folder)})
        if len(found) >= _MOST_HOLDERS:
            break
    return found


def _opens_one(folder: Path, files: frozenset[str]) -> bool:
    with contextlib.suppress(OSError):
        for descriptor in folder.iterdir():
            with contextlib.suppress(OSError):
                if os.readlink(descriptor) in files:  # noqa: PTH115 - the link's own text
                    return True
    return False


def _command(folder: Path) -> str:
    try:
        return (folder / "comm").read_text(errors="replace").strip()
    except OSError:
        return "?"
