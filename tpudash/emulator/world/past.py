"""The recent past of nodes and queued requests, for reads that are late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tpudash.emulator.fault_rules import FaultKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tpudash.clock import Clock
    from tpudash.emulator.faults import Faults
    from tpudash.emulator.messages import Message
    from tpudash.emulator.world.nodes import Nodes
    from tpudash.emulator.world.queued_resources import QueuedResources

_BEFORE_ALL = float("-inf")


class Versions:
    """The versions of named messages since recording began; None where there was none."""

    def __init__(self, clock: Clock, current: Iterable[tuple[str, Message]]) -> None:
        self._clock = clock
        self._versions: dict[str, list[tuple[float, Message | None]]] = {
            name: [(_BEFORE_ALL, _copy(message))] for name, message in current
        }

    def note(self, name: str, message: Message | None, kept_s: float) -> None:
        """Record a change; what is older than any read can ask for is forgotten."""
        now = self._clock.monotonic()
        versions = self._versions.setdefault(name, [(_BEFORE_ALL, None)])
        versions.append((now, None if message is None else _copy(message)))
        while len(versions) > 1 and versions[1][0] <= now - kept_s:
            del versions[0]

    def seen(self, lag_s: float) -> Iterator[tuple[str, Message]]:
        """Yield names and messages in name order, as they were `lag_s` ago."""
        moment = self._clock.monotonic() - lag_s
        for name in sorted(self._versions):
            known = [message for since, message in self._versions[name] if since <= moment]
            if known and known[-1] is not None:
                yield name, known[-1]


class Past:
    """Records while a rule wants late reads."""

    def __init__(
        self, clock: Clock, faults: Faults, nodes: Nodes, requests: QueuedResources
    ) -> None:
        self._clock = clock
        self._faults = faults
        self._nodes = nodes
        self._requests = requests
        self._kept_s = 0.0
        self.nodes: Versions | None = None
        self.requests: Versions | None = None
        faults.listeners.append(self._rules_changed)
        nodes.listeners.append(lambda record: self._note_node(str(record.name)))
        requests.listeners.append(self._note_request)

    def _rules_changed(self) -> None:
        rules = [rule for rule in self._faults.rules if rule.kind is FaultKind.STALE_READS]
        self._kept_s = max((rule.lag_s for rule in rules), default=0.0)
        if not rules:
            self.nodes = self.requests = None
        elif self.nodes is None:
            nodes = ((str(record.name), record.message) for record in self._nodes)
            self.nodes = Versions(self._clock, nodes)
            self.requests = Versions(self._clock, self._requests.messages())

    def _note_node(self, name: str) -> None:
        if self.nodes is not None:
            message = self._nodes.get(name).message if name in self._nodes else None
            self.nodes.note(name, message, self._kept_s)

    def _note_request(self, name: str, message: Message | None) -> None:
        if self.requests is not None:
            self.requests.note(name, message, self._kept_s)


def _copy(message: Any) -> Any:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy
