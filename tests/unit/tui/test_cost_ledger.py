"""Sums of the cost pane: by run and by owner they are the same, however old each part is."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.tui.factories import NOW, list_nodes, make_attempt, make_node, make_run, read_runs
from tpudash.cost.prices import PriceBook
from tpudash.cost.report import Amount, start_of_day, start_of_month
from tpudash.domain.node import OWNER_LABEL
from tpudash.store.store import Store
from tpudash.tui.widgets.cost_pane_ledger import NO_OWNER, Ledger, grown_amount

if TYPE_CHECKING:
    from tpudash.domain.node import Node

BOOK = PriceBook.bundled()
HOUR = timedelta(hours=1)


def owned(node: Node, owner: str | None) -> Node:
    labels = {name: text for name, text in node.labels.items() if name != OWNER_LABEL}
    return replace(node, labels=labels | ({OWNER_LABEL: owner} if owner else {}))


@pytest.fixture
def store() -> Store:
    store = Store()
    since = NOW - 3 * HOUR
    list_nodes(
        store,
        owned(make_node("demo-1", create_time=since), "alice"),
        owned(make_node("hers", run=None, create_time=since), "alice"),
        owned(make_node("his", run=None, create_time=since), "bob"),
        owned(make_node("stray", run=None, create_time=since), None),
        at=since,
    )
    read_runs(store, make_run("demo", attempts=(make_attempt(1, started=since),)))
    return store


def test_owners_add_up_to_the_whole_whatever_was_worked_out_when(store: Store) -> None:
    ledger = Ledger()
    ledger.update(store.snapshot, BOOK, NOW, None)
    later = NOW + 2 * HOUR
    ledger.update(store.snapshot, BOOK, later, frozenset({"demo"}))
    owners = [line for line in ledger.by_owner() if line.is_head]
    assert {line.name for line in owners} == {"alice", "bob", NO_OWNER}
    at = later + HOUR
    total = ledger.accrued_at(at)
    assert total == pytest.approx(4 * 6 * 1.35)
    assert sum(line.accrued_at(at) or 0.0 for line in owners) == pytest.approx(total)
    months = [line.month_at(at).usd or 0.0 for line in owners]
    assert sum(months) == pytest.approx(ledger.month_at(at).usd)
    by_name = {line.name: line for line in owners}
    assert by_name["alice"].cost.per_hour_usd == pytest.approx(2 * 1.35)
    assert by_name["bob"].accrued_at(at) == pytest.approx(6 * 1.35)


def test_each_row_has_a_key_of_its_own(store: Store) -> None:
    ledger = Ledger()
    ledger.update(store.snapshot, BOOK, NOW, None)
    for lines in (ledger.lines, ledger.by_owner()):
        keys = [line.key for line in lines]
        assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("hours_on", "usd"),
    [(0, 10.0), (1, 12.0), (40, (NOW + 40 * HOUR - start_of_day(NOW + 40 * HOUR)) / HOUR * 2)],
)
def test_a_day_that_is_over_counts_no_more(hours_on: float, usd: float) -> None:
    now = NOW + hours_on * HOUR
    found = grown_amount(Amount(10.0), 2.0, NOW, start_of_day(now), now)
    assert found.usd == pytest.approx(usd)


def test_what_is_not_known_does_not_grow() -> None:
    unknown = Amount(None, is_lower_bound=True)
    assert grown_amount(unknown, 2.0, NOW, start_of_month(NOW), NOW + HOUR) == unknown
    known = Amount(1.0, is_lower_bound=True)
    assert grown_amount(known, None, NOW, start_of_month(NOW), NOW + HOUR) == known
