"""Servers that are broken or mean harm: nothing hangs, nothing is made up, one clear line."""

from __future__ import annotations

import asyncio
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from google.cloud import tpu_v2

from tests.contract import hostile
from tests.contract.command_line import CommandLine
from tests.contract.fake_google import (
    LOGGING,
    TPU,
    FakeGoogle,
    FastClock,
    connected,
    fake_google,
    never,
)
from tests.contract.hostile import hostile_server
from tests.emulator_fixture import RUNTIME, ZONE, eventually, node_name
from tpudash.clock import SystemClock
from tpudash.config.settings import Intervals
from tpudash.domain.failure import ErrorClass
from tpudash.domain.node import NodeTemplate, Scheduling
from tpudash.errors import OutcomeUnknownError, TpudashError, UnreachableError
from tpudash.gateways import paging
from tpudash.gateways import tpu as tpu_module
from tpudash.gateways.connection import Connection, ConnectionOptions
from tpudash.pollers.link import Link
from tpudash.pollers.poller_set import PollerSet, Tools
from tpudash.store.snapshot import LOGS, METRICS, NODES, REQUESTS, SourceState
from tpudash.store.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.contract.hostile import Behaviour
    from tpudash.gateways.protocols import Cloud

LIST = f"{TPU}/ListNodes"
NAME = node_name("demo-1")
TEMPLATE = NodeTemplate("v2-8", RUNTIME, Scheduling.SPOT)


def field(number: int, content: bytes) -> bytes:
    """Return a length-delimited field of a message."""
    size, encoded = len(content), b""
    while size > 127:
        encoded, size = encoded + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + encoded + bytes([size]) + content


def nested(depth: int) -> bytes:
    """Return a google.protobuf.Struct of that depth."""
    data = b""
    for _ in range(depth):
        data = field(1, field(1, b"a") + field(2, field(5, data)))
    return data


UNREADABLE = {
    "garbage": b"\xff\xfe\x00garbage" * 10,
    "cut off": field(1, b"x" * 50)[:20],
    "no UTF-8": field(1, field(1, b"\xff\xfe\xfd")),  # the field of a log entry is another
}


@pytest.mark.parametrize(
    "behaviour",
    [
        hostile.garbage,
        hostile.hang_up,
        hostile.web_page,
        hostile.reset,
        hostile.goes_away,
        hostile.drip,
        hostile.silence,
        hostile.half_open,
    ],
    ids=lambda behaviour: str(behaviour.__name__),
)
async def test_what_speaks_no_protocol(behaviour: Behaviour, tmp_path: Path) -> None:
    async with hostile_server(behaviour) as endpoint:
        done = await CommandLine(tmp_path, endpoint)("nodes", "--json", within=20)
    assert done.is_refusal(1)
    assert endpoint in done.err
    assert "emulator serve" in done.err


HTTP_2 = ["html", "missing", "no_grpc", "cut_short", "stream_reset", "gone_away"]
HTTP_2 += ["strange_status", "no_number", "slow_answer"]


@pytest.mark.parametrize("name", HTTP_2)
async def test_what_speaks_http_2_and_nothing_more(name: str, tmp_path: Path) -> None:
    async with hostile_server(getattr(hostile, name)) as endpoint:
        done = await CommandLine(tmp_path, endpoint)("requests", within=20)
    assert done.is_refusal(1), done
    is_page = HTTP_2.index(name) < HTTP_2.index("stream_reset")
    assert "not the API" in done.err if is_page else endpoint in done.err or "no answer" in done.err


@pytest.fixture
async def fake() -> AsyncIterator[FakeGoogle]:
    async with fake_google() as server:
        yield server


@pytest.mark.parametrize("answer", UNREADABLE.values(), ids=UNREADABLE.keys())
async def test_answers_that_are_no_messages(answer: bytes, fake: FakeGoogle) -> None:
    for method in (LIST, f"{TPU}/GetNode", f"{TPU}/CreateNode", f"{TPU}/DeleteNode"):
        fake.on(method, lambda _: answer)
    fake.on(f"{LOGGING}/ListLogEntries", lambda _: answer)
    async with asyncio.timeout(30), connected(fake.endpoint) as cloud:
        await unreachable(cloud.tpu.list_nodes(ZONE))
        await unreachable(cloud.tpu.get_node(NAME))
        with pytest.raises(OutcomeUnknownError):
            await cloud.tpu.create_node(ZONE, "demo-1", TEMPLATE)
        with pytest.raises(OutcomeUnknownError):
            await cloud.tpu.delete_node(NAME)
        if answer is not UNREADABLE["no UTF-8"]:
            await unreachable(cloud.logging.list_entries("x"))


