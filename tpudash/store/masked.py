"""A store that never learns an address or an account's name: what a wall screen may show."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from tpudash.domain.masking import without_addresses
from tpudash.store.changes import (
    Change,
    ChangeSet,
    Connected,
    FindingsMade,
    LogsArrived,
    NodesListed,
    PastRead,
    RunsRead,
    SourceReported,
)
from tpudash.store.store import Store

if TYPE_CHECKING:
    from tpudash.domain.log import LogEntry
    from tpudash.domain.node import Node
    from tpudash.domain.run import AttemptRecord


class MaskedStore(Store):
    """Masks every text from outside before it takes it in.

    Labels, metadata and the API's own objects stay as they are, since runs are put together by
    them; whoever shows them masks them.
    """

    def apply(self, change: Change) -> ChangeSet:
        """Take in one change without what must not be seen."""
        return super().apply(masked(change))


@singledispatch
def masked(change: Any) -> Any:
    """Return a change in which addresses and accounts are masked."""
    return change


@masked.register
def _(change: Connected) -> Connected:
    return Connected(replace(change.info, account=None))


@masked.register
def _(change: LogsArrived) -> LogsArrived:
    return replace(change, entries=tuple(map(_entry, change.entries)))


@masked.register
def _(change: PastRead) -> PastRead:
    events = tuple(replace(one, text=without_addresses(one.text)) for one in change.events)
    return replace(change, events=events)


@masked.register
def _(change: FindingsMade) -> FindingsMade:
    return FindingsMade(
        tuple(
            replace(
                one,
                evidence=without_addresses(one.evidence),
                advice=without_addresses(one.advice),
                command=one.command and without_addresses(one.command),
            )
            for one in change.findings
        )
    )


@masked.register
def _(change: SourceReported) -> SourceReported:
    status = change.status
    return SourceReported(
        replace(
            status,
            title=without_addresses(status.title),
            detail=without_addresses(status.detail),
            hint=without_addresses(status.hint),
        )
    )


@masked.register
def _(change: NodesListed) -> NodesListed:
    nodes = tuple(map(_node, change.listing.nodes))
    return replace(change, listing=replace(change.listing, nodes=nodes))


@masked.register
def _(change: RunsRead) -> RunsRead:
    runs = tuple(
        replace(
            run,
            reason=without_addresses(run.reason),
            attempts=tuple(map(_attempt, run.attempts)),
        )
        for run in change.runs
    )
    return replace(change, runs=runs)


def _entry(entry: LogEntry) -> LogEntry:
    text = without_addresses(entry.text)
    return entry if text == entry.text else replace(entry, text=text)


def _node(node: Node) -> Node:
    if not node.health_description and not node.symptoms:
        return node
    symptoms = tuple(
        replace(symptom, details=without_addresses(symptom.details)) for symptom in node.symptoms
    )
    description = without_addresses(node.health_description)
    return replace(node, health_description=description, symptoms=symptoms)


def _attempt(record: AttemptRecord) -> AttemptRecord:
    if not record.error:
        return record
    error = {
        key: without_addresses(value) if isinstance(value, str) else value
        for key, value in record.error.items()
    }
    return replace(record, error=error)
