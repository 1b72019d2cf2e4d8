"""Whether something is changing, which decides how often sources are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.domain.node import TRANSIENT_STATES
from tpudash.domain.operation import OperationState
from tpudash.domain.request import WAITING_REQUEST_STATES, RequestState
from tpudash.domain.run import RunState

if TYPE_CHECKING:
    from tpudash.store.snapshot import Snapshot

BUSY_RUN_STATES: Final = frozenset({RunState.LAUNCHING, RunState.RESUMING})
SLOW_REQUEST_STATES: Final = frozenset({RequestState.WAITING_FOR_RESOURCES})
"""A request may wait for days; that is no reason to ask for it every other second."""


def is_changing(snapshot: Snapshot) -> bool:
    """Whether a node, a request, a run or an operation is on its way to another state."""
    return (
        any(node.state in TRANSIENT_STATES for node in snapshot.nodes.values())
        or any(
            request.state in WAITING_REQUEST_STATES - SLOW_REQUEST_STATES
            for request in snapshot.requests.values()
        )
        or any(run.state in BUSY_RUN_STATES for run in snapshot.runs.values())
        or any(
            operation.state == OperationState.RUNNING for operation in snapshot.operations.values()
        )
    )
