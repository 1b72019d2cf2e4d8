"""What happened to a run or a node, in order of time, and what it logged last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.store.past import GONE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from tpudash.domain.log import LogEntry
    from tpudash.domain.node import Node
    from tpudash.domain.run import Run
    from tpudash.store.past import Event as PastEvent
    from tpudash.store.snapshot import NodeTimes, Tombstone
    from tpudash.tui.pane import HostApp
    from tpudash.tui.screens.overlay import Paragraphs

    Event = tuple[datetime, str]

LAST_LINES: Final = 15
LOG_LOOK_BACK: Final = 5_000
TOLD_EVENTS: Final = frozenset({"start", "restore", "preempt", "error", "finish", "eval"})
"""Trainer events that belong into a timeline; steps and checkpoints would fill it."""


def run_events(run: Run, host: HostApp) -> Iterator[Event]:
    """Return what happened to a run: attempts, operations, and what its trainers told."""
    for record in run.attempts:
        yield record.started, f"attempt {record.attempt} began on {record.node}"
        if record.ended:
            code = "" if record.exit_code is None else f", exit code {record.exit_code}"
            yield record.ended, f"attempt {record.attempt} ended: {record.state}{code}"
    for one in host.context.snapshot.operations.values():
        if one.run == run.name:
            yield one.started, f"{one.kind} asked for"
            yield one.updated, f"{one.kind}: {one.state} {one.message}"
    if run.result:
        yield run.result.finished, f"finished at step {run.result.step}"
    yield from _told(host, lambda one: one.run == run.name)


def node_events(node: Node, host: HostApp, stone: Tombstone | None = None) -> Iterator[Event]:
    """Return what happened to a node, as far as the API said or this console saw."""
    snapshot = host.context.snapshot
    times = stone.times if stone else snapshot.times.get(node.name)
    yield from _seen(node, times, host)
    for symptom in node.symptoms:
        if symptom.create_time:
            words = f"{symptom.kind} on worker {symptom.worker_id}: {symptom.details}"
            yield symptom.create_time, words
    for one in snapshot.operations.values():
        if node.name in one.nodes:
            yield one.started, f"{one.kind} asked for"
            yield one.updated, f"{one.kind}: {one.state} {one.message}"
    yield from _told(host, lambda one: one.node_id == node.node_id)
    if stone is not None:
        yield stone.vanished, "no longer listed"


def _seen(node: Node, times: NodeTimes | None, host: HostApp) -> Iterator[Event]:
    """Return when the node was seen in which state, by this console or another before it."""
    if node.create_time:
        yield node.create_time, "created"
    if times is not None:
        yield times.first_seen, "first seen by this console"
    for one in host.context.store.past.states_of(node.name):
        yield one.time, "no longer listed" if one.state == GONE else f"seen {one.state}"


def _told(host: HostApp, belongs: Callable[[PastEvent | LogEntry], bool]) -> Iterator[Event]:
    """Return what trainers told, however long ago, and what agents warned of lately."""
    for one in host.context.store.past.events:
        if one.name in TOLD_EVENTS and belongs(one):
            yield one.time, one.text
    for entry in _newest(host):
        is_warning = entry.stream == "agent" and entry.severity.rank >= entry.severity.WARNING.rank
        if is_warning and belongs(entry):
            yield entry.timestamp, entry.text


def _newest(host: HostApp) -> tuple[LogEntry, ...]:
    return host.context.store.logs.newest(LOG_LOOK_BACK)


def add_timeline(page: Paragraphs, events: Iterable[Event]) -> None:
    """Add events, oldest first; those of one second and the same words once."""
    rows = {f"{moment:%Y-%m-%d %H:%M:%S}  {words}": moment for moment, words in events}
    if rows:
        page.heading("Timeline (UTC)")
    for row in sorted(rows, key=lambda row: rows[row]):
        page.line(row, indent=1)


def add_log_lines(
    page: Paragraphs,
    host: HostApp,
    *,
    node_id: str | None = None,
    run: str | None = None,
    kept: tuple[LogEntry, ...] = (),
) -> None:
    """Add the last log lines of a node or a run.

    What a vanished node said last, `kept`, is used where the log has forgotten it.
    """
    found = [
        entry
        for entry in _newest(host)
        if (node_id is not None and entry.node_id == node_id)
        or (run is not None and entry.run == run)
    ]
    entries = (found or list(kept))[-LAST_LINES:]
    if not entries:
        return
    page.heading("Last log lines")
    for entry in entries:
        page.line(f"{entry.timestamp:%H:%M:%S} {entry.severity:<8} {entry.text}", indent=1)
