"""Probes: in time, each alone, and not too often; and the checklist without any connection."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.tui.factories import NOW, FakeClock, list_nodes, make_node, make_run, read_runs
from tests.tui.factories import report_source as report
from tpudash.cost.prices import PriceBook
from tpudash.domain.alarm import AlarmLimits
from tpudash.domain.finding import Verdict
from tpudash.domain.probe import BillingFacts, ProbeKey, ProbeKind, ZoneOffer
from tpudash.errors import NotAllowedError
from tpudash.gateways.protocols import BillingInfo, Cloud
from tpudash.pollers.checklist import ChecklistSource
from tpudash.pollers.probes import ASKING, FAILED_FOR, GOOD_FOR, ProbeBook
from tpudash.store.snapshot import NODES, SourceState
from tpudash.store.store import Store

if TYPE_CHECKING:
    from tpudash.cost.alarms import AlarmChange

BILLING = ProbeKey(ProbeKind.BILLING)
OFFER = ProbeKey(ProbeKind.ZONE_OFFER, "us-central1-b")


class FakeBilling:
    def __init__(self) -> None:
        self.asked = 0
        self.error: Exception | None = None
        self.hangs = False

    async def billing_info(self) -> BillingInfo:
        self.asked += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error
        return BillingInfo("billingAccounts/1", True)

    async def list_covering_budgets(self, _: str) -> tuple[Any, ...]:
        return ()


class FakeTpu:
    async def list_accelerator_types(self, _: str) -> tuple[str, ...]:
        return ("v2-8",)

    async def list_runtime_versions(self, _: str) -> tuple[str, ...]:
        return ("tpu-ubuntu2204-base",)


def cloud_of(billing: FakeBilling) -> Cloud:
    parts: Any = {"monitoring": None, "logging": None, "bucket": None}
    return Cloud("demo", tpu=FakeTpu(), billing=billing, **parts)  # type: ignore[arg-type]


def test_every_kind_can_be_asked_and_grows_old() -> None:
    assert set(ASKING) == set(GOOD_FOR) == set(ProbeKind)


async def test_an_answer_is_kept_for_a_while_and_then_asked_for_again() -> None:
    clock, billing = FakeClock(), FakeBilling()
    book = ProbeBook(clock)
    await book.ask(cloud_of(billing), book.due([BILLING, OFFER]))
    assert book.results[BILLING].value == BillingFacts("billingAccounts/1", True)
    assert book.results[OFFER].value == ZoneOffer(
        frozenset({"v2-8"}), frozenset({"tpu-ubuntu2204-base"})
    )
    assert book.due([BILLING]) == []
    clock.move(GOOD_FOR[ProbeKind.BILLING].total_seconds())
    assert book.due([BILLING]) == [BILLING]
    assert OFFER not in book.results


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (NotAllowedError("not allowed", detail="billing.get"), "not allowed: billing.get"),
        (RuntimeError("odd"), "RuntimeError: odd"),
    ],
)
async def test_a_failure_is_told_and_stays_alone(error: Exception, words: str) -> None:
    clock, billing = FakeClock(), FakeBilling()
    billing.error = error
    book = ProbeBook(clock)
    await book.ask(cloud_of(billing), book.due([BILLING, OFFER]))
    assert (book.results[BILLING].failure, book.results[BILLING].value) == (words, None)
    assert book.results[OFFER].failure == ""
    clock.move(FAILED_FOR.total_seconds())
    assert BILLING in book.due([BILLING, OFFER])


async def test_what_takes_too_long_is_no_answer() -> None:
    billing = FakeBilling()
    billing.hangs = True
    book = ProbeBook(FakeClock(), limit_s=0.05)
    await book.ask(cloud_of(billing), [BILLING])
    assert book.results[BILLING].failure == "no answer within 0.05 s"


async def test_a_connection_that_cannot_say_is_no_answer() -> None:
    book = ProbeBook(FakeClock())
    key = ProbeKey(ProbeKind.QUOTA)
    await book.ask(cloud_of(FakeBilling()), [key])
    assert book.results[key].failure


def source(store: Store, changes: list[AlarmChange] | None = None) -> ChecklistSource:
    checklist = ChecklistSource(
        store, FakeClock(), 15.0, PriceBook.bundled, frozenset(), limits=AlarmLimits(1.0)
    )
    if changes is not None:
        checklist.on_alarm = changes.append
    return checklist


async def test_the_checklist_runs_while_nothing_answers() -> None:
    store = Store()
    report(store, NODES, SourceState.FAILING, last_success=None, title="nothing answers")
    await source(store).poll(None)
    first = store.snapshot.findings[0]
    assert (first.check_id, first.verdict) == ("api-answers", Verdict.FAIL)


async def test_it_runs_before_its_probes_and_again_after_them() -> None:
    store, billing, seen = Store(), FakeBilling(), []
    report(store, NODES)
    store.subscribe(lambda changes: seen.append(_billing(store)) if changes.findings else None)
    await source(store).poll(cloud_of(billing))
    assert seen == [Verdict.UNKNOWN, Verdict.PASS]


def _billing(store: Store) -> Verdict:
    return next(row.verdict for row in store.snapshot.findings if row.check_id == "billing-on")


async def test_an_alarm_is_told_once() -> None:
    store = Store()
    changes: list[AlarmChange] = []
    report(store, NODES)
    list_nodes(store, make_node(), at=NOW - timedelta(minutes=1))
    read_runs(store, make_run())
    checklist = source(store, changes)
    await checklist.poll(None)
    await checklist.poll(None)
    assert [(one.alarm.check_id, one.is_on) for one in changes] == [("burn-rate", True)]
    list_nodes(store, replace(make_node(), state="STOPPED"))
    await checklist.poll(None)
    burn = [one.is_on for one in changes if one.alarm.check_id == "burn-rate"]
    assert burn == [True, False]
