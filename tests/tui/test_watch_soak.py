"""A wall that is looked at for days holds no more at the end than after an hour."""

from __future__ import annotations

import asyncio
import gc
import random

import psutil
import pytest

from tests.tui.conftest import Console
from tests.tui.conftest import run_console_under_test as console
from tests.tui.factories import (
    add_logs,
    connect,
    list_nodes,
    list_requests,
    make_entry,
    make_node,
    make_request,
    make_run,
    read_runs,
    report_source,
)
from tpudash.store.masked import MaskedStore
from tpudash.store.snapshot import SOURCES, SourceState
from tpudash.tui.settings import ConsoleSettings

RUNS = 6
GROWTH_MIB = 25


def play(it: Console, poll: int, dice: random.Random) -> None:
    """Let one poll of every source go by: nodes come and go, sources fail, runs move on."""
    it.clock.move(12)
    now, life = it.clock.now(), poll // 7
    state = dice.choice(("CREATING", "READY", "READY", "PREEMPTED"))
    nodes = [make_node(f"r{at}-{life}", state, run=f"r{at}") for at in range(RUNS)]
    is_lost = dice.random() < 0.1
    if not is_lost:
        list_nodes(it.store, *nodes, at=now)
        list_requests(it.store, *(make_request(f"q{life}") for _ in range(life % 2)))
        read_runs(it.store, *(make_run(f"r{at}", step=poll) for at in range(RUNS)))
        payload = {"event": "step", "step": poll, "loss": 1 / (1 + poll)}
        names = [f"r{at}-{life}" for at in range(RUNS)]
        lines = (
            make_entry(poll * 12 + at, f"step {poll}", node_id=name, run=f"r{at}", payload=payload)
            for at, name in enumerate(names)
        )
        add_logs(it.store, *lines)
    for name in SOURCES:
        lost = SourceState.FAILING if is_lost else SourceState.OK
        since = it.store.snapshot.sources[name].last_success if is_lost else now
        report_source(it.store, name, lost, last_success=since, title="no answer" * is_lost)
    it.app._tick()


async def soak(polls: int) -> tuple[int, int, int]:
    """Return how many tasks, timers and MiB there were more at the end than after a third."""
    store = MaskedStore()
    connect(store)
    settings = ConsoleSettings(rotate_s=0.3)
    dice = random.Random(7)
    async with console(store, size=(120, 40), is_watch=True, settings=settings) as it:
        before = (0, 0, 0)
        for poll in range(polls):
            play(it, poll, dice)
            if poll % 10 == 0:
                await it.pilot.pause()
            if poll == polls // 3:
                before = held(it)
        after = held(it)
        assert len(store._subscribers) == 1
        assert "WATCH" in it.screen_text
    return (after[0] - before[0], after[1] - before[1], after[2] - before[2])


def held(it: Console) -> tuple[int, int, int]:
    gc.collect()
    timers = sum(len(widget._timers) for widget in (it.app, it.app.main, *it.app.main.query("*")))
    return len(asyncio.all_tasks()), timers, psutil.Process().memory_info().rss >> 20


async def test_polls_leave_no_tasks_and_timers_behind() -> None:
    tasks, timers, _ = await soak(60)
    # Panes that take turns are mounted by then; what may be under way is a repaint.
    assert tasks <= 5
    assert timers <= 5


@pytest.mark.slow
async def test_five_hours_of_polls_grow_nothing() -> None:
    tasks, timers, mebibytes = await soak(1_500)
    assert tasks <= 5
    assert timers <= 5
    assert mebibytes <= GROWTH_MIB
