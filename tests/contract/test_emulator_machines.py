"""Nodes as real processes: what they see, and how they end."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import psutil
import pytest
from google.cloud import tpu_v2

from tests.emulator_fixture import (
    CALL,
    PARENT,
    Cloud,
    EmulatorProcess,
    client,
    eventually,
    fast_settings,
    node_name,
    running_cloud,
)
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

State = tpu_v2.Node.State
HEADER = {"Metadata-Flavor": "Google"}
SPOT = {"spot": True}


def text_of(console: Path) -> str:
    """Return what a worker has printed so far."""
    return console.read_text()


def exists(directory: str) -> bool:
    """Return whether a folder is there."""
    return Path(directory).exists()


def size(path: Path) -> int:
    """Return a file's size."""
    return path.stat().st_size


async def describe(cloud: Cloud, node_id: str) -> list[dict[str, Any]]:
    """Return what the control service tells of a node's workers."""
    nodes = (await cloud.control.describe())["nodes"]
    (node,) = [item for item in nodes if item["name"].endswith(f"/{node_id}")]
    workers: list[dict[str, Any]] = node["workers"]
    return workers


async def test_a_worker_runs_the_startup_script(
    emulator: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/the/users/own.json")
    script = (
        "echo in $PWD as $TPU_WORKER_ID nice $(nice)\n"
        "python3 -c 'import google.protobuf, sys; print(sys.executable)'\n"
        "env | grep -c -e APPLICATION_CREDENTIALS -e /the/users/own || true\necho done\n"
    )
    await emulator.create("a", metadata={"startup-script": script})
    (worker,) = await describe(emulator, "a")
    console = Path(worker["console"])
    await eventually(lambda: "done" in text_of(console), "the script ends")
    lines = text_of(console).splitlines()
    assert lines[0] == f"in {worker['directory']} as 0 nice {os.nice(0) + 10}"
    assert lines[1] == sys.executable
    assert lines[2] == "0"
    assert (await emulator.get("a")).state == State.READY


async def test_the_metadata_server_answers_as_on_compute_engine(emulator: Cloud) -> None:
    spec = {"startup-script": "sleep 600", "tpudash-spec": '{"schema": 1}'}
    await emulator.create("a", metadata=spec, scheduling_config=SPOT)
    (worker,) = await describe(emulator, "a")
    base = f"http://127.0.0.1:{worker['metadata_port']:.0f}/computeMetadata/v1"

    async with aiohttp.ClientSession(headers=HEADER) as session:

        async def read(path: str) -> str:
            async with session.get(f"{base}/{path}") as response:
                assert response.status == 200, path
                assert response.headers["Metadata-Flavor"] == "Google"
                return await response.text()

        assert await read("project/project-id") == "demo"
        assert await read("instance/attributes/tpudash-spec") == '{"schema": 1}'
        assert await read("instance/attributes/accelerator-type") == "v2-8"
        assert "NODE_ID: 'a'" in await read("instance/attributes/tpu-env")
        assert (await read("instance/zone")).endswith("/zones/us-central1-b")
        assert "default/" in await read("instance/service-accounts/")
        token = json.loads(await read("instance/service-accounts/default/token"))
        assert token["token_type"] == "Bearer"
        recursive = json.loads(await read("instance/?recursive=true"))
        assert recursive["attributes"]["tpudash-spec"] == '{"schema": 1}'
        async with session.get(f"{base}/nothing") as missing:
            assert missing.status == 404
        async with session.get(
            f"{base}/project/project-id", headers={"Metadata-Flavor": "x"}
        ) as no:
            assert no.status == 403

        waiting = asyncio.create_task(read("instance/preempted?wait_for_change=true"))
        await asyncio.sleep(0)
        assert not waiting.done()
        preempting = asyncio.create_task(emulator.control.preempt("a", 10))
        assert await asyncio.wait_for(waiting, 5) == "TRUE"
        assert await preempting == "PREEMPTED"


async def test_guest_attributes_pass_through(emulator: Cloud) -> None:
    script = (
        "python3 - <<'PY'\n"
        "import os, urllib.request\n"
        "host = os.environ['GCE_METADATA_HOST']\n"
        "url = f'http://{host}/computeMetadata/v1/instance/guest-attributes/hostkeys/rsa'\n"
        "header = {'Metadata-Flavor': 'Google'}\n"
        "request = urllib.request.Request(url, b'key', header, method='PUT')\n"
        "urllib.request.urlopen(request)\n"
        "PY\necho published\n"
    )
    await emulator.create("a", metadata={"startup-script": script})
    (worker,) = await describe(emulator, "a")
    console = Path(worker["console"])
    await eventually(lambda: "published" in text_of(console), "the attribute is published")
    request = {"name": node_name("a"), "query_path": "hostkeys/"}
    response = await emulator.tpu.get_guest_attributes(request, **CALL)
    (attributes,) = response.guest_attributes
    (item,) = attributes.query_value.items
    assert (item.namespace, item.key, item.value) == ("hostkeys", "rsa", "key")


async def test_every_worker_of_a_slice_is_its_own_process_group(emulator: Cloud) -> None:
    parent = "projects/demo/locations/us-central1-a"
    metadata = {"startup-script": "sleep 600"}
    await emulator.create("pod", parent=parent, accelerator_type="v2-32", metadata=metadata)
    workers = await describe(emulator, "pod")
    assert len(workers) == 4
    sleeps = [
        await eventually(lambda w=worker: find_sleep(w["directory"]), "sleep runs")  # type: ignore[misc]
        for worker in workers
    ]
    assert len({os.getpgid(process.pid) for process in sleeps}) == 4
    await emulator.finish(await emulator.tpu.delete_node(name=node_name("pod", parent), **CALL))
    assert not any(process.is_running() for process in sleeps)
    assert not exists(workers[0]["directory"])


def find_sleep(directory: str) -> psutil.Process | None:
    """Return the `sleep` that runs in a worker's folder."""
    from tpudash.emulator.machines.leftovers import processes_of

    for process in processes_of(Path(directory)):
        with suppress(psutil.Error):
            if process.name() == "sleep":
                return process
    return None


async def test_preemption_gives_notice_and_then_kills(emulator: Cloud) -> None:
    script = "trap 'echo noticed' TERM\necho armed\nwhile :; do sleep 0.05; done\n"
    await emulator.create("a", metadata={"startup-script": script}, scheduling_config=SPOT)
    (worker,) = await describe(emulator, "a")
    console = Path(worker["console"])
    await eventually(lambda: "armed" in text_of(console), "the trap is set")
    assert await emulator.control.preempt("a", 0.5) == "PREEMPTED"
    assert "noticed" in text_of(console)
    assert find_sleep(worker["directory"]) is None
    assert not [pid for pid in worker["pids"] if psutil.pid_exists(int(pid))]
    assert (await emulator.get("a")).state == State.PREEMPTED


async def test_a_killed_watchdog_takes_its_worker_along(emulator: Cloud) -> None:
    await emulator.create("a", metadata={"startup-script": "(setsid sleep 600 &)\nsleep 600; :"})
    (worker,) = await describe(emulator, "a")
    await eventually(lambda: find_sleep(worker["directory"]), "sleep runs")
    psutil.Process(int(worker["pids"][0])).kill()
    await eventually(lambda: find_sleep(worker["directory"]) is None, "all are killed")
    record = emulator.emulator.world.nodes.get(node_name("a"))
    await eventually(lambda: record.state == State.TERMINATED, "the node is TERMINATED")
    await emulator.delete("a")


async def test_odd_ids_stay_inside_the_state_folder(emulator: Cloud) -> None:
    await emulator.create("kept", metadata={"startup-script": "echo kept"})
    (kept,) = await describe(emulator, "kept")
    await emulator.create("..", metadata={"startup-script": "true"})
    await emulator.delete("..")
    assert exists(kept["directory"])


async def test_maintenance_boots_the_machine_again(emulator: Cloud) -> None:
    await emulator.create("a", metadata={"startup-script": "echo boot; sleep 600"})
    (worker,) = await describe(emulator, "a")
    console = Path(worker["console"])
    await eventually(lambda: text_of(console).count("boot") == 1, "the first boot")
    assert await emulator.control.maintenance("a", duration_s=0.05) == "READY"
    await eventually(lambda: text_of(console).count("boot") == 2, "the second boot")


async def test_the_console_is_bounded(tmp_path: Path) -> None:
    settings = fast_settings(tmp_path / "emulator", console_limit_bytes=10_000)
    async with running_cloud(settings) as cloud:
        script = "for i in $(seq 2000); do echo line $i; done; echo the end"
        await cloud.create("a", metadata={"startup-script": script})
        (worker,) = await describe(cloud, "a")
        console = Path(worker["console"])
        await eventually(lambda: "the end" in text_of(console), "the script ends")
        assert size(console) <= 10_000
        assert size(console.with_name("console.log.1")) <= 10_000


# ------------------------------------------------------------------ processes


@pytest.fixture
def process(tmp_path: Path) -> Iterator[EmulatorProcess]:
    """An emulator as a process."""
    emulator = EmulatorProcess(tmp_path / "state")
    yield emulator
    emulator.close()


ESCAPING = (
    "(setsid sleep 601 &)\n"
    "python3 -c 'import os, time\nif os.fork() == 0:\n  os.setsid()\n"
    "  if os.fork() == 0:\n    time.sleep(602)\n' &\n"
    "trap '' TERM HUP\nsleep 603\n"
)


async def create_on(endpoint: str, node_id: str, script: str) -> None:
    """Create a node with a startup script and wait until it is READY."""
    import grpc.aio

    async with grpc.aio.insecure_channel(endpoint) as channel:
        tpu = client(tpu_v2.TpuAsyncClient, channel)
        node = tpu_v2.Node(
            accelerator_type="v2-8",
            runtime_version="tpu-ubuntu2204-base",
            metadata={"startup-script": script} if script else {},
        )
        await tpu.create_node(parent=PARENT, node_id=node_id, node=node, **CALL)
        for _ in range(500):
            current = await tpu.get_node(name=node_name(node_id), **CALL)
            if current.state == State.READY:
                return
            await asyncio.sleep(0.02)
    raise AssertionError("the node did not come up")


async def states_on(endpoint: str) -> dict[str, str]:
    """Return the state of every node by its id."""
    import grpc.aio

    async with grpc.aio.insecure_channel(endpoint) as channel:
        tpu = client(tpu_v2.TpuAsyncClient, channel)
        pager = await tpu.list_nodes(parent=PARENT, **CALL)
        return {node.name.split("/")[-1]: State(node.state).name async for node in pager}


def running_sleeps(emulator: EmulatorProcess) -> set[str]:
    """Return the last argument of the sleeping processes of all nodes."""
    found: set[str] = set()
    for item in emulator.node_processes():
        try:
            line = " ".join(item.cmdline())
        except psutil.Error:
            continue  # it has just ended
        found |= {number for number in ("601", "602", "603") if number in line.split()[-1:]}
        if "time.sleep(602)" in line:
            found.add("602")
    return found


def test_kill_9_leaves_no_process(process: EmulatorProcess) -> None:
    asyncio.run(create_on(process.endpoint, "a", ESCAPING))
    wait_until(lambda: running_sleeps(process) == {"601", "602", "603"}, within=10, what="all run")
    process.kill()
    wait_until(lambda: not process.node_processes(), within=5, what="all are gone", poll=0.02)


@pytest.mark.parametrize("way", ["signal", "stdin"])
def test_a_clean_end_leaves_no_process(tmp_path: Path, way: str) -> None:
    emulator = EmulatorProcess(tmp_path / "state", "--exit-with-stdin")
    try:
        asyncio.run(create_on(emulator.endpoint, "a", ESCAPING))
        wait_until(lambda: len(running_sleeps(emulator)) == 3, within=10, what="all run")
        if way == "signal":
            emulator.process.terminate()
        elif emulator.process.stdin is not None:
            emulator.process.stdin.close()
        assert emulator.process.wait(4) == 0
        assert not emulator.node_processes()
    finally:
        emulator.close()


def test_after_a_restart_lost_machines_are_terminated(process: EmulatorProcess) -> None:
    asyncio.run(create_on(process.endpoint, "busy", "sleep 603"))
    asyncio.run(create_on(process.endpoint, "idle", ""))
    process.kill()
    again = EmulatorProcess(process.state_dir)
    try:
        assert asyncio.run(states_on(again.endpoint)) == {"busy": "TERMINATED", "idle": "READY"}
        assert not again.node_processes()
    finally:
        again.close()
