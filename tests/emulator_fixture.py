"""Emulators for tests: one inside the test's own event loop, or one as a process.

In-process is faster and can be looked into; a process is what kill -9 needs.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc.aio
from google.cloud import billing_v1, monitoring_v3, tpu_v2
from google.cloud.billing import budgets_v1
from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2AsyncClient

from tests.waiting import wait_until
from tpudash.emulator.emulator import Emulator
from tpudash.emulator.settings import EmulatorSettings
from tpudash.gateways.emulator_control import EmulatorControl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    import psutil

PROJECT = "demo"
ZONE = "us-central1-b"
PARENT = f"projects/{PROJECT}/locations/{ZONE}"
RUNTIME = "tpu-vm-tf-2.19.0-pjrt"
CALL: dict[str, Any] = {"timeout": 10.0, "retry": None}
"""What every call of a Google client is given."""


def fast_settings(state_dir: Path, **changes: Any) -> EmulatorSettings:
    """Return settings whose operations take a few hundredths of a second."""
    defaults: dict[str, Any] = {
        "state_dir": state_dir,
        "seed": 1,
        "create_s": 0.05,
        "delete_s": 0.05,
        "metrics_period_s": 3600.0,
    }
    return EmulatorSettings(**{**defaults, **changes})


@dataclass
class Cloud:
    """A running emulator and Google's own clients to it, all on one plaintext channel."""

    emulator: Emulator
    control: EmulatorControl
    tpu: Any
    logging: Any
    monitoring: Any
    catalog: Any
    billing: Any
    budgets: Any

    @property
    def endpoint(self) -> str:
        """HOST:PORT."""
        return self.emulator.endpoint

    async def create(self, node_id: str, *, parent: str = PARENT, **fields: Any) -> Any:
        """Create a node and wait for the end of the operation."""
        operation = await self.begin(node_id, parent=parent, **fields)
        return await self.finish(operation)

    async def begin(self, node_id: str, *, parent: str = PARENT, **fields: Any) -> Any:
        """Begin to create a node and return the operation's future."""
        node = tpu_v2.Node(**{"accelerator_type": "v2-8", "runtime_version": RUNTIME, **fields})
        return await self.tpu.create_node(parent=parent, node_id=node_id, node=node, **CALL)

    async def delete(self, node_id: str) -> None:
        """Delete a node and wait until it is gone."""
        await self.finish(await self.tpu.delete_node(name=node_name(node_id), **CALL))

    async def get(self, node_id: str) -> Any:
        """Return a node."""
        return await self.tpu.get_node(name=node_name(node_id), **CALL)

    async def finish(self, operation: Any) -> Any:
        """Wait for an operation, looking more often than the client does by itself."""
        name = operation.operation.name
        for _ in range(2_000):
            current = await self.tpu.get_operation({"name": name}, **CALL)
            if current.done:
                break
            await self.emulator.world.clock.sleep(0.005)
        return await operation.result(timeout=10)


async def eventually(condition: Callable[[], Any], what: str, *, within: float = 10.0) -> Any:
    """Return the first true value of a condition; the emulator in this loop runs on meanwhile."""
    deadline = time.monotonic() + within
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within:g} s: {what}")
        await asyncio.sleep(0.01)
    return value


def node_name(node_id: str, parent: str = PARENT) -> str:
    """Return the full name of a node."""
    return f"{parent}/nodes/{node_id}"


def client(client_class: Any, channel: grpc.aio.Channel) -> Any:
    """Return an async client of Google's that speaks plaintext over a channel."""
    transport = client_class.get_transport_class("grpc_asyncio")
    return client_class(transport=transport(channel=channel))


@asynccontextmanager
async def running_cloud(settings: EmulatorSettings, **options: Any) -> AsyncIterator[Cloud]:
    """Run an emulator in this event loop, with clients."""
    options.setdefault("has_tensorflow", lambda: True)
    async with Emulator(settings, **options) as emulator:
        channel = grpc.aio.insecure_channel(emulator.endpoint)
        control = EmulatorControl(emulator.endpoint)
        try:
            yield Cloud(
                emulator=emulator,
                control=control,
                tpu=client(tpu_v2.TpuAsyncClient, channel),
                logging=client(LoggingServiceV2AsyncClient, channel),
                monitoring=client(monitoring_v3.MetricServiceAsyncClient, channel),
                catalog=client(billing_v1.CloudCatalogAsyncClient, channel),
                billing=client(billing_v1.CloudBillingAsyncClient, channel),
                budgets=client(budgets_v1.BudgetServiceAsyncClient, channel),
            )
        finally:
            await control.close()
            await channel.close(None)


class EmulatorProcess:
    """`tpudash emulator serve` as a process of its own.

    Args:
        state_dir: Its state folder; the ready file lies beside it.
        options: More options of the command.
    """

    def __init__(self, state_dir: Path, *options: str) -> None:
        self.state_dir = state_dir
        ready_file = state_dir.with_name(state_dir.name + ".ready.json")
        ready_file.unlink(missing_ok=True)
        command = [sys.executable, "-m", "tpudash", "emulator", "serve", "--port", "0"]
        command += ["--state-dir", str(state_dir), "--ready-file", str(ready_file)]
        command += ["--create-seconds", "0.05", "--delete-seconds", "0.05", *options]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=dict(os.environ)
        )
        wait_until(ready_file.exists, within=20, what="the emulator serves", poll=0.02)
        self.ready: dict[str, Any] = json.loads(ready_file.read_text())

    @property
    def endpoint(self) -> str:
        """HOST:PORT."""
        return str(self.ready["endpoint"])

    def node_processes(self) -> list[psutil.Process]:
        """Return every living process that belongs to a node of this emulator."""
        from tpudash.emulator.machines.leftovers import processes_of

        return list(processes_of(self.state_dir / "nodes"))

    def kill(self) -> None:
        """End it as kill -9 does."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End it if it still runs."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
        if self.process.stdin is not None:
            self.process.stdin.close()
