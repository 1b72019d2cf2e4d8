"""How to get onto a worker: over gcloud, or into its folder where it is a local process."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tpudash.domain.shell import ShellCommand
from tpudash.errors import ConfigurationError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from tpudash.domain.node import Node

    Describe = Callable[[], Awaitable[Mapping[str, Any] | None]]


class GcloudShells:
    """Shells over `gcloud compute tpus tpu-vm ssh`, which finds keys and addresses itself.

    Source: https://cloud.google.com/sdk/gcloud/reference/compute/tpus/tpu-vm/ssh
    """

    async def shell(self, node: Node, worker: int) -> ShellCommand:
        """Return the command for a worker.

        Raises:
            ConfigurationError: gcloud is not installed.
        """
        if shutil.which("gcloud") is None:
            raise ConfigurationError(
                "a shell needs gcloud, which is not installed here",
                hint="install the Google Cloud CLI, or set shell_command to another way",
            )
        return ShellCommand(
            (
                *("gcloud", "compute", "tpus", "tpu-vm", "ssh", node.node_id),
                *(f"--project={node.project}", f"--zone={node.zone}", f"--worker={worker}"),
            )
        )


class LocalShells:
    """Shells in the folders of workers that are processes of this machine.

    Args:
        describe: Returns what the server says of itself and its nodes.
        endpoint: `HOST:PORT` that programs on the worker speak to.
    """

    def __init__(self, describe: Describe, endpoint: str) -> None:
        self._describe = describe
        self._endpoint = endpoint

    async def shell(self, node: Node, worker: int) -> ShellCommand:
        """Return the user's own shell, in the worker's folder and with its environment.

        Raises:
            NotFoundError: The worker has no folder now.
            UnreachableError: The server does not answer.
        """
        machine = self._machine(await self._describe() or {}, node.name, worker)
        folder = str(machine.get("directory", ""))
        if not folder or not await asyncio.to_thread(Path(folder).is_dir):
            raise NotFoundError(
                f"worker {worker} of {node.node_id} has no machine now",
                hint=f"the node is {node.state}; only a node with a running machine has a shell",
            )
        return ShellCommand(
            (os.environ.get("SHELL") or "/bin/sh",),
            folder=folder,
            environment={
                "HOME": f"{folder}/home",
                "TPUDASH_NODE_DIR": folder,
                "TPUDASH_ENDPOINT": self._endpoint,
                "TPU_WORKER_ID": str(worker),
                "GCE_METADATA_HOST": f"127.0.0.1:{int(machine.get('metadata_port', 0))}",
            },
        )

    @staticmethod
    def _machine(description: Mapping[str, Any], name: str, worker: int) -> Mapping[str, Any]:
        for one in description.get("nodes", ()):
            if one.get("name") == name:
                workers = one.get("workers", ())
                return workers[worker] if worker < len(workers) else {}
        return {}
