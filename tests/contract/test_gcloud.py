"""Google's own gcloud against the emulator: it sees and changes the same world as the console."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.emulator_fixture import RUNTIME, ZONE, Cloud, node_name

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed"),
]
_WITHIN_S = 60.0
POD_ZONE = "us-central1-a"
_NODE = ("--accelerator-type=v2-8", f"--version={RUNTIME}")


@dataclass
class Gcloud:
    """Runs gcloud with nothing of the user's own settings."""

    environment: dict[str, str]

    async def run(self, *words: str) -> tuple[int, str, str]:
        """Return exit code, output and errors of one command."""
        process = await asyncio.create_subprocess_exec(
            "gcloud",
            *words,
            env=self.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(_WITHIN_S):
            out, error = await process.communicate()
        return process.returncode or 0, out.decode(), error.decode()

    async def json(self, *words: str) -> Any:
        """Return what a command that succeeds prints as JSON."""
        code, out, error = await self.run(*words, "--format=json")
        assert code == 0, error
        return json.loads(out)

    async def vm(self, *words: str) -> tuple[int, str, str]:
        """Run `gcloud compute tpus tpu-vm ...`."""
        return await self.run("compute", "tpus", "tpu-vm", *words)


@pytest.fixture
def gcloud(emulator: Cloud, tmp_path: Path) -> Gcloud:
    kept = {key: os.environ[key] for key in ("PATH", "LANG") if key in os.environ}
    own = {
        "HOME": str(tmp_path),
        "CLOUDSDK_CONFIG": str(tmp_path / "gcloud"),
        "CLOUDSDK_CORE_PROJECT": "demo",
        "CLOUDSDK_COMPUTE_ZONE": ZONE,
    }
    return Gcloud({**kept, **emulator.emulator.addresses.environment(), **own})


async def test_what_is_on_offer(gcloud: Gcloud) -> None:
    tpus = ("compute", "tpus")
    places, types, vm_types, versions = await asyncio.gather(
        gcloud.json(*tpus, "locations", "list"),
        gcloud.json(*tpus, "accelerator-types", "list"),
        gcloud.json(*tpus, "tpu-vm", "accelerator-types", "list"),
        gcloud.json(*tpus, "tpu-vm", "versions", "list"),
    )
    assert ZONE in {place["locationId"] for place in places}
    assert {"v2-8", "v3-8"} <= {item["type"] for item in types} & {
        item["type"] for item in vm_types
    }
    assert RUNTIME in {item["version"] for item in versions}


async def test_a_nodes_life(gcloud: Gcloud, emulator: Cloud) -> None:
    flags = ("--labels=a=b", "--metadata=k=v")
    code, _, error = await gcloud.vm("create", "n", *_NODE, *flags)
    assert code == 0, error
    node = await emulator.get("n")
    assert (node.state.name, dict(node.labels), dict(node.metadata)) == (
        "READY",
        {"a": "b"},
        {"k": "v"},
    )
    code, _, error = await gcloud.vm("update", "n", "--update-labels=c=d", "--description=new")
    assert code == 0, error
    listed = await gcloud.json("compute", "tpus", "tpu-vm", "list", "--zone=-")
    assert [item["name"] for item in listed] == [node_name("n")]
    shown = await gcloud.json("compute", "tpus", "tpu-vm", "describe", "n")
    assert (shown["labels"], shown["description"]) == ({"a": "b", "c": "d"}, "new")
    for verb, state in (("stop", "STOPPED"), ("start", "READY")):
        code, _, error = await gcloud.vm(verb, "n")
        assert code == 0, error
        assert (await emulator.get("n")).state.name == state
    code, _, error = await gcloud.vm("delete", "n")
    assert code == 0, error
    assert not len(emulator.emulator.world.nodes)


async def test_refusals(gcloud: Gcloud, emulator: Cloud) -> None:
    await emulator.create("taken")
    await emulator.control.set_capacity(ZONE, "v2", 4)
    taken, unknown, full, gone = await asyncio.gather(
        gcloud.vm("create", "taken", *_NODE),
        gcloud.vm("create", "x", "--accelerator-type=v9-8", f"--version={RUNTIME}"),
        gcloud.vm("create", "full", *_NODE),
        gcloud.vm("delete", "none"),
    )
    assert [answer[0] for answer in (taken, unknown, full, gone)] == [1, 1, 1, 1]
    assert "ALREADY_EXISTS" in taken[2]
    assert 'accelerator type, "v9-8", could not be found' in unknown[2]
    assert "There is no more capacity in the zone" in full[2]
    assert "NOT_FOUND" in gone[2]


async def test_lists_are_filtered_sorted_and_cut(gcloud: Gcloud, emulator: Cloud) -> None:
    for name in ("a", "b", "c"):
        labels = {"team": "x"} if name == "b" else {}
        await emulator.create(name, labels=labels, network_config={"enable_external_ips": True})
    filtered, turned, paged, told = await asyncio.gather(
        gcloud.vm("list", "--filter=state=READY AND labels.team=x", "--format=value(name)"),
        gcloud.vm("list", "--sort-by=~name", "--format=value(name)"),
        gcloud.vm("list", "--page-size=1", "--zone=-", "--format=value(name)"),
        gcloud.vm("describe", "a", "--format=value(networkEndpoints[0].accessConfig.externalIp)"),
    )
    assert [answer[1].split() for answer in (filtered, turned, paged)] == [
        ["b"],
        ["c", "b", "a"],
        ["a", "b", "c"],
    ]
    assert told[1].strip()
    code, _, error = await gcloud.vm("update", "a", "--internal-ips", "--add-tags=t")
    assert code == 0, error
    shown = await gcloud.json("compute", "tpus", "tpu-vm", "describe", "a")
    assert shown["tags"] == ["t"]
    assert "accessConfig" not in shown["networkEndpoints"][0]


async def test_what_cannot_be_done_is_refused_in_googles_words(
    gcloud: Gcloud, emulator: Cloud
) -> None:
    await emulator.create("spot", scheduling_config={"spot": True})
    pod = {"accelerator_type": "v2-32", "runtime_version": "tpu-vm-tf-2.19.0-pod-pjrt"}
    await emulator.create("pod", parent=f"projects/demo/locations/{POD_ZONE}", **pod)
    await emulator.finish(await emulator.tpu.stop_node({"name": node_name("spot")}))
    answers = await asyncio.gather(
        gcloud.vm("stop", "pod", f"--zone={POD_ZONE}"),
        gcloud.vm("start", "spot"),
        gcloud.vm("stop", "spot"),
        gcloud.vm("create", "r", *_NODE, "--reserved"),
        gcloud.vm("create", "z", "--zone=us-east9-x", *_NODE),
        gcloud.vm("create", "v", "--accelerator-type=v2-8", "--version=nope"),
        gcloud.run("compute", "tpus", "describe", "spot"),
    )
    assert [answer[0] for answer in answers] == [1] * len(answers)
    said = [
        "stop is not supported for pod nodes",
        "start is not supported for spot nodes",
        "stop is not supported while in state STOPPED",
        "Insufficient reserved capacity",
        'The requested zone "us-east9-x" is not supported',
        'cannot be "nope"',
        "NOT_FOUND",
    ]
    for words, answer in zip(said, answers, strict=True):
        assert words in answer[2], answer


async def test_slices_of_one_request(gcloud: Gcloud, emulator: Cloud) -> None:
    queue = ("compute", "tpus", "queued-resources")
    flags = ("--accelerator-type=v2-8", f"--runtime-version={RUNTIME}", "--valid-until-duration=1h")
    slices = ("--node-count=2", "--node-prefix=s")
    code, _, error = await gcloud.run(*queue, "create", "q", *flags, *slices, "--spot")
    assert code == 0, error
    stable, alpha = await asyncio.gather(
        gcloud.json(*queue, "describe", "q"), gcloud.json("alpha", *queue, "describe", "q")
    )
    assert stable["queueingPolicy"]["validUntilDuration"] == "3600s"
    assert stable["tpu"]["nodeSpec"][0]["multisliceParams"]["nodeCount"] == 2
    assert alpha["tpu"]["nodeSpec"][0]["multiNodeParams"]["nodeCount"] == 2
    nodes = emulator.emulator.world.nodes
    assert {record.name.id for record in nodes} == {"s-0", "s-1"}
    refused = await gcloud.run(*queue, "delete", "q")
    assert refused[0] == 1
    assert "not supported while in state ACTIVE" in refused[2]
    assert (await gcloud.run(*queue, "delete", "q", "--force"))[0] == 0
    assert not len(nodes)


async def test_without_waiting(gcloud: Gcloud, emulator: Cloud) -> None:
    await emulator.control.add_fault("operation-never-ends", method="create")
    words = ("compute", "tpus", "tpu-vm", "create", "n", *_NODE, "--spot", "--async")
    operation = await gcloud.json(*words)
    assert operation["metadata"]["target"] == node_name("n")
    assert "done" not in operation
    assert (await emulator.get("n")).state.name == "CREATING"


async def test_queued_requests(gcloud: Gcloud, emulator: Cloud) -> None:
    queue = ("compute", "tpus", "queued-resources")
    flags = ("--accelerator-type=v2-8", f"--runtime-version={RUNTIME}", "--node-id=n", "--spot")
    code, _, error = await gcloud.run(*queue, "create", "q", *flags)
    assert code == 0, error
    listed, shown = await asyncio.gather(
        gcloud.json(*queue, "list", "--zone=-"), gcloud.json(*queue, "describe", "q")
    )
    assert [item["name"] for item in listed] == [shown["name"]]
    assert shown["tpu"]["nodeSpec"][0]["nodeId"] == "n"
    code, _, error = await gcloud.run(*queue, "delete", "q", "--force")
    assert code == 0, error
    assert not list(emulator.emulator.world.queued_resources.messages())


async def test_alpha_and_storage(gcloud: Gcloud, emulator: Cloud, tmp_path: Path) -> None:
    await emulator.create("n")
    await emulator.control.maintenance("n", notice_s=3600, duration_s=1, wait=False)
    source = tmp_path / "source"
    source.write_bytes(b"content\n")
    url = "gs://tpudash-emulator/folder/file"
    node, copied = await asyncio.gather(
        gcloud.json("alpha", "compute", "tpus", "tpu-vm", "describe", "n"),
        gcloud.run("storage", "cp", str(source), url),
    )
    assert node["upcomingMaintenance"]["maintenanceStatus"] == "PENDING"
    assert copied[0] == 0, copied[2]
    assert (await gcloud.run("storage", "cat", url))[1] == "content\n"
