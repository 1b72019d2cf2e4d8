"""This machine's memory of when nodes were READY."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.tui.factories import NOW, list_nodes, make_node, node_name, report_source
from tpudash.cost.estimate import node_costs, project_totals
from tpudash.cost.history import KEPT, NodeHistory
from tpudash.cost.prices import PriceBook
from tpudash.domain.life import ReadySpan
from tpudash.errors import ConfigurationError
from tpudash.store.changes import LivesRead
from tpudash.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from tpudash.domain.node import Node

BOOK = PriceBook.bundled()
RATE = 1.35


def at(minute: float) -> datetime:
    return NOW + timedelta(minutes=minute)


@pytest.fixture
def history(tmp_path: Path) -> NodeHistory:
    return NodeHistory(tmp_path / "state" / "history.sqlite3")


def node(state: str, node_id: str = "demo-1") -> Node:
    return make_node(node_id, state, create_time=at(-1))


def watch(history: NodeHistory, *states: tuple[float, str]) -> None:
    for minute, state in states:
        history.record("demo", [node(state)], at(minute))


def test_what_was_watched_is_remembered_exactly(history: NodeHistory) -> None:
    watch(history, (0, "CREATING"), (1, "READY"), (2, "READY"), (3, "PREEMPTED"))
    (life,) = history.lives("demo")
    assert life.spans == (ReadySpan(at(1), at(3)),)
    assert (life.is_open, life.preempted, life.last_seen) == (False, at(3), at(3))
    assert (life.run, life.owner, life.attempt) == ("demo", "alice", 1)
    assert life.create_time == at(-1)


def test_a_node_that_was_ready_twice_has_both_spans(history: NodeHistory) -> None:
    watch(history, (0, "CREATING"), (1, "READY"), (2, "STOPPED"), (3, "STARTING"), (4, "READY"))
    watch(history, (5, "READY"))
    (life,) = history.lives("demo")
    assert life.spans == (ReadySpan(at(1), at(2)), ReadySpan(at(4), at(5)))
    assert life.is_open


def test_what_happened_between_two_sessions_is_at_least(history: NodeHistory) -> None:
    watch(history, (0, "READY"), (1, "READY"), (61, "PREEMPTED"))
    (life,) = history.lives("demo")
    assert life.spans == (ReadySpan(at(0), at(1), begins_late=True, ends_early=True),)
    watch(history, (121, "READY"))
    (life,) = history.lives("demo")
    assert life.spans[1].begins_late


def test_a_node_that_went_is_remembered_with_when(history: NodeHistory) -> None:
    watch(history, (0, "READY"))
    assert history.record("demo", [], at(1))
    (life,) = history.lives("demo")
    assert (life.gone, life.is_open) == (at(1), False)
    assert life.spans[0].end == at(1)
    assert not history.record("demo", [], at(2))


def test_a_silent_zone_says_nothing_about_its_nodes(history: NodeHistory) -> None:
    watch(history, (0, "READY"))
    history.record("demo", [], at(1), ["us-central1-b"])
    (life,) = history.lives("demo")
    assert (life.gone, life.is_open) == (None, True)


def test_an_older_look_of_another_console_changes_nothing(history: NodeHistory) -> None:
    watch(history, (0, "READY"), (1, "PREEMPTED"))
    before = history.lives("demo")
    assert not history.record("demo", [node("READY")], at(0.5))
    assert history.lives("demo") == before


def test_a_name_that_is_used_again_is_another_life(history: NodeHistory) -> None:
    watch(history, (0, "READY"))
    again = make_node("demo-1", "READY", create_time=at(5))
    history.record("demo", [again], at(6))
    lives = history.lives("demo")
    assert [life.create_time for life in lives] == [at(-1), at(5)]
    assert lives[0].gone == at(6)


def test_projects_and_local_endpoints_are_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "h"
    NodeHistory(path).record("demo", [node("READY")], at(0))
    assert NodeHistory(path).lives("other") == ()
    assert NodeHistory(path, "127.0.0.1:1").lives("demo") == ()


def test_old_lives_are_forgotten_and_the_file_stays_small(history: NodeHistory) -> None:
    watch(history, (0, "READY"))
    history.record("demo", [], at(1))
    history.record("demo", [node("READY", "demo-2")], at(2) + KEPT)
    assert [life.name for life in history.lives("demo")] == [node_name("demo-2")]


def test_many_consoles_write_at_once(history: NodeHistory) -> None:
    failures: list[Exception] = []

    def console(number: int) -> None:
        try:
            for minute in range(10):
                history.record("demo", [node("READY")], at(minute + number / 100))
        except ConfigurationError as error:
            failures.append(error)

    threads = [threading.Thread(target=console, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    (life,) = history.lives("demo")
    assert len(life.spans) == 1
    assert life.spans[0].start < at(0.1)
    assert life.spans[0].end >= at(9)


@pytest.mark.parametrize("content", [b"not a database at all, and long enough", b"\0" * 4096])
def test_a_file_that_is_something_else_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "h"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        NodeHistory(path).record("demo", [node("READY")], at(0))
    assert str(path) in caught.value.detail
    assert path.read_bytes() == content


def test_without_a_file_nothing_is_known_and_none_is_made(history: NodeHistory) -> None:
    assert history.lives("demo") == ()


def test_costs_of_a_node_that_another_session_saw(history: NodeHistory) -> None:
    """It was READY for 30 minutes, and is gone since before this session."""
    watch(history, (-60, "CREATING"), *((minute, "READY") for minute in range(-59, -29)))
    watch(history, (-29, "PREEMPTED"))
    history.record("demo", [], at(-28))
    store = Store()
    store.apply(LivesRead(history.lives("demo")))
    unheard = project_totals(store.snapshot, BOOK, at(0))
    assert (unheard.per_hour_usd, unheard.accrued_is_lower_bound) == (None, True)
    assert unheard.accrued_usd == pytest.approx(RATE / 2)
    list_nodes(store, at=at(0))
    report_source(store, "nodes")
    totals = project_totals(store.snapshot, BOOK, at(0))
    assert totals.accrued_usd == pytest.approx(RATE / 2)
    assert not totals.accrued_is_lower_bound
    assert totals.per_hour_usd == 0.0


def test_a_node_seen_late_is_exact_with_history_and_at_least_without(history: NodeHistory) -> None:
    created = at(-180)
    ready = make_node("demo-1", "READY", create_time=created)
    early = make_node("demo-1", "CREATING", create_time=created)
    history.record("demo", [early], at(-171))
    history.record("demo", [ready], at(-170))
    store = Store()
    list_nodes(store, ready, at=at(0))
    name = node_name("demo-1")
    without = node_costs(store.snapshot, BOOK, at(10))[name]
    assert without.is_lower_bound
    store.apply(LivesRead(history.lives("demo")))
    exact = node_costs(store.snapshot, BOOK, at(10))[name]
    assert not exact.is_lower_bound
    assert exact.accrued_usd == pytest.approx(RATE * 3)
