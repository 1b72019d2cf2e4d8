"""Which panes are visible at which size, as a pure function of size, focus and zoom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tpudash.tui.pane import PaneId

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_ROWS_FOR_TWO: Final = 17
LEAST_FOR_THREE: Final = (120, 30)
LEAST_FOR_ALL: Final = (160, 40)
"""Columns and rows of the whole terminal."""
BESIDES: Final = (PaneId.UTILIZATION, PaneId.LOGS)


class Arrangement(NamedTuple):
    """What is visible.

    Attributes:
        visible: Visible panes, in their order.
        hidden: The others, which their number keys bring up.
    """

    visible: tuple[PaneId, ...]
    hidden: tuple[PaneId, ...]


def arrange(
    size: tuple[int, int],
    panes: Sequence[PaneId],
    *,
    focused: PaneId,
    lower: PaneId,
    is_zoomed: bool,
) -> Arrangement:
    """Return the panes that are visible.

    Args:
        size: Columns and rows of the terminal.
        panes: The panes that there are.
        focused: The pane that has the focus; it is always visible.
        lower: The pane that was last looked at below the nodes.
        is_zoomed: Only the focused pane is wanted.
    """
    wanted = _wanted(size, panes, focused=focused, lower=lower, is_zoomed=is_zoomed)
    visible = tuple(pane for pane in PaneId if pane in panes and pane in wanted)
    return Arrangement(visible, tuple(pane for pane in panes if pane not in visible))


def _wanted(
    size: tuple[int, int],
    panes: Sequence[PaneId],
    *,
    focused: PaneId,
    lower: PaneId,
    is_zoomed: bool,
) -> set[PaneId]:
    columns, rows = size
    if is_zoomed or rows < LEAST_ROWS_FOR_TWO:
        return {focused}
    if columns >= LEAST_FOR_ALL[0] and rows >= LEAST_FOR_ALL[1]:
        return set(panes)
    if PaneId.NODES not in panes:
        return {focused}
    below = lower if focused is PaneId.NODES else focused
    if columns < LEAST_FOR_THREE[0] or rows < LEAST_FOR_THREE[1]:
        return {PaneId.NODES, below}
    beside = next((pane for pane in reversed(BESIDES) if pane is not below), PaneId.LOGS)
    return {PaneId.NODES, below, beside}
