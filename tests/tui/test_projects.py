"""Several projects on one screen: each row, each page and the status line say which."""

from __future__ import annotations

from dataclasses import replace

from tests.tui.conftest import run_console_under_test as console
from tests.tui.factories import connect, list_nodes, list_requests, make_node, make_request
from tpudash.store.changes import Connected
from tpudash.store.store import Store
from tpudash.tui.screens.details import DetailsScreen
from tpudash.tui.widgets.node_rows import node_key

OTHER = "projects/other-team/locations/us-east1-d/nodes/theirs"


def two_projects() -> Store:
    store = Store()
    connect(store)
    info = store.snapshot.connection
    assert info is not None
    store.apply(Connected(replace(info, projects=("demo", "other-team"))))
    list_nodes(store, make_node(run=None), replace(make_node("theirs", run=None), name=OTHER))
    list_requests(store, make_request())
    return store


async def test_each_row_says_which_project_it_is_of() -> None:
    async with console(two_projects(), size=(100, 24)) as it:
        heading = next(row for row in it.screen_text.split("\n") if "NAME" in row)
        assert "PROJECT" in heading
        theirs = next(row for row in it.screen_text.split("\n") if " theirs" in row)
        assert "other-team" in theirs
        assert "demo +other-team" in it.screen_text.split("\n")[0]
        await it.press("/", *"project:other", "enter")
        assert it.table.row_keys == (node_key(OTHER),)
        await it.press("enter")
        await it.until(lambda: isinstance(it.app.screen, DetailsScreen))
        assert "project              other-team" in it.screen_text


async def test_a_single_project_has_no_column() -> None:
    async with console(size=(200, 40)) as it:
        assert "PROJECT" not in it.screen_text


async def test_the_column_comes_as_soon_as_there_is_a_second_one() -> None:
    store = Store()
    list_nodes(store, make_node(run=None))
    async with console(store, size=(100, 24)) as it:
        assert "PROJECT" not in it.screen_text
        list_nodes(store, make_node(run=None), replace(make_node("theirs", run=None), name=OTHER))
        await it.until(lambda: "PROJECT" in it.screen_text)
        assert "other-team" in it.screen_text
