"""The history file: shared, bounded, coarser with age, and never in the way when it fails."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.tui.factories import NOW, FakeClock, add_logs, list_nodes, make_entry, make_node
from tpudash.domain.metric import MetricPoint, MetricSeries
from tpudash.errors import ConfigurationError
from tpudash.pollers.memory import MemorySource
from tpudash.store import history as module
from tpudash.store.changes import SeriesRead
from tpudash.store.history import History
from tpudash.store.history_collector import Collector
from tpudash.store.history_reading import Seen
from tpudash.store.past import CostSeen, Event, NodeStateSeen
from tpudash.store.store import Store
from tpudash.store.training_curve import StepPoint, TrainingCurve

if TYPE_CHECKING:
    from pathlib import Path

    from tpudash.gateways.protocols import Cloud

LONG_AGO = NOW - timedelta(days=365)


def series(*ages_s: float, value: float = 1.0, node: str = "demo-1") -> MetricSeries:
    points = tuple(
        MetricPoint(NOW - timedelta(seconds=age), value + at) for at, age in enumerate(ages_s)
    )
    return MetricSeries("cpu", node, "z", "0", "%", points, {"core": "1"})


def everything() -> Seen:
    return Seen(
        (series(120, 60, 0),),
        (TrainingCurve("demo", (StepPoint(NOW, 1, 10, {"loss": 0.5}),)),),
        (NodeStateSeen(NOW, "n", "READY"),),
        (Event(NOW, "demo-1", "demo", 1, "checkpoint", "saved", "id-1"),),
        (CostSeen(NOW, 1.35, None),),
    )


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "state" / "seen.sqlite3")


def test_what_was_written_is_read_and_doubles_are_kept_once(history: History) -> None:
    assert history.read("demo", LONG_AGO) == Seen()
    history.write("demo", everything())
    other_console = History(history.path)
    other_console.write("demo", everything())
    assert other_console.read("demo", LONG_AGO) == everything()
    assert history.read("another", LONG_AGO) == Seen()
    assert History(history.path, "127.0.0.1:1").read("demo", LONG_AGO) == Seen()
    assert (
        history.read("demo", NOW - timedelta(seconds=90)).series[0].points
        == (everything().series[0].points[1:])
    )


def test_samples_become_coarser_with_age_and_keep_their_mean(history: History) -> None:
    day = 86_400
    history.write("demo", Seen((series(*range(20 * day + 3_600, 20 * day, -60)),)))
    history.write("demo", Seen((series(*range(600, 0, -5)),)))
    history.tidy(NOW)
    history.tidy(NOW)
    (found,) = history.read("demo", LONG_AGO).series
    old = [point for point in found.points if point.time < NOW - timedelta(days=1)]
    assert 1 <= len(old) <= 2
    assert len(found.points) - len(old) == 120
    with closing(sqlite3.connect(history.path)) as database:
        (mean,) = database.execute(
            "SELECT SUM(value * weight) / SUM(weight) FROM sample WHERE time < ?",
            ((NOW - timedelta(days=1)).timestamp() * 1000,),
        ).fetchone()
    assert mean == pytest.approx(1 + 59 / 2)


def test_what_is_too_old_goes(history: History) -> None:
    history.write("demo", everything())
    history.tidy(NOW + module.KEPT + timedelta(days=1))
    assert history.read("demo", LONG_AGO) == Seen()


def test_the_file_keeps_to_its_size(history: History) -> None:
    many = tuple(series(*range(2_000, 0, -1), node=f"n-{at}") for at in range(40))
    history.write("demo", Seen(many))
    small = History(history.path, most_bytes=1 << 20)
    small.tidy(NOW)
    left = small.read("demo", LONG_AGO).series
    assert left
    with closing(sqlite3.connect(history.path)) as database:
        pages, free, size = (
            database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
    assert (pages - free) * size <= 1 << 20
    assert max(one.points[-1].time for one in left) == NOW - timedelta(seconds=1)


def test_consoles_write_at_the_same_time(history: History) -> None:
    problems: list[Exception] = []

    def write(console: int) -> None:
        mine = History(history.path)
        try:
            for at in range(20):
                mine.write("demo", Seen((series(at, node=f"n-{console}"),)))
        except ConfigurationError as error:
            problems.append(error)

    threads = [threading.Thread(target=write, args=(console,)) for console in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert sum(len(one.points) for one in history.read("demo", LONG_AGO).series) == 80


@pytest.mark.parametrize(
    "data", [b"not a database at all" * 100, b"SQLite format 3\0" + b"x" * 4096]
)
def test_a_damaged_file_is_named_set_aside_and_begun_anew(history: History, data: bytes) -> None:
    history.path.parent.mkdir()
    history.path.write_bytes(data)
    with pytest.raises(ConfigurationError, match="damaged") as caught:
        history.write("demo", everything())
    assert "set aside" in caught.value.hint
    assert history.path.with_name("seen.sqlite3.damaged").read_bytes() == data
    history.write("demo", everything())
    assert history.read("demo", LONG_AGO) == everything()


def test_a_locked_and_a_foreign_file_are_named_and_left_alone(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY_S", 0.05)
    history.write("demo", everything())
    with closing(sqlite3.connect(history.path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(ConfigurationError) as caught:
            history.write("demo", everything())
        assert "another process" in caught.value.detail
        holder.execute("ROLLBACK")
        holder.execute("PRAGMA user_version = 99")
    with pytest.raises(ConfigurationError) as caught:
        history.write("demo", everything())
    assert "later tpudash" in caught.value.detail
    assert history.path.exists()


def test_a_full_disk_is_named(history: History) -> None:
    history.write("demo", everything())
    opened = history._open

    def limited() -> sqlite3.Connection:
        database = opened()
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        database.execute(f"PRAGMA max_page_count = {pages}")
        return database

    history._open = limited  # type: ignore[method-assign]
    with pytest.raises(ConfigurationError) as caught:
        history.write("demo", Seen((series(*range(20_000)),)))
    assert "disk is full" in caught.value.detail
    history._open = opened  # type: ignore[method-assign]
    assert history.read("demo", LONG_AGO) == everything()


def test_what_a_killed_console_wrote_is_there(history: History) -> None:
    database = history._open()
    database.execute("BEGIN IMMEDIATE")
    database.execute("INSERT INTO cost VALUES ('demo', 1, 2.0, 3.0)")
    # A console that dies in a transaction leaves the journal beside the file.
    copy = history.path.with_name("copy.sqlite3")
    for end in ("", "-wal"):
        copy.with_name(copy.name + end).write_bytes(
            history.path.with_name(history.path.name + end).read_bytes()
        )
    database.close()
    assert History(copy).read("demo", LONG_AGO) == Seen()
    History(copy).write("demo", everything())
    assert History(copy).read("demo", LONG_AGO) == everything()


def make_source(store: Store, history: History) -> MemorySource:
    collector = Collector(store, lambda: (1.35, 2.7))
    return MemorySource(store, FakeClock(), history, collector, "demo")


def fill(store: Store) -> None:
    list_nodes(store, make_node("demo-1", "CREATING"))
    store.apply(SeriesRead((series(120, 60, 0),), NOW))
    add_logs(
        store,
        make_entry(1, "step", payload={"event": "step", "step": 10, "loss": 0.5}, attempt=1),
        make_entry(2, "saved by bob@example.com", payload={"event": "checkpoint"}, attempt=1),
    )


async def test_a_console_shows_at_its_start_what_another_saw(history: History) -> None:
    first = Store()
    source = make_source(first, history)
    fill(first)
    await source.poll(None)
    seen = history.read("demo", LONG_AGO)
    assert [one.state for one in seen.states] == ["CREATING"]
    assert [one.text for one in seen.events] == ["saved by ***"]
    assert seen.costs == (CostSeen(NOW, 1.35, 2.7),)
    second = Store()
    await make_source(second, history).poll(cast("Cloud", SimpleNamespace(project="demo")))
    assert second.series.of("demo-1")[0].points == series(120, 60, 0).points
    assert second.remembered["demo"].points[0].values == {"loss": 0.5}


async def test_what_cannot_be_read_at_the_start_is_shown_later(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.write("demo", everything())
    monkeypatch.setattr(module, "BUSY_S", 0.05)
    store = Store()
    source = make_source(store, history)
    with closing(sqlite3.connect(history.path, isolation_level=None)) as holder:
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ConfigurationError):
            await source.poll(None)
    assert store.past.states_of("n") == ()
    await source.poll(None)
    assert [one.state for one in store.past.states_of("n")] == ["READY"]
    assert store.past.costs[0].per_hour_usd == 1.35
    assert "saved" not in [one.text for one in store.past.events], "checkpoints would fill it"


async def test_what_was_read_is_not_written_again(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.write("demo", everything())
    written: list[Seen] = []
    monkeypatch.setattr(history, "write", lambda _, seen: written.append(seen))
    await make_source(Store(), history).poll(None)
    assert [one for seen in written for one in seen.series] == []


async def test_nothing_is_written_twice_and_what_failed_is_written_later(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store()
    source = make_source(store, history)
    written: list[Seen] = []
    failing: list[Any] = [ConfigurationError("locked")]

    def write(project: str, seen: Seen) -> None:
        if failing:
            raise failing.pop()
        written.append(seen)

    monkeypatch.setattr(history, "write", write)
    fill(store)
    with pytest.raises(ConfigurationError):
        await source.poll(None)
    assert written == []
    await source.poll(None)
    assert len(written) == 1
    await source.poll(None)
    assert len(written) == 1
    one = series(0)
    later = MetricPoint(NOW + timedelta(seconds=60), 9.0)
    store.apply(SeriesRead((replace(one, points=(*one.points, later)),), NOW))
    await source.poll(None)
    assert [point.value for point in written[-1].series[0].points] == [9.0]
