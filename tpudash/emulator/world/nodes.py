"""The table of nodes."""

from __future__ import annotations

import bisect
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tpudash.emulator.errors import not_found
from tpudash.emulator.identifiers import ANY_ZONE, ResourceName
from tpudash.emulator.messages import Message, Node, NodeState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tpudash.emulator.catalogue import Accelerator, Catalogue
    from tpudash.emulator.world.state_file import StateFile

_KIND = "node"
STARTUP_SCRIPT = "startup-script"

LIVE_STATES = frozenset(
    {
        NodeState.CREATING,
        NodeState.READY,
        NodeState.RESTARTING,
        NodeState.REIMAGING,
        NodeState.REPAIRING,
        NodeState.STARTING,
        NodeState.STOPPING,
        NodeState.UNKNOWN,
    }
)
"""States in which a node holds chips."""


@dataclass(slots=True)
class NodeRecord:
    """A node, and what the API does not show of it."""

    name: ResourceName
    message: Message
    accelerator: Accelerator
    life: int = 0
    """Counts the operations on the node: a task that finds another number is out of date."""

    maintenance: dict[str, str] = field(default_factory=dict)
    """The announced maintenance window, keys as the metadata server spells them."""

    @property
    def state(self) -> int:
        """The node's state as a number of Google's enum."""
        return int(self.message.state)

    @property
    def has_machine(self) -> bool:
        """Whether the node runs processes: only a startup script makes any."""
        return bool(self.message.metadata.get(STARTUP_SCRIPT))

    @property
    def live(self) -> bool:
        """Whether the node holds chips."""
        return self.state in LIVE_STATES

    @property
    def scheduling(self) -> str:
        """One of spot, preemptible, reserved, on-demand."""
        config = self.message.scheduling_config
        for word in ("spot", "preemptible", "reserved"):
            if getattr(config, word):
                return word
        return "on-demand"

    @property
    def preemptible(self) -> bool:
        """Whether the cloud may take the node back at any time."""
        return self.scheduling in {"spot", "preemptible"}


class Nodes:
    """Nodes by full name, in name order; each saved change is in the state file."""

    def __init__(self, catalogue: Catalogue, state: StateFile) -> None:
        self._state = state
        self._table: dict[str, NodeRecord] = {}
        self._names: list[str] = []
        self.listeners: list[Callable[[NodeRecord], None]] = []
        """Called after each saved change, and with a node that is gone."""

        for name, value, extra in state.load(_KIND):
            message = Node.FromString(value)
            accelerator = catalogue.accelerators[message.accelerator_type]
            record = NodeRecord(ResourceName.parse(name, "nodes"), message, accelerator)
            record.maintenance = json.loads(extra)
            self._table[name] = record
            self._names.append(name)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: str) -> bool:
        return name in self._table

    def __iter__(self) -> Iterator[NodeRecord]:
        return iter([self._table[name] for name in self._names])

    def get(self, name: str) -> NodeRecord:
        """Return a node by its full name.

        Raises:
            ApiError: NOT_FOUND, or INVALID_ARGUMENT for what is no name.
        """
        record = self._table.get(name)
        if record is None:
            raise not_found(str(ResourceName.parse(name, "nodes")))
        return record

    def holds(self, record: NodeRecord) -> bool:
        """Return whether this very node is still in the table."""
        return self._table.get(str(record.name)) is record

    def maintenance_of(self, name: str) -> dict[str, str]:
        """Return the announced maintenance window of a node, if it has one."""
        record = self._table.get(name)
        return record.maintenance if record is not None else {}

    def find(self, name: str) -> NodeRecord:
        """Return a node by its full name, or by its id where only one node has it."""
        if "/" in name:
            return self.get(name)
        matches = [record for record in self if record.name.id == name]
        if len(matches) != 1:
            raise not_found(name)
        return matches[0]

    def under(self, project: str, zone: str) -> Iterator[NodeRecord]:
        """Yield the nodes of a zone in name order; the zone `-` means all."""
        prefix = f"projects/{project}/locations/"
        if zone != ANY_ZONE:
            prefix += f"{zone}/"
        for name in self._names[bisect.bisect_left(self._names, prefix) :]:
            if not name.startswith(prefix):
                return
            yield self._table[name]

    def add(self, record: NodeRecord) -> None:
        """Put a new node into the table."""
        name = str(record.name)
        self._table[name] = record
        bisect.insort(self._names, name)
        self.save(record)

    def save(self, record: NodeRecord) -> None:
        """Write a changed node and tell the listeners."""
        extra = json.dumps(record.maintenance)
        self._state.put(_KIND, str(record.name), record.message.SerializeToString(), extra)
        self._tell(record)

    def remove(self, record: NodeRecord) -> None:
        """Take a node that is gone out of the table."""
        name = str(record.name)
        if self._table.pop(name, None) is None:
            return
        del self._names[bisect.bisect_left(self._names, name)]
        self._state.remove(_KIND, name)
        self._tell(record)

    def _tell(self, record: NodeRecord) -> None:
        for listener in self.listeners:
            listener(record)
