"""Announced maintenance, laid over listed nodes: asked for rarely, and nothing hangs on it."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tpudash.errors import TpudashError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tpudash.clock import Clock
    from tpudash.domain.node import Maintenance, Node, NodeListing
    from tpudash.gateways.protocols import Cloud

logger = logging.getLogger(__name__)

GOOD_FOR_S: Final = 300.0
"""Google announces scheduled maintenance a week ahead."""

REFUSAL_HOLDS_S: Final = 3600.0


class Announcements:
    """What was announced when it was last asked for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due = clock.monotonic()
        self._found: Mapping[str, Maintenance] = {}

    async def refresh(self, cloud: Cloud) -> None:
        """Ask, if that was long ago. A refusal changes nothing and holds for an hour."""
        if self._clock.monotonic() < self._due:
            return
        self._due = self._clock.monotonic() + GOOD_FOR_S
        try:
            self._found = await cloud.tpu.list_maintenance()
        except TpudashError as error:
            logger.info("announced maintenance is not known: %s", error)
            self._due = self._clock.monotonic() + REFUSAL_HOLDS_S

    def laid_over(self, listing: NodeListing) -> NodeListing:
        """Return a listing whose nodes know of their maintenance."""
        if not self._found:
            return listing
        return replace(listing, nodes=tuple(map(self._with, listing.nodes)))

    def _with(self, node: Node) -> Node:
        announced = self._found.get(node.name)
        return node if announced is None else replace(node, maintenance=announced)
