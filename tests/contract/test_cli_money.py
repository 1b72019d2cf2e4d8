"""`tpudash cost`, `budget` and `clean` against the emulator."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.command_line import CommandLine
from tests.emulator_fixture import ZONE, Cloud, node_name
from tpudash.cost.audit import with_audit
from tpudash.domain.budget import BudgetDraft, BudgetScope, SpendBasis, Threshold
from tpudash.domain.life import NodeLife, ReadySpan
from tpudash.errors import NotAllowedError, TpudashError
from tpudash.gateways.connection import Connection, ConnectionOptions
from tpudash.pollers.history import audit_entries

if TYPE_CHECKING:
    from pathlib import Path

ACCOUNT = "billingAccounts/012345-6789AB-CDEF01"
MINE = {"tpudash-run": "demo", "tpudash-owner": "alice", "tpudash-attempt": "1"}


@pytest.fixture
def tpudash(emulator: Cloud, tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path, emulator.endpoint)


def connection(cloud: Cloud, *, read_only: bool = False) -> Connection:
    return Connection(
        ConnectionOptions(endpoint=cloud.endpoint, project="demo", read_only=read_only)
    )


async def test_what_a_node_cost_outlives_it(emulator: Cloud, tpudash: CommandLine) -> None:
    await emulator.create("demo-1", labels=MINE)
    before = {item["kind"]: item for item in (await tpudash("cost", "--json")).items}
    assert before["node"]["cost_per_hour_usd"] == 4.5
    assert before["total"]["cost_month_usd"] > 0
    await emulator.delete("demo-1")
    after = {item["kind"]: item for item in (await tpudash("cost", "--json")).items}
    assert "node" not in after
    assert after["total"]["cost_per_hour_usd"] == 0
    assert after["total"]["cost_accrued_usd"] >= before["total"]["cost_accrued_usd"]
    assert after["total"]["cost_month_usd"] == after["total"]["cost_accrued_usd"]
    assert after["owner"]["owner"] == "alice"


async def test_prices_that_were_read_stand_in_when_the_catalogue_is_silent(
    emulator: Cloud, tpudash: CommandLine
) -> None:
    await emulator.create("demo-1", labels=MINE, scheduling_config={"spot": True})
    (live,) = [one for one in (await tpudash("cost", "--json")).items if one["kind"] == "node"]
    assert live["price"]["read"] is not None
    assert live["price"]["is_example"] is False
    await emulator.control.add_fault("error", method="ListSkus", code="PERMISSION_DENIED")
    done = await tpudash("cost", "--json")
    (kept,) = [one for one in done.items if one["kind"] == "node"]
    assert kept["price"] == live["price"]
    assert [error["source"] for error in done.envelope["errors"]] == ["prices"]


async def test_the_audit_log_tells_when_a_node_became_ready(emulator: Cloud) -> None:
    await emulator.create("demo-1", labels=MINE)
    link = connection(emulator, read_only=True)
    try:
        cloud = await link.cloud()
        (node,) = (await cloud.tpu.list_nodes()).nodes
        seen = datetime.now(UTC)
        late = NodeLife(
            name=node.name,
            create_time=node.create_time,
            accelerator_type="v2-8",
            scheduling=node.scheduling,
            run="demo",
            owner="alice",
            attempt=1,
            spans=(ReadySpan(seen, seen, begins_late=True),),
            is_open=True,
            last_seen=seen,
        )
        (known,) = with_audit([late], await audit_entries(cloud, [late]))
    finally:
        await link.close()
    (span,) = known.spans
    assert node.create_time is not None
    assert node.create_time < span.start < span.end == seen
    assert not span.begins_late


async def test_types_side_by_side(tpudash: CommandLine) -> None:
    items = (await tpudash("cost", "--what-if", ZONE, "--json")).items
    by_type = {item["accelerator_type"]: item for item in items}
    assert by_type["v2-8"]["cost_per_hour_usd"] == 1.35
    assert by_type["v2-8"]["peak_tflops"] == 184
    assert by_type["v2-8"]["hbm_gib"] == 64
    refused = await tpudash("cost", "--what-if", "mars-north1-a")
    assert refused.code != 0


async def test_budgets_through_the_gateway(emulator: Cloud) -> None:
    link = connection(emulator)
    try:
        billing = (await link.cloud()).billing
        rules = (Threshold(0.5), Threshold(1.0, SpendBasis.FORECASTED))
        made = await billing.create_budget(ACCOUNT, BudgetDraft("TPU", 12.5, rules))
        assert (made.amount, made.currency, made.rules) == (12.5, "USD", rules)
        assert (made.scope, made.period) == (BudgetScope.PROJECT, "MONTH")
        changed = await billing.update_budget(made, BudgetDraft(amount=20.0))
        assert (changed.amount, changed.rules, changed.display_name) == (20.0, rules, "TPU")
        with pytest.raises(TpudashError):
            await billing.update_budget(made, BudgetDraft(amount=30.0))
        await emulator.budgets.create_budget(
            request={"parent": ACCOUNT, "budget": _budget("everything", [])}
        )
        await emulator.budgets.create_budget(
            request={"parent": ACCOUNT, "budget": _budget("theirs", ["projects/other"])}
        )
        await emulator.budgets.create_budget(
            request={
                "parent": ACCOUNT,
                "budget": _budget("both", ["projects/other", "projects/demo"]),
            }
        )
        found = {
            one.display_name: one.scope for one in await billing.list_covering_budgets(ACCOUNT)
        }
        assert found == {
            "TPU": BudgetScope.PROJECT,
            "everything": BudgetScope.ACCOUNT,
            "both": BudgetScope.PROJECTS,
        }
    finally:
        await link.close()


def _budget(name: str, projects: list[str]) -> dict[str, Any]:
    return {
        "display_name": name,
        "amount": {"specified_amount": {"currency_code": "USD", "units": 5}},
        "budget_filter": {"projects": projects},
    }


async def test_watch_mode_can_make_no_budget(emulator: Cloud) -> None:
    link = connection(emulator, read_only=True)
    try:
        billing = (await link.cloud()).billing
        with pytest.raises(NotAllowedError):
            await billing.create_budget(ACCOUNT, BudgetDraft("TPU", 1.0))
    finally:
        await link.close()


async def test_a_budget_from_the_command_line(emulator: Cloud, tpudash: CommandLine) -> None:
    assert (await tpudash("budget", "list", "--json")).items == []
    dry = await tpudash("budget", "create", "--amount", "50", "--dry-run")
    assert (dry.code, "dry run: nothing was done" in dry.err) == (0, True)
    assert (await tpudash("budget", "list", "--json")).items == []
    unasked = await tpudash("budget", "create", "--amount", "50")
    assert unasked.is_refusal(2)
    made = await tpudash("budget", "create", "--amount", "50", "--threshold", "90%", "--yes")
    assert made.code == 0, made.err
    (item,) = (await tpudash("budget", "list", "--json")).items
    assert (item["amount"], item["scope"], item["period"]) == (50, "project", "MONTH")
    assert item["thresholds"] == [{"share": 0.9, "basis": "CURRENT_SPEND"}]
    assert item["actual_spend_usd"] is None
    assert item["estimated_spend_usd"] == 0
    edited = await tpudash("budget", "edit", item["display_name"], "--amount", "75", "--yes")
    assert edited.code == 0, edited.err
    (item,) = (await tpudash("budget", "list", "--json")).items
    assert item["amount"] == 75
    assert (await tpudash("budget", "edit", "nobody", "--amount", "1", "--yes")).code == 4
    assert (await tpudash("budget", "edit", "nobody", "--yes")).code == 2


async def test_clean_lists_and_deletes_nothing_by_itself(
    emulator: Cloud, tpudash: CommandLine
) -> None:
    await emulator.create("demo-1", labels=MINE, scheduling_config={"spot": True})
    await emulator.create("stray")
    await emulator.control.preempt(node_name("demo-1"), 0.1)
    await emulator.control.counters(reset=True)
    items = (await tpudash("clean", "--idle-for", "0s", "--json")).items
    found = {item["name"]: item for item in items}
    dead, stray = found[node_name("demo-1")], found[node_name("stray")]
    assert (dead["reason"], dead["marked"], dead["quota_chips"]) == ("dead", True, 4)
    assert dead["cost_per_hour_usd"] == 0
    assert (stray["reason"], stray["marked"], stray["cost_per_hour_usd"]) == ("idle", False, 4.5)
    assert (await emulator.control.counters()) == {}
    assert (await tpudash("clean", "--delete")).is_refusal(2)


async def test_clean_deletes_what_is_marked(emulator: Cloud, tpudash: CommandLine) -> None:
    await emulator.create("demo-1", labels=MINE, scheduling_config={"spot": True})
    await emulator.create("stray")
    await emulator.control.preempt(node_name("demo-1"), 0.1)
    done = await tpudash("clean", "--idle-for", "0s", "--delete", "--yes", "--wait")
    assert done.code == 0, done.err
    names = [item["name"] for item in (await tpudash("nodes", "--json")).items]
    assert names == [node_name("stray")]
    assert (await tpudash("clean", "demo-1", "--delete", "--yes")).code == 4
    named = await tpudash("clean", "stray", "--idle-for", "0s", "--delete", "--yes", "--wait")
    assert named.code == 0, named.err
    assert (await tpudash("nodes", "--json")).items == []
