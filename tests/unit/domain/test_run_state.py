"""What a run is doing: evidence by its age, before any record's claim."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tpudash.domain.node import Node, Scheduling
from tpudash.domain.request import QueuedResource
from tpudash.domain.run import AttemptRecord, Recipe, RunResult, RunSpec, RunState, run_url_of
from tpudash.domain.run_state import Patience, RunEvidence, age_text, derive_run

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
ZONE = "us-central1-b"
PARENT = f"projects/demo/locations/{ZONE}"


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def spec(attempt: int = 1, **changes: Any) -> RunSpec:
    usual: dict[str, Any] = {
        "run": "demo", "owner": "alice", "attempt": attempt, "project": "demo", "zone": ZONE,
        "bucket": "gs://b", "run_url": run_url_of("gs://b", "demo"),
        "recipe": Recipe(name="tensorflow-mnist", command=("python3",)),
        "accelerator_type": "v2-8", "runtime_version": "x", "scheduling": Scheduling.SPOT,
        "created": ago(3600), "attempt_started": ago(60), "target_step": 600,
    }  # fmt: skip
    return RunSpec(**{**usual, **changes})


def record(attempt: int = 1, state: str = "TRAINING", **changes: Any) -> AttemptRecord:
    usual: dict[str, Any] = {
        "run": "demo", "attempt": attempt, "node": f"demo-{attempt}", "zone": ZONE,
        "state": state, "started": ago(60), "updated": ago(5), "step": 340,
        "checkpoint_step": 300, "restored_step": 0, "target_step": 600,
    }  # fmt: skip
    return AttemptRecord(**{**usual, **changes})


def node(attempt: int = 1, state: str = "READY", **changes: Any) -> Node:
    labels = {
        "tpudash-run": "demo", "tpudash-owner": "alice", "tpudash-attempt": str(attempt)
    }  # fmt: skip
    name = f"{PARENT}/nodes/demo-{attempt}"
    return replace(Node(name=name, state=state, labels=labels, create_time=ago(60)), **changes)


def evidence(**changes: Any) -> RunEvidence:
    usual: dict[str, Any] = {"name": "demo", "owner": "alice", "spec": spec()}
    return RunEvidence(**{**usual, **changes})


REQUEST = QueuedResource(name=f"{PARENT}/queuedResources/q", state="WAITING_FOR_RESOURCES")

CASES: dict[str, tuple[dict[str, Any], RunState, str]] = {
    "trains": ({"nodes": (node(),), "attempts": (record(),)}, RunState.TRAINING, "demo-1"),
    "silent agent": (
        {"nodes": (node(),), "attempts": (record(updated=ago(121)),)},
        RunState.STALLED,
        "silent",
    ),
    "an agent that writes beside a trainer that stands still": (
        {"nodes": (node(),), "attempts": (record(step_updated=ago(7_200)),)},
        RunState.STALLED,
        "has not moved since 2 h ago",
    ),
    "a trainer that moved a moment ago": (
        {"nodes": (node(),), "attempts": (record(step_updated=ago(20)),)},
        RunState.TRAINING,
        "demo-1",
    ),
    "a slice of which not all reported": (
        {"nodes": (node(),), "attempts": (record(workers=4, workers_missing=(2, 3)),)},
        RunState.TRAINING,
        "of its 4 workers, 2, 3 never reported",
    ),
    "preempted while its record says training": (
        {"nodes": (node(state="PREEMPTED"),), "attempts": (record(),)},
        RunState.PREEMPTED,
        "from step 300",
    ),
    "terminated": (
        {"nodes": (node(state="TERMINATED"),), "attempts": (record(),)},
        RunState.PREEMPTED,
        "TERMINATED",
    ),
    "vanished": ({"attempts": (record(),)}, RunState.PREEMPTED, "vanished"),
    "written since the nodes were listed": (
        {"attempts": (record(),), "nodes_as_of": ago(6)},
        RunState.TRAINING,
        "too new to be listed",
    ),
    "written since, by an agent that has just begun": (
        {"spec": spec(2), "attempts": (record(2, "STARTING", step=None),), "nodes_as_of": ago(6)},
        RunState.RESUMING,
        "demo-2 is too new",
    ),
    "left since the nodes were listed": (
        {"attempts": (record(state="PREEMPTED"),), "nodes_as_of": ago(6)},
        RunState.PREEMPTED,
        "vanished",
    ),
    "listed since it was written": (
        {"attempts": (record(),), "nodes_as_of": ago(4)},
        RunState.PREEMPTED,
        "vanished",
    ),
    "zone silent, record fresh": (
        {"attempts": (record(),), "unreachable": (ZONE,)},
        RunState.TRAINING,
        "Unknown, last heard 5 s ago",
    ),
    "zone silent, record old": (
        {"attempts": (record(updated=ago(7200)),), "unreachable": (ZONE,)},
        RunState.STALLED,
        "Unknown, last heard 2 h ago",
    ),
    "zone silent, nothing heard": ({"unreachable": (ZONE,)}, RunState.LAUNCHING, "Unknown"),
    "another zone silent": (
        {"attempts": (record(),), "unreachable": ("europe-west4-a",)},
        RunState.PREEMPTED,
        "vanished",
    ),
    "being made": ({"nodes": (node(state="CREATING"),)}, RunState.LAUNCHING, "CREATING"),
    "being made again": (
        {"spec": spec(2), "nodes": (node(2, "CREATING"),), "attempts": (record(),)},
        RunState.RESUMING,
        "CREATING",
    ),
    "ready, not heard yet": ({"nodes": (node(),)}, RunState.LAUNCHING, "not written yet"),
    "ready again, not heard yet": (
        {"spec": spec(2), "nodes": (node(2),), "attempts": (record(),)},
        RunState.RESUMING,
        "demo-2",
    ),
    "ready for long and never heard": (
        {"nodes": (node(create_time=ago(1000)),)},
        RunState.STALLED,
        "never written",
    ),
    "ready, records not readable": (
        {"nodes": (node(),), "records_unread": True},
        RunState.STALLED,
        "could not be read",
    ),
    "starting": (
        {"nodes": (node(),), "attempts": (record(state="STARTING", step=None, stage="trace"),)},
        RunState.LAUNCHING,
        "trace",
    ),
    "spec only": ({}, RunState.LAUNCHING, "no node yet"),
    "spec only, long ago": (
        {"spec": spec(attempt_started=ago(1000))},
        RunState.PREEMPTED,
        "resume",
    ),
    "failed": (
        {
            "nodes": (node(),),
            "attempts": (
                record(
                    state="FAILED",
                    error={"class": "HBM_OOM", "detail": "8.38G of 8.00G", "hint": "halve it"},
                ),
            ),
        },
        RunState.FAILED,
        "(HBM_OOM): 8.38G of 8.00G. Halve it.",
    ),
    "failed, then preempted": (
        {"nodes": (node(state="PREEMPTED"),), "attempts": (record(state="FAILED"),)},
        RunState.FAILED,
        "logs",
    ),
    "could not be made": (
        {"spec": spec(failure={"class": "STOCKOUT", "detail": "no more capacity", "hint": ""})},
        RunState.FAILED,
        "STOCKOUT",
    ),
    "could not be made, but is there": (
        {"spec": spec(failure={"class": "STOCKOUT"}), "nodes": (node(),)},
        RunState.LAUNCHING,
        "READY",
    ),
    "finished": (
        {"result": RunResult(run="demo", attempt=1, finished=ago(9), step=600)},
        RunState.FINISHED,
        "step 600",
    ),
    "finished, node left": (
        {"nodes": (node(),), "attempts": (record(state="FINISHED", step=600),)},
        RunState.FINISHED,
        "delete demo",
    ),
    "deleted": (
        {"spec": spec(deleted=ago(60)), "attempts": (record(),)},
        RunState.DELETED,
        "kept",
    ),
    "deleted, but there": (
        {"spec": spec(deleted=ago(60)), "nodes": (node(),), "attempts": (record(),)},
        RunState.TRAINING,
        "ALARM: it was deleted",
    ),
    "waiting for capacity": ({"requests": (REQUEST,)}, RunState.WAITING, "WAITING_FOR"),
    "request failed": (
        {"requests": (replace(REQUEST, state="FAILED", failure="no"),)},
        RunState.FAILED,
        "(no)",
    ),
    "being deleted": (
        {"nodes": (node(state="DELETING"),), "attempts": (record(),)},
        RunState.PREEMPTED,
        "being deleted",
    ),
    "being repaired": (
        {"nodes": (node(state="REPAIRING"),), "attempts": (record(updated=ago(300)),)},
        RunState.WAITING,
        "REPAIRING",
    ),
    "stopped": ({"nodes": (node(state="STOPPED"),)}, RunState.STALLED, "STOPPED"),
    "in a state of the future": (
        {"nodes": (node(state="FROZEN"),)},
        RunState.STALLED,
        "FROZEN",
    ),
    "saved and leaving": (
        {"nodes": (node(),), "attempts": (record(state="PREEMPTED"),)},
        RunState.PREEMPTED,
        "saved",
    ),
    "two live nodes": (
        {"nodes": (node(), node(2)), "attempts": (record(2),)},
        RunState.TRAINING,
        "ALARM: it has 2 live nodes",
    ),
    "no spec": ({"spec": None, "nodes": (node(),)}, RunState.LAUNCHING, "READY"),
    "damaged record": (
        {"nodes": (node(),), "problems": ("run.json is damaged",)},
        RunState.LAUNCHING,
        "Note: run.json is damaged.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_state_and_reason(case: str) -> None:
    changes, state, words = CASES[case]
    run = derive_run(evidence(**changes), NOW)
    assert run.state is state, run.reason
    assert words in run.reason
    assert run.reason.endswith(".")


def test_metrics_of_a_deleted_run_are_kept() -> None:
    result = RunResult(run="demo", attempt=1, finished=NOW, step=600, metrics={"loss": 0.1})
    run = derive_run(evidence(spec=spec(deleted=ago(1)), result=result), NOW)
    assert (run.state, run.final_metrics, run.step) == (RunState.DELETED, {"loss": 0.1}, 600)


def test_the_threshold_of_silence_is_injected() -> None:
    silent = evidence(nodes=(node(),), attempts=(record(updated=ago(30)),))
    assert derive_run(silent, NOW).state is RunState.TRAINING
    assert derive_run(silent, NOW, Patience(silence_s=20)).state is RunState.STALLED


@pytest.mark.parametrize(
    ("attempts", "lost"),
    [
        ((), None),
        ((record(),), 0),
        ((record(), record(2, restored_step=300)), 40),
        ((record(), record(2, restored_step=300, steps_lost=7)), 7),
        ((record(), record(2, restored_step=360)), 0),
        ((record(), record(2, restored_step=None)), None),
        ((record(), record(2, restored_step=300, step=350), record(3, restored_step=340)), 50),
        ((record(), record(2, restored_step=300, step=None), record(3, restored_step=290)), 50),
        ((record(), record(2, restored_step=None), record(3, restored_step=300, step=9)), 40),
        ((record(steps_lost=3), record(2, restored_step=300)), 43),
    ],
)
def test_steps_lost_over_all_attempts(
    attempts: tuple[AttemptRecord, ...], lost: int | None
) -> None:
    assert derive_run(evidence(attempts=attempts), NOW).steps_lost == lost


def test_a_start_from_zero_although_there_were_checkpoints_is_an_alarm() -> None:
    again = record(2, restored_step=0, step=10, checkpoint_step=None)
    run = derive_run(evidence(spec=spec(2), nodes=(node(2),), attempts=(record(), again)), NOW)
    assert run.reason.startswith("ALARM: attempt 2 began again at step 0")
    fine = record(checkpoint_step=None)
    assert "ALARM" not in derive_run(evidence(attempts=(fine, again)), NOW).reason


def test_progress_is_that_of_the_newest_attempt() -> None:
    second = record(2, restored_step=300, step=None, checkpoint_step=None)
    run = derive_run(evidence(attempts=(record(), second)), NOW)
    assert (run.step, run.checkpoint_step, run.target_step) == (300, 300, 600)
    assert run.last_heard == ago(5)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (200000, "2 d")],
)
def test_ages_are_told_in_their_largest_unit(seconds: int, text: str) -> None:
    assert age_text(timedelta(seconds=seconds)) == text
