"""Giving the terminal to another program for a while, and taking it back."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING, Final

from textual.app import SuspendNotSupported

from tpudash.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.app import App

    from tpudash.domain.shell import ShellCommand

OURS_ALSO: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP)
"""Signals that the terminal sends to us too while another program has it."""


async def run_in_terminal(app: App[None], command: ShellCommand, greeting: str) -> int:
    """Run a program on the whole terminal and return its exit status; data keeps coming meanwhile.

    Raises:
        ConfigurationError: The program can't be started, or this terminal can't be given away.
    """
    try:
        with app.batch_update(), app.suspend(), _deaf_to_keys():
            print(f"\n{greeting}\n", flush=True)  # noqa: T201  the terminal is not Textual's now
            return await _run(command)
    except SuspendNotSupported:
        raise ConfigurationError("this terminal can't be given to another program") from None
    except OSError as error:
        raise ConfigurationError(
            f"{command.arguments[0]} could not be started",
            detail=error.strerror or str(error),
            hint="set shell_command to what opens a shell on a worker",
        ) from error


async def _run(command: ShellCommand) -> int:
    process = await asyncio.create_subprocess_exec(
        *command.arguments,
        cwd=command.folder,
        env={**os.environ, **command.environment},
    )
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()


@contextlib.contextmanager
def _deaf_to_keys() -> Iterator[None]:
    """Let ctrl-c and its kin mean the other program alone.

    A handler that does nothing, unlike one that ignores, is not inherited by that program.
    """
    before = {number: signal.signal(number, lambda *_: None) for number in OURS_ALSO}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
