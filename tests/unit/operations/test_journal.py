"""The journal: intent survives, torn and damaged files, and several processes at once."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from tests.unit.operations.fake_cloud import FakeClock
from tpudash.domain.operation import OperationKind, OperationState
from tpudash.errors import ConfigurationError
from tpudash.operations.journal import Journal, JournalledOperation
from tpudash.operations.journal_file import JournalFile
from tpudash.operations.payload import DeletePayload, Doomed
from tpudash.operations.refusals import RefusedError


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "state", FakeClock())


def begun(name: str = "op", run: str | None = "demo") -> JournalledOperation:
    now = FakeClock().now()
    return JournalledOperation(
        operation_id=name,
        kind=OperationKind.DELETE,
        project="demo",
        run=run,
        title="Delete demo",
        started=now,
        updated=now,
        nodes=("n",),
        payload=DeletePayload(project="demo", doomed=(Doomed(name="n", create_time=now),)),
    )


def test_what_was_begun_is_unfinished_until_it_ends(journal: Journal) -> None:
    journal.begin(begun())
    journal.note("op", "halfway")
    (one,) = journal.unfinished("demo")
    assert (one.message, one.state) == ("halfway", OperationState.RUNNING)
    assert one.payload == begun().payload
    assert not journal.unfinished("another-project")
    journal.end("op", OperationState.DONE, "all gone")
    assert not journal.unfinished()
    found = journal.find("op")
    assert found is not None
    assert (found.state, found.message) == (OperationState.DONE, "all gone")


def test_a_line_that_was_cut_off_is_dropped_and_nothing_else(journal: Journal) -> None:
    journal.begin(begun())
    with journal.path.open("ab") as file:
        file.write(b'{"event":"end","operation":"op","sta')
    assert len(journal.unfinished()) == 1
    assert not journal.problem
    journal.begin(begun("second"))
    assert [one.operation_id for one in journal.unfinished()] == ["op", "second"]
    assert not list(journal.path.parent.glob("*.corrupt-*"))
    for line in journal.path.read_text().splitlines():
        json.loads(line)


def test_a_whole_last_line_without_its_end_is_kept(journal: Journal) -> None:
    journal.begin(begun())
    journal.path.write_bytes(journal.path.read_bytes().rstrip(b"\n"))
    journal.begin(begun("second"))
    assert [one.operation_id for one in journal.unfinished()] == ["op", "second"]


def test_a_damaged_file_is_named_and_set_aside_by_the_next_writer(journal: Journal) -> None:
    journal.begin(begun())
    damaged = b"\x00\xffnonsense\n" + journal.path.read_bytes() + b"[1]\n"
    journal.path.write_bytes(damaged)
    assert len(journal.unfinished()) == 1
    assert str(journal.path) in journal.problem
    assert journal.path.read_bytes() == damaged, "reading changes nothing"
    journal.begin(begun("second"))
    aside = journal.path.with_name(f"{journal.path.name}.corrupt-1")
    assert aside.read_bytes() == damaged
    assert [one.operation_id for one in journal.unfinished()] == ["op", "second"]
    assert not journal.problem


def test_it_is_for_its_owner_alone_and_holds_no_addresses(journal: Journal) -> None:
    journal.begin(begun())
    journal.note("op", "denied for svc-1@proj.iam.gserviceaccount.com")
    journal.end("op", OperationState.FAILED, "ask someone@example.com")
    assert stat.S_IMODE(journal.path.stat().st_mode) == 0o600
    assert "@" not in journal.path.read_text()


def test_a_state_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    journal = Journal(tmp_path / "file" / "state", FakeClock())
    with pytest.raises(ConfigurationError) as caught:
        journal.prepare()
    assert "state directory" in caught.value.hint


def test_a_run_is_held_by_one_at_a_time(journal: Journal) -> None:
    with journal.held("demo"):
        assert journal.is_held("demo")
        assert not journal.is_held("other")
        with pytest.raises(RefusedError), journal.held("demo"):
            pass
    assert not journal.is_held("demo")


def _append_many(path: str, who: int) -> None:
    file = JournalFile(Path(path))
    for number in range(25):
        file.append({"who": who, "number": number, "padding": "x" * 3000})


def test_processes_that_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "operations.jsonl"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_append_many, args=(str(path), who)) for who in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    records = JournalFile(path).records()
    assert len(records) == 75
    for who in range(3):
        assert [one["number"] for one in records if one["who"] == who] == list(range(25))


def _hold_and_die(folder: str, ready: str) -> None:
    holding = Journal(Path(folder), FakeClock()).held("demo")
    holding.__enter__()
    Path(ready).touch()
    os._exit(9)


def test_a_process_that_dies_lets_go_of_its_run(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_hold_and_die, args=(str(tmp_path), str(tmp_path / "ready")))
    process.start()
    process.join(60)
    assert (tmp_path / "ready").exists()
    assert not Journal(tmp_path, FakeClock()).is_held("demo")


def test_what_an_emulator_was_asked_for_is_never_gone_on_with_in_the_cloud(tmp_path: Path) -> None:
    local = Journal(tmp_path, FakeClock(), is_local=True)
    local.begin(begun("launch-demo"))
    cloud = Journal(tmp_path, FakeClock())
    assert cloud.unfinished() == ()
    with local.held("demo"):
        assert not cloud.is_held("demo")
    assert [one.operation_id for one in local.unfinished("demo")] == ["launch-demo"]
