"""What feeds the store, owned by the app: started late, watched, and never waited for."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)

STOP_SECONDS: Final = 0.02
"""How long leaving waits for the background; what takes longer is left behind."""


class Background:
    """One task that runs until it is cancelled.

    Args:
        run: Feeds the store until it is cancelled.
        failed: Is told when it ended by an error of its own.
    """

    def __init__(
        self, run: Callable[[], Awaitable[None]], failed: Callable[[Exception], None]
    ) -> None:
        self._run = run
        self._failed = failed
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._guard(), name="background")

    async def _guard(self) -> None:
        try:
            await self._run()
        except Exception as error:
            logger.exception("the background ended")
            self._failed(error)

    async def stop(self) -> None:
        """Cancel it, and wait for its end only for a moment."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=STOP_SECONDS)
