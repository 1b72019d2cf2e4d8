"""What a run is doing, derived from its records, its nodes and its requests; pure.

The age of evidence outranks what a record claims: an agent that fell silent claims nothing, and a
node that is gone trains nothing, whatever was written last.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeAlias

from tpudash.domain.node import TRANSIENT_STATES, Node, NodeState
from tpudash.domain.request import WAITING_REQUEST_STATES, RequestState
from tpudash.domain.run import AttemptRecord, AttemptState, Run, RunState
from tpudash.domain.run_evidence import PATIENCE, Patience, RunEvidence
from tpudash.domain.run_steps import (
    checkpoint_of,
    restart_alarm,
    step_of,
    steps_lost,
    target_of,
)

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["PATIENCE", "Patience", "RunEvidence", "age_text", "derive_run"]

Verdict: TypeAlias = tuple[RunState, str]

_STARTING_STATES: Final = frozenset({NodeState.CREATING, NodeState.STARTING})
_WORKING: Final = frozenset({AttemptState.TRAINING, AttemptState.SERVING})
_HALTED_STATES: Final = frozenset({NodeState.STOPPED, NodeState.STOPPING})


def derive_run(evidence: RunEvidence, now: datetime, patience: Patience = PATIENCE) -> Run:
    """Put a run together as it stands at `now`."""
    state, reason = _judge(_Case(evidence, now, patience))
    record, result = evidence.record, evidence.result
    return Run(
        name=evidence.name,
        owner=evidence.owner,
        state=state,
        spec=evidence.spec,
        reason=" ".join((*_alarms(evidence, now), reason, *_footnotes(evidence, now))),
        step=result.step if result else step_of(evidence.attempts),
        target_step=target_of(evidence.spec, evidence.attempts),
        checkpoint_step=checkpoint_of(evidence.attempts),
        attempts=evidence.attempts,
        steps_lost=steps_lost(evidence.attempts),
        nodes=tuple(node.name for node in evidence.nodes),
        result=result,
        last_heard=max((one.updated for one in evidence.attempts), default=None),
        loss=record.loss if record else None,
        accuracy=record.accuracy if record else None,
        examples_per_second=record.examples_per_second if record else None,
        supervision=evidence.supervision,
    )


@dataclass(frozen=True, slots=True)
class _Case:
    evidence: RunEvidence
    now: datetime
    patience: Patience

    @property
    def beginning(self) -> RunState:
        return RunState.LAUNCHING if self.evidence.attempt == 1 else RunState.RESUMING

    @property
    def attempt_began(self) -> datetime | None:
        node, spec = self.evidence.node, self.evidence.spec
        if node is not None and node.create_time is not None:
            return node.create_time
        if spec is not None and spec.attempt == self.evidence.attempt:
            return spec.attempt_started or spec.created
        return None

    @property
    def is_late(self) -> bool:
        """Whether the agent had time enough to write for the first time."""
        began = self.attempt_began
        return began is not None and self.now - began > timedelta(seconds=self.patience.start_s)

    def is_silent(self, record: AttemptRecord) -> bool:
        return self.now - record.updated > timedelta(seconds=self.patience.silence_s)

    def is_newer_than_listing(self, record: AttemptRecord) -> bool:
        """Whether a listing without its node tells nothing, since the agent wrote after it."""
        listed = self.evidence.nodes_as_of
        is_over = record.state in {AttemptState.PREEMPTED, AttemptState.FAILED}
        return (
            listed is not None
            and listed < record.updated
            and not (is_over or self.is_silent(record))
        )

    def stands_still(self, record: AttemptRecord) -> bool:
        moved = record.step_updated
        return moved is not None and (
            self.now - moved > timedelta(seconds=self.patience.step_s)
            and record.state in {AttemptState.STARTING, *_WORKING}
        )

    def age(self, since: datetime | None) -> str:
        return "at an unknown time" if since is None else f"{age_text(self.now - since)} ago"

    @property
    def last_heard(self) -> str:
        record = self.evidence.record
        if record is None:
            return "its agent has not written yet"
        at = f" at step {record.step}" if record.step is not None else ""
        return f"last heard {self.age(record.updated)}{at}"

    @property
    def resume(self) -> str:
        step = checkpoint_of(self.evidence.attempts)
        where = "from the start" if step is None else f"from step {step}"
        return f"`tpudash resume {self.evidence.name}` continues it {where}"

    @property
    def look(self) -> str:
        return f"see `tpudash logs {self.evidence.name}`"


def _judge(case: _Case) -> Verdict:
    for rule in (_deleted, _finished, _failed, _by_node, _by_request, _by_silence_of_zone):
        verdict = rule(case)
        if verdict is not None:
            return verdict
    return _without_node(case)


def _deleted(case: _Case) -> Verdict | None:
    spec = case.evidence.spec
    if spec is None or spec.deleted is None:
        return None
    if any(_is_live(node) for node in case.evidence.nodes):
        return None
    name = case.evidence.name
    return RunState.DELETED, (
        f"Its nodes were deleted {case.age(spec.deleted)}; its checkpoints are kept and "
        f"`tpudash resume {name}` goes on from them."
    )


def _finished(case: _Case) -> Verdict | None:
    evidence = case.evidence
    record, result = evidence.record, evidence.result
    if result is None and (record is None or record.state != AttemptState.FINISHED):
        return None
    step = result.step if result else record.step if record else None
    reached = "It reached its target" if step is None else f"It reached step {step}"
    if any(_is_live(node) for node in evidence.nodes):
        return RunState.FINISHED, (
            f"{reached}, but its node is still there and may cost money: "
            f"`tpudash delete {evidence.name}` removes the node and keeps the checkpoints."
        )
    return RunState.FINISHED, f"{reached}; nothing is left to do."


def _failed(case: _Case) -> Verdict | None:
    evidence = case.evidence
    record, spec = evidence.record, evidence.spec
    if record is not None and record.state == AttemptState.FAILED:
        return RunState.FAILED, _told(record.error, "Its trainer failed", case.look)
    if spec is None or spec.failure is None or record is not None:
        return None
    if evidence.node is not None or spec.attempt != evidence.attempt:
        return None
    return RunState.FAILED, _told(spec.failure, "Its node could not be made", case.resume)


def _by_node(case: _Case) -> Verdict | None:
    node = case.evidence.node
    if node is None:
        return None
    name = node.node_id
    if node.is_dead:
        return RunState.PREEMPTED, (
            f"Node {name} is {node.state} and never comes back ({case.last_heard}); {case.resume}."
        )
    if node.state == NodeState.DELETING:
        return RunState.PREEMPTED, f"Node {name} is being deleted; once it is gone {case.resume}."
    if node.state in _STARTING_STATES:
        return case.beginning, f"Node {name} is {node.state}, begun {case.age(node.create_time)}."
    if node.state == NodeState.READY:
        return _on_ready_node(case, node)
    return _on_halted_node(case, node)


def _on_halted_node(case: _Case, node: Node) -> Verdict:
    name, record = node.node_id, case.evidence.record
    if record is not None and record.state in _WORKING and not case.is_silent(record):
        state, does = _work_of(record)
        return state, f"It {does} although node {name} is {node.state}."
    if node.state in _HALTED_STATES:
        return RunState.STALLED, (
            f"Node {name} is {node.state}: start it again, or delete it; after that {case.resume}."
        )
    if node.state in TRANSIENT_STATES:
        return RunState.WAITING, (
            f"Node {name} is {node.state}, which ends by itself ({case.last_heard})."
        )
    return RunState.STALLED, (
        f"Node {name} is {node.state} ({case.last_heard}); look at the node before doing anything."
    )


def _on_ready_node(case: _Case, node: Node) -> Verdict:
    record = case.evidence.record
    if record is None:
        return _ready_without_record(case, node)
    if record.state == AttemptState.PREEMPTED:
        return RunState.PREEMPTED, (
            f"The trainer saved its work and left node {node.node_id}, which is being taken away "
            f"({case.last_heard}); {case.resume}."
        )
    if case.is_silent(record):
        return RunState.STALLED, (
            f"Its agent is silent ({case.last_heard}) although node {node.node_id} is READY and "
            f"may cost money: {case.look}, and if nothing moves {case.resume}."
        )
    if case.stands_still(record):
        return RunState.STALLED, (
            f"Its agent writes, but the trainer has not moved since "
            f"{case.age(record.step_updated)} (step {record.step}): {case.look}, and if nothing "
            f"moves {case.resume}."
        )
    is_starting = record.state == AttemptState.STARTING
    if is_starting or (record.step is None and record.state != AttemptState.SERVING):
        stage = f"; the trainer is at {record.stage}" if record.stage else ""
        return case.beginning, f"Node {node.node_id} is READY{stage} ({case.last_heard})."
    state, does = _work_of(record)
    return state, f"It {does} on node {node.node_id} ({case.last_heard})."


def _has_begun(record: AttemptRecord) -> bool:
    return record.step is not None or record.state == AttemptState.SERVING


def _work_of(record: AttemptRecord) -> tuple[RunState, str]:
    """Return what a run does whose agent says that it works, as a state and as a verb."""
    if record.state == AttemptState.SERVING:
        return RunState.SERVING, "serves"
    return RunState.TRAINING, "trains"


def _ready_without_record(case: _Case, node: Node) -> Verdict:
    if case.evidence.records_unread:
        return RunState.STALLED, (
            f"Node {node.node_id} is READY, but whether it trains is not known: the run's bucket "
            f"could not be read."
        )
    if case.is_late:
        return RunState.STALLED, (
            f"Node {node.node_id} was made {case.age(case.attempt_began)} and its agent has never "
            f"written: {case.look} for its startup script, or delete the run to stop paying."
        )
    return case.beginning, f"Node {node.node_id} is READY and its agent has not written yet."


def _by_request(case: _Case) -> Verdict | None:
    request = case.evidence.request
    if request is None:
        return None
    name = f"Its queued request {request.request_id}"
    if request.state in WAITING_REQUEST_STATES:
        return RunState.WAITING, (
            f"{name} is {request.state}, made {case.age(request.create_time)}; it starts when "
            f"there is capacity."
        )
    if request.state == RequestState.FAILED and case.evidence.record is None:
        words = request.failure or "the cloud gave no reason"
        return RunState.FAILED, f"{name} failed ({words}); delete the run to free its quota."
    if request.state in {RequestState.SUSPENDING, RequestState.SUSPENDED}:
        who = f" by {request.initiator}" if request.initiator else ""
        return RunState.PREEMPTED, (
            f"{name} is {request.state}{who} and never comes back ({case.last_heard}); "
            f"{case.resume}."
        )
    return None


def _by_silence_of_zone(case: _Case) -> Verdict | None:
    evidence = case.evidence
    if evidence.zone not in evidence.unreachable:
        return None
    record = evidence.record
    state = case.beginning
    if record is not None and record.state == AttemptState.PREEMPTED:
        state = RunState.PREEMPTED
    elif record is not None and case.is_silent(record):
        state = RunState.STALLED
    elif record is not None and _has_begun(record):
        state, _ = _work_of(record)
    return state, (
        f"Unknown, {case.last_heard}: zone {evidence.zone} does not answer, so nothing is known "
        f"of its node and nothing should be done until it does."
    )


def _without_node(case: _Case) -> Verdict:
    evidence = case.evidence
    record = evidence.record
    if record is not None and case.is_newer_than_listing(record):
        state = _work_of(record)[0] if _has_begun(record) else case.beginning
        return state, f"Its node {record.node} is too new to be listed ({case.last_heard})."
    if record is not None:
        return RunState.PREEMPTED, f"Its node vanished ({case.last_heard}); {case.resume}."
    if evidence.spec is not None and not case.is_late:
        return case.beginning, (
            f"Attempt {evidence.attempt} was begun {case.age(case.attempt_began)} and has no node "
            f"yet."
        )
    return RunState.PREEMPTED, f"It has no node, and nobody is making one; {case.resume}."


def _alarms(evidence: RunEvidence, now: datetime) -> tuple[str, ...]:
    alarms = []
    supervision = evidence.supervision
    is_over = evidence.result is not None or (evidence.spec and evidence.spec.deleted)
    is_silent = supervision is not None and supervision.ended is None
    if supervision is not None and is_silent and not is_over and not supervision.is_alive(now):
        age = age_text(now - supervision.updated)
        alarms.append(f"ALARM: its supervisor on {supervision.host} fell silent {age} ago.")
    again = restart_alarm(evidence.attempts)
    if again:
        alarms.append(again)
    live = [node.node_id for node in evidence.nodes if _is_live(node)]
    if len(live) > 1:
        alarms.append(f"ALARM: it has {len(live)} live nodes ({', '.join(sorted(live))}).")
    if evidence.spec is not None and evidence.spec.deleted is not None and live:
        alarms.append(f"ALARM: it was deleted, but node {live[0]} is still there.")
    return tuple(alarms)


def _footnotes(evidence: RunEvidence, now: datetime) -> tuple[str, ...]:
    notes = [f"Note: {problem}." for problem in evidence.problems]
    record, supervision = evidence.record, evidence.supervision
    if record is not None and record.workers_missing and not record.ended:
        missing = ", ".join(map(str, record.workers_missing))
        notes.append(f"Note: of its {record.workers} workers, {missing} never reported.")
    if supervision is not None and supervision.is_alive(now):
        notes.append(
            f"Supervised by {supervision.owner} on {supervision.host} since "
            f"{supervision.since:%Y-%m-%d %H:%M} UTC, {supervision.tries_left} tries left."
        )
    return tuple(notes)


def _is_live(node: Node) -> bool:
    return not node.is_dead and node.state != NodeState.DELETING


def _told(failure: dict[str, object] | None, title: str, otherwise: str) -> str:
    told = failure or {}
    kind, detail, hint = (str(told.get(key) or "") for key in ("class", "detail", "hint"))
    head = f"{title} ({kind})" if kind else title
    words = f"{head}: {detail}" if detail else head
    advice = hint or otherwise
    return f"{words.rstrip('.')}. {advice[:1].upper()}{advice[1:].rstrip('.')}."


def age_text(age: timedelta) -> str:
    """Return an age in its largest fitting unit: `40 s`, `3 min`, `2 h`, `5 d`."""
    seconds = max(0, int(age.total_seconds()))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
