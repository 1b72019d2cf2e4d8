"""`tpudash record`: writes everything that a console would be told to a file, without a screen."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tpudash.commands.durations import parse_duration
from tpudash.commands.running import run_async
from tpudash.commands.state import CliState, connection_options, pass_state

if TYPE_CHECKING:
    from tpudash.commands.screen import ScreenParts
    from tpudash.store.recording import Recorder


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--for", "length", metavar="TIME", help="End after so long: 90s, 8h. Else by Ctrl-C.")
@click.option(
    "--max-size",
    metavar="MB",
    type=click.IntRange(1),
    default=2_048,
    show_default=True,
    help="End when the file is so large.",
)
@connection_options
@pass_state
def record(state: CliState, file: Path, length: str | None, max_size: int) -> None:
    """Record what happens, to be played later with `tpudash replay FILE`.

    The recording holds nodes, requests, runs, logs, metrics and the checklist with their times.
    Secrets, e-mail and IP addresses are masked. Nothing is changed in the cloud.
    """
    from tpudash.commands.screen import ScreenParts
    from tpudash.commands.session import prepare
    from tpudash.config.paths import ensure_writable
    from tpudash.store.recording import RecordedStore, Recorder

    seconds = None if length is None else parse_duration(length).total_seconds()
    ensure_writable(state.paths.state_dir, "state directory")
    prepare(state)
    parts = ScreenParts(state)
    recorder = Recorder(file, parts.clock, max_size << 20)
    # A cached property may be set, which is how parts get another store.
    parts.__dict__["store"] = RecordedStore(recorder)
    recorder.start()
    click.echo(f"recording to {file}; Ctrl-C ends it", err=True)
    try:
        run_async(_record(parts, recorder, seconds))
    finally:
        recorder.close()
    if recorder.problem is not None:
        raise recorder.problem
    lost = f", {recorder.left_out} left out" if recorder.left_out else ""
    full = "; it has reached its size" if recorder.is_full else ""
    click.echo(
        f"{recorder.changes} changes, {recorder.bytes_written:,} bytes{lost}{full}", err=True
    )


async def _record(parts: ScreenParts, recorder: Recorder, seconds: float | None) -> None:
    """Feed the store until the time is over, a signal comes, or nothing can be written."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, ended.set)
    feed = asyncio.create_task(parts.feed(), name="feed")
    feed.add_done_callback(lambda _: ended.set())
    recorder.stopped = lambda: loop.call_soon_threadsafe(ended.set)
    try:
        async with asyncio.timeout(seconds):
            await ended.wait()
    except TimeoutError:
        pass
    finally:
        has_failed = feed.done()
        recorder.stopped = lambda: None
        feed.cancel()
        await asyncio.gather(feed, return_exceptions=True)
    if has_failed:
        await feed
