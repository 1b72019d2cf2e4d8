"""The logging gateway: lists, and a tail that loses nothing and gives nothing twice."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from google.cloud.logging_v2 import types as logging_types

from tests.contract.fake_google import (
    LOGGING,
    TAIL,
    FakeGoogle,
    connected,
    fake_google,
    raw_class,
    refusal,
)
from tests.emulator_fixture import CALL, eventually
from tpudash.domain.log import Severity
from tpudash.errors import NotAllowedError, UnreachableError
from tpudash.gateways import log_tail
from tpudash.gateways.log_filters import all_of, node_filter, run_filter, since_filter
from tpudash.gateways.retry import RetryRules

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.emulator_fixture import Cloud as Emulator
    from tpudash.gateways.protocols import Cloud

LIST = f"{LOGGING}/ListLogEntries"
NOW = datetime(2026, 12, 1, 10, tzinfo=UTC)


def entry(number: int, **fields: Any) -> Any:
    """Return a worker's entry that was written a second ago."""
    fields.setdefault("text_payload", f"line {number}")
    fields.setdefault("timestamp", datetime.now(UTC) - timedelta(seconds=1))
    return logging_types.LogEntry(
        log_name="projects/demo/logs/tpudash",
        insert_id=f"id-{number}",
        resource={
            "type": "tpu_worker",
            "labels": {"node_id": "demo-1", "zone": "us-central1-b", "worker_id": "0"},
        },
        labels={"tpudash-run": "demo", "tpudash-attempt": "2", "stream": "stdout"},
        **fields,
    )


async def write(emulator: Emulator, *entries: Any) -> None:
    await emulator.logging.write_log_entries(request={"entries": entries}, **CALL)


@pytest.fixture
async def cloud(emulator: Emulator) -> AsyncIterator[Cloud]:
    async with connected(emulator.endpoint) as found:
        yield found


async def test_entries_in_order_with_all_that_they_say(emulator: Emulator, cloud: Cloud) -> None:
    start = datetime.now(UTC) - timedelta(minutes=1)
    await write(
        emulator,
        *(entry(n, timestamp=start + timedelta(seconds=n), severity="WARNING") for n in range(5)),
    )
    filter_ = all_of(node_filter("demo-1"), run_filter("demo", attempt=2), since_filter(start))
    oldest = await cloud.logging.list_entries(filter_)
    assert [item.text for item in oldest] == [f"line {n}" for n in range(5)]
    newest = await cloud.logging.list_entries(filter_, newest_first=True, limit=2)
    assert [item.text for item in newest] == ["line 4", "line 3"]
    first = oldest[0]
    assert (first.node_id, first.zone, first.worker_id) == ("demo-1", "us-central1-b", "0")
    assert (first.run, first.attempt, first.stream) == ("demo", 2, "stdout")
    assert (first.severity, first.timestamp, first.insert_id) == (Severity.WARNING, start, "id-0")
    assert await cloud.logging.list_entries(node_filter('x" OR severity>="DEFAULT')) == ()
    assert await cloud.logging.list_entries(filter_, limit=0) == ()


async def test_payloads_of_any_shape(emulator: Emulator, cloud: Cloud) -> None:
    deep: Any = "bottom"
    for _ in range(15):
        deep = {"next": [deep]}
    await write(
        emulator,
        entry(1, text_payload=None, json_payload={"event": "step", "message": "hi", "step": 3}),
        entry(2, text_payload=None, json_payload={"a": [1, 2.5, None, True, {"b": "c"}]}),
        entry(3, text_payload=None, json_payload={"loss": float("nan"), "top": float("inf")}),
        entry(4, text_payload=None, json_payload=deep),
        entry(5, text_payload=""),
    )
    found = {item.insert_id: item for item in await cloud.logging.list_entries("")}
    assert found["id-1"].event == "step"
    assert (found["id-1"].text, found["id-1"].payload) == (
        "hi",
        {"event": "step", "message": "hi", "step": 3},
    )
    assert found["id-2"].payload == {"a": [1, 2.5, None, True, {"b": "c"}]}
    assert found["id-2"].text == '{"a": [1, 2.5, null, true, {"b": "c"}]}'
    assert found["id-3"].payload == {"loss": "NaN", "top": "Infinity"}
    assert "bottom" in found["id-4"].text
    assert (found["id-5"].text, found["id-5"].payload) == ("", None)


