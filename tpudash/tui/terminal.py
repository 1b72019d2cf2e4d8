"""The terminal around the app: its traits, signals, and an end that nothing can hold up.

Nothing here imports Textual before `run_console` is called, because Textual reads its environment
variables when it is imported.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import os
import select
import signal
import sys
import termios
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping
    from types import FrameType

    from textual.app import App

logger = logging.getLogger(__name__)

FRAMES_PER_SECOND: Final = 30
STOP_SECONDS: Final = 0.06
"""How long the background may take to end after the terminal was given back."""
END_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
SIGNAL_EXIT_BASE: Final = 128
END_SECONDS: Final = 0.7
"""How long the app may take to end after a signal before the process is ended without it."""
IS_OVER: Final = 0
"""Tells the thread that would end the process that there is nothing left to end."""
WRITING_THREAD: Final = "textual-output"
RESTORE: Final = (
    b"\x1b[?1000l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[<u\x1b[?1049l\x1b[?25h"
)
"""Ends mouse, focus, paste and key reports and the alternate screen, and shows the cursor."""
OSC_52_MOST_BYTES: Final = 74_994
"""What xterm and its kin take at most in one OSC 52 sequence, before base64."""


@dataclass(frozen=True, slots=True)
class TerminalTraits:
    """What can be told of the terminal from the environment alone.

    Attributes:
        ascii: The locale is not UTF-8.
        mouse: Asking for mouse events does no harm: not over SSH, where it takes selection away.
        no_color: The user wants no colours (https://no-color.org).
        is_tmux: Inside tmux, which passes OSC 52 on only with `set-clipboard on`.
    """

    ascii: bool
    mouse: bool
    no_color: bool
    is_tmux: bool


def find_traits(environment: Mapping[str, str] | None = None) -> TerminalTraits:
    """Return the terminal's traits by the environment's variables."""
    env = os.environ if environment is None else environment
    locale = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    is_utf8 = "utf8" in locale.lower().replace("-", "")
    if not locale:
        is_utf8 = sys.platform == "darwin"
    return TerminalTraits(
        ascii=not is_utf8,
        mouse=not (env.get("SSH_CONNECTION") or env.get("SSH_TTY")),
        no_color=bool(env.get("NO_COLOR")),
        is_tmux=bool(env.get("TMUX")),
    )


def prepare_environment(environment: MutableMapping[str, str] | None = None) -> None:
    """Set what Textual reads at its import; to be called before anything imports it.

    Few frames and no animations keep the line quiet. An empty NO_COLOR counts as unset, which
    Textual would take for set. Until the first frame nothing is garbage, so that nobody looks for
    any.
    """
    gc.disable()
    env = os.environ if environment is None else environment
    env.setdefault("TEXTUAL_FPS", str(FRAMES_PER_SECOND))
    env.setdefault("TEXTUAL_ANIMATIONS", "none")
    env.setdefault("TEXTUAL_SMOOTH_SCROLL", "0")
    if env.get("NO_COLOR") == "":
        del env["NO_COLOR"]


def resume_collecting() -> None:
    """Collect garbage again, where it was stopped for the start; what the start made is kept."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def run_console(app: App[None], *, mouse: bool) -> int:
    """Run the app until it ends and return its exit code, with the terminal restored.

    Whatever the background does, this returns at most a moment after the screen closed. If it
    could not be stopped, the caller should clean up and then `leave`.
    """
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(_run(app, loop, mouse=mouse))
    except (OSError, termios.error) as error:
        # Whichever part of Textual tries the terminal first tells that it is gone.
        if error.args[:1] != (errno.EIO,):
            raise
        logger.warning("the terminal is gone: %s", error)
        return SIGNAL_EXIT_BASE + signal.SIGHUP
    finally:
        pending = [task for task in asyncio.all_tasks(loop) if not task.done()]
        if pending:
            logger.warning("left behind at the end: %s", [task.get_name() for task in pending])
        else:
            with contextlib.suppress(RuntimeError):
                loop.close()
    return app.return_code or 0


async def _run(app: App[None], loop: asyncio.AbstractEventLoop, *, mouse: bool) -> None:
    with Ending(app, loop):
        await app.run_async(mouse=mouse)
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest, timeout=STOP_SECONDS)


class Ending:
    """Ends the app on SIGTERM, SIGHUP or with its terminal, and the process if that takes long.

    Where a line drops, Textual's writing thread dies of it and whoever writes next waits for ever,
    the event loop too. So the handlers are Python's own, which run whatever the loop waits for, and
    a thread ends the process. What was done is in the journal already, which is written at once.

    A handler may interrupt any code that holds a lock, so it takes none: it writes to a pipe.
    """

    def __init__(self, app: App[None], loop: asyncio.AbstractEventLoop) -> None:
        self._app = app
        self._loop = loop
        self._attributes = _terminal_attributes()

    def __enter__(self) -> None:
        self._told, self._tell = os.pipe()
        self._guard = threading.Thread(target=self._end_in_time, name="end", daemon=True)
        self._guard.start()
        self._handlers = {one: signal.signal(one, self._on_signal) for one in END_SIGNALS}
        self._hook = threading.excepthook
        threading.excepthook = self._on_fault_of_thread

    def __exit__(self, *_: object) -> None:
        threading.excepthook = self._hook
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        os.write(self._tell, bytes([IS_OVER]))
        self._guard.join()
        os.close(self._tell)
        os.close(self._told)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._end(SIGNAL_EXIT_BASE + number)

    def _on_fault_of_thread(self, fault: threading.ExceptHookArgs) -> None:
        name = fault.thread.name if fault.thread is not None else ""
        if name == WRITING_THREAD and issubclass(fault.exc_type, OSError):
            self._end(SIGNAL_EXIT_BASE + signal.SIGHUP)
            logger.warning("the terminal is gone: %s", fault.exc_value)
        else:
            self._hook(fault)

    def _end(self, code: int) -> None:
        os.write(self._tell, bytes([code]))

    def _end_in_time(self) -> None:
        """Wait until the end is asked for, ask the app, and don't wait for it long."""
        code = os.read(self._told, 1)[0]
        if code == IS_OVER:
            return
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._app.exit, None, code)
        due = time.monotonic() + END_SECONDS
        while select.select([self._told], [], [], max(0.0, due - time.monotonic()))[0]:
            if os.read(self._told, 1)[0] == IS_OVER:
                return
        _restore_terminal(self._attributes)
        os._exit(code)


def _terminal_attributes() -> list[Any] | None:
    with contextlib.suppress(OSError, ValueError, termios.error):
        return termios.tcgetattr(sys.__stdin__.fileno()) if sys.__stdin__ else None
    return None


def _restore_terminal(attributes: list[Any] | None) -> None:
    """Give the terminal back by hand, without waiting for one that takes nothing."""
    with contextlib.suppress(OSError, ValueError, AttributeError, termios.error):
        if attributes is not None:
            termios.tcsetattr(sys.__stdin__.fileno(), termios.TCSANOW, attributes)  # type: ignore[union-attr]
        screen = sys.__stderr__.fileno()  # type: ignore[union-attr]
        os.set_blocking(screen, False)
        os.write(screen, RESTORE)
        os.set_blocking(screen, True)


def leave(code: int) -> NoReturn:
    """End the process now, without waiting for threads that may be stuck in a dead connection."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    logging.shutdown()
    os._exit(code)
