"""Runs the nodes' workers as local processes."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

from tpudash.emulator.identifiers import ResourceName
from tpudash.emulator.machines.image import prepare_image
from tpudash.emulator.machines.leftovers import kill_processes_of
from tpudash.emulator.machines.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tpudash.emulator.settings import EmulatorSettings
    from tpudash.emulator.world.nodes import NodeRecord

_SHUTDOWN_NOTICE_S = 1.0


class ProcessHost:
    """The machines of all nodes that have a startup script."""

    def __init__(self, settings: EmulatorSettings) -> None:
        self._settings = settings
        self._programs = prepare_image(settings.state_dir / "image")
        self._workers: dict[str, list[Worker]] = {}
        self._trash_numbers = itertools.count()
        self._stopping: asyncio.Future[None] | None = None
        self.endpoint = ""
        """HOST:PORT of the emulator; set before the first node starts."""

        self.client_environment: dict[str, str] = {}
        """Variables by which Google's clients on a node find the emulator's faces."""

        self.on_lost: Callable[[NodeRecord], None] = lambda _: None
        """Called when a worker's watchdog ends without having been told to."""

        settings.nodes_dir.mkdir(exist_ok=True)
        if any(settings.nodes_dir.iterdir()):
            kill_processes_of(settings.nodes_dir)
        self._empty_trash(settings.state_dir)

    @staticmethod
    def _empty_trash(folder: Path) -> None:
        for item in folder.glob(".trash-*"):
            shutil.rmtree(item, ignore_errors=True)

    def directory_of(self, name: str) -> Path:
        """Return the folder of a node's disks."""
        parsed = ResourceName.parse(name, "nodes")
        parts = (quote(part, safe="").replace(".", "%2E") for part in (parsed.project, parsed.id))
        project, node_id = parts  # escaped: an id may be as odd as ".."
        return self._settings.nodes_dir / project / parsed.zone / node_id

    def workers(self) -> list[Worker]:
        """Return the workers of all running nodes."""
        return [worker for workers in self._workers.values() for worker in workers]

    def workers_of(self, name: str) -> list[Worker]:
        """Return the workers of one node."""
        return self._workers.get(name, [])

    async def start(self, record: NodeRecord) -> None:
        """Boot every worker of a node, if it has a startup script."""
        if not record.has_machine:
            return
        name = str(record.name)
        directory = self.directory_of(name)
        workers = [
            Worker(record, number, directory / f"w{number}", self._lost)
            for number in range(record.accelerator.hosts)
        ]
        self._workers[name] = workers
        limit = self._settings.console_limit_bytes
        environment = self._environment_of(record)
        results = await asyncio.gather(
            *(worker.start(self._programs, environment, limit) for worker in workers),
            return_exceptions=True,
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    def _environment_of(self, record: NodeRecord) -> dict[str, str]:
        """Return what every worker of a node is told of the cloud around it."""
        return {
            **self.client_environment,
            "CLOUDSDK_COMPUTE_ZONE": record.name.zone,
            "CLOUDSDK_CORE_PROJECT": record.name.project,
            "TPUDASH_ENDPOINT": self.endpoint,
        }

    def _lost(self, worker: Worker) -> None:
        """Bring the other workers of the node down too: a slice lives and dies as one."""
        name = str(worker.record.name)
        if worker in self._workers.get(name, []):
            self._stopping = asyncio.ensure_future(self.stop(name, 0))
            self.on_lost(worker.record)

    async def stop(self, name: str, notice_s: float) -> None:
        """End every worker of a node within the notice."""
        workers = self._workers.get(name, [])
        await asyncio.gather(*(worker.stop(notice_s) for worker in workers))
        if self._workers.get(name) is workers:
            del self._workers[name]

    async def stop_all(self) -> None:
        """End everything, with a second's notice."""
        names = list(self._workers)
        await asyncio.gather(*(self.stop(name, _SHUTDOWN_NOTICE_S) for name in names))

    def discard(self, name: str) -> None:
        """Delete the disks of a node; large ones in the background."""
        directory = self.directory_of(name)
        trash = self._settings.state_dir / f".trash-{next(self._trash_numbers)}-{directory.name}"
        with suppress(FileNotFoundError):
            directory.rename(trash)
            loop = asyncio.get_running_loop()
            loop.run_in_executor(None, shutil.rmtree, trash, True)

    def announce(self, name: str, key: str, value: str) -> None:
        """Set a value on every worker's metadata server."""
        for worker in self._workers.get(name, []):
            worker.announce(key, value)

    def metadata_changed(self, name: str) -> None:
        """Wake who waits for a change of the node's metadata."""
        for worker in self._workers.get(name, []):
            worker.metadata.wake()

    def guest_attributes(self, name: str, worker: int) -> dict[str, str]:
        """Return what a worker has published."""
        workers = self._workers.get(name, [])
        return workers[worker].metadata.guest_attributes if worker < len(workers) else {}
