"""Nodes and queued requests as a reading call sees them: as they are, or as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tpudash.emulator.errors import not_found
from tpudash.emulator.identifiers import ANY_ZONE, ResourceName

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpudash.emulator.world.past import Versions
    from tpudash.emulator.world.world import World


class Views:
    """What reads of one world return; a rule of `stale-reads` makes them late."""

    def __init__(self, world: World) -> None:
        self._world = world

    def nodes(self, project: str, zone: str, hidden: list[str], method: str) -> Iterator[Any]:
        """Yield the nodes of a zone or of all that are not hidden, in name order."""
        lag_s = self._world.faults.lag_s(method, zone)
        past = self._world.past.nodes
        if lag_s and past is not None:
            yield from _past_under(past, lag_s, project, zone, hidden)
            return
        for record in self._world.nodes.under(project, zone):
            if record.name.zone not in hidden:
                yield record.message

    def node(self, name: str, method: str) -> Any:
        """Return a node.

        Raises:
            ApiError: NOT_FOUND, or INVALID_ARGUMENT for what is no name.
        """
        lag_s = self._world.faults.lag_s(method, zone_of_name(name))
        past = self._world.past.nodes
        if lag_s and past is not None:
            return _past_named(past, lag_s, ResourceName.parse(name, "nodes"))
        return self._world.nodes.get(name).message

    def requests(self, project: str, zone: str, hidden: list[str], method: str) -> Iterator[Any]:
        """Yield the queued requests of a zone or of all that are not hidden, in name order."""
        lag_s = self._world.faults.lag_s(method, zone)
        past = self._world.past.requests
        if lag_s and past is not None:
            yield from _past_under(past, lag_s, project, zone, hidden)
            return
        for item in self._world.queued_resources.under(project, zone):
            if item.name.zone not in hidden:
                yield item.message

    def request(self, name: str, method: str) -> Any:
        """Return a queued request.

        Raises:
            ApiError: NOT_FOUND, or INVALID_ARGUMENT for what is no name.
        """
        lag_s = self._world.faults.lag_s(method, zone_of_name(name))
        past = self._world.past.requests
        if lag_s and past is not None:
            return _past_named(past, lag_s, ResourceName.parse(name, "queuedResources"))
        return self._world.queued_resources.get(name).message


def zone_of_name(name: str) -> str:
    """Return the zone in a resource name, or the empty string."""
    parts = name.split("/")
    return parts[3] if len(parts) > 3 else ""


def _past_under(
    past: Versions, lag_s: float, project: str, zone: str, hidden: list[str]
) -> Iterator[Any]:
    for name, message in past.seen(lag_s):
        parts = name.split("/")
        if parts[1] == project and zone in {ANY_ZONE, parts[3]} and parts[3] not in hidden:
            yield message


def _past_named(past: Versions, lag_s: float, name: ResourceName) -> Any:
    for seen, message in past.seen(lag_s):
        if seen == str(name):
            return message
    raise not_found(str(name))
