"""Checks that ask the world, and checks of causes, versions, money and workers: every verdict."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from tests.tui.factories import (
    NOW,
    add_logs,
    connect,
    list_nodes,
    make_attempt,
    make_entry,
    make_node,
    make_run,
    make_spec,
    read_runs,
)
from tests.unit.diagnostics.cases import BOOK, ago, check_node, check_run, event, healthy_store
from tests.unit.diagnostics.cases import check_with as check_given
from tests.unit.diagnostics.cases import evidence as evidence_of
from tpudash.diagnostics.checklist import load_checks, probes_for, run_checklist
from tpudash.diagnostics.evidence import gather
from tpudash.domain.budget import Budget, BudgetScope, Threshold
from tpudash.domain.failure import ErrorClass
from tpudash.domain.finding import Verdict
from tpudash.domain.log import LogEntry, Severity
from tpudash.domain.metric import MetricPoint, MetricSeries
from tpudash.domain.node import Scheduling, Symptom, Worker
from tpudash.domain.price import Price
from tpudash.domain.probe import (
    BillingFacts,
    CreationTry,
    FirewallRule,
    PortState,
    ProbeKey,
    ProbeKind,
    ProbeResult,
    QuotaLimit,
    ZoneOffer,
)
from tpudash.domain.run import RunState

if TYPE_CHECKING:
    from tpudash.domain.finding import Finding

PASS, WARN, FAIL = Verdict.PASS, Verdict.WARN, Verdict.FAIL
UNKNOWN, NOT_APPLICABLE = Verdict.UNKNOWN, Verdict.NOT_APPLICABLE
ZONE = "us-central1-b"
RUNTIME = "tpu-vm-tf-2.18.0-pjrt"
WAITING = make_run(state=RunState.WAITING, attempts=(), nodes=())


def answers(kind: ProbeKind, value: Any, about: str = "") -> dict[ProbeKey, ProbeResult]:
    """One answer; a text that begins with `!` is why there is none."""
    is_failure = isinstance(value, str) and value.startswith("!")
    result = ProbeResult(
        ago(minutes=1),
        None if is_failure else value,
        value[1:] if is_failure else "",
    )
    return {ProbeKey(kind, about): result}


def budget(amount: float | None, currency: str = "USD") -> Budget:
    return Budget(
        "billingAccounts/1/budgets/2",
        "TPU",
        amount,
        currency,
        (Threshold(0.5), Threshold(1.0)),
        scope=BudgetScope.PROJECT,
    )


@pytest.mark.parametrize(
    ("name", "kind", "value", "verdict", "words"),
    [
        ("billing_on", ProbeKind.BILLING, BillingFacts("billingAccounts/1", True), PASS, "pays"),
        ("billing_on", ProbeKind.BILLING, BillingFacts("billingAccounts/1", False), FAIL, "closed"),
        ("billing_on", ProbeKind.BILLING, BillingFacts("", False), FAIL, "no billing account"),
        ("billing_on", ProbeKind.BILLING, "!denied", UNKNOWN, "denied"),
        ("permissions_held", ProbeKind.PERMISSIONS, frozenset(), PASS, "all"),
        (
            "permissions_held",
            ProbeKind.PERMISSIONS,
            frozenset({"tpu.nodes.create"}),
            WARN,
            "missing: tpu.nodes.create",
        ),
        (
            "permissions_held",
            ProbeKind.PERMISSIONS,
            frozenset({"tpu.nodes.get"}),
            FAIL,
            "tpu.nodes.get",
        ),
        ("permissions_held", ProbeKind.PERMISSIONS, "!no answer", UNKNOWN, "no answer"),
        (
            "firewall_open",
            ProbeKind.FIREWALL,
            (FirewallRule("allow-ssh", ("0.0.0.0/0",)),),
            PASS,
            "allow-ssh from 0.0.0.0/0",
        ),
        ("firewall_open", ProbeKind.FIREWALL, (), WARN, "no rule"),
        ("firewall_open", ProbeKind.FIREWALL, "!denied", UNKNOWN, "denied"),
        ("ssh_key", ProbeKind.SSH_KEY, "/home/a/.ssh/google_compute_engine", PASS, "/home/a"),
        ("ssh_key", ProbeKind.SSH_KEY, "", WARN, "does not exist"),
        ("budget_crossed", ProbeKind.BUDGETS, (budget(1000.0),), PASS, "TPU: "),
        ("budget_crossed", ProbeKind.BUDGETS, (budget(4.0),), WARN, "past 50 %"),
        ("budget_crossed", ProbeKind.BUDGETS, (budget(2.0),), FAIL, "past 50 %, 100 %"),
        ("budget_crossed", ProbeKind.BUDGETS, (budget(2.0, "EUR"),), UNKNOWN, "in EUR"),
        ("budget_crossed", ProbeKind.BUDGETS, (), NOT_APPLICABLE, "no budget"),
        ("budget_crossed", ProbeKind.BUDGETS, "!denied", UNKNOWN, "denied"),
    ],
)
def test_what_is_asked_about_the_project(
    name: str, kind: ProbeKind, value: Any, verdict: Verdict, words: str
) -> None:
    about = "default" if kind is ProbeKind.FIREWALL else ""
    given = evidence_of(make_node(), runs=(make_run(),), probes=answers(kind, value, about))
    found = check_given(name, given)
    assert (found.verdict, words in found.evidence) == (verdict, True), found.evidence
    assert found.as_of == ago(minutes=1)
    unasked = check_given(name, replace(given, probes={}))
    assert (unasked.verdict, unasked.evidence) == (UNKNOWN, "not asked yet")


@pytest.mark.parametrize(
    ("name", "kind", "value", "verdict"),
    [
        ("ssh_reachable", ProbeKind.SSH_PORT, {0: PortState.OPEN}, PASS),
        ("ssh_reachable", ProbeKind.SSH_PORT, {0: PortState.OPEN, 1: PortState.SILENT}, WARN),
        ("ssh_reachable", ProbeKind.SSH_PORT, {0: PortState.NO_ADDRESS}, WARN),
        ("ssh_reachable", ProbeKind.SSH_PORT, {}, UNKNOWN),
        ("ssh_reachable", ProbeKind.SSH_PORT, "!no answer within 8 s", UNKNOWN),
        ("guest_attributes", ProbeKind.GUEST_ATTRIBUTES, 1, PASS),
        ("guest_attributes", ProbeKind.GUEST_ATTRIBUTES, 0, WARN),
        ("guest_attributes", ProbeKind.GUEST_ATTRIBUTES, "!not found", UNKNOWN),
    ],
)
def test_what_is_asked_about_a_node(
    name: str, kind: ProbeKind, value: Any, verdict: Verdict
) -> None:
    node = make_node()
    assert check_node(name, node, probes=answers(kind, value, node.name)).verdict is verdict
    assert check_node(name, make_node(state="STOPPED")).verdict is NOT_APPLICABLE
    assert check_node(name, node, emulator=True).verdict is NOT_APPLICABLE


def offer(types: tuple[str, ...] = ("v2-8",), runtimes: tuple[str, ...] = (RUNTIME,)) -> ZoneOffer:
    return ZoneOffer(frozenset(types), frozenset(runtimes))


@pytest.mark.parametrize(
    ("value", "verdict", "words"),
    [
        (offer(), PASS, "offers v2-8"),
        (offer(types=("v3-8",)), FAIL, "does not offer v2-8"),
        (offer(runtimes=()), FAIL, "no runtime version"),
        ("!unreachable", UNKNOWN, "unreachable"),
    ],
)
def test_type_offered(value: Any, verdict: Verdict, words: str) -> None:
    found = check_run("type_offered", WAITING, probes=answers(ProbeKind.ZONE_OFFER, value, ZONE))
    assert (found.verdict, words in found.evidence) == (verdict, True), found.evidence
    assert check_run("type_offered", make_run()).verdict is NOT_APPLICABLE
    wrong = replace(WAITING, spec=make_spec(runtime_version="v2-alpha-tpuv6e"))
    assert check_run("type_offered", wrong).verdict is FAIL


def limit(per: str, place: str, value: float, kind: str = "Preemptible") -> QuotaLimit:
    return QuotaLimit(f"TPUV2s{kind}PerProjectPer{per}ForTPUAPI", place, value)


@pytest.mark.parametrize(
    ("value", "verdict", "words"),
    [
        ((limit("Zone", ZONE, 16), limit("Region", "us-central1", 32)), PASS, "0 of 16"),
        ((limit("Zone", ZONE, 16), limit("Region", "us-central1", 0)), FAIL, "Region"),
        ((limit("Zone", ZONE, 4),), FAIL, "0 of 4"),
        ((limit("Zone", ZONE, 16, ""),), UNKNOWN, "no limit is known"),
        ((limit("Zone", "us-east1-d", 0),), UNKNOWN, "no limit is known"),
        ("!denied", UNKNOWN, "denied"),
    ],
)
def test_quota_room(value: Any, verdict: Verdict, words: str) -> None:
    found = check_run("quota_room", WAITING, probes=answers(ProbeKind.QUOTA, value))
    assert (found.verdict, words in found.evidence) == (verdict, True), found.evidence
    assert check_run("quota_room", make_run()).verdict is NOT_APPLICABLE


def test_quota_names_what_holds_it_and_the_dead_first() -> None:
    limits = answers(ProbeKind.QUOTA, (limit("Zone", ZONE, 16),))
    nodes = (make_node("live-1", run="live"), make_node("gone-1", "PREEMPTED", run="gone"))
    found = check_run("quota_room", WAITING, *nodes, probes=limits)
    assert found.verdict is FAIL
    assert "16 of 16 in use; held by gone-1 (4 chips, PREEMPTED), live-1" in found.evidence


def test_a_refusal_for_quota_needs_no_probe() -> None:
    failure = {"class": "QUOTA", "detail": "Limit: 0 in region us-central1.", "hint": ""}
    refused = replace(WAITING, state=RunState.FAILED, spec=make_spec(failure=failure))
    found = check_run("quota_room", refused)
    assert (found.verdict, "Limit: 0" in found.evidence) == (FAIL, True)


def line(text: str, second: float = -30, **more: Any) -> LogEntry:
    severity = more.pop("severity", Severity.ERROR)
    entry = make_entry(second, text, **{"attempt": 1, "stream": "stderr", **more})
    return replace(entry, severity=severity)


CAUSES = [
    ("out_of_memory", "Ran out of memory in memory space hbm. Used 8.38G of 8.00G hbm.", "HBM_OOM"),
    ("out_of_memory", "Out of memory: Killed process 77 (python3)", "HOST_OOM"),
    ("device_free", "libtpu.so already in use by another process", "DEVICE_BUSY"),
    ("versions_agree", "ConfigureDistributedTpuOp_DoWork not available in this library", "VERSION"),
    ("tpu_reached", "failed to connect to all addresses", "CONNECT"),
    ("bucket_usable", "x@y does not have storage.objects.create access", "BUCKET_ACCESS"),
]


@pytest.mark.parametrize(("name", "text", "error_class"), CAUSES)
def test_a_cause_in_the_log(name: str, text: str, error_class: str) -> None:
    found = with_log(name, line(text))
    assert (found.verdict, error_class in found.evidence) == (FAIL, True), found.evidence
    assert found.advice
    assert found.action == "pane-logs"
    went_on = with_log(name, line(text), event("step", -5, step=460))
    assert went_on.verdict is not FAIL
    earlier = with_log(name, line(text, attempt=7), event("step", -5, step=460))
    assert earlier.verdict is not FAIL


@pytest.mark.parametrize(("name", "text", "error_class"), CAUSES)
def test_a_cause_in_the_record_alone(name: str, text: str, error_class: str) -> None:
    error = {"class": error_class, "detail": text, "hint": "do this"}
    record = make_attempt(state="FAILED", ended=ago(minutes=2), error=error)
    found = check_run(name, make_run(state=RunState.FAILED, attempts=(record,)))
    assert (found.verdict, text in found.evidence) == (FAIL, True)


def with_log(name: str, *entries: LogEntry, run: Any = None) -> Finding:
    store = healthy_store()
    add_logs(store, *entries)
    return check_run(name, run or make_run(), make_node(), store=store)


@pytest.mark.parametrize("name", ["out_of_memory", "tpu_reached", "bucket_usable", "error_line"])
def test_a_quiet_log_passes_and_no_log_is_unknown(name: str) -> None:
    assert with_log(name, line("all is well", severity=Severity.INFO)).verdict is PASS
    unheard = check_run(name, make_run(attempts=()))
    assert unheard.verdict is UNKNOWN


def test_a_symptom_of_memory_is_a_warning() -> None:
    node = make_node(symptoms=(Symptom("HBM_OUT_OF_MEMORY", "x", "0"),))
    assert check_run("out_of_memory", make_run(), node).verdict is WARN


def test_other_causes_are_an_error_line() -> None:
    found = with_log("error_line", line("Found incomplete checkpoint at /b/checkpoints/1820"))
    assert (found.verdict, "CKPT_INCOMPLETE" in found.evidence) == (FAIL, True), found.evidence
    assert with_log("error_line", line(CAUSES[0][1])).verdict is PASS


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ("", PASS),
        ("local", PASS),
        ("demo-1", PASS),
        ("grpc://10.0.0.2:8470", PASS),
        ("other", WARN),
    ],
)
def test_tpu_address(given: str, verdict: Verdict) -> None:
    assert with_log("tpu_address", event("start", arguments={"tpu": given})).verdict is verdict


def test_self_check_by_what_the_trainer_said() -> None:
    ok = event("check", -4, check="devices", verdict="ok")
    doubtful = event("check", -3, check="input", verdict="warning", message="slow")
    bad = event("check", -2, check="step", verdict="failed", message="step: no chips", hint="h")
    assert with_log("self_check", ok).verdict is PASS
    assert with_log("self_check", ok, doubtful).verdict is WARN
    failed = with_log("self_check", ok, bad)
    assert (failed.verdict, failed.evidence) == (FAIL, "step failed: step: no chips")
    # A run that trains and saves has shown all that they would show.
    assert with_log("self_check").verdict is NOT_APPLICABLE


def test_self_check_by_the_record_when_the_log_has_gone() -> None:
    bad = {"check": "devices", "verdict": "failed", "message": "devices: none", "hint": "h"}
    run = make_run(attempts=(make_attempt(checks=(bad,)),))
    failed = with_log("self_check", run=run)
    assert (failed.verdict, failed.evidence) == (FAIL, "devices failed: devices: none")
    mended = event("check", -1, check="devices", verdict="ok")
    assert with_log("self_check", mended, run=run).verdict is PASS


def slice_of_two() -> Any:
    workers = (Worker(0, "10.0.0.2"), Worker(1, "10.0.0.3"))
    return make_node(accelerator_type="v2-16", workers=workers)


def test_workers_heard() -> None:
    store, node = healthy_store(), slice_of_two()
    assert check_node("workers_heard", node, runs=(make_run(),)).verdict is UNKNOWN
    add_logs(store, make_entry(-5, "a", worker_id="0"), make_entry(-900, "b", worker_id="1"))
    partial = check_node("workers_heard", node, runs=(make_run(),), store=store)
    assert (partial.verdict, "PARTIAL_SLICE: 1 of 2" in partial.evidence) == (FAIL, True)
    add_logs(store, make_entry(-4, "c", worker_id="1"))
    assert check_node("workers_heard", node, runs=(make_run(),), store=store).verdict is PASS
    assert check_node("workers_heard", make_node()).verdict is NOT_APPLICABLE


def busy(worker: str, percent: float) -> MetricSeries:
    return MetricSeries(
        "tpu.googleapis.com/accelerator/duty_cycle",
        "demo-1",
        ZONE,
        worker,
        "%",
        (MetricPoint(ago(minutes=1), percent),),
    )


def test_steps_at_risk() -> None:
    slow = make_attempt(started=ago(hours=10), updated=NOW, step=100, checkpoint_step=50)
    at_risk = make_run(attempts=(slow,), step=100, checkpoint_step=50)
    found = check_run("steps_at_risk", at_risk)
    assert (found.verdict, "50 steps since the last one, 5 h of work, $6.75" in found.evidence) == (
        WARN,
        True,
    ), found.evidence
    assert check_run("steps_at_risk", make_run()).verdict is PASS
    on_demand = replace(at_risk, spec=make_spec(scheduling=Scheduling.ON_DEMAND))
    assert check_run("steps_at_risk", on_demand).verdict is PASS
    assert check_run("steps_at_risk", make_run(step=None)).verdict is UNKNOWN


def test_price_jump() -> None:
    price = Price(0.5, "catalogue", date(2026, 12, 1), "us-central1", Scheduling.SPOT, read=NOW)
    steady = BOOK.with_catalog([("v2", "device", price)])
    jumped = BOOK.with_catalog([("v2", "device", replace(price, before_usd=0.25))])
    given = evidence_of(make_node())
    assert check_given("price_jump", given).verdict is UNKNOWN
    assert check_given("price_jump", replace(given, prices=steady, shared={})).verdict is PASS
    found = check_given("price_jump", replace(given, prices=jumped, shared={}))
    assert (found.verdict, "$0.25 to $0.5 per chip-hour (+100%)" in found.evidence) == (WARN, True)


def test_zone_history_counts_what_was_tried_from_here() -> None:
    tries = (
        CreationTry(ago(hours=5), "us-east1-d", "v2-8", None),
        CreationTry(ago(hours=3), "us-east1-d", "v2-8", ErrorClass.STOCKOUT),
        CreationTry(ago(minutes=50), "us-east1-d", "v2-8", ErrorClass.STOCKOUT),
        CreationTry(ago(minutes=20), "us-central2-b", "v2-8", ErrorClass.QUOTA),
        CreationTry(ago(minutes=10), "europe-west4-a", "v2-8", None),
    )
    known = answers(ProbeKind.CREATIONS, tries)
    found = check_given("zone_history", evidence_of(probes=known))
    assert found.verdict is WARN
    assert found.evidence == (
        "us-east1-d: 2 attempts without capacity, the last 50 min ago, last node 5 h ago"
    )
    assert found.advice == "Nodes were made in europe-west4-a (10 min ago)."


def test_zone_history_of_this_session_and_of_records_needs_no_journal() -> None:
    failure = {"class": "STOCKOUT", "detail": "no more capacity", "hint": ""}
    spec = make_spec("short", failure=failure, zone="us-east1-d", created=ago(minutes=5))
    short = make_run("short", RunState.FAILED, spec=spec, attempts=(), nodes=())
    found = check_given("zone_history", evidence_of(make_node(), runs=(make_run(), short)))
    assert (found.verdict, "us-east1-d: 1 attempt without" in found.evidence) == (WARN, True)
    # The journal tells of the same refusal a moment later.
    same = (CreationTry(ago(minutes=4.5), "us-east1-d", "v2-8", ErrorClass.STOCKOUT),)
    known = answers(ProbeKind.CREATIONS, same)
    twice = check_given("zone_history", evidence_of(runs=(short,), probes=known))
    assert "us-east1-d: 1 attempt without" in twice.evidence


def test_every_probe_is_asked_once_and_only_of_what_is_in_question() -> None:
    store = healthy_store()
    list_nodes(store, make_node(), make_node("demo-2"))
    read_runs(store, make_run(spec=make_spec(bucket="gs://b/x")), WAITING)
    keys = probes_for(gather(store, BOOK, NOW))
    assert len(keys) == len(set(keys))
    assert {key.kind for key in keys} >= {ProbeKind.BILLING, ProbeKind.SSH_PORT, ProbeKind.FIREWALL}
    connect(store)
    emulated = {key.kind for key in probes_for(gather(store, BOOK, NOW))}
    assert not emulated & {ProbeKind.SSH_PORT, ProbeKind.FIREWALL, ProbeKind.SSH_KEY}


def test_without_any_answer_no_probe_passes() -> None:
    store = healthy_store()
    list_nodes(store, make_node())
    read_runs(store, WAITING, make_run("vision", spec=make_spec("vision", bucket="gs://b")))
    given = gather(store, BOOK, NOW)
    broken = {key: ProbeResult(NOW, failure="no answer") for key in probes_for(given)}
    rows = run_checklist(replace(given, probes=broken), join=False)
    probed = {check.about.check_id for check in load_checks() if check.about.probe}
    verdicts = {row.verdict for row in rows if row.check_id in probed}
    assert PASS not in verdicts
    assert UNKNOWN in verdicts


def test_beside_a_symptom_its_own_rows_come_first() -> None:
    store = healthy_store()
    add_logs(store, line(CAUSES[0][1]))
    list_nodes(store, make_node(), at=NOW)
    read_runs(store, make_run())
    rows = run_checklist(gather(store, BOOK, NOW))
    assert (rows[0].check_id, rows[0].group) == ("out-of-memory", "out of memory")
    unknown = [row.group for row in rows if row.verdict is UNKNOWN]
    own = [place for place, group in enumerate(unknown) if group == "out of memory"]
    assert own == list(range(len(own)))
