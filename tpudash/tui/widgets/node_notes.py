"""One sentence for each row of the nodes pane: why it is so, and what can be done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.domain.request import FINISHED_REQUEST_STATES

if TYPE_CHECKING:
    from tpudash.domain.node import Node
    from tpudash.domain.request import QueuedResource
    from tpudash.domain.run import Run
    from tpudash.store.snapshot import RequestTombstone, Snapshot, Tombstone
    from tpudash.tui.hints import KeyHints

COMMANDS: Final = ("resume", "delete")
"""Commands that the reasons of runs name, and that are actions of the same name here."""


class Notes:
    """Words the notes.

    Args:
        hints: The keys that notes name.
        acts: Whether the cloud can be changed from here, so that notes may say with which key.
    """

    def __init__(self, hints: KeyHints, *, acts: bool) -> None:
        self._hints = hints
        self._acts = acts

    def of_run(self, run: Run) -> str:
        """Return the run's reason, with keys in place of the commands that it names."""
        note = run.reason
        if self._acts:
            for name in COMMANDS:
                note = note.replace(f"`tpudash {name} {run.name}`", self._hints.key(name))
        return note

    def of_node(self, node: Node, run: Run | None, snapshot: Snapshot, asked_for: set[str]) -> str:
        """Return what is wrong with a node, or where it belongs."""
        if node.zone in snapshot.unreachable:
            return f"Zone {node.zone} does not answer: this is what was known before."
        if node.symptoms:
            symptom = node.symptoms[-1]
            return f"{symptom.kind} on worker {symptom.worker_id}: {symptom.details}"
        if node.health_description:
            return node.health_description
        if run is not None:
            return self._of_dead_node() if node.is_dead else ""
        if node.run:
            return f"Labelled as run {node.run}, of which no record was found."
        origin = "" if node.name in asked_for or node.queued_resource else ", no queued resource"
        return f"Belongs to no run of tpudash{origin}."

    def _of_dead_node(self) -> str:
        keys = "; {resume} resumes the run, {delete} deletes the node" if self._acts else ""
        return self._hints.fill(f"The node is dead and still listed{keys}.")

    def of_gone(self, stone: Tombstone | RequestTombstone, state: str) -> str:
        """Return when a node or a request vanished, and what was logged last."""
        said = f" Logged last: {stone.last_entries[-1].text}" if stone.last_entries else ""
        since = f"{stone.vanished:%H:%M:%S} UTC"
        dismisses = self._hints.fill("{dismiss} dismisses it.")
        return f"Vanished at {since} (was {state}); {dismisses}{said}"


def request_note(request: QueuedResource) -> str:
    """Return why a request stands where it does."""
    if request.failure:
        return request.failure
    if request.state in FINISHED_REQUEST_STATES:
        return "This request will never be fulfilled again and holds quota until it is deleted."
    return "A request for capacity, without a node so far."
