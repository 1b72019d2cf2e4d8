"""Runs a command's coroutine so that it ends when it is told to, whatever the network does."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

ResultT = TypeVar("ResultT")


class LeavingExecutor(ThreadPoolExecutor):
    """Threads that nobody waits for at the end: one may hang in a call that is never answered."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002
        """Take no more work, and leave at once."""
        super().shutdown(wait=False, cancel_futures=True)


def run_async(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine to its end; Ctrl-C cancels it and raises `KeyboardInterrupt`."""

    async def inside() -> ResultT:
        asyncio.get_running_loop().set_default_executor(
            LeavingExecutor(thread_name_prefix="tpudash")
        )
        return await work

    return asyncio.run(inside())
