"""One emulator put together: the world, its host, its services and their faces."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from tpudash.clock import SystemClock
from tpudash.emulator.control import ControlService
from tpudash.emulator.counters import CallCounters
from tpudash.emulator.faces import DEFAULT_BUCKET, Faces
from tpudash.emulator.fault_file import load_faults
from tpudash.emulator.machines.host import ProcessHost
from tpudash.emulator.state_dir import StateDirLock
from tpudash.emulator.telemetry import Telemetry
from tpudash.emulator.world.validation import tensorflow_installed
from tpudash.emulator.world.world import World

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from tpudash.clock import Clock
    from tpudash.emulator.settings import EmulatorSettings


class Emulator:
    """A local Google Cloud for TPU nodes, on loopback ports.

    Use it as an async context manager; `endpoint` is set while it serves.

    Args:
        settings: Folder, port, durations.
        clock: Time for the world and its nodes' lives.
        has_tensorflow: Whether TensorFlow images can be provided.
    """

    def __init__(
        self,
        settings: EmulatorSettings,
        clock: Clock | None = None,
        has_tensorflow: Callable[[], bool] = tensorflow_installed,
    ) -> None:
        self.settings = settings
        self._clock = clock or SystemClock()
        self._has_tensorflow = has_tensorflow
        self.stopping = asyncio.Event()
        """Set when someone asks the emulator to end."""

        self.endpoint = ""

    async def start(self) -> None:
        """Take the state folder, take up the state in it, and serve.

        Raises:
            ConfigurationError: The folder, a port or the file of faults cannot be used.
        """
        faults_file = self.settings.faults_file
        faults = load_faults(faults_file) if faults_file is not None else []
        self._lock = StateDirLock(self.settings)
        try:
            if self.settings.ready_file is not None:
                self.settings.ready_file.unlink(missing_ok=True)
            self.host = ProcessHost(self.settings)
            self.world = World(self.settings, self._clock, self.host, self._has_tensorflow)
            self.host.on_lost = self.world.lifecycle.events.lose_machine
            self.counters = CallCounters()
            self.telemetry = Telemetry(self.world, self.host)
            control = ControlService(self).table()
            self._faces = Faces(self.settings, self.world, self.counters, control)
            try:
                await self._faces.start()
            except BaseException:
                await self._faces.stop()
                raise
        except BaseException:
            self._lock.close()
            raise
        self.endpoint = self.host.endpoint = self._faces.endpoint
        self.addresses = self._faces.addresses
        self.host.client_environment = self.addresses.environment()
        for fault in faults:
            self.world.faults.add(fault)
        self.world.resume()
        self.telemetry.start()

    async def stop(self) -> None:
        """End the nodes' processes, stop serving and let go of the folder."""
        await self.telemetry.stop()
        await self.world.tasks.cancel_all()
        await self.host.stop_all()
        await self._faces.stop()
        await self.world.close()
        self._lock.close()

    def description(self) -> dict[str, Any]:
        """Return what the ready file holds."""
        return {
            "endpoint": self.endpoint,
            "control": self.endpoint,
            "rest_endpoint": self.addresses.rest,
            "storage_endpoint": self.addresses.storage,
            "storage_proxy": self.addresses.proxy,
            "ca_bundle": str(self.addresses.authority),
            "gs_bucket": f"gs://{DEFAULT_BUCKET}",
            "environment": self.addresses.environment(),
            "pid": os.getpid(),
            "state_dir": str(self.settings.state_dir),
            "bucket": str(self.settings.bucket),
        }

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()
