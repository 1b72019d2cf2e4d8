"""Alarms about money on the screen: in the status line, in a strip, and said once each."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.tui.conftest import run_console_under_test as console
from tests.tui.factories import NOW, make_world
from tpudash.domain.alarm import Alarm
from tpudash.domain.finding import Finding, Verdict
from tpudash.store.changes import AlarmChanged, FindingsMade
from tpudash.store.masked import MaskedStore

if TYPE_CHECKING:
    from tests.tui.conftest import Console
    from tpudash.store.changes import Change

LATER = NOW + timedelta(seconds=5)
BURN = Alarm(
    "burn-rate", "project", "Spending is as wanted", "$9/h; the limit is $1/h", "Delete.", LATER
)
IDLE = Alarm("node-idle", "demo-1", "Node is in use", "READY, but its run is FINISHED", "", LATER)


def turn(it: Console, alarm: Alarm, *, on: bool) -> None:
    it.store.apply(AlarmChanged(alarm, on))


@pytest.mark.parametrize("is_watch", [False, True])
async def test_an_alarm_stays_on_the_screen_until_it_is_over(is_watch: bool) -> None:
    async with console(size=(100, 30), is_watch=is_watch) as it:
        it.clock.move(5)
        it.app.stage.tick()
        assert "limit is $1/h" not in it.screen_text
        turn(it, BURN, on=True)
        await it.until(lambda: "1 alarm" in it.screen_text, "the count in the status line")
        await it.until(lambda: "ALARM" in it.screen_text and "the limit is $1/h" in it.screen_text)
        turn(it, IDLE, on=True)
        await it.until(lambda: "2 alarms" in it.screen_text)
        await it.until(lambda: "demo-1: READY, but its run" in it.screen_text)
        for alarm in (BURN, IDLE):
            turn(it, alarm, on=False)
        it.app.clear_notifications()
        await it.until(lambda: "ALARM" not in it.screen_text)
        assert "alarm" not in it.screen_text.splitlines()[0]


async def test_alarms_about_money_do_not_push_a_failed_run_off_a_wall_screen() -> None:
    async with console(size=(100, 30), is_watch=True) as it:
        for at in range(12):
            subject = f"node-{at}"
            later = LATER + timedelta(minutes=2)
            turn(it, Alarm("node-has-run", subject, "", "no label", "", later), on=True)
        it.app.stage.tick()
        await it.until(lambda: "12 alarms" in it.screen_text)
        await it.until(lambda: "no label" in it.screen_text)
        wall = it.app.main.wall
        assert wall is not None
        assert [one.state == "ALARM" for one in wall.alarms[:2]] == [False, True]
        assert wall.alarms[0].text[:30] in it.screen_text


async def test_each_alarm_is_said_once_when_it_begins_and_once_when_it_ends() -> None:
    async with console() as it:
        turn(it, BURN, on=True)
        await it.until(lambda: it.notices)
        turn(it, BURN, on=True)
        it.app.stage.tick()
        await it.pilot.pause(0.3)
        assert it.notices == ["Alarm: $9/h; the limit is $1/h"]
        turn(it, BURN, on=False)
        await it.until(lambda: len(it.notices) == 2)
        assert it.notices[1] == "Alarm over: Spending is as wanted"


async def test_an_alarm_says_how_things_stand_now() -> None:
    async with console(size=(100, 30)) as it:
        turn(it, BURN, on=True)
        now = Finding("burn-rate", BURN.title, Verdict.FAIL, "$27/h; the limit is $1/h")
        it.store.apply(FindingsMade((now,)))
        it.app.clear_notifications()
        it.app.stage.tick()
        await it.until(lambda: "$27/h" in it.screen_text)
        assert "$9/h" not in it.screen_text


async def test_a_low_screen_has_one_row_and_says_how_many_more() -> None:
    async with console(size=(80, 24)) as it:
        turn(it, BURN, on=True)
        turn(it, IDLE, on=True)
        await it.until(lambda: "+1 more" in it.screen_text)
        it.app.clear_notifications()
        await it.pilot.pause()
        assert "Nodes" in it.screen_text


async def test_a_paused_display_still_shows_a_new_alarm() -> None:
    async with console() as it:
        await it.press("p")
        turn(it, BURN, on=True)
        await it.until(lambda: it.notices)
        it.app.stage.tick()
        await it.until(lambda: "1 alarm" in it.screen_text)


def test_a_wall_screen_never_learns_who_an_alarm_is_about() -> None:
    store = MaskedStore()
    for change in make_world_changes():
        store.apply(change)
    alarm = Alarm("node-idle", "demo-1", "", "left by alice, alice@example.com", "Ask alice.", NOW)
    store.apply(AlarmChanged(alarm, is_on=True))
    (known,) = store.snapshot.alarms
    assert "alice" not in f"{known.text} {known.advice}"
    store.apply(AlarmChanged(alarm, is_on=False))
    assert store.snapshot.alarms == ()


def make_world_changes() -> list[Change]:
    """Return what a store was told of a small world."""
    from tpudash.domain.node import NodeListing
    from tpudash.store.changes import NodesListed, RunsRead

    snapshot = make_world().snapshot
    at = NOW - timedelta(minutes=1)
    return [
        NodesListed(NodeListing(tuple(snapshot.nodes.values())), at),
        RunsRead(tuple(snapshot.runs.values()), at),
    ]
