"""The roll call of a slice: who has no agent is named, once there was time enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.agent.folders import FolderError, LocalFolder
from trainer.agent.metadata import NodeIdentity
from trainer.agent.roll_call import RollCall

if TYPE_CHECKING:
    from pathlib import Path


def call_of(folder: Any, worker: int, told: list[tuple[str, str]], patience_s: float) -> RollCall:
    """Return the roll call as one worker of a slice of four holds it."""
    node = NodeIdentity("demo", "us-central1-b", "demo-2", worker, "v2-32", workers=4)
    return RollCall(folder, node, 2, patience_s, lambda text, level: told.append((text, level)))


def test_workers_without_an_agent_are_named_once(tmp_path: Path) -> None:
    folder, told = LocalFolder(tmp_path), list[tuple[str, str]]()
    first = call_of(folder, 0, told, patience_s=0.0)
    call_of(folder, 1, told, patience_s=0.0).show()
    assert first.missing() == [2, 3]
    assert told == [("PARTIAL_SLICE: of 4 workers, 2, 3 never reported", "ERROR")]
    call_of(folder, 3, told, patience_s=0.0).show()
    assert first.missing() == [2]
    call_of(folder, 2, told, patience_s=0.0).show()
    assert first.missing() == []
    assert len(told) == 1


def test_nobody_is_missed_before_there_was_time(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []
    assert call_of(LocalFolder(tmp_path), 0, told, patience_s=600.0).missing() == []
    assert call_of(LocalFolder(tmp_path), 2, told, patience_s=0.0).missing() == []
    assert told == []


def test_those_of_an_earlier_attempt_do_not_count(tmp_path: Path) -> None:
    for worker in (1, 2, 3):
        LocalFolder(tmp_path).write(f"attempts/1.worker-{worker}", b"{}")
    assert call_of(LocalFolder(tmp_path), 0, [], patience_s=0.0).missing() == [1, 2, 3]


def test_a_worker_that_cannot_write_says_so() -> None:
    class Closed:
        def write(self, name: str, content: bytes) -> None:
            raise FolderError("no access")

    told: list[tuple[str, str]] = []
    call_of(Closed(), 1, told, patience_s=0.0).show()
    assert told == [("attempts/2.worker-1 cannot be written: no access", "WARNING")]
