"""The history page: what earlier consoles saw, what went while nobody watched, what it cost."""

from __future__ import annotations

from datetime import timedelta

from tests.tui.conftest import run_console_under_test as console
from tests.tui.factories import NOW, add_logs, list_nodes, make_entry, make_node, node_name
from tpudash.store.changes import PastRead, SourceReported
from tpudash.store.masked import MaskedStore
from tpudash.store.past import GONE, MOST_STATES, CostSeen, Event, NodeStateSeen, Past
from tpudash.store.snapshot import NODES, SourceState, SourceStatus
from tpudash.store.store import Store
from tpudash.tui.screens.past import PastScreen, happenings
from tpudash.tui.widgets.node_rows import node_key

EVENING = NOW - timedelta(hours=11)


def state(minutes: float, word: str, node: str = "vision-1") -> NodeStateSeen:
    return NodeStateSeen(EVENING + timedelta(minutes=minutes), node_name(node), word)


def night() -> PastRead:
    """What a console saw that was open in the evening: a node that came and was preempted."""
    costs = [CostSeen(EVENING + timedelta(minutes=at), 4.5, 0.075 * at) for at in range(61)]
    costs.append(CostSeen(NOW - timedelta(minutes=1), None, None))
    told = Event(EVENING + timedelta(minutes=40), "vision-1", "vision", 1, "preempt", "must go [x]")
    return PastRead(
        (state(0, "CREATING"), state(1, "READY"), state(20, "READY"), state(41, "PREEMPTED")),
        (told, told),
        tuple(costs),
    )


def morning(change: PastRead) -> Store:
    store = Store()
    list_nodes(store, make_node())
    store.apply(SourceReported(SourceStatus(NODES, SourceState.OK, NOW, NOW)))
    store.apply(change)
    return store


async def test_a_console_opened_after_a_night_tells_what_happened_in_it() -> None:
    store = morning(night())
    async with console(store, size=(120, 40)) as it:
        await it.press("i")
        await it.until(lambda: isinstance(it.app.screen, PastScreen))
        assert isinstance(it.app.screen, PastScreen)
        text = it.app.screen.plain_text
        assert "now $4.50/h" in text
        assert "$4.50 while somebody watched" in text
        wanted = ("was still PREEMPTED when last seen", "must go [x]", "CREATING")
        places = [text.index(words) for words in wanted]
        assert places == sorted(places), "newest first"
        assert text.count("must go") == 1
        assert text.count("vision-1            READY") == 1, "the same state is told once"
        add_logs(store, make_entry(-1, "restored step 300", payload={"event": "restore"}))
        await it.until(lambda: "restored step 300" in it.screen_text)
        await it.press("escape")
        await it.until(lambda: not isinstance(it.app.screen, PastScreen))


async def test_a_nodes_timeline_goes_back_before_this_console() -> None:
    store = morning(
        PastRead(
            (state(0, "READY", "demo-1"), state(30, "REPAIRING", "demo-1")),
            (Event(EVENING, "demo-1", "demo", 1, "start", "the evening's start"),),
        )
    )
    async with console(store, size=(120, 40)) as it:
        assert it.table.move_to(node_key(node_name("demo-1")))
        await it.press("enter")
        await it.until(lambda: "REPAIRING" in it.app.screen.plain_text)  # type: ignore[attr-defined]
        timeline = it.app.screen.plain_text  # type: ignore[attr-defined]
        wanted = ("the evening's start", "seen REPAIRING", "first seen by this console")
        places = [timeline.index(words) for words in wanted]
        assert places == sorted(places)


async def test_with_nothing_seen_the_page_says_so() -> None:
    async with console(Store(), size=(80, 24)) as it:
        await it.press("i")
        await it.until(lambda: "Nothing was seen yet" in it.screen_text)


async def test_watch_mode_masks_what_is_remembered() -> None:
    secret = Event(EVENING, "n", "demo", 1, "error", "ssh alice@example.com at 10.0.0.2")
    async with console(MaskedStore(), size=(100, 30), is_watch=True) as it:
        it.store.apply(PastRead(events=(secret,)))
        await it.press("i")
        await it.until(lambda: "ssh" in it.screen_text)
        assert "alice" not in it.screen_text
        assert "10.0.0.2" not in it.screen_text


def test_a_node_that_is_not_listed_is_only_lost_where_its_zone_has_answered() -> None:
    past = Past()
    past.add([state(0, "READY")])
    assert [row.words for row in happenings(past, Store().snapshot)] == ["READY"]
    store = morning(PastRead())
    assert "nobody watched" in [*happenings(past, store.snapshot)][-1].words


def test_the_past_is_bounded_and_keeps_the_newest() -> None:
    past = Past()
    words = ("READY", "REPAIRING")
    past.add(state(at, words[at % 2]) for at in range(5 * MOST_STATES))
    assert len(past.states_of(node_name("vision-1"))) <= MOST_STATES
    assert past.states_of(node_name("vision-1"))[-1] == state(5 * MOST_STATES - 1, words[1])
    past.add(state(at, GONE, f"n-{at}") for at in range(5_100))
    assert len(past.nodes) <= 5_000
    past.add(events=(Event(NOW, "n", "r", 1, "step", "x"),))
    assert past.events == ()
