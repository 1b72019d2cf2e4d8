"""What still holds quota once something is deleted: dead nodes, finished requests, live nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.domain.accelerator import load_catalog
from tpudash.domain.request import FINISHED_REQUEST_STATES, RequestState
from tpudash.domain.resource_name import is_same_resource

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from tpudash.domain.node import Node
    from tpudash.domain.request import QueuedResource

_HOLDING: Final = FINISHED_REQUEST_STATES | {
    RequestState.ACTIVE,
    RequestState.PROVISIONING,
    RequestState.SUSPENDING,
}
MOST_TOLD: Final = 6


def still_holding(
    nodes: Iterable[Node],
    requests: Iterable[QueuedResource],
    owners: Collection[str],
    gone: Collection[str],
) -> str:
    """Return in a clause what of these owners goes on holding quota, or "".

    A preempted node and a failed or suspended request count until they are deleted, though nothing
    runs on them. A request whose node is told already is not told again.

    Args:
        nodes: All nodes, as listed.
        requests: All queued resources, as listed.
        owners: Whose things count, by their label.
        gone: Full names of what is deleted.
    """
    held = [node for node in nodes if node.owner in owners and node.name not in gone]
    words = [f"node {node.node_id} ({node.state}{_chips(node.accelerator_type)})" for node in held]
    behind = [node.queued_resource for node in held if node.queued_resource]
    for request in requests:
        is_told = any(is_same_resource(request.name, name) for name in behind)
        if is_told or request.owner not in owners or request.name in gone:
            continue
        if request.state in _HOLDING:
            chips = _chips(request.accelerator_type)
            words.append(f"request {request.request_id} ({request.state}{chips})")
    more = len(words) - MOST_TOLD
    told = ", ".join(words[:MOST_TOLD])
    return f"{told} and {more} more" if more > 0 else told


def _chips(accelerator_type: str) -> str:
    kind = load_catalog().find(accelerator_type)
    return f", {kind.chips} chips" if kind else ""
