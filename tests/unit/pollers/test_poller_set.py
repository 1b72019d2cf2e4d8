"""The pollers: a fault stays in its source, nothing is left running, and nobody is pestered."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Literal

import pytest

from tests.unit.pollers.fake_cloud import FakeConnector, FakeWorld
from tests.unit.pollers.manual_clock import ManualClock, settle
from tpudash.config.settings import Intervals
from tpudash.domain.failure import ErrorClass, Failure, RetryPolicy
from tpudash.domain.log import LogEntry, Severity
from tpudash.domain.node import Maintenance, Node
from tpudash.domain.run import Run, RunState
from tpudash.errors import CapacityError, NotAllowedError, UnreachableError
from tpudash.gateways.protocols import TailBatch
from tpudash.pollers.link import Link
from tpudash.pollers.metrics import METRIC_TYPES
from tpudash.pollers.poller_set import PollerSet, Tools
from tpudash.store.snapshot import CHECKLIST, LOGS, METRICS, NODES, RUNS, SourceState
from tpudash.store.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tpudash.gateways.protocols import Cloud

NODE = "projects/demo/locations/us-central1-b/nodes/demo-1"


class Session:
    """A store that pollers keep up to date from a fake world."""

    def __init__(self) -> None:
        self.world = FakeWorld()
        self.clock = ManualClock()
        self.store = Store()
        self.runs: tuple[Run, ...] = ()
        link = Link(self.store, lambda: FakeConnector(self.world), "127.0.0.1:4711", self.clock)
        tools = Tools(self.store, link, self.clock, Random(7))
        self.pollers = PollerSet(tools, Intervals(), self._read_runs)

    async def _read_runs(self, cloud: Cloud, store: Store) -> tuple[Run, ...]:
        await self.world.answer("read_runs")
        return self.runs

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.pollers.run())
        await settle()
        try:
            yield
        finally:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    def state_of(self, source: str) -> SourceState:
        return self.store.snapshot.sources[source].state


class Looks:
    """A checklist that counts how often it is run, and by itself is run hourly."""

    name = CHECKLIST
    needs_cloud: Literal[False] = False
    count = 0

    async def poll(self, cloud: Cloud | None) -> None:
        self.count += 1

    def interval_s(self) -> float:
        return 3_600.0


@pytest.fixture
def session() -> Session:
    return Session()


def node(state: str) -> Node:
    return Node(NODE, state, labels={"tpudash-run": "demo", "tpudash-attempt": "1"})


def step(session: Session, number: int, attempt: int = 1, event: str = "step") -> LogEntry:
    payload = {"event": event, "step": float(number), "loss": 0.5, "target_step": 600.0}
    return LogEntry(
        session.clock.now(),
        Severity.INFO,
        f"step {number}",
        insert_id=f"{attempt}-{number}-{event}",
        node_id=f"demo-{attempt}",
        run="demo",
        attempt=attempt,
        payload=payload,
    )


async def test_the_connection_and_every_source_reach_the_store(session: Session) -> None:
    session.world.nodes = (node("READY"),)
    async with session.running():
        connection = session.store.snapshot.connection
        assert connection is not None
        assert (connection.project, connection.is_emulator) == ("demo", True)
        assert NODE in session.store.snapshot.nodes
        for source in (NODES, RUNS, METRICS, LOGS):
            assert session.state_of(source) is SourceState.OK


async def test_a_fault_in_one_source_stays_there(session: Session) -> None:
    session.world.failing["list_series"] = NotAllowedError("no permission", detail="monitoring")
    session.world.failing["read_runs"] = ZeroDivisionError("a defect of ours")
    async with session.running():
        status = session.store.snapshot.sources[METRICS]
        assert (status.state, status.title, status.detail) == (
            SourceState.FAILING,
            "no permission",
            "monitoring",
        )
        assert session.state_of(RUNS) is SourceState.FAILING
        assert session.state_of(NODES) is SourceState.OK
        assert session.state_of(LOGS) is SourceState.OK
        await session.clock.advance(300)
        assert session.world.closed == 0, "a missing permission is no reason to reconnect"


async def test_what_was_known_is_kept_while_the_source_fails(session: Session) -> None:
    session.world.nodes = (node("READY"),)
    async with session.running():
        heard = session.store.snapshot.sources[NODES].last_success
        session.world.failing["list_nodes"] = UnreachableError("no answer")
        await session.clock.advance(60)
        status = session.store.snapshot.sources[NODES]
        assert status.state is SourceState.FAILING
        assert status.last_success is not None
        assert heard is not None
        assert status.age(session.clock.now()) == session.clock.now() - status.last_success
        assert NODE in session.store.snapshot.nodes
        del session.world.failing["list_nodes"]
        await session.clock.advance(120)
        assert session.state_of(NODES) is SourceState.OK
        assert session.store.snapshot.sources[NODES].title == ""


async def test_failures_are_repeated_ever_more_rarely(session: Session) -> None:
    async with session.running():
        session.world.failing["list_nodes"] = UnreachableError("no answer")
        before = session.world.calls["list_nodes"]
        await session.clock.advance(60)
        first_minute = session.world.calls["list_nodes"] - before
        await session.clock.advance(540)
        later = session.world.calls["list_nodes"] - before - first_minute
        assert 3 <= first_minute <= 8
        assert 7 <= later <= 14, "at most one question a minute in the long run"


async def test_nodes_are_asked_for_often_only_while_something_changes(session: Session) -> None:
    session.world.nodes = (node("READY"),)
    async with session.running():
        await session.clock.advance(1)
        before = session.world.calls["list_nodes"]
        await session.clock.advance(120)
        at_rest = session.world.calls["list_nodes"] - before
        assert 8 <= at_rest <= 13
        session.world.nodes = (node("CREATING"),)
        session.pollers.refresh_soon()
        await session.clock.advance(1)
        before = session.world.calls["list_nodes"]
        await session.clock.advance(120)
        assert 48 <= session.world.calls["list_nodes"] - before <= 75


async def test_announced_maintenance_is_laid_over_nodes_and_rarely_asked_for(
    session: Session,
) -> None:
    session.world.nodes = (node("READY"),)
    announced = Maintenance("SCHEDULED", "PENDING", can_reschedule=True)
    session.world.maintenance[NODE] = announced
    async with session.running():
        await session.clock.advance(60)
        assert session.store.snapshot.nodes[NODE].maintenance == announced
        assert session.world.calls["list_maintenance"] == 1
        session.world.failing["list_maintenance"] = NotAllowedError("no alpha for you")
        await session.clock.advance(3000)
        assert session.world.calls["list_maintenance"] == 2, "a refusal holds for an hour"
        assert session.state_of(NODES) is SourceState.OK


async def test_an_empty_project_is_looked_at_ever_more_rarely(session: Session) -> None:
    async with session.running():
        before = session.world.calls["list_nodes"]
        await session.clock.advance(300)
        first = session.world.calls["list_nodes"] - before
        await session.clock.advance(3600)
        before = session.world.calls["list_nodes"]
        await session.clock.advance(300)
        assert 20 <= first <= 32
        assert 4 <= session.world.calls["list_nodes"] - before <= 7
        session.world.nodes = (node("READY"),)
        await session.clock.advance(80)
        before = session.world.calls["list_nodes"]
        await session.clock.advance(120)
        assert 8 <= session.world.calls["list_nodes"] - before <= 13


@pytest.mark.parametrize(
    ("state", "pages", "most_nodes", "most_requests"),
    [(None, 1, 2, 2), ("READY", 1, 7, 5), ("CREATING", 1, 38, 19), ("CREATING", 50, 100, 100)],
    ids=["nothing there", "at rest", "changing", "50,000 nodes changing"],
)
async def test_the_calls_of_a_minute(
    session: Session, state: str | None, pages: int, most_nodes: int, most_requests: int
) -> None:
    session.world.nodes = (node(state),) if state else ()
    session.world.pages = pages
    session.world.page_takes = lambda: session.clock.sleep(0.2)
    async with session.running():
        await session.clock.advance(3_600)
        before = session.world.calls.copy()
        await session.clock.advance(600)
        calls = {method: count / 10 for method, count in (session.world.calls - before).items()}
    assert calls["list_nodes"] <= most_nodes
    assert calls["list_requests"] <= most_requests
    assert calls["list_series"] <= len(METRIC_TYPES) + 1
    assert calls.get("list_entries", 0) <= 1
    assert calls.get("tail", 0) == 0, "the tail stays open"
    assert calls.get("list_maintenance", 0) <= 1


async def test_a_source_that_is_throttled_says_so_and_asks_less_often(session: Session) -> None:
    session.world.nodes = (node("READY"),)
    async with session.running():
        failure = Failure(ErrorClass.RATE_LIMIT, "too many", "wait", RetryPolicy.SAME_PLACE)
        session.world.failing["list_nodes"] = CapacityError("too many calls", failure=failure)
        await session.clock.advance(60)
        status = session.store.snapshot.sources[NODES]
        assert status.state is SourceState.THROTTLED
        assert status.interval_s >= 2 * Intervals().nodes
        assert status.last_success is not None
        before = session.world.calls["list_nodes"]
        await session.clock.advance(300)
        assert session.world.calls["list_nodes"] - before <= 6
        assert NODE in session.store.snapshot.nodes
        session.world.failing.clear()
        await session.clock.advance(130)
        before = session.world.calls["list_nodes"]
        await session.clock.advance(60)
        assert session.state_of(NODES) is SourceState.OK
        assert session.world.calls["list_nodes"] - before <= 3, "it comes back slowly"
        await session.clock.advance(600)
        before = session.world.calls["list_nodes"]
        await session.clock.advance(120)
        assert 8 <= session.world.calls["list_nodes"] - before <= 13


async def test_each_metric_is_asked_for_once_a_period_whatever_happens(session: Session) -> None:
    session.world.nodes = (node("CREATING"),)
    async with session.running():
        await session.clock.advance(45)
        assert sorted(session.world.metrics_asked) == sorted(METRIC_TYPES)


async def test_one_source_that_hangs_stops_no_other_and_not_the_end(session: Session) -> None:
    session.world.hanging |= {"list_nodes", "tail"}
    async with session.running():
        await session.clock.advance(60)
        assert session.state_of(METRICS) is SourceState.OK
        assert session.state_of(NODES) is SourceState.WAITING
    assert session.world.closed == 1


async def test_a_black_hole_does_not_keep_us_from_ending(session: Session) -> None:
    session.world.hanging.add("connect")
    async with session.running():
        await session.clock.advance(10)
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert left == []


async def test_the_log_tail_comes_back_from_what_it_saw_last(session: Session) -> None:
    async with session.running():
        await session.clock.advance(6)
        assert len(session.world.tails) == 1
        session.world.tails[-1].put_nowait(TailBatch((step(session, 1),)))
        await settle()
        assert len(session.store.logs) == 1
        session.world.tails[-1].put_nowait(UnreachableError("connection reset"))
        await settle()
        assert session.state_of(LOGS) is SourceState.FAILING
        session.world.history = (step(session, 1), step(session, 2))
        await session.clock.advance(10)
        assert session.state_of(LOGS) is SourceState.OK
        assert len(session.world.tails) == 2
        assert len(session.store.logs) == 2
        begun, again = session.world.tails_since
        assert begun is not None
        assert session.clock.now() - begun > timedelta(days=29)
        assert again is not None
        assert timedelta(0) < session.clock.now() - again < timedelta(minutes=2)


async def test_the_log_moves_a_run_on_between_two_readings(session: Session) -> None:
    session.runs = (Run("demo", "alice", RunState.TRAINING, step=100, target_step=600),)
    async with session.running():
        await session.clock.advance(6)
        session.world.tails[-1].put_nowait(TailBatch((step(session, 140),)))
        await settle()
        assert session.store.snapshot.runs["demo"].step == 140
        assert session.store.snapshot.runs["demo"].loss == pytest.approx(0.5)
        await session.clock.advance(30)
        assert session.store.snapshot.runs["demo"].step == 140, "an older record does not undo it"


async def test_a_turning_point_in_the_log_makes_us_look_at_the_node(session: Session) -> None:
    async with session.running():
        await session.clock.advance(2)
        before = session.world.calls["list_nodes"]
        session.world.tails[-1].put_nowait(TailBatch((step(session, 1, event="preempt"),)))
        await settle()
        await session.clock.advance(3)
        assert session.world.calls["list_nodes"] - before >= 2


async def test_a_run_that_turns_is_looked_into_at_once(session: Session) -> None:
    checklist = Looks()
    tools = session.pollers._tools
    session.pollers = PollerSet(tools, Intervals(), session._read_runs, [checklist])
    session.runs = (Run("demo", "alice", RunState.TRAINING, step=100),)
    async with session.running():
        await session.clock.advance(8)
        before = checklist.count
        session.runs = (Run("demo", "alice", RunState.TRAINING, step=150),)
        await session.clock.advance(8)
        assert checklist.count == before, "a step is no symptom"
        session.runs = (Run("demo", "alice", RunState.STALLED, step=150),)
        await session.clock.advance(8)
        assert checklist.count == before + 1


async def test_a_lost_connection_is_made_anew(session: Session) -> None:
    async with session.running():
        for method in ("list_nodes", "list_requests", "list_series", "tail"):
            session.world.failing[method] = UnreachableError("gone")
        session.world.tails[-1].put_nowait(UnreachableError("gone"))
        await session.clock.advance(300)
        assert session.world.closed >= 1
        session.world.failing.clear()
        await session.clock.advance(200)
        for source in (NODES, METRICS, LOGS):
            assert session.state_of(source) is SourceState.OK
        assert session.world.calls["connect"] >= 2


async def test_sources_do_not_queue_for_one_connection_attempt_each(session: Session) -> None:
    session.world.failing["connect"] = UnreachableError("nobody listens")
    async with session.running():
        assert session.world.calls["connect"] == 1
        assert session.state_of(NODES) is SourceState.FAILING
        assert session.state_of(LOGS) is SourceState.FAILING


async def test_days_without_an_answer_and_then_one(session: Session) -> None:
    session.world.failing["connect"] = UnreachableError("nobody listens")
    async with session.running():
        await session.clock.advance(timedelta(hours=2).total_seconds())
        session.world.failing.clear()
        await session.clock.advance(90)
        assert session.state_of(NODES) is SourceState.OK
