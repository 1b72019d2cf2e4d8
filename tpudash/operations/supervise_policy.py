"""What a supervisor does about each state of a run and each class of failure. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from tpudash.domain.failure import ErrorClass
from tpudash.domain.node import NodeState
from tpudash.domain.run import AT_WORK, AttemptState, RunState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from random import Random

    from tpudash.domain.run import Run
    from tpudash.domain.run_state import RunEvidence


LONGEST_NOTICE: Final = timedelta(minutes=10)
"""How long a node may take to go once its agent has left it."""


class Step(StrEnum):
    """What to do next."""

    WATCH = "WATCHING"
    RESUME = "RESUMING"
    ALARM = "ALARM"
    """Something is wrong, and only the user's word allows to act on it."""
    END = "ENDED"
    STOP = "STOPPED"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do about a run as it stands, and why.

    Attributes:
        error_class: The class of what went wrong, for STOP and RESUME.
    """

    step: Step
    reason: str
    error_class: ErrorClass | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long to wait after a try that failed.

    Attributes:
        first_s: Upper bound of the first pause; each further one is `growth` times longer.
        most: How many such failures in a row are borne, or None for any number.
    """

    first_s: float
    longest_s: float
    growth: float = 1.8
    most: int | None = None

    def pause_s(self, failures: int, random: Random) -> float:
        """Return a pause of between half and all of its bound, so that supervisors spread."""
        bound = min(self.longest_s, self.first_s * self.growth ** max(0, failures - 1))
        return bound * random.uniform(0.5, 1.0)


WAITING: Final[Mapping[ErrorClass, Waiting]] = {
    ErrorClass.STOCKOUT: Waiting(10.0, 300.0),
    ErrorClass.LOCATION: Waiting(60.0, 600.0, most=3),
    ErrorClass.RATE_LIMIT: Waiting(20.0, 120.0),
    ErrorClass.PREEMPTED_IN_CREATE: Waiting(2.0, 120.0),
    ErrorClass.PREEMPTED: Waiting(2.0, 120.0),
    ErrorClass.MAINTENANCE: Waiting(60.0, 600.0),
    ErrorClass.GONE: Waiting(10.0, 120.0, most=3),
    ErrorClass.INTERNAL: Waiting(10.0, 120.0, most=3),
    ErrorClass.CONNECT: Waiting(5.0, 120.0),
    ErrorClass.UNKNOWN_OUTCOME: Waiting(5.0, 120.0),
}
"""Classes of a failed try after which another one makes sense. After all others it stops."""

FAULTS_OF_A_NODE: Final = frozenset(
    {
        ErrorClass.CONNECT,
        ErrorClass.INTERNAL,
        ErrorClass.DEVICE_BUSY,
        ErrorClass.PARTIAL_SLICE,
        ErrorClass.PREEMPTED,
        ErrorClass.MAINTENANCE,
        ErrorClass.STALLED,
    }
)
"""Causes of a trainer's failure that a new node may well not have."""

_AT_WORK: Final = frozenset({*AT_WORK, RunState.WAITING, RunState.LAUNCHING, RunState.RESUMING})


def decide(
    run: Run, evidence: RunEvidence, now: datetime, *, resume_stalled: bool, is_first: bool
) -> Verdict:
    """Return what to do about a run as it stands.

    Args:
        run: As derived from the evidence.
        evidence: Its nodes and records.
        now: The moment at which it stands so.
        resume_stalled: The user's word that a live node which does nothing may be deleted.
        is_first: Whether the user has just now asked for it, so that what failed before is past.
    """
    live = [node for node in evidence.nodes if not node.is_dead and node.state in _LIVE]
    if evidence.spec is not None and evidence.spec.deleted is not None:
        return Verdict(Step.END, "the run was deleted")
    if run.state is RunState.FINISHED:
        still = "; its node is still there and may cost money" if live else ""
        return Verdict(Step.END, f"the run is finished at step {run.step}{still}")
    if len(live) > 1 or run.state in _AT_WORK:
        step = Step.ALARM if len(live) > 1 else Step.WATCH
        return Verdict(step, run.reason if len(live) > 1 else f"{run.name} is {run.state}")
    if run.state is RunState.FAILED:
        may = resume_stalled or not live
        return _of_failed(run, evidence, may_replace=may, is_first=is_first)
    if run.state is RunState.STALLED or live:
        return _of_stalled(run, evidence, now, resume_stalled=resume_stalled)
    return Verdict(Step.RESUME, f"{run.name} is {run.state}", ErrorClass.PREEMPTED)


_LIVE: Final = frozenset(
    {
        NodeState.READY,
        NodeState.CREATING,
        NodeState.STARTING,
        NodeState.RESTARTING,
        NodeState.REPAIRING,
        NodeState.REIMAGING,
    }
)


def _of_failed(run: Run, evidence: RunEvidence, *, may_replace: bool, is_first: bool) -> Verdict:
    record, spec = evidence.record, evidence.spec
    told = record.error if record is not None else spec.failure if spec is not None else None
    kind = class_named(told)
    if record is None or record.state != AttemptState.FAILED:
        # No node could be made. What stood in the way may be gone, as the user says by asking.
        may_again = is_first or kind in WAITING
        return Verdict(Step.RESUME if may_again else Step.STOP, run.reason, kind)
    if kind not in FAULTS_OF_A_NODE:
        return Verdict(Step.STOP, run.reason, kind)
    if not may_replace:
        return Verdict(Step.ALARM, run.reason, kind)
    return Verdict(Step.RESUME, run.reason, kind)


def _of_stalled(run: Run, evidence: RunEvidence, now: datetime, *, resume_stalled: bool) -> Verdict:
    record = evidence.record
    is_leaving = run.state is RunState.PREEMPTED and record is not None
    if is_leaving and record is not None and now - record.updated < LONGEST_NOTICE:
        # The agent has left; the cloud takes the node away within its notice.
        return Verdict(Step.WATCH, f"{run.name} is {run.state}; its node is being taken away")
    if resume_stalled and not evidence.records_unread:
        return Verdict(Step.RESUME, run.reason, ErrorClass.STALLED)
    return Verdict(Step.ALARM, run.reason, ErrorClass.STALLED)


def class_named(told: Mapping[str, object] | None) -> ErrorClass:
    """Return the class that a record names, UNCLASSIFIED where it names none that is known."""
    name = str((told or {}).get("class") or "")
    return ErrorClass(name) if name in set(ErrorClass) else ErrorClass.UNCLASSIFIED
