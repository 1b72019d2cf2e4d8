"""The store keeps what is known, says what changed, and forgets nothing without a word."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tpudash.domain.log import LogEntry, Severity
from tpudash.domain.metric import MetricPoint, MetricSeries
from tpudash.domain.node import Node, NodeListing
from tpudash.domain.request import QueuedResource, RequestListing
from tpudash.store.changes import (
    NOTHING,
    ChangeSet,
    LogsArrived,
    NodesListed,
    RequestsListed,
    SeriesRead,
    SourceReported,
    TombstonesDismissed,
)
from tpudash.store.log_ring import LogRing
from tpudash.store.series_book import SeriesBook
from tpudash.store.snapshot import SourceState, SourceStatus
from tpudash.store.store import MAX_TOMBSTONES, Store

NOW = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)


def make_node(node_id: str, state: str = "READY", zone: str = "us-central1-b") -> Node:
    return Node(name=f"projects/demo/locations/{zone}/nodes/{node_id}", state=state)


def list_nodes(
    store: Store, *nodes: Node, minute: int = 0, unreachable: tuple[str, ...] = ()
) -> ChangeSet:
    as_of = NOW + timedelta(minutes=minute)
    return store.apply(NodesListed(NodeListing(nodes, unreachable), as_of))


def make_entry(second: float, text: str = "line", insert_id: str = "") -> LogEntry:
    return LogEntry(NOW + timedelta(seconds=second), Severity.INFO, text, insert_id=insert_id)


def make_request() -> QueuedResource:
    place = "projects/demo/locations/us-central1-b"
    return QueuedResource(
        f"{place}/queuedResources/waiting",
        "WAITING_FOR_RESOURCES",
        node_names=(f"{place}/nodes/waiting-1",),
    )


def test_only_what_differs_is_in_the_change_set() -> None:
    store = Store()
    one, two = make_node("one"), make_node("two")
    assert list_nodes(store, one, two).nodes == {one.name, two.name}
    assert list_nodes(store, one, two) == NOTHING
    assert list_nodes(store, one, replace(two, state="PREEMPTED")).nodes == {two.name}


def test_subscribers_hear_of_changes_and_of_nothing_else() -> None:
    store = Store()
    heard: list[ChangeSet] = []
    end = store.subscribe(heard.append)
    list_nodes(store, make_node("one"))
    list_nodes(store, make_node("one"))
    assert len(heard) == 1
    end()
    list_nodes(store)
    assert len(heard) == 1


def test_a_vanished_node_leaves_a_tombstone_until_dismissed() -> None:
    store = Store()
    node = make_node("one")
    list_nodes(store, node)
    list_nodes(store, minute=3)
    assert store.snapshot.nodes == {}
    assert store.snapshot.tombstones[node.name].vanished == NOW + timedelta(minutes=3)
    changes = store.apply(TombstonesDismissed(frozenset((node.name,))))
    assert changes.nodes == {node.name}
    assert store.snapshot.tombstones == {}


def test_nodes_of_an_unreachable_zone_are_kept_and_not_buried() -> None:
    store = Store()
    near, far = make_node("near"), make_node("far", zone="europe-west4-a")
    list_nodes(store, near, far)
    list_nodes(store, near, minute=1, unreachable=("europe-west4-a",))
    list_nodes(store, near, minute=2, unreachable=("europe-west4-a",))
    assert far.name in store.snapshot.nodes
    assert store.snapshot.tombstones == {}
    assert store.snapshot.unreachable == {"europe-west4-a": NOW + timedelta(minutes=1)}


def test_times_follow_a_node_through_its_states() -> None:
    store = Store()
    for minute, state in enumerate(("CREATING", "READY", "READY", "PREEMPTED")):
        list_nodes(store, make_node("one", state), minute=minute)
    times = store.snapshot.times[make_node("one").name]
    assert times.first_seen == NOW
    assert times.ready_since == NOW + timedelta(minutes=1)
    assert times.ready_until == NOW + timedelta(minutes=3)
    assert times.state_since == NOW + timedelta(minutes=3)


def test_a_source_that_says_the_same_again_changes_nothing() -> None:
    store = Store()
    status = SourceStatus("nodes", SourceState.FAILING, title="no answer")
    assert store.apply(SourceReported(status)).sources == {"nodes"}
    assert store.apply(SourceReported(status)) == NOTHING


def test_log_entries_are_counted_once() -> None:
    store = Store()
    entry = make_entry(1, insert_id="a")
    assert store.apply(LogsArrived((entry, entry))).logs == 1
    assert store.apply(LogsArrived((entry,))) == NOTHING


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(1, 7))
def test_log_entries_are_in_order_however_they_arrive(seconds: list[int], batch: int) -> None:
    ring = LogRing()
    entries = [make_entry(second, insert_id=str(at)) for at, second in enumerate(seconds)]
    for start in range(0, len(entries), batch):
        ring.add(entries[start : start + batch])
    times = [entry.timestamp for entry in ring]
    assert times == sorted(times)
    assert len(times) == len(seconds)


@given(st.lists(st.text(max_size=200), max_size=80))
def test_the_log_ring_never_holds_more_than_it_may(texts: list[str]) -> None:
    ring = LogRing(max_entries=20, max_bytes=8_000)
    ring.add(make_entry(at, text, insert_id=str(at)) for at, text in enumerate(texts))
    assert len(ring) <= 20
    assert sum(len(entry.text) for entry in ring) <= 8_000
    assert len(ring) + ring.evicted == len(texts)


def test_a_late_entry_raises_the_revision_and_an_early_one_does_not() -> None:
    ring = LogRing()
    ring.add([make_entry(1), make_entry(2, "b")])
    assert ring.revision == 0
    ring.add([make_entry(1.5, "late")])
    assert ring.revision == 1
    assert [entry.text for entry in ring] == ["line", "late", "b"]
    assert [entry.text for entry in ring.newest(2)] == ["late", "b"]


def make_series(*values: tuple[int, float], node_id: str | None = "one") -> MetricSeries:
    points = tuple(MetricPoint(NOW + timedelta(minutes=at), value) for at, value in values)
    return MetricSeries("cpu", node_id, "us-central1-b", "0", "%", points)


def test_series_merge_without_doubling_points() -> None:
    store = Store()
    assert store.apply(SeriesRead((make_series((0, 1.0), (1, 2.0)),), NOW)).series == {"one"}
    assert store.apply(SeriesRead((make_series((1, 2.0)),), NOW)) == NOTHING
    assert store.apply(SeriesRead((make_series((1, 2.0), (3, 4.0)),), NOW)).series == {"one"}
    (series,) = store.series.of("one")
    assert [point.value for point in series.points] == [1.0, 2.0, 4.0]


def test_series_keep_the_newest_points() -> None:
    book = SeriesBook(max_points=3)
    book.add([make_series(*((at, float(at)) for at in range(9)))])
    (series,) = book.of("one")
    assert [point.value for point in series.points] == [6.0, 7.0, 8.0]


def test_the_log_ring_tells_a_view_what_it_has_not_seen() -> None:
    ring = LogRing(max_entries=4)
    ring.add([make_entry(1, "a"), make_entry(2, "b"), make_entry(3, "c")])
    assert ring.tail_since(ring.arrived) == []
    seen = ring.arrived
    ring.add([make_entry(2.5, "late")])
    assert [(number, entry.text) for number, entry in ring.tail_since(seen)] == [
        (3, "late"),
        (2, "c"),
    ]
    seen = ring.arrived
    ring.add(make_entry(second, str(second)) for second in range(10, 16))
    assert [number for number, _ in ring.tail_since(seen)] == [6, 7, 8, 9]
    assert (ring.arrived, ring.evicted) == (10, 6)


def test_a_vanished_request_leaves_a_tombstone_until_dismissed() -> None:
    store, request = Store(), make_request()
    store.apply(RequestsListed(RequestListing((request,)), NOW))
    store.apply(LogsArrived((replace(make_entry(1, "last words"), node_id="waiting-1"),)))
    gone = NOW + timedelta(minutes=3)
    changes = store.apply(RequestsListed(RequestListing(()), gone))
    assert changes.requests == {request.name}
    stone = store.snapshot.request_tombstones[request.name]
    assert (stone.request, stone.vanished) == (request, gone)
    assert [entry.text for entry in stone.last_entries] == ["last words"]
    assert store.apply(TombstonesDismissed(frozenset((request.name,)))).requests == {request.name}
    assert not store.snapshot.request_tombstones


def test_a_request_of_a_silent_zone_or_that_came_back_is_not_gone() -> None:
    store, request = Store(), make_request()
    store.apply(RequestsListed(RequestListing((request,)), NOW))
    store.apply(RequestsListed(RequestListing((), (request.zone,)), NOW))
    assert not store.snapshot.request_tombstones
    store.apply(RequestsListed(RequestListing(()), NOW))
    store.apply(RequestsListed(RequestListing((request,)), NOW))
    assert not store.snapshot.request_tombstones


def test_nodes_that_come_and_go_for_days_are_forgotten_with_their_series() -> None:
    store = Store()
    for at in range(MAX_TOMBSTONES + 100):
        node = make_node(f"n-{at}")
        list_nodes(store, node, minute=at)
        store.apply(SeriesRead((make_series((at, 1.0), node_id=node.node_id),), NOW))
    assert len(store.snapshot.tombstones) == MAX_TOMBSTONES
    assert not store.series.of("n-0")
    assert store.series.of(f"n-{MAX_TOMBSTONES + 99}")