async def test_the_tail_gives_what_is_written(emulator: Emulator, cloud: Cloud) -> None:
    await write(emulator, entry(0))
    texts: list[str] = []
    tail = cloud.logging.tail(node_filter("demo-1"), since=datetime.now(UTC) - timedelta(hours=1))
    async with asyncio.timeout(20), aclosing(tail) as batches:  # type: ignore[type-var]
        async for batch in batches:
            texts += [item.text for item in batch.entries]
            if texts == ["line 0"]:
                await write(emulator, entry(1), entry(2))
            if len(texts) >= 3:
                break
    assert texts == ["line 0", "line 1", "line 2"]


async def test_the_tail_bridges_faults_of_the_service(
    emulator: Emulator, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_tail, "SECOND_LOOK_S", 0.3)
    monkeypatch.setattr(log_tail, "_RULES", RetryRules(first_delay_s=0.01, longest_delay_s=0.05))
    for kind, method in (
        ("error", "TailLogEntries"),
        ("lost-request", "TailLogEntries"),
        ("lost-request", "ListLogEntries"),
    ):
        await emulator.control.add_fault(kind, method=method, count=1)
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    reader = Reader(cloud, node_filter("demo-1"), hour_ago)
    for number in range(12):
        await write(emulator, entry(number))
        await reader.until(number // 2)
    await reader.until(12)
    assert sorted(reader.texts) == sorted(f"line {number}" for number in range(12))
    assert await emulator.control.list_faults() == []
    await reader.stop()


class LogServer:
    """A log that can be listed and followed, and whose followers can be thrown out."""

    def __init__(self, fake: FakeGoogle) -> None:
        self.entries: list[Any] = []
        self.followers: list[asyncio.Queue[Any]] = []
        self.filters: list[str] = []
        self.before_following: asyncio.Event | None = None
        fake.on(LIST, self._list)
        fake.tail = self._tail

    def add(self, *numbers: int) -> None:
        for number in numbers:
            message = logging_types.LogEntry.pb(entry(number))
            self.entries.append(message)
            for follower in self.followers:
                follower.put_nowait(message)

    def throw_out(self, why: Exception | None) -> None:
        followers, self.followers = self.followers, []
        for follower in followers:
            follower.put_nowait(why)

    def _list(self, request: Any) -> Any:
        self.filters.append(request.filter)
        newest = list(reversed(self.entries))
        return raw_class(logging_types.ListLogEntriesResponse)(entries=newest[: request.page_size])

    async def _tail(self, request: Any) -> AsyncIterator[Any]:
        if self.before_following is not None:
            await self.before_following.wait()
        queue: asyncio.Queue[Any] = asyncio.Queue()
        self.followers.append(queue)
        response = raw_class(logging_types.TailLogEntriesResponse)
        while True:
            item = await queue.get()
            if isinstance(item, Exception):
                raise item
            if item is None:
                return
            yield response(entries=[item])


class Reader:
    """Collects what a tail gives, in a task of its own."""

    def __init__(self, cloud: Cloud, filter_: str = "x", since: datetime | None = None) -> None:
        self.texts: list[str] = []
        self.task = asyncio.create_task(self._read(cloud, filter_, since))

    async def _read(self, cloud: Cloud, filter_: str, since: datetime | None) -> None:
        async for batch in cloud.logging.tail(filter_, since=since):
            self.texts += [item.text for item in batch.entries]

    async def until(self, count: int) -> None:
        await eventually(
            lambda: len(self.texts) >= count or self.task.done(), f"{count} entries arrive"
        )

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def followed(server: LogServer) -> None:
    await eventually(lambda: server.followers, "the log is followed")


@pytest.fixture
async def fake() -> AsyncIterator[FakeGoogle]:
    async with fake_google() as server:
        yield server


@pytest.mark.parametrize(
    "why", [None, refusal("UNAVAILABLE", "Socket closed"), refusal("INTERNAL", "RST_STREAM")]
)
@pytest.mark.parametrize("read_only", [False, True])
async def test_a_broken_tail_goes_on_without_gap_or_doublet(
    fake: FakeGoogle, why: Exception | None, read_only: bool
) -> None:
    server = LogServer(fake)
    async with connected(fake.endpoint, read_only=read_only) as cloud:
        reader = Reader(cloud)
        await followed(server)
        server.add(1, 2)
        await reader.until(2)
        for first in (3, 6, 9):
            server.throw_out(why)
            server.add(first, first + 1)
            await followed(server)
            server.add(first + 2)
            await reader.until(first + 2)
        assert fake.calls[TAIL] == 4
        # Each opening is followed by a look, and the last one by a second look.
        await eventually(lambda: len(server.filters) > 4, "a second look is taken")
        assert sorted(reader.texts) == sorted(f"line {number}" for number in range(1, 12))
        await reader.stop()


@pytest.mark.parametrize("seed", range(4))
async def test_no_entry_is_lost_or_given_twice_whenever_the_stream_breaks(
    fake: FakeGoogle, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(log_tail, "SECOND_LOOK_S", 0.2)
    monkeypatch.setattr(log_tail, "_RULES", RetryRules(first_delay_s=0.01, longest_delay_s=0.05))
    chance = random.Random(seed)
    server = LogServer(fake)
    breaks = (None, refusal("UNAVAILABLE", "gone"), refusal("INTERNAL", "RST_STREAM"))
    async with connected(fake.endpoint) as cloud:
        reader = Reader(cloud)
        await followed(server)
        count = 0
        for _ in range(25):
            act = chance.random()
            if act < 0.3:
                server.throw_out(chance.choice(breaks))
            if act < 0.8:
                more = chance.randrange(1, 6)
                server.add(*range(count, count + more))
                count += more
            if act > 0.9:
                await reader.until(count // 2)
                await followed(server)
        await reader.until(count)
        assert sorted(reader.texts) == sorted(f"line {number}" for number in range(count))
        await reader.stop()


async def test_more_than_can_be_listed_after_a_loss_is_told_in_its_place(
    fake: FakeGoogle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_tail, "MOST_MISSED", 3)
    server = LogServer(fake)
    async with connected(fake.endpoint) as cloud:
        reader = Reader(cloud)
        await followed(server)
        server.throw_out(None)
        server.add(*range(8))
        await reader.until(4)
        await reader.stop()
    assert "were not read" in reader.texts[0]
    assert reader.texts[1:4] == ["line 5", "line 6", "line 7"]


async def test_what_is_written_before_the_service_follows_is_seen(fake: FakeGoogle) -> None:
    server = LogServer(fake)
    server.before_following = asyncio.Event()
    async with connected(fake.endpoint) as cloud:
        reader = Reader(cloud)
        await eventually(lambda: server.filters, "the log is listed")
        server.add(1)
        await reader.until(1)
        assert reader.texts == ["line 1"]
        server.before_following.set()
        await reader.stop()


async def test_a_tail_is_opened_anew_before_its_hour_is_over(
    fake: FakeGoogle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_tail, "STREAM_LIFE_S", 20.0)
    server = LogServer(fake)
    async with connected(fake.endpoint) as cloud:
        reader = Reader(cloud)
        number = 0
        async with asyncio.timeout(20):
            while fake.calls[TAIL] < 3:
                number += 1
                server.add(number)
                await reader.until(number)
        await reader.stop()
    assert reader.texts == [f"line {n}" for n in range(1, number + 1)]


async def test_a_refusal_ends_the_tail(fake: FakeGoogle) -> None:
    server = LogServer(fake)
    async with connected(fake.endpoint) as cloud:
        reader = Reader(cloud)
        await followed(server)
        server.throw_out(
            refusal("PERMISSION_DENIED", "Permission 'logging.logEntries.list' denied")
        )
        with pytest.raises(NotAllowedError) as caught:
            async with asyncio.timeout(10):
                await reader.task
    assert "roles/logging.viewer" in caught.value.hint
    assert fake.calls[TAIL] == 1


async def test_faults_without_end_end_the_tail(fake: FakeGoogle) -> None:
    LogServer(fake)

    async def broken(request: Any) -> AsyncIterator[Any]:
        if request.filter:
            raise refusal("UNAVAILABLE", "The service is currently unavailable.")
        yield None

    fake.tail = broken
    async with connected(fake.endpoint) as cloud:
        reader = Reader(cloud)
        with pytest.raises(UnreachableError):
            async with asyncio.timeout(10):
                await reader.task
    assert fake.calls[TAIL] == log_tail.FAILURES_IN_A_ROW


async def test_suppressed_entries_are_told(fake: FakeGoogle) -> None:
    fake.on(LIST, lambda _: raw_class(logging_types.ListLogEntriesResponse)())

    async def tail(_: Any) -> AsyncIterator[Any]:
        answer = raw_class(logging_types.TailLogEntriesResponse)()
        answer.suppression_info.add(reason=1, suppressed_count=7)
        answer.suppression_info.add(reason=2, suppressed_count=3)
        yield answer
        await asyncio.get_running_loop().create_future()

    fake.tail = tail
    async with asyncio.timeout(10), connected(fake.endpoint) as cloud:
        batches = cloud.logging.tail("x")
        # The first batch only says that the log can be read.
        batch = await anext(batches)
        while not batch.suppressed:
            batch = await anext(batches)
    assert (batch.entries, batch.suppressed) == ((), 10)


async def test_pages_are_followed_up_to_the_limit(fake: FakeGoogle) -> None:
    def answer(request: Any) -> Any:
        number = int(request.page_token or 0)
        page = raw_class(logging_types.ListLogEntriesResponse)(next_page_token=str(number + 1))
        if number % 2:
            message = logging_types.LogEntry.pb(entry(number))
            page.entries.extend([message, message])
        return page

    fake.on(LIST, answer)
    async with connected(fake.endpoint) as cloud:
        found = await cloud.logging.list_entries("x", newest_first=True, limit=5)
    assert [item.insert_id for item in found] == ["id-1", "id-1", "id-3", "id-3", "id-5"]
    assert fake.requests[0].order_by == "timestamp desc"
    assert fake.requests[0].page_size == 5


async def test_a_search_that_finds_nothing_is_given_up(fake: FakeGoogle) -> None:
    fake.on(
        LIST,
        lambda request: raw_class(logging_types.ListLogEntriesResponse)(
            next_page_token=f"{request.page_token}x"
        ),
    )
    async with connected(fake.endpoint) as cloud:
        assert await cloud.logging.list_entries("x") == ()
    assert fake.calls[LIST] < 60


async def test_odd_entries_do_no_harm(fake: FakeGoogle) -> None:
    odd = raw_class(logging_types.LogEntry)(severity=450)
    odd.labels["tpudash-attempt"] = "two"
    odd.proto_payload.type_url = "type.googleapis.com/some.Other"
    odd.proto_payload.value = b"\xff"
    bare = raw_class(logging_types.LogEntry)(severity=-1)
    fake.on(LIST, lambda _: raw_class(logging_types.ListLogEntriesResponse)(entries=[odd, bare]))
    async with connected(fake.endpoint) as cloud:
        first, second = await cloud.logging.list_entries("x")
    assert (first.severity, first.attempt) == (Severity.WARNING, None)
    assert first.text == "type.googleapis.com/some.Other"
    assert (second.severity, second.text, second.payload) == (Severity.DEFAULT, "", None)
