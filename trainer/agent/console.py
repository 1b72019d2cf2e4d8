"""The node's console: what the startup script and the agent print."""

from __future__ import annotations

import contextlib
import sys

from trainer.events import timestamp


def console(text: str, source: str = "agent") -> None:
    """Write a line to the node's console; a console that cannot be written stops nothing."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{timestamp()} [{source}] {text}\n")
        sys.stderr.flush()
