"""Acting commands against the emulator: plans, questions, refusals, and what they leave behind."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import pytest
from google.cloud import tpu_v2

from tests.contract.command_line import CommandLine

if TYPE_CHECKING:
    from pathlib import Path

    from tests.emulator_fixture import Cloud

PLACE = ("--accelerator", "v2-8", "--zone", "us-central1-b", "--spot")
NODE = "projects/demo/locations/us-central1-b/nodes/demo-1"
OURS = {"tpudash-run": "demo", "tpudash-owner": "alice", "tpudash-attempt": "1"}


@pytest.fixture
def tpudash(emulator: Cloud, tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path, emulator.endpoint)


@pytest.fixture
def bucket(tmp_path: Path) -> str:
    folder = tmp_path / "bucket"
    folder.mkdir()
    return str(folder)


async def changes(cloud: Cloud) -> dict[str, int]:
    """Return what was asked of the cloud that changes something."""
    return await cloud.control.counters()


async def test_a_dry_run_shows_every_call_and_makes_none(
    emulator: Cloud, tpudash: CommandLine, bucket: str
) -> None:
    arguments = ("launch", "demo", *PLACE, "--bucket", bucket, "--steps", "600", "--seed", "7")
    done = await tpudash(*arguments, "--dry-run", "--json", "--", "--precision", "float32")
    (item,) = done.items
    assert item["name"] == "demo"
    plan = item["plan"]
    create = next(one for one in plan["steps"] if one["call"].endswith("Tpu/CreateNode"))
    assert create["target"] == NODE
    assert plan["cost_per_hour_usd"] == pytest.approx(1.35)
    assert "float32" in done.out, "what stands after -- is for the trainer"
    text = await tpudash(*arguments, "--dry-run")
    assert text.code == 0
    assert "google.cloud.tpu.v2.Tpu/CreateNode" in text.out
    assert await changes(emulator) == {}
    assert list((tpudash.folder / "bucket").iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("launch", "demo", *PLACE, "--bucket", "/b"),
        ("resume", "demo"),
        ("delete", "demo"),
    ],
)
async def test_without_a_terminal_nobody_can_say_yes(
    emulator: Cloud, tpudash: CommandLine, arguments: tuple[str, ...]
) -> None:
    done = await tpudash(*arguments)
    assert done.is_refusal(2), done
    assert "--yes" in done.err
    assert await changes(emulator) == {}


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("bad_name", *PLACE), 2, "can't be the name"),
        (("demo", "--accelerator", "v2-9", "--zone", "us-central1-b"), 2, "v2-8"),
        (("demo", "--accelerator", "v2-8", "--zone", "us-central1-q"), 2, "us-central1-"),
        (("demo", *PLACE, "--runtime", "no-such-image"), 2, "no-such-image"),
        (("demo", "--zone", "us-central1-b"), 2, "--accelerator"),
        (("demo", "--accelerator", "v2-8"), 2, "--zone"),
        (("demo", *PLACE, "--bucket", "/no/such/folder"), 4, "/no/such/folder"),
        (("demo", *PLACE, "--bucket", "relative"), 4, "relative"),
        (("demo", *PLACE, "--steps", "0"), 2, "--steps"),
        (("demo", *PLACE, "--max-cost", "-1"), 2, "--max-cost"),
    ],
)
async def test_what_makes_no_sense_is_refused_before_anything_is_created(
    emulator: Cloud,
    tpudash: CommandLine,
    bucket: str,
    arguments: tuple[str, ...],
    code: int,
    says: str,
) -> None:
    more = () if "--bucket" in arguments else ("--bucket", bucket)
    done = await tpudash("launch", *arguments, *more, "--yes", "--json")
    assert done.is_refusal(code), done
    assert says in done.err
    assert done.seconds < 4, "2 s on a machine that has nothing else to do"
    assert await changes(emulator) == {}


async def test_a_state_folder_that_cannot_be_written_to_stops_an_act_first(
    emulator: Cloud, tpudash: CommandLine, bucket: str
) -> None:
    (tpudash.folder / "state").write_text("a file")
    done = await tpudash("launch", "demo", *PLACE, "--bucket", bucket, "--yes")
    assert done.is_refusal(2), done
    assert "state directory" in done.err
    assert await changes(emulator) == {}


async def test_a_dead_endpoint_stops_an_act_soon(tpudash: CommandLine, bucket: str) -> None:
    tpudash.environment["TPUDASH_ENDPOINT"] = "127.0.0.1:9"
    done = await tpudash("launch", "demo", *PLACE, "--bucket", bucket, "--yes")
    assert done.is_refusal(1), done
    assert done.seconds < 4, "2 s on a machine that has nothing else to do"


async def test_no_capacity_is_5_in_the_operation_and_says_where(
    emulator: Cloud, tpudash: CommandLine, bucket: str
) -> None:
    await emulator.control.set_capacity("us-central1-b", "v2-8", 0)
    arguments = ("launch", "demo", *PLACE, "--bucket", bucket, "--yes", "--wait")
    done = await tpudash(*arguments)
    assert done.code == 5, done
    assert "us-central1-b" in done.err
    assert "Traceback" not in done.err
    assert (await tpudash("nodes", "--json")).items == []


async def test_quota_is_5_at_the_call(emulator: Cloud, tpudash: CommandLine, bucket: str) -> None:
    limit = "TPUV2sPreemptiblePerProjectPerZoneForTPUAPI"
    await emulator.control.set_quota("us-central1-b", limit, 0)
    done = await tpudash("launch", "demo", *PLACE, "--bucket", bucket, "--yes", "--wait")
    assert done.code == 5, done
    assert (await tpudash("nodes", "--json")).items == []


async def test_what_does_not_exist_cannot_be_resumed_or_deleted(tpudash: CommandLine) -> None:
    for command in ("resume", "delete"):
        done = await tpudash(command, "nothing", "--yes")
        assert done.is_refusal(4), done


async def test_delete_waits_until_the_node_is_gone(emulator: Cloud, tpudash: CommandLine) -> None:
    await emulator.create("demo-1", labels=OURS)
    await emulator.create("other-1", scheduling_config=tpu_v2.SchedulingConfig(spot=True))
    done = await tpudash("delete", "demo", "--yes", "--wait", "--json")
    (item,) = done.items
    assert item["operation"]["state"] == "DONE"
    names = [one["name"] for one in (await tpudash("nodes", "--json")).items]
    assert names == ["projects/demo/locations/us-central1-b/nodes/other-1"], "and no other node"


async def test_delete_without_wait_returns_once_it_was_asked_for(
    emulator: Cloud, tpudash: CommandLine
) -> None:
    await emulator.create("demo-1", labels=OURS)
    await emulator.control.add_fault("operation-never-ends", method="delete")
    done = await tpudash("delete", "demo", "--yes", "--json", within=15)
    assert done.items[0]["operation"]["state"] == "RUNNING"
    (node,) = (await tpudash("nodes", "--json")).items
    assert node["state"] == "DELETING"


async def test_ctrl_c_while_waiting_leaves_the_operation_and_says_how_to_follow(
    emulator: Cloud, tpudash: CommandLine
) -> None:
    await emulator.create("demo-1", labels=OURS)
    await emulator.control.add_fault("operation-never-ends", method="delete")
    process = await tpudash.start("delete", "demo", "--yes", "--wait")
    assert process.stderr is not None
    async with asyncio.timeout(20):
        said = b""
        while b"DELETING" not in said:
            said += await process.stderr.readline()
        process.send_signal(signal.SIGINT)
        rest = (await process.stderr.read()).decode()
        assert await process.wait() == 130
    assert "tpudash delete demo --wait" in rest
    assert "Traceback" not in rest
    (node,) = (await tpudash("nodes", "--json")).items
    assert node["state"] == "DELETING"
    assert (await changes(emulator))["google.cloud.tpu.v2.Tpu/DeleteNode"] == 1


async def test_what_belongs_to_others_is_left_alone(emulator: Cloud, tpudash: CommandLine) -> None:
    await emulator.create("demo-1", labels=OURS | {"tpudash-owner": "bob"})
    done = await tpudash("delete", "demo", "--yes")
    assert done.code != 0
    assert "bob" in done.err
    assert await changes(emulator) == {"google.cloud.tpu.v2.Tpu/CreateNode": 1}
