"""For each check and each verdict that it can give, evidence that makes it give that verdict."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

from tests.tui.factories import (
    NOW,
    add_logs,
    connect,
    list_nodes,
    list_requests,
    make_attempt,
    make_entry,
    make_node,
    make_progress,
    make_request,
    make_run,
    make_spec,
    read_runs,
    report_progress,
    report_source,
)
from tests.unit.diagnostics.cases import BOOK, ago, event, evidence, healthy_store
from tpudash.diagnostics.evidence import gather
from tpudash.domain.budget import Budget, BudgetScope, Threshold
from tpudash.domain.finding import Verdict
from tpudash.domain.log import Severity
from tpudash.domain.metric import MetricPoint, MetricSeries
from tpudash.domain.node import Maintenance, Worker
from tpudash.domain.price import Price
from tpudash.domain.probe import (
    CreationTry,
    ProbeKey,
    ProbeKind,
    ProbeResult,
    QuotaLimit,
    ZoneOffer,
)
from tpudash.domain.run import Recipe, RunState
from tpudash.domain.serving import ServingFigures, ServingKind
from tpudash.store.snapshot import SourceState

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.failure import ErrorClass, Failure
    from tpudash.domain.log import LogEntry
    from tpudash.domain.operation import OperationState
    from tpudash.domain.run import Run
    from tpudash.store.store import Store

    Case = Callable[[], Evidence]

ZONE: Final = "us-central1-b"
RUNTIME: Final = "tpu-vm-tf-2.18.0-pjrt"
WAITING: Final = make_run(state=RunState.WAITING, attempts=(), nodes=())
OVER: Final = make_run(state=RunState.FINISHED)
UNHEARD: Final = make_run(attempts=())
SERVING: Final = make_run(state=RunState.SERVING, step=None)
PASS, WARN, FAIL = Verdict.PASS, Verdict.WARN, Verdict.FAIL
UNKNOWN, NOT_APPLICABLE = Verdict.UNKNOWN, Verdict.NOT_APPLICABLE


def asked(kind: ProbeKind, value: Any, about: str = "") -> dict[ProbeKey, ProbeResult]:
    failed = value is None
    result = ProbeResult(ago(minutes=1), value, "no answer within 8 s" if failed else "")
    return {ProbeKey(kind, about): result}


def project(*entries: LogEntry, store: Store | None = None, nodes: Any = (), **more: Any) -> Case:
    def make() -> Evidence:
        filled = store or healthy_store()
        add_logs(filled, *entries)
        return evidence(*nodes, store=filled, **more)

    return make


def node(made: Any = None, *entries: LogEntry, **more: Any) -> Case:
    made = made or make_node()

    def make() -> Evidence:
        store = healthy_store()
        add_logs(store, *entries)
        return evidence(made, store=store, **more).about_node(made)

    return make


def run(made: Run | None = None, *entries: LogEntry, nodes: Any = None, **more: Any) -> Case:
    made = made or make_run()

    def make() -> Evidence:
        store = healthy_store()
        add_logs(store, *entries)
        listed = (make_node(),) if nodes is None else nodes
        return evidence(*listed, runs=(made,), store=store, **more).about_run(made)

    return make


def with_source(name: str, state: SourceState, **more: Any) -> Store:
    store = healthy_store()
    report_source(store, name, state, **more)
    return store


def served(**more: Any) -> ServingFigures:
    return ServingFigures(ServingKind.RUN, "demo", ago(seconds=3), is_ready=True, **more)


def endpoint(**more: Any) -> ServingFigures:
    return replace(served(**more), kind=ServingKind.ENDPOINT, name="api")


def without_run() -> Evidence:
    return evidence()


def line(text: str, second: float = -30) -> LogEntry:
    return replace(make_entry(second, text, attempt=1, stream="stderr"), severity=Severity.ERROR)


def overcome(text: str) -> tuple[LogEntry, LogEntry]:
    return line(text), event("step", -5, step=460)


def failed_run(error: dict[str, Any] | None = None, **more: Any) -> Run:
    record = make_attempt(state="FAILED", ended=ago(minutes=5), error=error, **more)
    return make_run(state=RunState.FAILED, attempts=(record,))


def refused_run(error_class: str, **spec: Any) -> Run:
    failure = {"class": error_class, "detail": "the cloud's own words", "hint": ""}
    return replace(WAITING, state=RunState.FAILED, spec=make_spec(failure=failure, **spec))


def preempted_run() -> Run:
    record = make_attempt(state="PREEMPTED", ended=ago(minutes=5))
    return make_run(state=RunState.PREEMPTED, attempts=(record,))


def resumed_run(restored: int | None, **first: Any) -> Run:
    earlier = make_attempt(1, state="PREEMPTED", ended=ago(hours=1), **first)
    return make_run(attempts=(earlier, make_attempt(2, restored_step=restored)))


def after(*operations: Any) -> Case:
    store = healthy_store()
    for operation in operations:
        report_progress(store, operation)
    return project(store=store)


def operation(state: OperationState, failure: Failure | None = None) -> Any:
    return make_progress("op-1", state=state, failure=failure, updated=ago(minutes=3))


def budget(amount: float, currency: str = "USD") -> tuple[Budget, ...]:
    thresholds = (Threshold(0.5), Threshold(1.0))
    name = "billingAccounts/1/budgets/2"
    return (Budget(name, "TPU", amount, currency, thresholds, scope=BudgetScope.PROJECT),)


def spending(amount: float | None, currency: str = "USD") -> Case:
    value = None if amount is None else budget(amount, currency) if amount else ()
    probes = asked(ProbeKind.BUDGETS, value)
    return project(nodes=(make_node(),), runs=(make_run(),), probes=probes)


def priced(before: float | None) -> Case:
    price = Price(0.5, "catalogue", date(2026, 12, 1), "us-central1", make_node().scheduling)
    read = replace(price, read=NOW, before_usd=before)
    prices = BOOK.with_catalog([("v2", "device", read)])
    return project(nodes=(make_node(),), prices=prices, shared={})


def limits(value: float | None) -> Case:
    quota = "TPUV2sPreemptiblePerProjectPerZoneForTPUAPI"
    found = None if value is None else (QuotaLimit(quota, ZONE, value),)
    return run(WAITING, probes=asked(ProbeKind.QUOTA, found), nodes=())


def offer(types: set[str] | None) -> Case:
    value = None if types is None else ZoneOffer(frozenset(types), frozenset({RUNTIME}))
    return run(WAITING, probes=asked(ProbeKind.ZONE_OFFER, value, ZONE), nodes=())


def stored(location: str | None) -> Case:
    made = make_run(spec=make_spec(bucket="gs://b/x"))
    return run(made, probes=asked(ProbeKind.BUCKET, location, "gs://b"))


def batch(size: str, kind: str = "v2-8", **more: Any) -> Case:
    command = ("python3", "-m", "trainer", "--batch_size", size)
    recipe = Recipe(name="tensorflow-mnist", command=command)
    return run(make_run(spec=make_spec(recipe=recipe, accelerator_type=kind), **more))


def busy(*percents: float) -> Case:
    series = tuple(
        MetricSeries(
            "tpu.googleapis.com/accelerator/duty_cycle",
            "demo-1",
            ZONE,
            str(number),
            "%",
            (MetricPoint(ago(minutes=1), percent),),
        )
        for number, percent in enumerate(percents)
    )
    return node(None, runs=(make_run(),), series={"demo-1": series})


def slice_heard(*seconds: float) -> Case:
    workers = (Worker(0, "10.0.0.2"), Worker(1, "10.0.0.3"))
    made = make_node(accelerator_type="v2-16", workers=workers)
    entries = [make_entry(at, "x", worker_id=str(n)) for n, at in enumerate(seconds)]
    return node(made, *entries, runs=(make_run(),))


def ports(value: Any) -> Case:
    return node(None, probes=asked(ProbeKind.SSH_PORT, value, make_node().name))


def keys(value: int | None) -> Case:
    return node(None, probes=asked(ProbeKind.GUEST_ATTRIBUTES, value, make_node().name))


def announced(value: Any, **more: Any) -> Case:
    return node(make_node(**more), probes=asked(ProbeKind.MAINTENANCE, value))


def tried(*tries: tuple[float, ErrorClass | None], known: bool = True) -> Case:
    found = tuple(CreationTry(ago(minutes=at), ZONE, "v2-8", kind) for at, kind in tries)
    return project(probes=asked(ProbeKind.CREATIONS, found if known else None))


def waits(share: float, **pipeline: bool) -> Case:
    steps = [event("step", at, step=100 + at, input_wait_fraction=share) for at in (-9, -8)]
    told = [event("stage", -20, stage="data", input={"source": "files", **pipeline})]
    return run(None, *(told if pipeline else ()), *steps)


def at_risk(hours: float) -> Case:
    record = make_attempt(started=ago(hours=hours), updated=NOW, step=100, checkpoint_step=50)
    return run(make_run(attempts=(record,), step=100, checkpoint_step=50))


def capped(usd: float | None) -> Case:
    return run(make_run(spec=make_spec(max_cost_usd=usd)))


READ_AHEAD: Final = {"prefetch": True, "parallel_map": True, "cached": True}
SCHEDULED: Final = Maintenance("SCHEDULED", "PENDING", True, NOW + timedelta(days=3))
OOM: Final = "Ran out of memory in memory space hbm. Used 8.38G of 8.00G hbm."
LOST: Final = "UNAVAILABLE: failed to connect to all addresses"
DENIED: Final = "x@y does not have storage.objects.create access to gs://b"
BUSY: Final = "libtpu.so already in use by another process"
SKEW: Final = "ConfigureDistributedTpuOp_DoWork not available in this library"
TORN: Final = "Found incomplete checkpoint at /b/checkpoints/1820"
API_OFF: Final = "Cloud TPU API has not been used in project 1 before or it is disabled."
CHIPS: Final = {"files": ["/dev/accel0"], "holders": []}
ROOM: Final = {"disk_free_bytes": 50 * 2**30, "memory_used_bytes": 1, "memory_total_bytes": 4}


def dead_requests(state: str) -> Case:
    store = healthy_store()
    list_requests(store, make_request("asked", state=state))
    return project(store=store)


def emulated() -> Case:
    store = healthy_store()
    connect(store)
    return project(store=store)


def silent_zone() -> Case:
    """A node whose zone no longer answers, and whose run was not read."""
    made = make_node()

    def make() -> Evidence:
        store = with_source("runs", SourceState.FAILING, title="denied")
        list_nodes(store, made, at=ago(hours=2))
        list_nodes(store, silent=(ZONE,), at=ago(minutes=9))
        return gather(store, BOOK, NOW).about_node(made)

    return make


def node_in_change() -> Case:
    """A run whose node has become READY a minute ago."""
    made = make_run(state=RunState.LAUNCHING, attempts=())
    young = make_node(create_time=ago(minutes=1))

    def make() -> Evidence:
        store = healthy_store()
        list_nodes(store, young, at=ago(minutes=1))
        read_runs(store, made)
        return gather(store, BOOK, NOW).about_run(made)

    return make
