"""The logs viewer on a log ring that is filled at full speed: log_console.py ENTRIES FOLDER.

Writes `FOLDER/done.json` when all entries are in: how many, and entries a second.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tpudash.tui.terminal import leave, prepare_environment, run_console

if TYPE_CHECKING:
    from tpudash.domain.log import LogEntry
    from tpudash.store.log_ring import LogRing

AT_ONCE = 50
"""As the poller does it: then keys are heard."""
PREPARED = 2_000
"""As many as one response of a tail may hold, and one more."""
WORKERS = 32
NOW = datetime(2026, 12, 1, 8, tzinfo=UTC)


def entry(at: int) -> LogEntry:
    """Return a parsed entry: one in ten is a step, the others are lines of TensorFlow."""
    from tpudash.domain.log import LogEntry, Severity

    moment = NOW + timedelta(microseconds=700 * at)
    worker = str(at % WORKERS)
    payload = None
    text = f"2026-12-01 08:00:00.123456: I tensorflow/core/x.cc:{at % 900}] message number {at}"
    if at % 10 == 0:
        text = "step"
        payload = {"event": "step", "step": at, "target_step": 10**7, "loss": 0.25, "accuracy": 0.9}
    return LogEntry(
        moment,
        Severity.INFO,
        text,
        insert_id=f"demo-1-{worker}-a1b2c3d4e5f6-{at}",
        node_id="demo-1",
        zone="us-central1-b",
        worker_id=worker,
        run="demo",
        attempt=1,
        stream="stderr",
        payload=payload,
    )


def main(count: int, folder: Path) -> None:
    """Run the viewer and fill its log as the poller does: a few entries, and then keys."""
    prepare_environment()
    from tpudash.clock import SystemClock
    from tpudash.config.themes import find_theme
    from tpudash.store.log_ring import LogRing
    from tpudash.tui.app import with_defaults
    from tpudash.tui.log_viewer import LogViewer
    from tpudash.tui.settings import ConsoleSettings

    ring = LogRing(folder=folder)

    class Filled(LogViewer):
        """A viewer whose log fills by itself."""

        def on_mount(self) -> None:
            super().on_mount()
            self.run_worker(fill(ring, count, folder))

    settings = with_defaults(ConsoleSettings(theme="dark", themes=(find_theme("dark"),)))
    app = Filled(
        ring,
        poll=lambda: True,
        about=list,
        clock=SystemClock(),
        settings=settings,
        title="benchmark",
    )
    leave(run_console(app, mouse=False))


async def fill(ring: LogRing, count: int, folder: Path) -> None:
    """Add entries; only the time in which they are taken in, shown and keys answered counts."""
    taken_s = 0.0
    for start in range(0, count, PREPARED):
        prepared = []
        for at in range(start, min(count, start + PREPARED)):
            prepared.append(entry(at))
            if at % AT_ONCE == 0:
                await asyncio.sleep(0)
        began = time.perf_counter()
        for at in range(0, len(prepared), AT_ONCE):
            ring.add(prepared[at : at + AT_ONCE])
            await asyncio.sleep(0)
        taken_s += time.perf_counter() - began
    figures = {"entries": len(ring), "per_second": count / taken_s}
    (folder / "done.json.new").write_text(json.dumps(figures))
    (folder / "done.json.new").rename(folder / "done.json")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
