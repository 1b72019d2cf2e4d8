"""The table of the checks of runs: what makes each of them give each of its verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.tui.factories import NOW, make_attempt, make_entry, make_node, make_run, make_spec
from tests.unit.diagnostics.cases import ago, event
from tests.unit.diagnostics.verdict_cases import (
    BUSY,
    CHIPS,
    DENIED,
    FAIL,
    LOST,
    NOT_APPLICABLE,
    OOM,
    OVER,
    PASS,
    READ_AHEAD,
    ROOM,
    SERVING,
    SKEW,
    TORN,
    UNHEARD,
    UNKNOWN,
    WAITING,
    WARN,
    at_risk,
    batch,
    capped,
    failed_run,
    limits,
    line,
    node_in_change,
    offer,
    overcome,
    preempted_run,
    refused_run,
    resumed_run,
    run,
    served,
    stored,
    waits,
    without_run,
)
from tpudash.domain.failure import ErrorClass, Failure, RetryPolicy
from tpudash.domain.run import RunState

if TYPE_CHECKING:
    from tests.unit.diagnostics.verdict_cases import Case
    from tpudash.domain.finding import Verdict

STOCKOUT: Final = Failure(ErrorClass.QUOTA, "Limit: 0", "ask", RetryPolicy.NEVER)

CASES_OF_RUNS: Final[dict[str, dict[Verdict, Case]]] = {
    "batch-fits": {
        PASS: batch("1024"),
        WARN: batch("200"),
        FAIL: batch("100"),
        UNKNOWN: batch("many"),
        NOT_APPLICABLE: batch("100", state=RunState.FINISHED),
    },
    "bucket-near": {
        PASS: stored("US-CENTRAL1"),
        WARN: stored("EU"),
        UNKNOWN: stored(None),
        NOT_APPLICABLE: run(),
    },
    "bucket-usable": {
        PASS: run(None, event("step", -5, step=1)),
        WARN: run(None, *overcome(DENIED)),
        FAIL: run(None, line(DENIED)),
        UNKNOWN: run(UNHEARD),
        NOT_APPLICABLE: without_run,
    },
    "checkpoints-sound": {
        PASS: run(),
        WARN: run(make_run(attempts=(make_attempt(quarantined=("ckpt-300",)),))),
        NOT_APPLICABLE: run(UNHEARD),
    },
    "cost-cap": {
        PASS: capped(100.0),
        WARN: capped(3.3),
        FAIL: capped(2.0),
        UNKNOWN: run(
            make_run(spec=make_spec(max_cost_usd=1.0, accelerator_type="v9-8"), attempts=()),
            nodes=(make_node(accelerator_type="v9-8"),),
        ),
        NOT_APPLICABLE: capped(None),
    },
    "device-free": {
        PASS: run(None, event("devices", **CHIPS, lock_is_stale=False)),
        WARN: run(None, event("devices", **CHIPS, lock_is_stale=True, lock_file="/tmp/x")),
        FAIL: run(None, line(BUSY)),
        UNKNOWN: run(),
        NOT_APPLICABLE: without_run,
    },
    "device-used": {
        PASS: run(None, event("start", device={"kind": "TPU", "count": 8})),
        WARN: run(None, event("start", device={"kind": "TPU", "count": 2})),
        FAIL: run(None, event("start", device={"kind": "CPU", "count": 1})),
        UNKNOWN: run(),
        NOT_APPLICABLE: run(OVER),
    },
    "error-line": {
        PASS: run(None, event("step", -5, step=1)),
        FAIL: run(None, line(TORN)),
        UNKNOWN: run(),
        NOT_APPLICABLE: without_run,
    },
    "host-room": {
        PASS: run(None, event("host", **ROOM)),
        WARN: run(None, event("host", **{**ROOM, "disk_free_bytes": 2**30})),
        UNKNOWN: run(),
        NOT_APPLICABLE: run(OVER),
    },
    "input-keeps-up": {
        PASS: waits(0.05),
        WARN: waits(0.3),
        FAIL: waits(0.6),
        UNKNOWN: run(),
        NOT_APPLICABLE: run(OVER),
    },
    "input-pipeline": {
        PASS: waits(0.6, **READ_AHEAD),
        WARN: waits(0.3, **{**READ_AHEAD, "prefetch": False}),
        UNKNOWN: waits(0.3),
        NOT_APPLICABLE: run(OVER),
    },
    "log-entries-dropped": {
        PASS: run(),
        WARN: run(make_run(attempts=(make_attempt(log_entries_dropped=1200),))),
        NOT_APPLICABLE: run(UNHEARD),
    },
    "out-of-memory": {
        PASS: run(None, event("step", -5, step=1)),
        WARN: run(None, *overcome(OOM)),
        FAIL: run(None, line(OOM)),
        UNKNOWN: run(UNHEARD),
        NOT_APPLICABLE: without_run,
    },
    "quota-room": {
        PASS: limits(16),
        FAIL: limits(0),
        UNKNOWN: limits(None),
        NOT_APPLICABLE: run(),
    },
    "resumed-from-zero": {
        PASS: run(resumed_run(400)),
        WARN: run(resumed_run(0, checkpoint_step=None)),
        FAIL: run(resumed_run(0)),
        UNKNOWN: run(resumed_run(None)),
        NOT_APPLICABLE: run(),
    },
    "run-created": {
        PASS: run(),
        WARN: run(refused_run("UNKNOWN_OUTCOME"), nodes=()),
        FAIL: run(refused_run("STOCKOUT"), nodes=()),
        UNKNOWN: run(WAITING, nodes=()),
        NOT_APPLICABLE: run(make_run(state=RunState.DELETED)),
    },
    "run-failed": {
        PASS: run(),
        WARN: run(make_run(attempts=(make_attempt(restarts=2),))),
        FAIL: run(failed_run({"class": "HBM_OOM", "detail": "full"})),
        NOT_APPLICABLE: without_run,
    },
    "run-preempted": {
        PASS: run(),
        FAIL: run(preempted_run(), nodes=(make_node("demo-1", "PREEMPTED"),)),
        UNKNOWN: run(
            make_run(state=RunState.PREEMPTED, attempts=(make_attempt(updated=NOW),)), nodes=()
        ),
        NOT_APPLICABLE: run(OVER),
    },
    "run-stalled": {
        PASS: run(),
        WARN: run(make_run(last_heard=ago(minutes=6))),
        FAIL: run(make_run(state=RunState.STALLED, last_heard=ago(hours=1))),
        UNKNOWN: run(make_run(last_heard=None)),
        NOT_APPLICABLE: run(OVER),
    },
    "self-check": {
        PASS: run(None, event("check", -4, check="devices", verdict="ok")),
        WARN: run(None, event("check", -4, check="input", verdict="warning", message="slow")),
        FAIL: run(None, event("check", -4, check="step", verdict="failed", message="no chips")),
        UNKNOWN: run(failed_run()),
        NOT_APPLICABLE: without_run,
    },
    "serving-answers": {
        PASS: run(SERVING, serving=(served(),)),
        FAIL: run(SERVING, serving=(served(error_share=0.5),)),
        UNKNOWN: run(SERVING),
        NOT_APPLICABLE: run(),
    },
    "startup-done": {
        PASS: run(),
        WARN: run(make_run(state=RunState.LAUNCHING, attempts=())),
        FAIL: run(
            make_run(state=RunState.LAUNCHING, attempts=()),
            make_entry(-9, "[startup] ERROR: the bundle is damaged", stream="startup", attempt=1),
        ),
        UNKNOWN: node_in_change(),
        NOT_APPLICABLE: run(OVER),
    },
    "steps-at-risk": {
        PASS: run(),
        WARN: at_risk(10),
        UNKNOWN: run(make_run(step=None)),
        NOT_APPLICABLE: run(OVER),
    },
    "tpu-address": {
        PASS: run(None, event("start", arguments={"tpu": "local"})),
        WARN: run(None, event("start", arguments={"tpu": "other"})),
        UNKNOWN: run(),
        NOT_APPLICABLE: run(nodes=()),
    },
    "tpu-reached": {
        PASS: run(None, event("step", -5, step=1)),
        WARN: run(None, *overcome(LOST)),
        FAIL: run(None, line(LOST)),
        UNKNOWN: run(UNHEARD),
        NOT_APPLICABLE: without_run,
    },
    "type-offered": {
        PASS: offer({"v2-8"}),
        FAIL: offer({"v3-8"}),
        UNKNOWN: offer(None),
        NOT_APPLICABLE: run(),
    },
    "versions-agree": {
        PASS: run(None, event("start", versions={"tensorflow-tpu": "2.19.1", "libtpu": "0.0.17"})),
        WARN: run(None, event("start", versions={"tensorflow-tpu": "2.19.1", "libtpu": "0.0.41"})),
        FAIL: run(None, line(SKEW)),
        UNKNOWN: run(),
        NOT_APPLICABLE: without_run,
    },
}
