"""A shell on a worker of a node, as data: what to run, and where."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tpudash.domain.node import Node


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A program that takes over the terminal.

    Attributes:
        arguments: The program and its arguments; no shell reads them.
        folder: Where it starts, or None for where we are.
        environment: Variables that it gets beside ours.
    """

    arguments: tuple[str, ...]
    folder: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


class ShellPort(Protocol):
    """What knows how to get onto a worker."""

    async def shell(self, node: Node, worker: int) -> ShellCommand:
        """Return what opens a shell on a worker; opens nothing itself.

        Raises:
            TpudashError: There is no way onto it now.
        """
        ...
