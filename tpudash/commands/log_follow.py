"""Follows a log: the past first, then what is new, until the run has ended and all is out."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Final

import click

from tpudash.domain.run import RunState
from tpudash.errors import NotFoundError, TpudashError
from tpudash.pollers.back_off import back_off

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tpudash.commands.logs import LogQuestion
    from tpudash.commands.session import Session
    from tpudash.domain.log import LogEntry

logger = logging.getLogger(__name__)

FINAL_STATES: Final = frozenset({RunState.FINISHED, RunState.FAILED, RunState.DELETED})
STATE_EVERY_S: Final = 2.0
LATE: Final = timedelta(seconds=30)
"""Entries may arrive late, so a listing after a loss begins a little before it."""
LAST_LOOKS: Final = 8
LAST_LOOK_EVERY_S: Final = 1.0
REMEMBERED: Final = 20_000
MOST_AT_ONCE: Final = 5_000


class LogFollower:
    """Prints each entry once, and ends when nothing more can come."""

    def __init__(self, session: Session, question: LogQuestion) -> None:
        self._session = session
        self._question = question
        self._seen: OrderedDict[tuple[str, datetime, str], None] = OrderedDict()
        self._newest: datetime | None = None
        self._finish_seen = False
        self._random = Random()  # noqa: S311 - spreads retries, guards nothing
        self._last_state: RunState | None = None

    async def run(self) -> None:
        """Follow until the run has ended."""
        await self._list(self._question.since, self._question.limit)
        tail = asyncio.create_task(self._tail_for_ever(), name="log tail")
        try:
            state = await self._end_of_target(tail)
        finally:
            tail.cancel()
            await asyncio.gather(tail, return_exceptions=True)
        await self._last_looks(state)

    async def _tail_for_ever(self) -> None:
        failures = 0
        while True:
            try:
                # It begins with what was written since, so that nothing is missed in between.
                tail = self._session.cloud.logging.tail(
                    self._question.filter, since=self._since(), backlog=MOST_AT_ONCE
                )
                async for batch in tail:
                    failures = 0
                    self._show(batch.entries)
                    if batch.suppressed:
                        note = f"{batch.suppressed} entries were left out by Cloud Logging"
                        click.echo(note, err=True)
            except TpudashError as error:
                failures += 1
                logger.info("log tail failed: %s", error)
                if failures == 2:
                    click.echo(f"the log is not heard now: {error.title}; trying on", err=True)
                await self._session.clock.sleep(back_off(failures, self._random))

    def _since(self) -> datetime:
        if self._newest is None:
            return self._question.since
        return max(self._newest - LATE, self._question.since)

    async def _list(self, start: datetime, limit: int) -> int:
        """Print what is listed since a moment, and return how many entries were new."""
        entries = await self._session.cloud.logging.list_entries(
            self._question.filter_from(start), newest_first=True, limit=limit
        )
        return self._show(entries[::-1])

    def _show(self, entries: Sequence[LogEntry]) -> int:
        fresh = []
        for entry in sorted(entries, key=lambda entry: entry.timestamp):
            key = (entry.node_id, entry.timestamp, entry.insert_id or entry.text)
            if key in self._seen or entry.timestamp < self._question.since:
                continue
            self._seen[key] = None
            if len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
            fresh.append(entry)
            self._newest = max(entry.timestamp, self._newest or entry.timestamp)
            self._finish_seen = self._finish_seen or entry.event == "finish"
        self._question.show(fresh)
        return len(fresh)

    async def _end_of_target(self, tail: asyncio.Task[None]) -> RunState | None:
        """Wait until the run has ended or the node is gone; a question unanswered means nothing."""
        await self._pause(tail)
        while True:
            try:
                if await self._is_over():
                    return self._last_state
            except TpudashError as error:
                logger.info("the state could not be read: %s", error)
            await self._pause(tail)

    async def _pause(self, tail: asyncio.Task[None]) -> None:
        pause = asyncio.create_task(_sleep(self._session, STATE_EVERY_S), name="pause")
        try:
            await asyncio.wait({pause, tail}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()
            await asyncio.gather(pause, return_exceptions=True)
        if tail.done():
            await tail

    async def _is_over(self) -> bool:
        node = self._question.target.node
        if node is not None:
            try:
                await self._session.cloud.tpu.get_node(node.name)
            except NotFoundError:
                return True
            return False
        from tpudash.commands.facts import read_run

        run = await read_run(self._session, self._question.target.name)
        if run.state != self._last_state and run.state == RunState.PREEMPTED:
            hint = f"tpudash resume {run.name}"
            click.echo(f"run {run.name} is PREEMPTED; following on ({hint})", err=True)
        self._last_state = run.state
        return run.state in FINAL_STATES

    async def _last_looks(self, state: RunState | None) -> None:
        """List until nothing new comes twice in a row: the agent may still be sending."""
        quiet = 0
        for _ in range(LAST_LOOKS):
            fresh = await self._list(self._since(), MOST_AT_ONCE)
            quiet = 0 if fresh else quiet + 1
            is_complete = self._finish_seen or state != RunState.FINISHED
            if quiet >= 2 and is_complete:
                break
            await self._session.clock.sleep(LAST_LOOK_EVERY_S)
        if state is not None:
            click.echo(f"run {self._question.target.name} is {state}", err=True)


async def _sleep(session: Session, seconds: float) -> None:
    await session.clock.sleep(seconds)
