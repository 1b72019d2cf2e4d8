"""A store that never learns an address or an account's name: what a wall screen may show."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from tpudash.domain.masking import masked_in, without_addresses, without_names
from tpudash.store.changes import (
    AlarmChanged,
    Change,
    ChangeSet,
    Connected,
    FindingsMade,
    LogsArrived,
    NodesListed,
    OperationChanged,
    PastRead,
    RequestsListed,
    RunsRead,
    SourceReported,
)
from tpudash.store.store import Store

if TYPE_CHECKING:
    from tpudash.domain.finding import Finding
    from tpudash.domain.log import LogEntry
    from tpudash.domain.node import Node
    from tpudash.domain.run import AttemptRecord, Run
    from tpudash.store.snapshot import Snapshot

_NO_NAMES = frozenset(("", "unknown"))
"""What stands in place of an owner who is not known."""


class MaskedStore(Store):
    """Masks every text from outside before it takes it in.

    Labels, metadata and the API's own objects stay as they are, since runs are put together by
    them; whoever shows them masks them.
    """

    def apply(self, change: Change) -> ChangeSet:
        """Take in one change without what must not be seen."""
        known = masked(change)
        if isinstance(known, RunsRead):
            names = account_names(self.snapshot)
            known = replace(known, runs=tuple(_without_accounts(run, names) for run in known.runs))
        elif isinstance(known, FindingsMade):
            known = FindingsMade(_without_names_in(known, account_names(self.snapshot)))
        elif isinstance(known, AlarmChanged):
            names = account_names(self.snapshot)
            alarm = replace(
                known.alarm,
                text=without_names(known.alarm.text, names),
                advice=without_names(known.alarm.advice, names),
            )
            known = replace(known, alarm=alarm)
        return super().apply(known)


def account_names(snapshot: Snapshot) -> frozenset[str]:
    """Return whose runs, nodes and requests are known, and where runs are supervised from."""
    owners = {
        *(node.owner or "" for node in snapshot.nodes.values()),
        *(stone.node.owner or "" for stone in snapshot.tombstones.values()),
        *(request.owner or "" for request in snapshot.requests.values()),
    }
    return frozenset(owners).union(*map(_names_of, snapshot.runs.values())) - _NO_NAMES


def _names_of(run: Run) -> frozenset[str]:
    supervision = run.supervision
    names = () if supervision is None else (supervision.owner, supervision.host)
    return frozenset((run.owner, *names)) - _NO_NAMES


def _without_accounts(run: Run, names: frozenset[str]) -> Run:
    return replace(run, reason=without_names(run.reason, names | _names_of(run)))


def _without_names_in(change: FindingsMade, names: frozenset[str]) -> tuple[Finding, ...]:
    return tuple(
        replace(
            one,
            evidence=without_names(one.evidence, names),
            advice=without_names(one.advice, names),
        )
        for one in change.findings
    )


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
                title=without_addresses(one.title),
                subject=without_addresses(one.subject),
                evidence=without_addresses(one.evidence),
                why=without_addresses(one.why),
                advice=without_addresses(one.advice),
                command=one.command and without_addresses(one.command),
            )
            for one in change.findings
        )
    )


@masked.register
def _(change: AlarmChanged) -> AlarmChanged:
    alarm = replace(
        change.alarm,
        subject=without_addresses(change.alarm.subject),
        text=without_addresses(change.alarm.text),
        advice=without_addresses(change.alarm.advice),
    )
    return replace(change, alarm=alarm)


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
def _(change: RequestsListed) -> RequestsListed:
    requests = tuple(
        replace(one, failure=without_addresses(one.failure)) if one.failure else one
        for one in change.listing.requests
    )
    return replace(change, listing=replace(change.listing, requests=requests))


@masked.register
def _(change: OperationChanged) -> OperationChanged:
    progress = change.progress
    return OperationChanged(replace(progress, message=without_addresses(progress.message)))


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
    payload = entry.payload and masked_in(entry.payload, without_addresses)
    if text == entry.text and payload == entry.payload:
        return entry
    return replace(entry, text=text, payload=payload)


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
