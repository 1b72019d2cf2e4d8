"""Ways onto a worker: a local worker's folder comes from the server, a cloud one's from gcloud."""

from __future__ import annotations

import asyncio
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.emulator_fixture import Cloud as Emulated
from tests.emulator_fixture import fast_settings, node_name, running_cloud
from tests.tui.factories import make_node
from tpudash.errors import ConfigurationError, NotFoundError
from tpudash.gateways.connection import Connection, ConnectionOptions
from tpudash.gateways.shells import GcloudShells

if TYPE_CHECKING:
    from pathlib import Path

    from tpudash.domain.shell import ShellCommand


async def test_on_the_emulator_a_shell_opens_in_the_workers_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")
    async with running_cloud(fast_settings(tmp_path / "emulator")) as emulated:
        connection = Connection(ConnectionOptions(project="demo", endpoint=emulated.endpoint))
        try:
            await see_shells(emulated, connection)
        finally:
            await connection.close()


def run(command: ShellCommand, script: str) -> list[str]:
    """Return what a script says in the shell that would be opened."""
    done = subprocess.run(
        [*command.arguments, "-c", script],
        cwd=command.folder,
        env={**os.environ, **command.environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


async def see_shells(emulated: Emulated, connection: Connection) -> None:
    cloud = await connection.cloud()
    assert cloud.shells is not None
    script = {"startup-script": "echo hello > greeting; sleep 1000"}
    parent = "projects/demo/locations/us-central1-a"
    await emulated.create("one", metadata=script, accelerator_type="v2-32", parent=parent)
    node = await cloud.tpu.get_node(node_name("one", parent))
    for worker in (0, 3):
        command = await cloud.shells.shell(node, worker)
        assert command.folder is not None
        assert command.folder.endswith(f"one/w{worker}")
        assert command.arguments == ("/bin/sh",)
        said = await asyncio.to_thread(run, command, "pwd -P; echo $TPU_WORKER_ID")
        assert said[0].endswith(f"one/w{worker}")
        assert said[1] == str(worker)
    with pytest.raises(NotFoundError):
        await cloud.shells.shell(node, 4)
    await emulated.create("without-machine")
    bare = await cloud.tpu.get_node(node_name("without-machine"))
    with pytest.raises(NotFoundError, match="has no machine"):
        await cloud.shells.shell(bare, 0)


async def test_on_google_cloud_gcloud_opens_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gcloud = tmp_path / "gcloud"
    gcloud.write_text("#!/bin/sh\n")
    gcloud.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    command = await GcloudShells().shell(make_node("demo-1"), 2)
    assert " ".join(command.arguments) == (
        "gcloud compute tpus tpu-vm ssh demo-1 --project=demo --zone=us-central1-b --worker=2"
    )
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigurationError, match="gcloud"):
        await GcloudShells().shell(make_node("demo-1"), 0)
