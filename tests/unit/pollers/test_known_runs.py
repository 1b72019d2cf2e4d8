"""Runs that this machine began, read from the journal by those who must not import operations."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tpudash.clock import SystemClock
from tpudash.config.paths import find_paths
from tpudash.domain.node import Scheduling
from tpudash.domain.run import Recipe, RunSpec
from tpudash.operations.journal import Journal
from tpudash.pollers.known_runs import KnownRuns

if TYPE_CHECKING:
    from pathlib import Path

SPEC = RunSpec(
    run="demo",
    owner="alice",
    attempt=1,
    project="demo",
    zone="us-central1-b",
    bucket="/b",
    run_url="/b/tpudash/runs/demo",
    recipe=Recipe(name="tensorflow-mnist", command=("python3", "-m", "trainer")),
    accelerator_type="v2-8",
    runtime_version="tpu-vm-tf-2.19.0-pjrt",
    scheduling=Scheduling.SPOT,
    created=datetime(2026, 12, 1, 8, 0, tzinfo=UTC),
)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path, SystemClock())


def test_the_newest_spec_of_each_run_of_the_project(journal: Journal) -> None:
    known = KnownRuns(journal.path)
    assert known.specs("demo") == ()
    journal.note_spec("op-1", SPEC)
    assert known.specs("demo") == (SPEC,)
    journal.note_spec("op-2", replace(SPEC, attempt=2))
    journal.note_spec(
        "op-3", replace(SPEC, run="other", project="elsewhere", run_url="/b/tpudash/runs/other")
    )
    (spec,) = known.specs("demo")
    assert spec.attempt == 2
    assert [spec.run for spec in known.specs("elsewhere")] == ["other"]


@pytest.mark.parametrize("is_local", [False, True])
def test_it_is_the_journal_that_operations_write(tmp_path: Path, is_local: bool) -> None:
    paths = find_paths({"TPUDASH_STATE_DIR": str(tmp_path)})
    journal = Journal(paths.state_dir, SystemClock(), is_local=is_local)
    assert paths.journal_file(is_local=is_local) == journal.path


@pytest.mark.parametrize(
    "line", [b"\xff\xfe", b'{"event": "spec"', b'{"event":"spec","spec":"{}"}', b'["spec"]', b""]
)
def test_a_damaged_line_costs_itself_only(journal: Journal, line: bytes) -> None:
    journal.note_spec("op-1", SPEC)
    with journal.path.open("ab") as file:
        file.write(line + b"\n")
        file.write(json.dumps({"event": "spec", "spec": 3}).encode() + b"\n")
    journal_of_other = journal.path.read_bytes()
    assert KnownRuns(journal.path).specs("demo") == (SPEC,)
    assert journal.path.read_bytes() == journal_of_other, "a reader changes nothing"


def test_what_cannot_be_read_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "operations.jsonl").mkdir()
    assert KnownRuns(tmp_path / "operations.jsonl").specs("demo") == ()
