"""Waiting for conditions, never for time to pass."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

ResultT = TypeVar("ResultT")
POLL_SECONDS = 0.1


def wait_until(
    condition: Callable[[], ResultT], *, within: float, what: str, poll: float = POLL_SECONDS
) -> ResultT:
    """Return the first true value of `condition`, or fail with what was waited for.

    Args:
        within: Seconds until it must have become true.
        what: What is waited for, in words, for the failure's text.
        poll: Seconds between two looks.
    """
    deadline = time.monotonic() + within
    value = condition()
    while not value:
        if time.monotonic() > deadline:
            msg = f"not within {within:g} s: {what} (last value: {value!r})"
            raise AssertionError(msg)
        threading.Event().wait(poll)
        value = condition()
    return value
