"""What vanished stays in the table, with its last words, until it is dismissed."""

from __future__ import annotations

from tests.tui.conftest import run_console_under_test as console
from tests.tui.factories import (
    add_logs,
    list_nodes,
    list_requests,
    make_entry,
    make_node,
    make_request,
)
from tpudash.store.store import Store
from tpudash.tui.screens.details import DetailsScreen
from tpudash.tui.widgets.node_rows import tombstone_key


async def test_dismissing_forgets_a_vanished_node() -> None:
    async with console() as it:
        key = next(key for key in it.table.row_keys if key.startswith("tombstone:"))
        it.table.move_to(key)
        await it.press("x")
        await it.until(lambda: key not in it.table.row_keys)
        assert not it.store.snapshot.tombstones


async def test_a_vanished_request_stays_with_its_last_words_until_dismissed() -> None:
    async with console(size=(160, 45)) as it:
        request = next(iter(it.store.snapshot.requests.values()))
        add_logs(it.store, make_entry(1, "out of stock", node_id="waiting-1", run=None))
        list_requests(it.store)
        key = tombstone_key(request.name)
        await it.until(lambda: key in it.table.row_keys)
        it.table.move_to(key)
        words = "Queued request. Vanished at 12:00:00 UTC (was WAITING_FOR_RESOURCES)"
        await it.until(lambda: words in it.screen_text)
        assert "Logged last: out of stock" in it.screen_text
        await it.press("D")
        assert "gone already" in it.notices[-1]
        await it.press("enter")
        await it.until(lambda: isinstance(it.app.screen, DetailsScreen))
        assert "no longer listed" in it.screen_text
        assert "out of stock" in it.screen_text
        await it.press("escape", "x")
        await it.until(lambda: key not in it.table.row_keys)
        assert not it.store.snapshot.request_tombstones
        assert it.store.snapshot.tombstones, "the vanished node is another row"


async def test_a_request_that_vanishes_with_its_node_has_one_row() -> None:
    store = Store()
    node, request = make_node("waiting-1", run=None), make_request()
    list_nodes(store, node)
    list_requests(store, request)
    list_nodes(store)
    list_requests(store)
    async with console(store) as it:
        assert it.table.row_keys == (tombstone_key(node.name),)
        await it.press("enter")
        await it.until(lambda: isinstance(it.app.screen, DetailsScreen))
        assert "queued resource" in it.screen_text
        await it.press("escape", "x")
        await it.until(lambda: not it.table.row_keys)
        assert not it.store.snapshot.request_tombstones
