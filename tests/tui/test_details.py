"""The details page: timelines, last words of what vanished, and nothing that must not be seen."""

from __future__ import annotations

from datetime import timedelta

from tests.tui.conftest import Console
from tests.tui.conftest import run_console_under_test as console
from tests.tui.factories import NOW, add_logs, list_nodes, make_entry, make_node, node_name
from tpudash.domain.node import Symptom
from tpudash.store.log_ring import LogRing
from tpudash.store.store import Store
from tpudash.tui.screens.details import DetailsScreen
from tpudash.tui.widgets.node_rows import node_key, tombstone_key


async def details_of(it: Console, key: str) -> str:
    assert it.table.move_to(key)
    await it.press("enter")
    await it.until(lambda: isinstance(it.app.screen, DetailsScreen))
    assert isinstance(it.app.screen, DetailsScreen)
    return it.app.screen.plain_text


async def test_a_vanished_node_keeps_its_last_words_when_the_log_has_forgotten_them() -> None:
    store = Store()
    list_nodes(store, make_node("lost-1", run="lost"), at=NOW - timedelta(minutes=9))
    add_logs(store, make_entry(-300, "the very last words", node_id="lost-1", run="lost"))
    list_nodes(store, at=NOW - timedelta(minutes=4))
    store.logs = LogRing()
    async with console(store, size=(120, 40)) as it:
        assert "Logged last: the very last words" in it.screen_text
        text = await details_of(it, tombstone_key(node_name("lost-1")))
        assert "the very last words" in text
        assert "no longer listed" in text
        await it.press("escape", "x")
        await it.until(lambda: "lost-1" not in it.screen_text)


async def test_a_nodes_timeline_is_in_order_of_time() -> None:
    store = Store()
    symptom = Symptom("OUT_OF_MEMORY", "host memory", "0", NOW - timedelta(minutes=20))
    list_nodes(store, make_node("one", "CREATING", run=None), at=NOW - timedelta(hours=1))
    list_nodes(store, make_node("one", run=None), at=NOW - timedelta(minutes=50))
    list_nodes(store, make_node("one", "PREEMPTED", run=None, symptoms=(symptom,)), at=NOW)
    add_logs(
        store,
        make_entry(
            -600, "restored step 300", node_id="one", run=None, payload={"event": "restore"}
        ),
    )
    async with console(store, size=(120, 40)) as it:
        text = await details_of(it, node_key(node_name("one")))
        wanted = (
            *("created", "first seen by this console", "seen READY", "OUT_OF_MEMORY"),
            *("restored step 300", "seen PREEMPTED"),
        )
        timeline = text[text.index("Timeline") :]
        places = [timeline.index(words) for words in wanted]
        assert places == sorted(places)


async def test_in_watch_mode_no_address_and_no_account_is_shown() -> None:
    async with console(size=(120, 40), is_watch=True) as it:
        text = await details_of(it, node_key(node_name("demo-1")))
        for secret in ("10.0.0.2", "203.0.113.7", "alice@example.com", "abc123"):
            assert secret not in text
            assert secret not in it.screen_text
