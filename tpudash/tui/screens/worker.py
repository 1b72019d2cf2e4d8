"""Which worker of a slice: a short list to choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual import on
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList

from tpudash.tui.screens.overlay import Overlay
from tpudash.tui.widgets.line import Line
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from tpudash.domain.node import Node
    from tpudash.tui.pane import HostApp


class WorkerDialog(Overlay[int]):
    """Returns the number of a worker, or None."""

    def __init__(self, host: HostApp, node: Node) -> None:
        super().__init__(host, id="worker-dialog")
        self._node = node

    def compose(self) -> ComposeResult:
        """Lay out the list."""
        rows = (
            f"worker {worker.index}  {worker.ip_address}  {worker.external_ip or ''}".rstrip()
            for worker in self._node.workers
        )
        with Vertical(classes="dialog small-dialog"):
            yield Line(id="worker-title", classes="dialog-title")
            yield OptionList(*(Content(safe_text(row, 100)) for row in rows), id="worker-list")

    def on_mount(self) -> None:
        """Put the focus on the first worker."""
        title = f" Shell on which worker of {safe_text(self._node.node_id, 60)}? (esc cancels)"
        self.query_one("#worker-title", Line).show(Text(title, "bold"))
        self.query_one(OptionList).focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._node.workers[event.option_index].index)
