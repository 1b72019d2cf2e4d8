"""Runs an emulator as a process, from its start to whatever ends it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from tpudash.emulator.emulator import Emulator
from tpudash.emulator.state_dir import write_atomically
from tpudash.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tpudash.emulator.settings import EmulatorSettings

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_EXIT_LIMIT_S = 5.0


def run(settings: EmulatorSettings, *, exit_with_stdin: bool = False) -> None:
    """Serve until a signal, a Shutdown call or, if asked for, the end of standard input.

    Raises:
        ConfigurationError: The folder, the port or the ready file cannot be used.
    """
    asyncio.run(_serve(settings, exit_with_stdin=exit_with_stdin))


async def _serve(settings: EmulatorSettings, *, exit_with_stdin: bool) -> None:
    emulator = Emulator(settings)
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, emulator.stopping.set)
    await emulator.start()
    try:
        _announce(emulator, settings.ready_file)
        if exit_with_stdin:
            _watch_stdin(lambda: loop.call_soon_threadsafe(emulator.stopping.set))
        await emulator.stopping.wait()
    finally:
        _end_for_certain()
        if settings.ready_file is not None:
            settings.ready_file.unlink(missing_ok=True)
        await emulator.stop()


def _announce(emulator: Emulator, ready_file: Path | None) -> None:
    """Tell where the emulator answers: in the ready file, and in one line on stdout."""
    description = json.dumps(emulator.description())
    if ready_file is not None:
        try:
            write_atomically(ready_file, description + "\n")
        except OSError as error:
            raise ConfigurationError(
                f"the ready file {ready_file} cannot be written",
                detail=error.strerror or str(error),
                hint="choose another with --ready-file",
            ) from error
    with suppress(OSError):
        print(description, flush=True)  # noqa: T201  (the command's answer)
    if sys.stdout.isatty():
        hint = f"Serving; stop with Ctrl-C. In another shell:\n  {_exports(emulator)}"
        print(hint, file=sys.stderr, flush=True)  # noqa: T201


def _exports(emulator: Emulator) -> str:
    return f"export TPUDASH_ENDPOINT={emulator.endpoint} TPUDASH_PROJECT=demo"


def _watch_stdin(ended: Callable[[], object]) -> None:
    """Call back at the end of standard input.

    A thread, since an event loop cannot wait for every kind of file.
    """

    def read() -> None:
        with suppress(OSError):
            while os.read(0, 4096):
                pass
        with suppress(RuntimeError):
            ended()

    threading.Thread(target=read, name="stdin", daemon=True).start()


def _end_for_certain() -> None:
    """Leave even if the clean end hangs: the watchdogs then kill what is left of the nodes."""

    def leave() -> None:
        print("tpudash emulator: the clean end took too long", file=sys.stderr)  # noqa: T201
        os._exit(1)

    timer = threading.Timer(_EXIT_LIMIT_S, leave)
    timer.daemon = True
    timer.start()
