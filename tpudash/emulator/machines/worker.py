"""One worker of a node: its folder, its metadata server, its processes under a watchdog."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from tpudash.emulator.machines.image import node_environment
from tpudash.emulator.machines.instance import instance_tree
from tpudash.emulator.machines.leftovers import kill_processes_of
from tpudash.emulator.machines.metadata import MetadataServer
from tpudash.emulator.world.host import HostError
from tpudash.emulator.world.nodes import STARTUP_SCRIPT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.emulator.world.nodes import NodeRecord

_WATCHDOG = Path(__file__).with_name("watchdog.py")
_KILL_WAIT_S = 5.0
_START_LIMIT_S = 20.0
_log = logging.getLogger(__name__)


class Worker:
    """One TPU VM, stood in for by a process tree of this machine."""

    def __init__(
        self,
        record: NodeRecord,
        number: int,
        directory: Path,
        on_lost: Callable[[Worker], None],
    ) -> None:
        self.record = record
        self.number = number
        self.directory = directory
        self.announced: dict[str, str] = {}
        self.metadata = MetadataServer(lambda: instance_tree(record, number, self.announced))
        self._watchdog: asyncio.subprocess.Process | None = None
        self._on_lost = on_lost
        self._watch: asyncio.Task[None] | None = None
        self._stopping = False

    async def start(self, programs: Path, cloud: dict[str, str], console_limit: int) -> None:
        """Boot: run the node's startup script under bash.

        Args:
            programs: Folder of the image's programs, first in PATH.
            cloud: Variables that lead the clients on the node to the emulator.
            console_limit: Bytes at which the console file is rotated.

        Raises:
            HostError: The processes do not come up.
        """
        for name in ("home", "tmp"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        await self.metadata.start()
        config = self._config(programs, cloud, console_limit)
        try:
            self._watchdog = await self._spawn(config)
        except OSError as error:
            raise HostError(str(error)) from error
        self._watch = asyncio.create_task(self._await_end(self._watchdog), name="watchdog's end")

    async def _await_end(self, watchdog: asyncio.subprocess.Process) -> None:
        """Notice a watchdog that was killed, and kill what it can no longer watch over."""
        await watchdog.wait()
        if not self._stopping:
            _log.warning("the watchdog of %s ended by itself", self.directory)
            await asyncio.to_thread(kill_processes_of, self.directory)
            self._on_lost(self)

    def _config(self, programs: Path, cloud: dict[str, str], console_limit: int) -> dict[str, Any]:
        script = self.directory / STARTUP_SCRIPT
        script.write_text(self.record.message.metadata[STARTUP_SCRIPT])
        environment = {
            **node_environment(programs, self.directory),
            **cloud,
            "GCE_METADATA_HOST": f"127.0.0.1:{self.metadata.port}",
            "TPU_WORKER_ID": str(self.number),
        }
        return {
            "command": ["bash", str(script)],
            "directory": str(self.directory),
            "environment": environment,
            "console": str(self.directory / "console.log"),
            "console_limit": console_limit,
        }

    @staticmethod
    async def _spawn(config: dict[str, Any]) -> asyncio.subprocess.Process:
        """Start the watchdog and wait until it has started the script."""
        watchdog = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            str(_WATCHDOG),
            json.dumps(config),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            env=config["environment"],
        )
        if watchdog.stdout is None:
            raise HostError("the watchdog has no output")
        try:
            async with asyncio.timeout(_START_LIMIT_S):
                line = await watchdog.stdout.readline()
        except TimeoutError:
            line = b""
        if not line.startswith(b"started"):
            with suppress(ProcessLookupError):
                watchdog.kill()
            raise HostError("the watchdog did not start the startup script")
        return watchdog

    def announce(self, key: str, value: str) -> None:
        """Set a value below `instance/` and wake its readers."""
        self.announced[key] = value
        self.metadata.wake()

    async def stop(self, notice_s: float) -> None:
        """End the processes: SIGTERM, then SIGKILL when the notice is over."""
        self._stopping = True
        watchdog = self._watchdog
        if watchdog is not None and watchdog.returncode is None:
            self._tell(watchdog, b"TERM\n" if notice_s > 0 else b"KILL\n")
            if not await _ended(watchdog, notice_s):
                self._tell(watchdog, b"KILL\n")
                if not await _ended(watchdog, _KILL_WAIT_S):
                    _log.error("the watchdog of %s does not end", self.directory)
                    watchdog.kill()
        if watchdog is not None and watchdog.returncode != 0:
            await asyncio.to_thread(kill_processes_of, self.directory)
        if self._watch is not None:
            await asyncio.wait({self._watch})
        await self.metadata.stop()

    @staticmethod
    def _tell(watchdog: asyncio.subprocess.Process, line: bytes) -> None:
        if watchdog.stdin is not None:
            with suppress(OSError):
                watchdog.stdin.write(line)

    def processes(self) -> list[psutil.Process]:
        """Return the watchdog and all its descendants."""
        if self._watchdog is None or self._watchdog.returncode is not None:
            return []
        try:
            root = psutil.Process(self._watchdog.pid)
            return [root, *root.children(recursive=True)]
        except psutil.Error:
            return []


async def _ended(process: asyncio.subprocess.Process, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
    except TimeoutError:
        return False
    return True
