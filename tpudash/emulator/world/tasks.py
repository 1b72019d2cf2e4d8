"""The emulator's background tasks: each owned, logged when it fails, cancelled at the end."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from tpudash.emulator.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Coroutine

_log = logging.getLogger(__name__)


class Tasks:
    """Owns tasks until they end."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run a coroutine in the background."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and not isinstance(error, ApiError):
            _log.error("task %s failed", task.get_name(), exc_info=error)

    async def cancel_all(self) -> None:
        """Cancel every task and wait for its end."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
