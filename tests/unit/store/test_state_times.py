"""How long a node is in its state: as seen, as remembered, or at most since its creation."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from tests.tui.factories import NOW, list_nodes, make_node
from tpudash.domain.life import NodeLife, ReadySpan
from tpudash.domain.node import Node, NodeState
from tpudash.store.changes import LivesRead
from tpudash.store.state_times import StateTime, StateTimes
from tpudash.store.store import Store

CREATED = NOW - timedelta(hours=2)
SEEN = NOW - timedelta(seconds=5)


def node(state: NodeState = NodeState.READY) -> Node:
    return make_node("demo-1", state=state, create_time=CREATED)


def life(start_minutes_ago: float, *, begins_late: bool = False) -> NodeLife:
    start = NOW - timedelta(minutes=start_minutes_ago)
    one = node()
    return NodeLife(
        name=one.name,
        create_time=CREATED,
        accelerator_type=one.accelerator_type,
        scheduling=one.scheduling,
        run=one.run,
        owner=one.owner,
        attempt=1,
        spans=(ReadySpan(start, SEEN, begins_late=begins_late),),
        is_open=True,
        last_seen=SEEN,
    )


def seen(*nodes: Node, lives: tuple[NodeLife, ...] = ()) -> Store:
    store = Store()
    list_nodes(store, *nodes, at=SEEN)
    if lives:
        store.apply(LivesRead(lives))
    return store


def test_what_was_there_before_anybody_looked_counts_from_its_creation_at_most() -> None:
    store = seen(node())
    assert StateTimes(store.snapshot).of(node()) == StateTime(CREATED, is_earliest=True)


def test_what_history_saw_begin_is_exact() -> None:
    store = seen(node(), lives=(life(90),))
    assert StateTimes(store.snapshot).of(node()) == StateTime(NOW - timedelta(minutes=90))


def test_what_history_did_not_see_begin_is_not() -> None:
    store = seen(node(), lives=(life(90, begins_late=True),))
    assert StateTimes(store.snapshot).of(node()) == StateTime(CREATED, is_earliest=True)


def test_a_life_of_an_earlier_node_of_that_name_says_nothing() -> None:
    earlier = replace(life(90), create_time=CREATED - timedelta(days=1))
    store = seen(node(), lives=(earlier,))
    assert StateTimes(store.snapshot).of(node()) == StateTime(CREATED, is_earliest=True)


def test_a_creation_begins_with_the_node() -> None:
    creating = node(NodeState.CREATING)
    assert StateTimes(seen(creating).snapshot).of(creating) == StateTime(CREATED)


def test_a_turn_that_was_seen_is_exact() -> None:
    store = seen(node(NodeState.CREATING))
    list_nodes(store, node(), at=NOW)
    assert StateTimes(store.snapshot).of(node()) == StateTime(NOW)


def test_a_clock_that_is_behind_makes_no_state_older_than_its_node() -> None:
    ahead = replace(node(), create_time=NOW + timedelta(minutes=5))
    assert StateTimes(seen(ahead).snapshot).of(ahead) == StateTime(SEEN)
