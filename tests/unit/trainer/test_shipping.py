"""Shipping of log entries: order, loss of the network, bounds."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from tests.waiting import wait_until
from trainer.agent.shipper import Entry, SendError, Shipper
from trainer.agent.spool import Spool

if TYPE_CHECKING:
    from pathlib import Path


class Receiver:
    """The other end, which can be switched off."""

    def __init__(self) -> None:
        self.reachable = True
        self.refuses = ""
        self.got: list[Entry] = []

    def send(self, entries: list[Entry]) -> None:
        """Take entries, or fail as told."""
        if not self.reachable:
            raise SendError("unavailable")
        if self.refuses and any(entry.get("text") == self.refuses for entry in entries):
            raise SendError("invalid", refused=True)
        self.got += entries

    def texts(self) -> list[str]:
        """Return the texts that arrived."""
        return [entry.get("text", "") for entry in list(self.got)]


def make(tmp_path: Path, receiver: Receiver, limit: int = 10**6) -> tuple[Shipper, list[str]]:
    """Return a started shipper and what it tells."""
    told: list[str] = []
    spool = Spool(tmp_path / "spool", limit)
    shipper = Shipper(receiver, spool, identity="i", flush_s=0.01, tell=told.append)
    shipper.start()
    return shipper, told


def test_entries_arrive_in_order(tmp_path: Path) -> None:
    receiver = Receiver()
    shipper, _ = make(tmp_path, receiver)
    for number in range(1000):
        shipper.submit("stdout", text=str(number))
    shipper.close(10)
    assert receiver.texts() == [str(number) for number in range(1000)]
    assert shipper.dropped == 0


def test_lost_network_keeps_entries_on_disk(tmp_path: Path) -> None:
    receiver = Receiver()
    receiver.reachable = False
    shipper, told = make(tmp_path, receiver)
    shipper.submit("stdout", text="a")
    wait_until(lambda: told, within=5, what="the loss is told")
    shipper.submit("stdout", text="b")
    receiver.reachable = True
    wait_until(lambda: receiver.texts() == ["a", "b"], within=5, what="both arrive in order")
    assert "answers again" in told[-1]
    shipper.close(5)


def test_entries_survive_the_process(tmp_path: Path) -> None:
    receiver = Receiver()
    receiver.reachable = False
    shipper, _ = make(tmp_path, receiver)
    shipper.submit("stdout", text="a")
    shipper.close(5)
    receiver.reachable = True
    second, _ = make(tmp_path, receiver)
    second.close(5)
    assert receiver.texts() == ["a"]


def test_overflow_is_counted_and_reported(tmp_path: Path) -> None:
    receiver = Receiver()
    receiver.reachable = False
    shipper, _ = make(tmp_path, receiver, limit=2000)
    for number in range(100):
        shipper.submit("stdout", text=f"{number:030d}")
    wait_until(lambda: shipper.dropped > 0, within=5, what="the spool overflows")
    receiver.reachable = True
    wait_until(
        lambda: any("entries were lost" in text for text in receiver.texts()),
        within=5,
        what="the loss is reported",
    )
    shipper.close(5)
    arrived = [text for text in receiver.texts() if "lost" not in text]
    assert len(arrived) + shipper.dropped == 100
    assert arrived == sorted(arrived)
    assert (tmp_path / "spool").stat().st_size <= 2000


def test_refused_entry_does_not_block_the_others(tmp_path: Path) -> None:
    receiver = Receiver()
    receiver.refuses = "bad"
    shipper, _ = make(tmp_path, receiver)
    for text in ("a", "bad", "b"):
        shipper.submit("stdout", text=text)
    shipper.close(5)
    assert [text for text in receiver.texts() if "lost" not in text] == ["a", "b"]
    assert shipper.dropped == 1


def test_submit_never_waits_for_a_slow_receiver(tmp_path: Path) -> None:
    entered, release = threading.Event(), threading.Event()

    class Slow(Receiver):
        def send(self, entries: list[Entry]) -> None:
            entered.set()
            release.wait(20)
            super().send(entries)

    receiver = Slow()
    shipper, _ = make(tmp_path, receiver)
    shipper.submit("stdout", text="first")
    assert entered.wait(5)
    for number in range(6000):
        shipper.submit("stdout", text=str(number))
    assert shipper.dropped == 1000, "memory is bounded"
    release.set()
    shipper.close(10)
    assert len([text for text in receiver.texts() if "lost" not in text]) == 5001


@given(
    chunks=st.lists(st.lists(st.text(max_size=20), max_size=5), max_size=8),
    takes=st.lists(st.integers(1, 4), max_size=8),
)
def test_spool_is_a_queue(chunks: list[list[str]], takes: list[int], tmp_path_factory: Any) -> None:
    spool = Spool(tmp_path_factory.mktemp("spool") / "file", 10**6)
    expected: list[str] = []
    got: list[str] = []
    for index, chunk in enumerate(chunks):
        assert spool.append([{"text": text} for text in chunk]) == 0
        expected += chunk
        entries, position = spool.peek(takes[index] if index < len(takes) else 1)
        spool.consume(position)
        got += [entry["text"] for entry in entries]
    while not spool.empty:
        entries, position = spool.peek(3)
        spool.consume(position)
        got += [entry["text"] for entry in entries]
    assert got == expected


def test_torn_line_of_a_crash_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    path.write_bytes(b'{"text": "a"}\n{"text": "to\n{"text": "b"}\n')
    entries, position = Spool(path, 1000).peek(10)
    assert [entry["text"] for entry in entries] == ["a", "b"]
    assert position == path.stat().st_size
