"""Which panes are visible at which size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpudash.tui.arrangement import arrange
from tpudash.tui.pane import PaneId

ALL = tuple(PaneId)


def visible(size: tuple[int, int], **more: object) -> tuple[PaneId, ...]:
    options = {"focused": PaneId.NODES, "lower": PaneId.UTILIZATION, "is_zoomed": False, **more}
    return arrange(size, ALL, **options).visible  # type: ignore[arg-type]


def test_80x24_shows_the_nodes_and_one_other() -> None:
    assert visible((80, 24)) == (PaneId.NODES, PaneId.UTILIZATION)
    assert visible((80, 24), focused=PaneId.COST) == (PaneId.NODES, PaneId.COST)


def test_200x60_shows_all_five() -> None:
    assert visible((200, 60)) == ALL


def test_a_middle_size_shows_three() -> None:
    assert visible((120, 40)) == (PaneId.NODES, PaneId.UTILIZATION, PaneId.LOGS)


def test_a_low_screen_shows_the_focused_pane_alone() -> None:
    assert visible((60, 15), focused=PaneId.LOGS) == (PaneId.LOGS,)


def test_zoom_shows_the_focused_pane_alone() -> None:
    assert visible((200, 60), focused=PaneId.COST, is_zoomed=True) == (PaneId.COST,)


@given(
    st.integers(1, 300),
    st.integers(1, 100),
    st.sampled_from(ALL),
    st.sampled_from(ALL),
    st.booleans(),
)
def test_the_focused_pane_is_always_visible_and_none_is_lost(
    columns: int, rows: int, focused: PaneId, lower: PaneId, zoomed: bool
) -> None:
    found = arrange((columns, rows), ALL, focused=focused, lower=lower, is_zoomed=zoomed)
    assert focused in found.visible
    assert sorted((*found.visible, *found.hidden)) == sorted(ALL)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
def test_a_watch_screen_without_nodes_shows_what_it_was_given(size: tuple[int, int]) -> None:
    panes = (PaneId.LOGS, PaneId.COST)
    found = arrange(size, panes, focused=PaneId.LOGS, lower=PaneId.COST, is_zoomed=False)
    assert PaneId.LOGS in found.visible
    assert PaneId.NODES not in found.visible
