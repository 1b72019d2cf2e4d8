"""Saving what a log view shows to a file, off the event loop."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING, Final

from tpudash.logtext.entries import UNKNOWN_TIME
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from tpudash.tui.widgets.log_view_model import LogLines
    from tpudash.tui.widgets.log_view_text import LogRow

MOST_LINES: Final = 1_000_000
LINES_AT_ONCE: Final = 2_000


def copied(row: LogRow) -> str:
    """Return a line as it is copied and saved: time, source, text; the whole of it."""
    node, worker = row.source
    source = safe_text(f"{node}:{worker}" if worker else node, 80)
    moment = row.entry.timestamp
    time = "" if moment == UNKNOWN_TIME else f"{moment:%Y-%m-%dT%H:%M:%SZ} "
    text = row.line.text.replace("\n", "\n    ")
    return f"{time}{source} {text}".strip() if source else f"{time}{text}"


def chunks(lines: LogLines) -> Iterator[str]:
    """Yield all shown lines, some thousands at a time."""
    rows = islice(lines.rows_from(lines.first()), MOST_LINES)
    while some := [copied(row) for _, row in islice(rows, LINES_AT_ONCE)]:
        yield "\n".join(some) + "\n"


def file_for(folder: Path, name: str, now: datetime) -> Path:
    """Return where to save, which only its owner may read."""
    harmless = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)[:60] or "all"
    return folder / f"{harmless}-{now:%Y%m%dT%H%M%S}.log"


def append(path: Path, text: str) -> None:
    """Add a text to a file.

    Raises:
        OSError: It can't be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