async def test_an_entry_that_is_nested_too_deep_hides_none_of_the_others(
    fake: FakeGoogle,
) -> None:
    def entry(name: str, payload: bytes) -> bytes:
        return field(1, field(12, b"projects/demo/logs/x") + field(4, name.encode()) + payload)

    page = (
        entry("before", field(3, b"a line"))
        + entry("deep", field(6, nested(3_000)))
        + entry("after", field(6, nested(3)))
    )
    fake.on(f"{LOGGING}/ListLogEntries", lambda _: page)

    async def tail(_: Any) -> AsyncIterator[Any]:
        yield entry("live", field(6, nested(200)))
        await asyncio.get_running_loop().create_future()

    fake.tail = tail
    async with asyncio.timeout(30), connected(fake.endpoint) as cloud:
        listed = await cloud.logging.list_entries("x")
        assert [one.insert_id for one in listed] == ["before", "deep", "after"]
        assert "nested too deep" in listed[1].text
        assert listed[2].payload == {"a": {"a": {"a": {}}}}
        batches = cloud.logging.tail("x")
        await anext(batches)
        live = await anext(batches)
    assert [one.insert_id for one in live.entries] == ["live"]


async def test_a_tail_of_garbage_is_given_up_with_a_reason(fake: FakeGoogle) -> None:
    fake.on(f"{LOGGING}/ListLogEntries", lambda _: b"")

    async def tail(_: Any) -> AsyncIterator[Any]:
        yield b"\xff" * 20

    fake.tail = tail
    async with asyncio.timeout(30), connected(fake.endpoint) as cloud:
        batches = cloud.logging.tail("x")
        await anext(batches)
        await unreachable(anext(batches))


async def unreachable(asking: Any) -> UnreachableError:
    with pytest.raises(UnreachableError) as caught:
        await asking
    assert caught.value.failure is not None
    assert caught.value.failure.error_class is ErrorClass.INTERNAL
    assert caught.value.hint
    return caught.value


async def test_an_answer_of_200_mib_is_not_taken_for_a_lack_of_quota(fake: FakeGoogle) -> None:
    fake.on(LIST, lambda _: field(1, field(1, b"x" * (200 * 2**20))))
    async with asyncio.timeout(60), connected(fake.endpoint) as cloud:
        error = await unreachable(cloud.tpu.list_nodes(ZONE))
    assert "larger than max" in error.detail


async def test_pages_without_an_end(fake: FakeGoogle) -> None:
    numbers = count()
    fake.on(LIST, lambda _: tpu_v2.ListNodesResponse(next_page_token=f"page-{next(numbers)}"))
    async with asyncio.timeout(30), connected(fake.endpoint) as cloud:
        error = await unreachable(cloud.tpu.list_nodes(ZONE))
    assert "the pages do not end" in error.detail
    assert fake.calls[LIST] < 100


