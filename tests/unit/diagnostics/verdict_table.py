"""The table: check by check, what makes it give each of its verdicts."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tests.tui.factories import NOW, make_attempt, make_entry, make_node, make_run, make_spec
from tests.unit.diagnostics.cases import ago, event
from tests.unit.diagnostics.verdict_cases import (
    API_OFF,
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
    SCHEDULED,
    SERVING,
    SKEW,
    TORN,
    UNHEARD,
    UNKNOWN,
    WAITING,
    WARN,
    after,
    announced,
    asked,
    at_risk,
    batch,
    busy,
    capped,
    dead_requests,
    emulated,
    endpoint,
    failed_run,
    keys,
    limits,
    line,
    node,
    node_in_change,
    offer,
    operation,
    overcome,
    ports,
    preempted_run,
    priced,
    project,
    refused_run,
    resumed_run,
    run,
    served,
    silent_zone,
    slice_heard,
    spending,
    stored,
    tried,
    waits,
    with_source,
    without_run,
)
from tpudash.domain.failure import ErrorClass, Failure, RetryPolicy
from tpudash.domain.node import Symptom
from tpudash.domain.operation import OperationState
from tpudash.domain.probe import BillingFacts, FirewallRule, PortState, ProbeKind
from tpudash.domain.run import RunState
from tpudash.store.snapshot import ENDPOINTS, LOGS, NODES, SourceState
from tpudash.store.store import Store

if TYPE_CHECKING:
    from tests.unit.diagnostics.verdict_cases import Case
    from tpudash.domain.finding import Verdict

STOCKOUT: Final = Failure(ErrorClass.QUOTA, "Limit: 0", "ask", RetryPolicy.NEVER)

CASES: Final[dict[str, dict[Verdict, Case]]] = {
    "api-answers": {
        PASS: project(),
        WARN: project(store=with_source(LOGS, SourceState.FAILING, title="denied")),
        FAIL: project(store=with_source(NODES, SourceState.FAILING, title="denied")),
        UNKNOWN: project(store=Store()),
    },
    "api-enabled": {
        PASS: project(),
        FAIL: project(store=with_source(NODES, SourceState.FAILING, title="x", detail=API_OFF)),
        UNKNOWN: project(store=with_source(NODES, SourceState.FAILING, title="no answer")),
    },
    "batch-fits": {
        PASS: batch("1024"),
        WARN: batch("200"),
        FAIL: batch("100"),
        UNKNOWN: batch("many"),
        NOT_APPLICABLE: batch("100", state=RunState.FINISHED),
    },
    "billing-on": {
        PASS: project(probes=asked(ProbeKind.BILLING, BillingFacts("billingAccounts/1", True))),
        FAIL: project(probes=asked(ProbeKind.BILLING, BillingFacts("", False))),
        UNKNOWN: project(probes=asked(ProbeKind.BILLING, None)),
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
    "budget-crossed": {
        PASS: spending(1000.0),
        WARN: spending(4.0),
        FAIL: spending(2.0),
        UNKNOWN: spending(2.0, "EUR"),
        NOT_APPLICABLE: spending(0.0),
    },
    "burn-rate": {
        PASS: project(nodes=(make_node(),), runs=(make_run(),)),
        FAIL: project(nodes=(make_node(),), most_per_hour_usd=0.5),
        UNKNOWN: project(nodes=(make_node(accelerator_type="v9-8"),)),
    },
    "checkpoints-sound": {
        PASS: run(),
        WARN: run(make_run(attempts=(make_attempt(quarantined=("ckpt-300",)),))),
        NOT_APPLICABLE: run(UNHEARD),
    },
    "clocks-agree": {
        PASS: project(nodes=(make_node(),)),
        WARN: project(nodes=(make_node(create_time=NOW + timedelta(minutes=5)),)),
        UNKNOWN: project(),
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
    "dead-node-listed": {
        PASS: node(),
        WARN: node(make_node("demo-1", "PREEMPTED")),
        NOT_APPLICABLE: without_run,
    },
    "dead-requests": {
        PASS: dead_requests("ACTIVE"),
        WARN: dead_requests("SUSPENDED"),
        UNKNOWN: project(store=Store()),
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
    "endpoints-answer": {
        PASS: project(store=with_source(ENDPOINTS, SourceState.OK), serving=(endpoint(),)),
        FAIL: project(
            store=with_source(ENDPOINTS, SourceState.OK), serving=(endpoint(problem="no answer"),)
        ),
        NOT_APPLICABLE: project(),
    },
    "error-line": {
        PASS: run(None, event("step", -5, step=1)),
        FAIL: run(None, line(TORN)),
        UNKNOWN: run(),
        NOT_APPLICABLE: without_run,
    },
    "firewall-open": {
        PASS: project(
            probes=asked(ProbeKind.FIREWALL, (FirewallRule("a", ("0.0.0.0/0",)),), "default")
        ),
        WARN: project(probes=asked(ProbeKind.FIREWALL, (), "default")),
        UNKNOWN: project(probes=asked(ProbeKind.FIREWALL, None, "default")),
        NOT_APPLICABLE: emulated(),
    },
    "guest-attributes": {
        PASS: keys(1),
        WARN: keys(0),
        UNKNOWN: keys(None),
        NOT_APPLICABLE: node(make_node("demo-1", "STOPPED")),
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
    "log-entries-suppressed": {
        PASS: project(),
        WARN: project(suppressed_log_entries=1_500),
        UNKNOWN: project(store=Store()),
    },
    "maintenance-announced": {
        PASS: announced({}),
        WARN: announced({make_node().name: SCHEDULED}),
        UNKNOWN: announced(None),
        NOT_APPLICABLE: announced({}, state="PREEMPTED"),
    },
    "node-healthy": {
        PASS: node(),
        WARN: node(make_node(symptoms=(Symptom("LOW_MEMORY", "x", "0"),))),
        FAIL: node(make_node(health="UNHEALTHY_TENSORFLOW")),
        UNKNOWN: node(make_node("demo-1", "BRAND_NEW_STATE")),
        NOT_APPLICABLE: node(make_node("demo-1", "PREEMPTED")),
    },
    "node-idle": {
        PASS: node(None, runs=(make_run(),)),
        WARN: node(None, runs=(make_run(state=RunState.FINISHED, last_heard=ago(hours=1)),)),
        NOT_APPLICABLE: node(make_node("demo-1", "STOPPED")),
    },
    "node-without-run": {
        PASS: node(None, runs=(make_run(),)),
        WARN: node(make_node(run=None)),
        UNKNOWN: silent_zone(),
        NOT_APPLICABLE: node(make_node("demo-1", "STOPPED")),
    },
    "operation-failed": {
        PASS: after(operation(OperationState.DONE)),
        WARN: after(operation(OperationState.UNKNOWN)),
        FAIL: after(operation(OperationState.FAILED, STOCKOUT)),
        NOT_APPLICABLE: after(),
    },
    "out-of-memory": {
        PASS: run(None, event("step", -5, step=1)),
        WARN: run(None, *overcome(OOM)),
        FAIL: run(None, line(OOM)),
        UNKNOWN: run(UNHEARD),
        NOT_APPLICABLE: without_run,
    },
    "permissions-held": {
        PASS: project(probes=asked(ProbeKind.PERMISSIONS, frozenset())),
        WARN: project(probes=asked(ProbeKind.PERMISSIONS, frozenset({"tpu.nodes.create"}))),
        FAIL: project(probes=asked(ProbeKind.PERMISSIONS, frozenset({"tpu.nodes.get"}))),
        UNKNOWN: project(probes=asked(ProbeKind.PERMISSIONS, None)),
        NOT_APPLICABLE: emulated(),
    },
    "price-jump": {
        PASS: priced(None),
        WARN: priced(0.25),
        UNKNOWN: project(nodes=(make_node(),)),
        NOT_APPLICABLE: project(),
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
    "runtime-fits": {
        PASS: node(),
        FAIL: node(make_node(runtime_version="v2-alpha-tpuv6e")),
        UNKNOWN: node(make_node(runtime_version="something-new")),
        NOT_APPLICABLE: node(make_node("demo-1", "PREEMPTED")),
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
    "ssh-key": {
        PASS: project(probes=asked(ProbeKind.SSH_KEY, "/home/a/.ssh/google_compute_engine")),
        WARN: project(probes=asked(ProbeKind.SSH_KEY, "")),
        UNKNOWN: project(probes=asked(ProbeKind.SSH_KEY, None)),
        NOT_APPLICABLE: emulated(),
    },
    "ssh-reachable": {
        PASS: ports({0: PortState.OPEN}),
        WARN: ports({0: PortState.SILENT}),
        UNKNOWN: ports(None),
        NOT_APPLICABLE: node(make_node("demo-1", "STOPPED")),
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
    "workers-even": {
        PASS: busy(90.0, 80.0),
        WARN: busy(90.0, 20.0),
        UNKNOWN: busy(),
        NOT_APPLICABLE: node(),
    },
    "workers-heard": {
        PASS: slice_heard(-5, -9),
        FAIL: slice_heard(-5, -900),
        UNKNOWN: slice_heard(),
        NOT_APPLICABLE: node(),
    },
    "zone-history": {
        PASS: tried((5, None)),
        WARN: tried((9, None), (5, ErrorClass.STOCKOUT)),
        UNKNOWN: tried(known=False),
        NOT_APPLICABLE: tried(),
    },
    "zones-reachable": {
        PASS: project(),
        WARN: silent_zone(),
        UNKNOWN: project(store=Store()),
    },
}
