"""What agents left in the bucket fills in for attempts that are long gone."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from tests.tui.factories import NOW, add_logs, make_attempt, make_entry, make_run, read_runs
from tpudash.domain.run import AttemptState
from tpudash.errors import UnreachableError
from tpudash.pollers.log_archive import LogArchive
from tpudash.store.store import Store

if TYPE_CHECKING:
    from tpudash.gateways.protocols import Cloud


class FakeBucket:
    """A bucket of which a test says what is in it."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.problem: Exception | None = None
        self.read_files: list[str] = []

    async def list(self, url: str) -> tuple[str, ...]:
        if self.problem is not None:
            raise self.problem
        return tuple(f"{url}/{name}" for name in self.files)

    async def read(self, url: str) -> bytes | None:
        self.read_files.append(url.rsplit("/", 1)[-1])
        return self.files[self.read_files[-1]]


def cloud_of(bucket: FakeBucket) -> Cloud:
    return cast("Cloud", SimpleNamespace(bucket=bucket))


def left_behind(attempt: int, *texts: str, worker: int = 0) -> bytes:
    """The file of one worker as an agent writes it, and a line that it never finished."""
    head = {"tpudash-log": 1, "run": "demo", "attempt": attempt, "node": f"demo-{attempt}"}
    lines = [{**head, "zone": "us-central1-b", "worker": worker}] + [
        {"ts": f"2026-12-01T08:00:{at:02d}Z", "insert_id": f"{attempt}-{worker}-{at}", "text": text}
        for at, text in enumerate(texts)
    ]
    return b"\n".join(json.dumps(line).encode() for line in lines) + b'\n{"ts": "2026-'


def store_with_attempts() -> Store:
    store = Store()
    over = [make_attempt(at, state=AttemptState.PREEMPTED, ended=NOW) for at in (1, 2)]
    read_runs(store, make_run(attempts=(*over, make_attempt(3))))
    add_logs(store, make_entry(-5, "of the second", node_id="demo-2", attempt=2))
    return store


async def test_only_attempts_of_which_nothing_is_known_are_read_and_once() -> None:
    bucket = FakeBucket(
        {
            "1.log": left_behind(1, "first words", "last words"),
            "1.1.log": left_behind(1, "of worker 1", worker=1),
            "2.log": left_behind(2, "known already"),
            "3.log": left_behind(3, "goes on"),
            "1.json": b"{}",
            "note.txt": b"x",
        }
    )
    archive = LogArchive(store_with_attempts())
    found = await archive.missing(cloud_of(bucket))
    said = {(entry.node_id, entry.worker_id, entry.text) for file in found for entry in file}
    assert said == {
        ("demo-1", "0", "first words"),
        ("demo-1", "0", "last words"),
        ("demo-1", "1", "of worker 1"),
    }
    assert {(entry.run, entry.attempt) for file in found for entry in file} == {("demo", 1)}
    assert sorted(bucket.read_files) == ["1.1.log", "1.log"]
    assert await archive.missing(cloud_of(bucket)) == []


async def test_a_bucket_that_cannot_be_read_disturbs_nothing() -> None:
    bucket = FakeBucket({})
    bucket.problem = UnreachableError("the bucket does not answer")
    assert await LogArchive(store_with_attempts()).missing(cloud_of(bucket)) == []
