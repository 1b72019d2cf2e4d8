"""JAX's profiler."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import jax

from trainer.profiling import TraceError

if TYPE_CHECKING:
    from trainer.jax_recipe.storage import Storage


class JaxTracer:
    """Writes a trace of this process's devices; on gs:// by way of this machine.

    Args:
        storage: the run's folder.
        active: whether this process traces; the first worker does, and stands for all.
    """

    def __init__(self, storage: Storage, *, active: bool) -> None:
        self._storage = storage
        self._active = active
        self._here: Path | None = None

    def start(self, folder: str) -> None:
        """Begin to trace. Raises `TraceError`."""
        if not self._active:
            return
        self._here = Path(tempfile.mkdtemp()) if self._storage.remote else Path(folder)
        try:
            jax.profiler.start_trace(self._here)
        except (RuntimeError, ValueError, OSError) as error:
            raise TraceError(str(error)) from error

    def stop(self, folder: str) -> str | None:
        """End the trace and return its file. Raises `TraceError`."""
        if self._here is None:
            return "on worker 0"
        try:
            jax.profiler.stop_trace()
            files = list(self._here.glob("plugins/profile/*/*.xplane.pb"))
            newest = max(files, key=lambda path: path.stat().st_mtime_ns, default=None)
            if newest is None or not self._storage.remote:
                return str(newest) if newest else None
            name = f"{folder}/{newest.relative_to(self._here)}".removeprefix(self._storage.root)
            self._storage.write(name.lstrip("/"), newest.read_bytes())
            return self._storage.path(name.lstrip("/"))
        except (RuntimeError, ValueError, OSError) as error:
            raise TraceError(str(error)) from error
