"""Every pane in every theme: each character that is painted can be read on its ground."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rich.color import ColorType

from tests.tui import test_checklist_pane, test_cost_pane, test_utilization_pane
from tests.tui.factories import make_world
from tests.tui.pane_host import PaneHost, settle
from tests.unit.config.test_themes import OURS, READABLE, TRUE_COLOUR, contrast
from tpudash.tui.widgets.checklist_pane import ChecklistPane
from tpudash.tui.widgets.cost_pane import CostPane
from tpudash.tui.widgets.logs_pane import LogsPane
from tpudash.tui.widgets.row_view import RowView
from tpudash.tui.widgets.utilization_pane import UtilizationPane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.color import Color

    from tpudash.store.store import Store
    from tpudash.tui.pane import Pane

PANES: dict[str, Callable[[], tuple[Pane, Store]]] = {
    "logs": lambda: (LogsPane(), make_world()),
    "utilization": lambda: (UtilizationPane(), test_utilization_pane.make_store()),
    "cost": lambda: (CostPane(), test_cost_pane.make_store()),
    "checklist": lambda: (
        ChecklistPane(),
        test_checklist_pane.make_store(*test_checklist_pane.FINDINGS),
    ),
}


def painted(app: PaneHost[Pane]) -> Iterator[tuple[str, Color, Color]]:
    """Return every piece of text on the screen with its colour and its ground."""
    for strip in app.screen._compositor.render_strips():
        for segment in strip:
            style = segment.style
            if segment.text.strip() and style and style.color and style.bgcolor:
                yield segment.text, style.color, style.bgcolor


def hex_of(color: Color) -> str:
    red, green, blue = color.get_truecolor()
    return f"#{red:02x}{green:02x}{blue:02x}"


@pytest.mark.parametrize("name", PANES)
@pytest.mark.parametrize("theme", TRUE_COLOUR)
async def test_everything_painted_can_be_read(theme: str, name: str) -> None:
    pane, store = PANES[name]()
    app = PaneHost(pane, store, theme=theme)
    async with app.run_test(size=(100, 24)) as pilot:
        for view in pane.query(RowView):
            view.focus()
        await settle(pilot)
        pieces = list(painted(app))
        assert len(pieces) > 10
        faint = {
            (text.strip(), hex_of(color), hex_of(ground))
            for text, color, ground in pieces
            if contrast(hex_of(color), hex_of(ground)) < READABLE
        }
        assert faint == set()


@pytest.mark.parametrize("name", PANES)
@pytest.mark.parametrize("theme", sorted(set(OURS) - set(TRUE_COLOUR)))
async def test_terminal_themes_paint_with_the_terminals_colours_only(theme: str, name: str) -> None:
    pane, store = PANES[name]()
    app = PaneHost(pane, store, theme=theme, ansi_color=True)
    async with app.run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        pieces = list(painted(app))
        assert len(pieces) > 10
        kinds = {color.type for _, color, ground in pieces for color in (color, ground)}
        assert kinds <= {ColorType.DEFAULT, ColorType.STANDARD}
        assert all(color != ground or color.is_default for _, color, ground in pieces)