async def test_full_pages_without_an_end(fake: FakeGoogle, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count()

    def page(_: Any) -> Any:
        number = next(numbers)
        node = tpu_v2.Node(name=node_name(f"n-{number}"), description="x" * 500)
        return tpu_v2.ListNodesResponse(nodes=[node], next_page_token=f"page-{number}")

    monkeypatch.setattr(paging, "MOST_PAGES", 60)
    fake.on(LIST, page)
    async with asyncio.timeout(30), connected(fake.endpoint) as cloud:
        error = await unreachable(cloud.tpu.list_nodes(ZONE))
    assert "the pages do not end" in error.detail
    assert fake.calls[LIST] <= 60


async def test_pages_that_each_come_just_in_time(
    fake: FakeGoogle, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = count()
    monkeypatch.setattr(paging, "MOST_S", 0.0)
    fake.on(LIST, lambda _: tpu_v2.ListNodesResponse(next_page_token=f"page-{next(numbers)}"))
    async with asyncio.timeout(30), connected(fake.endpoint) as cloud:
        error = await unreachable(cloud.tpu.list_nodes(ZONE))
    assert "came within" in error.detail


async def test_nodes_full_of_nonsense(fake: FakeGoogle, tmp_path: Path) -> None:
    nodes = [
        tpu_v2.Node(name="no name at all"),
        tpu_v2.Node(
            name=NAME,
            state=99,
            health=77,
            accelerator_type="\x1b[2Jv9-\u202e8",
            labels={"tpudash-run": "x" * 2_000, "tpudash-attempt": "9" * 5_000},
            metadata={"tpudash-spec": "{" * 10_000},
            create_time={"seconds": -62135596800},
            network_endpoints=[{"ip_address": "\x1b]0;owned\x07"}],
        ),
    ]
    fake.on(LIST, lambda _: tpu_v2.ListNodesResponse(nodes=nodes, unreachable=["\x1b[31mzone"]))
    command = CommandLine(tmp_path, fake.endpoint)
    done = await command("nodes")
    assert done.code == 0
    assert "99" in done.out
    assert "\x1b" not in done.out + done.err
    assert "Traceback" not in done.err
    (item,) = (await command("nodes", "--json")).items
    assert (item["state"], item["health"], item["attempt"]) == ("99", "77", None)


class Console:
    """What is behind a console, on one endpoint."""

    def __init__(self, endpoint: str) -> None:
        clock, store = SystemClock(), Store()
        self.store = store

        def connect() -> Connection:
            return Connection(ConnectionOptions(project="demo", endpoint=endpoint), clock=clock)

        tools = Tools(store, Link(store, connect, endpoint, clock), clock, Random(1))
        every = Intervals(nodes=1, requests=1, runs=1, metrics=60, checklist=60)
        self._pollers = PollerSet(tools, every, self._no_runs)
        self._task = asyncio.create_task(self._pollers.run())

    async def _no_runs(self, _: Cloud, __: Store) -> tuple[()]:
        return ()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def refresh(self) -> None:
        self._pollers.refresh_soon()

    def state_of(self, source: str) -> SourceState:
        return self.store.snapshot.sources[source].state


async def test_the_console_outlives_a_server_that_goes_bad_and_takes_up_again(
    fake: FakeGoogle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tpu_module, "LIST_S", 0.5)
    good = tpu_v2.ListNodesResponse(nodes=[tpu_v2.Node(name=NAME, state="READY")])
    fake.on(LIST, lambda _: good)
    console = Console(fake.endpoint)
    try:
        await eventually(lambda: NAME in console.store.snapshot.nodes, "the node is known")
        for bad in (lambda _: b"\xff" * 40, never):
            fake.on(LIST, bad)
            console.refresh()
            await eventually(
                lambda: console.state_of(NODES) is SourceState.FAILING,
                "the source fails",
                within=20,
            )
            status = console.store.snapshot.sources[NODES]
            assert status.title
            assert status.last_success is not None
            assert NAME in console.store.snapshot.nodes, "what was known is kept"
            fake.on(LIST, lambda _: good)
            await eventually(
                lambda: console.state_of(NODES) is SourceState.OK, "it is back", within=30
            )
    finally:
        await console.close()


@pytest.mark.parametrize(
    "behaviour",
    [hostile.garbage, hostile.reset, hostile.half_open, hostile.html],
    ids=["garbage", "reset", "half open", "html"],
)
async def test_the_console_lives_on_without_anything_that_makes_sense(
    behaviour: Behaviour,
) -> None:
    async with hostile_server(behaviour) as endpoint:
        console = Console(endpoint)
        sources = (NODES, REQUESTS, METRICS, LOGS)
        try:
            await eventually(
                lambda: all(console.state_of(one) is SourceState.FAILING for one in sources),
                "every source says so",
                within=30,
            )
        finally:
            async with asyncio.timeout(5):
                await console.close()
    left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not [name for name in left if name.startswith(("poll", "log"))]


async def test_a_tail_that_ends_at_once_every_time_is_opened_ever_more_rarely(
    fake: FakeGoogle,
) -> None:
    class Watched(FastClock):
        pauses: list[float] = []

        async def sleep(self, seconds: float) -> None:
            self.pauses.append(seconds)
            await super().sleep(seconds)

    async def ends(_: Any) -> AsyncIterator[Any]:
        return
        yield

    fake.tail = ends
    fake.on(f"{LOGGING}/ListLogEntries", lambda _: b"")
    clock = Watched()
    connection = Connection(ConnectionOptions(project="demo", endpoint=fake.endpoint), clock=clock)
    try:
        cloud = await connection.cloud()

        async def follow() -> None:
            async for _ in cloud.logging.tail("x"):
                pass

        following = asyncio.create_task(follow())
        await eventually(lambda: max(clock.pauses, default=0) > 10, "the pauses grow", within=30)
        following.cancel()
        with pytest.raises((asyncio.CancelledError, TpudashError)):
            await following
    finally:
        await connection.close()
