"""Commands that are cut off, by kill -9 or by Ctrl-C: the next one takes up what they began."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import TYPE_CHECKING

import pytest

from tests.contract.command_line import CommandLine
from tests.emulator_fixture import ZONE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.emulator_fixture import Cloud

TPU = "google.cloud.tpu.v2.Tpu"
OTHER_ZONE = "us-central1-c"
OURS = {"tpudash-run": "demo", "tpudash-owner": "alice", "tpudash-attempt": "1"}


@pytest.fixture
def tpudash(emulator: Cloud, tmp_path: Path) -> CommandLine:
    (tmp_path / "bucket").mkdir()
    return CommandLine(tmp_path, emulator.endpoint)


def launch_in(command: CommandLine, *zones: str) -> tuple[str, ...]:
    places = [word for zone in zones for word in ("--zone", zone)]
    bucket = str(command.folder / "bucket")
    return ("launch", "demo", "--accelerator", "v2-8", *places, "--bucket", bucket, "--yes")


async def cut_off(command: CommandLine, how: int, once: str, *arguments: str) -> int:
    """Start a command, and end it by a signal once it says something."""
    process = await command.start(*arguments, "--wait")
    assert process.stderr is not None
    async with asyncio.timeout(20):
        while once not in (line := (await process.stderr.readline()).decode()):
            assert line, f"it never said {once!r}"
        process.send_signal(how)
        await process.communicate()
        return await process.wait()


def unfinished(command: CommandLine) -> list[str]:
    """Return the operations of the journal that were begun and not ended."""
    lines = (command.folder / "state" / "operations-local.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    ended = {one["operation"] for one in events if one["event"] == "end"}
    return [
        one["operation"]
        for one in events
        if one["event"] == "begin" and one["operation"] not in ended
    ]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("once", ["is written to the bucket", "asking for", "CREATING"])
async def test_a_launch_that_is_cut_off_is_taken_up_by_the_next(
    emulator: Cloud, tpudash: CommandLine, how: int, once: str
) -> None:
    await emulator.control.add_fault("operation-never-ends", method="create")
    code = await cut_off(tpudash, how, once, *launch_in(tpudash, ZONE))
    assert code == (130 if how == signal.SIGINT else -how)
    (left,) = unfinished(tpudash)
    done = await tpudash(*launch_in(tpudash, ZONE), "--json")
    assert done.items[0]["operation"]["operation_id"] == left
    counters = await emulator.control.counters()
    assert counters[f"{TPU}/CreateNode"] == 1
    assert len(emulator.emulator.world.nodes) == 1


async def test_a_deletion_that_is_cut_off_is_taken_up_by_the_next(
    emulator: Cloud, tpudash: CommandLine
) -> None:
    await emulator.create("demo-1", labels=OURS)
    fault = await emulator.control.add_fault("operation-never-ends", method="delete")
    await cut_off(tpudash, signal.SIGKILL, "DELETING", "delete", "demo", "--yes")
    assert unfinished(tpudash)
    await emulator.control.clear_faults(int(fault["id"]))
    done = await tpudash("delete", "demo", "--yes", "--wait", "--json")
    assert done.items[0]["operation"]["state"] == "DONE"
    assert unfinished(tpudash) == []
    assert (await emulator.control.counters())[f"{TPU}/DeleteNode"] == 1


async def test_without_waiting_a_launch_still_tries_its_further_zones(
    emulator: Cloud, tpudash: CommandLine
) -> None:
    for zone in (ZONE, OTHER_ZONE):
        await emulator.control.set_capacity(zone, "v2-8", 0)
    done = await tpudash(*launch_in(tpudash, ZONE, OTHER_ZONE))
    assert done.code == 5, done
    assert ZONE in done.err
    assert f'no more capacity in the zone "{OTHER_ZONE}"' in done.err
    assert unfinished(tpudash) == []
