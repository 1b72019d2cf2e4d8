"""What the world asks of whoever runs the nodes' processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tpudash.emulator.world.nodes import NodeRecord


class HostError(Exception):
    """A machine that does not come up."""


class Host(Protocol):
    """Runs one machine per worker of a node."""

    async def start(self, record: NodeRecord) -> None:
        """Boot every worker: start the node's startup script.

        Raises:
            HostError: A worker does not come up.
        """
        ...

    async def stop(self, name: str, notice_s: float) -> None:
        """Ask the workers' processes to end, and kill them when the notice is over.

        Returns as soon as all processes are gone.
        """
        ...

    def discard(self, name: str) -> None:
        """Delete the disks of a node that is gone."""
        ...

    def announce(self, name: str, key: str, value: str) -> None:
        """Set a value that the workers' metadata servers offer under `instance/`."""
        ...

    def metadata_changed(self, name: str) -> None:
        """Wake who waits for a change of the node's metadata."""
        ...

    def guest_attributes(self, name: str, worker: int) -> dict[str, str]:
        """Return what a worker has published, by `namespace/key`."""
        ...


class NoHost:
    """A host for nodes without processes."""

    async def start(self, record: NodeRecord) -> None:
        """Do nothing."""

    async def stop(self, name: str, notice_s: float) -> None:
        """Do nothing."""

    def discard(self, name: str) -> None:
        """Do nothing."""

    def announce(self, name: str, key: str, value: str) -> None:
        """Do nothing."""

    def metadata_changed(self, name: str) -> None:
        """Do nothing."""

    def guest_attributes(self, name: str, worker: int) -> dict[str, str]:  # noqa: ARG002
        """Return nothing."""
        return {}
