"""Reading runs: from nodes, known specs and buckets; damaged and unreadable records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.operations.conftest import RUN_URL, Room, node
from tests.unit.operations.fake_cloud import BUCKET, FakeBucket
from tpudash.domain.node import NodeListing
from tpudash.domain.run import RunState
from tpudash.errors import UnreachableError
from tpudash.pollers.run_reader import RunReader

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
async def room(tmp_path: Path) -> Room:
    room = Room(tmp_path / "state")
    await room.launch()
    room.agent_writes(1)
    return room


def reader_of(room: Room) -> RunReader:
    return RunReader(FakeBucket(room.world), room.clock)


def listing(room: Room) -> NodeListing:
    return NodeListing(tuple(room.world.nodes.values()), room.world.unreachable)


async def test_a_run_is_found_by_its_node(room: Room) -> None:
    (run,) = (await reader_of(room).read(listing(room))).runs
    assert (run.name, run.state, run.step) == ("demo", RunState.TRAINING, 340)
    assert run.nodes == (node("demo-1"),)


async def test_a_run_without_a_node_is_found_in_a_bucket_or_by_its_known_spec(room: Room) -> None:
    room.world.nodes.clear()
    reader = reader_of(room)
    assert not (await reader.read(listing(room))).runs
    (found,) = (await reader.read(listing(room), buckets=(BUCKET,))).runs
    (known,) = (await reader.read(listing(room), known=[room.spec()])).runs
    assert found == known
    assert found.state is RunState.PREEMPTED


async def test_a_run_that_is_found_thrice_is_one_run(room: Room) -> None:
    reading = await reader_of(room).read(
        listing(room), known=[room.spec()], buckets=(BUCKET, f"{BUCKET}/")
    )
    assert len(reading.runs) == 1


async def test_a_known_run_whose_folder_was_removed_is_no_run_any_more(room: Room) -> None:
    spec = room.spec()
    room.world.nodes.clear()
    room.world.files.clear()
    assert not (await reader_of(room).read(listing(room), known=[spec])).runs


async def test_damaged_records_are_named_and_left_where_they_are(room: Room) -> None:
    room.agent_writes(2)
    room.world.files[f"{RUN_URL}/attempts/2.json"] = b"{"
    room.world.files[f"{RUN_URL}/result.json"] = b"nonsense"
    before = dict(room.world.files)
    (run,) = (await reader_of(room).read(listing(room))).runs
    assert "attempts/2.json is damaged" in run.reason
    assert "result.json is damaged" in run.reason
    assert [one.attempt for one in run.attempts] == [1]
    assert room.world.files == before


async def test_files_that_are_no_records_are_passed_over(room: Room) -> None:
    for name in ("1.json.corrupt-1", "notes.txt", "x.json"):
        room.world.files[f"{RUN_URL}/attempts/{name}"] = b"?"
    (run,) = (await reader_of(room).read(listing(room))).runs
    assert run.state is RunState.TRAINING
    assert "damaged" not in run.reason


async def test_what_was_read_before_is_kept_and_grows_old(room: Room) -> None:
    reader = reader_of(room)
    await reader.read(listing(room))

    def silent(method: str, target: str) -> None:
        raise UnreachableError("no answer")

    room.world.before = silent
    (run,) = (await reader.read(listing(room))).runs
    assert (run.state, run.step) == (RunState.TRAINING, 340)
    assert "could not be read" in run.reason
    room.clock.pass_(200)
    (run,) = (await reader.read(listing(room))).runs
    assert run.state is RunState.STALLED


async def test_a_bucket_that_cannot_be_listed_is_told_and_hides_nothing(room: Room) -> None:
    def silent(method: str, target: str) -> None:
        if method == "list" and target.endswith("/runs"):
            raise UnreachableError("no answer")

    room.world.before = silent
    reading = await reader_of(room).read(listing(room), buckets=(BUCKET,))
    assert [error.title for error in reading.errors] == ["no answer"]
    assert [run.name for run in reading.runs] == ["demo"]


async def test_attempts_that_are_over_are_read_once(room: Room) -> None:
    reader = reader_of(room)
    room.agent_writes(2, restored_step=300)
    await reader.read(listing(room))
    room.world.calls.clear()
    (run,) = (await reader.read(listing(room))).runs
    assert [one.attempt for one in run.attempts] == [1, 2]
    reads = [call for call in room.world.calls if "attempts/" in call and call.startswith("read")]
    assert reads == [f"read {RUN_URL}/attempts/2.json"]
