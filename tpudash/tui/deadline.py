"""A limit on processor time for work that can't be cut into slices, such as one regex match.

A timer signal interrupts it: Python's `re` looks for signals while it matches. It counts the
process's own processor time, so that a busy machine does not make work overdue.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


class OverdueError(Exception):
    """The work took longer than it may."""


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise OverdueError


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Limit the processor time of a block of code.

    Only the main thread can be interrupted; in others, and where there is no such timer, the
    block runs without a limit.

    Raises:
        OverdueError: The time is over.
    """
    can_interrupt = threading.current_thread() is threading.main_thread()
    if not can_interrupt or not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
