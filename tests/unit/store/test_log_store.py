"""The log's columns, spool, folds and pulses; and a file as a log."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tpudash.domain.log import LogEntry, Severity
from tpudash.logtext.entries import UNKNOWN_TIME
from tpudash.store.changes import LogsArrived
from tpudash.store.log_file import CHUNK, LogFile
from tpudash.store.log_ring import ROWS, LogRing
from tpudash.store.log_spool import MEMORY_BYTES, LogSpool
from tpudash.store.store import Store

if TYPE_CHECKING:
    import pytest

NOW = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)


def make_entry(second: float, text: str, **more: Any) -> LogEntry:
    fields = {"insert_id": text, "node_id": "n", "worker_id": "0", **more}
    severity = fields.pop("severity", Severity.INFO)
    return LogEntry(NOW + timedelta(seconds=second), severity, text, **fields)


@given(st.lists(st.binary(max_size=300), max_size=60), st.booleans())
def test_whatever_is_put_can_be_read(texts: list[bytes], on_disk: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        spool = LogSpool(Path(name) if on_disk else None, max_bytes=4_096)
        addresses = [spool.put(text) for text in texts]
        assert addresses == sorted(addresses)
        read = [spool.read(at, len(text)) for at, text in zip(addresses, texts, strict=True)]
        assert read == texts
        spool.close()


def test_the_spool_has_no_name_and_gives_the_disk_back(tmp_path: Path) -> None:
    spool = LogSpool(tmp_path, max_bytes=1 << 21)
    addresses = [spool.put(b"x" * 1_000) for _ in range(5_000)]
    assert list(tmp_path.iterdir()) == []
    held = spool.bytes_on_disk
    for address in addresses[:4_000]:
        spool.forget(address)
    assert spool.bytes_on_disk < held / 3
    assert spool.read(addresses[-1], 1_000) == b"x" * 1_000
    assert spool.read(addresses[0], 1_000) == b""
    spool.close()


def test_a_full_disk_leaves_what_is_there_and_goes_on_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = LogSpool(tmp_path)
    before = [spool.put(b"%06d" % number * 1_000) for number in range(100)]

    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", refuse)
    after = [spool.put(b"%06d" % number * 1_000) for number in range(100, 200)]
    for number, address in enumerate([*before, *after]):
        assert spool.read(address, 6_000) == b"%06d" % number * 1_000
    assert "No space left" in spool.problem
    assert spool.limit == MEMORY_BYTES


def test_a_folder_that_can_not_be_made_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ring = LogRing(folder=tmp_path / "file" / "below")
    ring.add([make_entry(1, "text")])
    assert [entry.text for entry in ring] == ["text"]
    assert ring.spool.problem
    assert ring.spool.place == "memory"


ENTRIES = st.lists(
    st.builds(
        make_entry,
        st.integers(0, 40),
        st.text(max_size=12),
        worker_id=st.sampled_from(("0", "1", "2")),
        severity=st.sampled_from(list(Severity)),
        payload=st.none() | st.just({"event": "step", "step": 3, "loss": float("nan")}),
    ),
    max_size=60,
)


@given(ENTRIES, st.integers(1, 9))
@settings(max_examples=200)
def test_entries_of_several_workers_are_merged_and_each_is_known_once(
    entries: list[LogEntry], batch: int
) -> None:
    numbered = [replace(entry, insert_id=str(at)) for at, entry in enumerate(entries)]
    ring = LogRing()
    for start in range(0, len(numbered), batch):
        # What was heard before comes again, as after a stream that broke.
        ring.add(numbered[max(0, start - 5) : start + batch])
    wanted = sorted(numbered, key=lambda entry: entry.timestamp)
    found = list(ring)
    assert [entry.timestamp for entry in found] == [entry.timestamp for entry in wanted]
    assert {entry.insert_id for entry in found} == {entry.insert_id for entry in wanted}
    assert len(found) == len(wanted)


def test_many_late_entries_split_blocks_and_stay_in_order() -> None:
    ring = LogRing()
    ring.add(make_entry(at, f"even {at}") for at in range(0, 6 * ROWS, 2))
    ring.add(make_entry(at, f"odd {at}") for at in range(1, 6 * ROWS, 2))
    assert len(ring) == 6 * ROWS
    times = [entry.timestamp for entry in ring]
    assert times == sorted(times)
    assert all(len(block) <= 2 * ROWS + 1 for block in ring.blocks)


def test_bytes_are_bounded_whatever_arrives() -> None:
    ring = LogRing(max_bytes=1 << 20)
    for number in range(300):
        ring.add([make_entry(number, f"{number} " + "x" * 20_000)])
    assert sum(len(entry.text) for entry in ring) <= 1 << 20
    assert len(ring) + ring.evicted == 300
    assert [entry.text[:4] for entry in ring.newest(1)] == ["299 "]


def test_texts_are_clean_and_severities_are_what_lines_claim() -> None:
    ring = LogRing()
    ring.add(
        [
            make_entry(1, "\x1b[31m10%\r100%\x1b[0m", insert_id="a"),
            make_entry(2, "E1201 08:00:00.1 7 x.cc:1] bad", insert_id="b", stream="stderr"),
            make_entry(3, "fine", insert_id="c\x1f\x00", payload={"k": "\x1b]0;x\x07", "n": 1}),
        ]
    )
    first, second, third = ring
    assert first.text == "100%"
    assert second.severity is Severity.ERROR
    assert (third.text, third.payload) == ("fine", {"k": "\x1b]0;x\x07", "n": 1})


def test_pulses_tell_of_each_worker() -> None:
    ring = LogRing()
    ring.add(
        [
            make_entry(1, "hello", worker_id="0", run="r", attempt=1),
            make_entry(2, "", worker_id="1", run="r", payload={"event": "step", "step": 7}),
            make_entry(3, "ValueError: no", worker_id="1", run="r", stream="stderr"),
        ]
    )
    zero, one = sorted(ring.pulses, key=lambda pulse: pulse.worker_id)
    assert (zero.lines, zero.errors, zero.step) == (1, 0, None)
    assert (one.lines, one.errors, one.step, one.last_text) == (2, 1, 7, "ValueError: no")


def test_older_events_are_found_by_their_marks() -> None:
    ring = LogRing()
    ring.add(
        make_entry(at, str(at), payload={"event": "start" if at % 10 == 0 else "step", "step": at})
        for at in range(100)
    )
    found = ring.older_events({"start"}, 50)
    assert [entry.text for entry in found] == ["0", "10", "20", "30", "40"]


# A file.


def texts(file: LogFile) -> list[str]:
    found = []
    for block in file.blocks:
        file.load(block)
        found += [file.line(block, at).text for at in range(len(block))]
    return found


@given(st.lists(st.integers(0, 3 * CHUNK // 50), max_size=8), st.booleans())
@settings(max_examples=40, deadline=None)
def test_chunks_give_each_line_of_a_file_once(lengths: list[int], ended: bool) -> None:
    lines = [f"{number} " + "x" * length * 10 for number, length in enumerate(lengths)]
    with tempfile.NamedTemporaryFile() as temporary:
        temporary.write(("\n".join(lines) + ("\n" if ended and lines else "")).encode())
        temporary.flush()
        file = LogFile(Path(temporary.name))
        assert texts(file) == lines
        file.close()


def test_a_file_grows_is_cut_and_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\ntw")
    file = LogFile(path)
    assert texts(file) == ["one", "tw"]
    assert not file.poll()
    with path.open("a") as more:
        more.write("o\nthree\n" + "x" * (2 * CHUNK) + "\nlast\n")
    assert file.poll()
    assert texts(file)[:3] == ["one", "two", "three"]
    assert texts(file)[-1] == "last"
    path.write_text("new\n")
    assert file.poll()
    assert texts(file) == ["new"]
    (tmp_path / "other").write_text("another file\n")
    (tmp_path / "other").rename(path)
    assert file.poll()
    assert texts(file) == ["another file"]
    file.close()


def test_a_file_of_anything_can_be_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(os.urandom(300_000) + b"\n{broken json\n\x1b]0;x\n\n")
    file = LogFile(path)
    assert all("\x1b" not in text for text in texts(file))
    assert texts(file)[-3:] == ["{broken json", "", ""]
    file.close()


def test_a_chunk_is_passed_over_only_if_nothing_in_it_could_be_meant(tmp_path: Path) -> None:
    path = tmp_path / "log"
    event = '{"event": "step", "step": 120, "target_step": 600, "loss": 0.5}\n'
    path.write_text(event + "plain words\n" * 40_000)
    file = LogFile(path)
    first = file.blocks[0]
    for words in (b"loss 0.5000", b"step 120/600", b"plain words"):
        assert file.may_hold(first, [words])
    assert not file.may_hold(first, [b"plain sentences"])
    assert not file.may_hold(first, [b"number 80000001"])
    file.close()


SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
EVENTS_OF_TRAINERS = ("start", "stage", "step", "checkpoint", "host", "preempt", "error", "finish")


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.sampled_from((*EVENTS_OF_TRAINERS, "unheard of", 7, None)),
            st.dictionaries(st.sampled_from(("step", "metrics", "chips", "loss", "x")), SHAPES),
            st.sampled_from(("demo-1", "nobody", "")),
            st.sampled_from(("0", "31", "w-x", "")),
            st.integers(-10, 10),
        ),
        max_size=8,
    )
)
def test_entries_of_any_shape_and_from_anywhere_are_taken_in(
    given_: list[tuple[object, dict[str, Any], str, str, int]],
) -> None:
    store = Store()
    entries = [
        make_entry(
            second,
            "",
            payload={**fields, "event": event},
            node_id=node,
            worker_id=worker,
            insert_id=f"{at}",
        )
        for at, (event, fields, node, worker, second) in enumerate(given_)
    ]
    unknown = [replace(entry, timestamp=UNKNOWN_TIME) for entry in entries[:1]]
    store.apply(LogsArrived(tuple(entries + unknown)))
    lines = list(store.logs)
    assert [line.timestamp for line in lines] == sorted(line.timestamp for line in lines)
    assert store.logs.older_events({"step", "finish"}, 0) is not None
    assert all(isinstance(line.text, str) for line in store.logs.newest(100))


def test_a_burst_of_the_largest_entries_stays_within_bounds(tmp_path: Path) -> None:
    """A third of 60,000 a minute, some as large and as deep as the service lets through."""
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"deeper": deep}
    store = Store()
    store.logs = LogRing(max_entries=10_000, max_bytes=8 << 20, folder=tmp_path)
    large = {"event": "step", "step": 1, "blob": "x" * (256 * 1024), "deep": deep}
    begun = time.perf_counter()
    for start in range(0, 20_000, 500):
        batch = [make_entry(start / 1_000, f"line {at}") for at in range(start, start + 499)]
        batch.append(make_entry(start / 1_000, f"large {start}", payload=large))
        store.apply(LogsArrived(tuple(batch)))
    assert time.perf_counter() - begun < 15, "sooner than they come"
    assert len(store.logs) <= 10_000
    assert store.logs.spool.bytes_on_disk <= 32 << 20
    assert "19998" in store.logs.newest(2)[0].text
