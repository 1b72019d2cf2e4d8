"""The terminal around the app: its traits, signals, and an end that nothing can hold up.

Nothing here imports Textual before `run_console` is called, because Textual reads its environment
variables when it is imported.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping

    from textual.app import App

logger = logging.getLogger(__name__)

FRAMES_PER_SECOND: Final = 30
STOP_SECONDS: Final = 0.06
"""How long the background may take to end after the terminal was given back."""
END_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
SIGNAL_EXIT_BASE: Final = 128
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
    finally:
        pending = [task for task in asyncio.all_tasks(loop) if not task.done()]
        if pending:
            logger.warning("left behind at the end: %s", [task.get_name() for task in pending])
        else:
            with contextlib.suppress(RuntimeError):
                loop.close()
    return app.return_code or 0


async def _run(app: App[None], loop: asyncio.AbstractEventLoop, *, mouse: bool) -> None:
    with _end_on_signals(app, loop):
        await app.run_async(mouse=mouse)
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    if rest:
        await asyncio.wait(rest, timeout=STOP_SECONDS)


@contextlib.contextmanager
def _end_on_signals(app: App[None], loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """End the app in good order on SIGTERM and SIGHUP, for which Textual has no handlers."""
    for number in END_SIGNALS:
        loop.add_signal_handler(number, app.exit, None, SIGNAL_EXIT_BASE + number)
    try:
        yield
    finally:
        for number in END_SIGNALS:
            loop.remove_signal_handler(number)


def leave(code: int) -> NoReturn:
    """End the process now, without waiting for threads that may be stuck in a dead connection."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    logging.shutdown()
    os._exit(code)
