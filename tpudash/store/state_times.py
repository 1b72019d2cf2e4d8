"""Since when things are in the state that they are in, by what was seen and what is remembered.

A console that starts finds nodes that have long been there. What it saw itself began with it, so
for those it asks the history of this machine, and else goes by the node's creation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tpudash.domain.node import NodeState

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.domain.life import NodeLife
    from tpudash.domain.node import Node
    from tpudash.store.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class StateTime:
    """Since when a node is in its state.

    Attributes:
        since: When the state began.
        is_earliest: Whether it may have begun later: nobody saw it begin.
    """

    since: datetime
    is_earliest: bool = False


class StateTimes:
    """Answers for all nodes of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._open: dict[str, NodeLife] | None = None

    def of(self, node: Node) -> StateTime | None:
        """Return since when a node is in its state, or None of one that was never listed."""
        times = self._snapshot.times.get(node.name)
        if times is None:
            return None
        if times.state_since > times.first_seen:
            return StateTime(times.state_since)
        if node.state == NodeState.READY:
            life = self._open_lives().get(node.name)
            if life is not None and life.create_time == node.create_time and life.spans:
                span = life.spans[-1]
                if not span.begins_late and span.start < times.state_since:
                    return StateTime(span.start)
        if node.create_time is None or node.create_time > times.state_since:
            return StateTime(times.state_since)
        return StateTime(node.create_time, is_earliest=node.state != NodeState.CREATING)

    def _open_lives(self) -> dict[str, NodeLife]:
        if self._open is None:
            self._open = {life.name: life for life in self._snapshot.lives if life.is_open}
        return self._open
