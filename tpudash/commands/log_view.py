"""`tpudash logs --file F` and `... | tpudash logs -`: a viewer on a terminal, else plain lines."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING, Final

from tpudash.clock import SystemClock
from tpudash.commands.log_pipe import LogPipe, read_lines
from tpudash.errors import NotFoundError, UsageError
from tpudash.logtext.clean import Cleaner
from tpudash.logtext.entries import entry_of_line
from tpudash.store.log_ring import LogRing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tpudash.commands.state import CliState
    from tpudash.domain.log import LogEntry
    from tpudash.store.log_lines import LogLinesSource

FOLLOW_EVERY_S: Final = 0.25
AGAIN_S: Final = 0.01
"""A pipe that brings much is read on after a moment for keys."""
_UNITS: Final = ("B", "KB", "MB", "GB", "TB")
_TAIL_PIECE: Final = 1 << 20


def shows_viewer(*, as_json: bool, plain: bool) -> bool:
    """Whether to open the viewer: somebody looks at it, and can press keys."""
    return sys.stdout.isatty() and not as_json and not plain


def view_file(state: CliState, path: Path) -> int:
    """Show a file in the viewer until the user leaves."""
    from tpudash.store.log_file import LogFile

    with _told_errors(path):
        file = LogFile(path)
    try:
        return _run(
            state,
            file,
            poll=file.poll,
            about=lambda: [_size(file.size)],
            title=str(path),
        )
    finally:
        file.close()


def view_pipe(state: CliState) -> int:
    """Show what standard input brings in the viewer; keys come from the terminal.

    Raises:
        UsageError: There is no terminal to read keys from, or standard input is one.
    """
    if sys.stdin.isatty():
        raise UsageError("standard input is a terminal", hint="pipe a log into: tpudash logs -")
    pipe = os.dup(0)
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError as error:
        raise UsageError(
            "there is no terminal to read keys from",
            detail=str(error),
            hint="tpudash logs - --plain",
        ) from error
    os.dup2(terminal, 0)
    os.close(terminal)
    clock = SystemClock()
    ring = LogRing(folder=state.paths.cache_dir)
    reader = LogPipe(pipe, ring, clock)
    try:
        return _run(
            state,
            ring,
            poll=reader.take_in,
            about=lambda: _about_pipe(reader, ring),
            title="standard input",
            again_s=AGAIN_S,
        )
    finally:
        ring.close()


def _about_pipe(reader: LogPipe, ring: LogRing) -> list[str]:
    parts = ["the pipe has ended"] if reader.is_over else []
    if ring.evicted:
        parts.append(f"{ring.evicted:,} older ones forgotten")
    if ring.spool.problem:
        parts.append("kept in memory only")
    if reader.partial:
        parts.append(f"now: {reader.partial[-60:]}")
    return parts


def _run(
    state: CliState,
    source: LogLinesSource,
    *,
    poll: Callable[[], bool],
    about: Callable[[], list[str]],
    title: str,
    again_s: float | None = None,
) -> int:
    from tpudash.tui.terminal import find_traits, prepare_environment, run_console

    prepare_environment()
    from tpudash.commands.screen import console_settings
    from tpudash.tui.log_viewer import LogViewer

    settings = console_settings(state, is_watch=False)
    app = LogViewer(
        source,
        poll=poll,
        about=about,
        clock=SystemClock(),
        settings=settings,
        title=title,
        again_s=again_s,
    )
    mouse = find_traits().mouse if state.settings.mouse is None else state.settings.mouse
    return run_console(app, mouse=mouse)


def print_file(
    path: Path, limit: int, show: Callable[[LogEntry, str], None], *, follow: bool
) -> None:
    """Print the last lines of a file, and go on with what is added to it."""
    cleaner = Cleaner()
    with _told_errors(path), path.open("rb", buffering=0) as file:
        _go_to_last_lines(file.fileno(), limit)
        while True:
            data = file.read(_TAIL_PIECE) or b""
            for line in cleaner.feed(data) if data or follow else cleaner.finish():
                show(entry_of_line(line.text), line.text)
            if not data:
                if not follow:
                    return
                _wait_for_more(file.fileno())


def print_pipe(show: Callable[[LogEntry, str], None]) -> None:
    """Print what standard input brings, cleaned, until it ends."""
    for lines in read_lines(0, Cleaner()):
        for line in lines:
            show(entry_of_line(line.text), line.text)


def _wait_for_more(descriptor: int) -> None:
    """Wait a moment; a file that was cut is read from its beginning."""
    time.sleep(FOLLOW_EVERY_S)
    if os.fstat(descriptor).st_size < os.lseek(descriptor, 0, os.SEEK_CUR):
        os.lseek(descriptor, 0, os.SEEK_SET)


def _go_to_last_lines(descriptor: int, limit: int) -> None:
    """Go to where the last lines of a file begin, reading backwards."""
    at = os.lseek(descriptor, 0, os.SEEK_END)
    wanted = limit + 1
    is_last = True
    while at > 0:
        start = max(0, at - _TAIL_PIECE)
        data = os.pread(descriptor, at - start, start)
        if is_last and not data.endswith(b"\n"):
            wanted -= 1
        is_last = False
        count = data.count(b"\n")
        if count >= wanted:
            place = len(data)
            for _ in range(wanted):
                place = data.rfind(b"\n", 0, place)
            os.lseek(descriptor, start + place + 1, os.SEEK_SET)
            return
        wanted -= count
        at = start
    os.lseek(descriptor, 0, os.SEEK_SET)


@contextlib.contextmanager
def _told_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no file {path}") from error
    except OSError as error:
        raise UsageError(f"{path} can't be read", detail=error.strerror or "") from error


def _size(size: float) -> str:
    power = 0
    while size >= 1000 and power < len(_UNITS) - 1:
        size, power = size / 1000, power + 1
    return f"{size:.1f} {_UNITS[power]}" if power else f"{size:.0f} B"
