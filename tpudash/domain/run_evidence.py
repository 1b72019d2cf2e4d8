"""What is known of one run, put together: the evidence from which its state is derived."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tpudash.domain.node import NodeState
from tpudash.domain.request import FINISHED_REQUEST_STATES

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.domain.node import Node
    from tpudash.domain.request import QueuedResource
    from tpudash.domain.run import AttemptRecord, RunResult, RunSpec, Supervision


@dataclass(frozen=True, slots=True)
class Patience:
    """How long silence is taken for nothing unusual.

    Attributes:
        silence_s: Age of an attempt's record from which its claims no longer count.
        start_s: Time that an attempt may take until its agent writes for the first time.
        step_s: How long a trainer that has begun may stand still although its agent writes.
    """

    silence_s: float = 120.0
    start_s: float = 900.0
    step_s: float = 600.0


PATIENCE: Final = Patience()


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEvidence:
    """Everything that is known of one run.

    Attributes:
        nodes: Nodes that carry its label, dead ones included.
        nodes_as_of: When the nodes were listed, or None for just now.
        unreachable: Zones whose nodes are unknown now.
        problems: What could not be read, a clause each, such as "run.json is damaged: ...".
        records_unread: Whether the bucket did not answer, so that a missing record means nothing.
        supervision: Who resumes it by itself, while somebody does.
    """

    name: str
    owner: str
    spec: RunSpec | None = None
    attempts: tuple[AttemptRecord, ...] = ()
    result: RunResult | None = None
    nodes: tuple[Node, ...] = ()
    nodes_as_of: datetime | None = None
    requests: tuple[QueuedResource, ...] = ()
    unreachable: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    records_unread: bool = False
    supervision: Supervision | None = None

    @property
    def attempt(self) -> int:
        """The newest attempt that anything tells of, from 1."""
        return max(
            self.spec.attempt if self.spec else 1,
            *(record.attempt for record in self.attempts),
            *(node.attempt or 1 for node in self.nodes),
            *(request.attempt or 1 for request in self.requests),
            1,
        )

    @property
    def record(self) -> AttemptRecord | None:
        """The record of the newest attempt."""
        return next((one for one in self.attempts if one.attempt == self.attempt), None)

    @property
    def node(self) -> Node | None:
        """The node of the newest attempt; of several, the most alive."""
        own = [node for node in self.nodes if (node.attempt or 1) == self.attempt]
        own.sort(key=lambda node: (node.is_dead, node.state != NodeState.READY, node.name))
        return own[0] if own else None

    @property
    def request(self) -> QueuedResource | None:
        """The queued resource of the newest attempt; of several, one that may yet be served."""
        own = [one for one in self.requests if (one.attempt or 1) == self.attempt]
        own.sort(key=lambda one: (one.state in FINISHED_REQUEST_STATES, one.name))
        return own[0] if own else None

    @property
    def zone(self) -> str:
        """The zone of the newest attempt, or "" when nothing tells."""
        record = self.record
        if record is not None and record.zone:
            return record.zone.rsplit("/", 1)[-1]
        return self.spec.zone if self.spec else ""
