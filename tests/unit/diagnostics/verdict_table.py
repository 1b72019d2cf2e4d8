"""The table: check by check, what makes it give each of its verdicts."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tests.tui.factories import NOW, make_node, make_run
from tests.unit.diagnostics.cases import ago
from tests.unit.diagnostics.verdict_cases import (
    API_OFF,
    FAIL,
    NOT_APPLICABLE,
    PASS,
    SCHEDULED,
    UNKNOWN,
    WARN,
    after,
    announced,
    asked,
    busy,
    dead_requests,
    emulated,
    endpoint,
    keys,
    node,
    operation,
    ports,
    priced,
    project,
    silent_zone,
    slice_heard,
    spending,
    tried,
    with_source,
    without_run,
)
from tests.unit.diagnostics.verdict_table_of_runs import CASES_OF_RUNS
from tpudash.domain.alarm import AlarmLimits
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
    "billing-on": {
        PASS: project(probes=asked(ProbeKind.BILLING, BillingFacts("billingAccounts/1", True))),
        FAIL: project(probes=asked(ProbeKind.BILLING, BillingFacts("", False))),
        UNKNOWN: project(probes=asked(ProbeKind.BILLING, None)),
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
        FAIL: project(nodes=(make_node(),), limits=AlarmLimits(0.5)),
        UNKNOWN: project(nodes=(make_node(accelerator_type="v9-8"),)),
    },
    "clocks-agree": {
        PASS: project(nodes=(make_node(),)),
        WARN: project(nodes=(make_node(create_time=NOW + timedelta(minutes=5)),)),
        UNKNOWN: project(),
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
    "endpoints-answer": {
        PASS: project(store=with_source(ENDPOINTS, SourceState.OK), serving=(endpoint(),)),
        FAIL: project(
            store=with_source(ENDPOINTS, SourceState.OK), serving=(endpoint(problem="no answer"),)
        ),
        NOT_APPLICABLE: project(),
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
    "runtime-fits": {
        PASS: node(),
        FAIL: node(make_node(runtime_version="v2-alpha-tpuv6e")),
        UNKNOWN: node(make_node(runtime_version="something-new")),
        NOT_APPLICABLE: node(make_node("demo-1", "PREEMPTED")),
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
    **CASES_OF_RUNS,
}
