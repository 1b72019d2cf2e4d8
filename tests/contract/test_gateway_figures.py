"""The monitoring and billing gateways: series, prices, budgets."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from google.cloud import billing_v1, monitoring_v3
from google.cloud.billing import budgets_v1

from tests.contract.fake_google import FakeGoogle, connected, fake_google, raw_class, refusal
from tpudash.domain.failure import ErrorClass
from tpudash.domain.node import Scheduling
from tpudash.errors import CapacityError, NotAllowedError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.emulator_fixture import Cloud as Emulator
    from tpudash.domain.metric import MetricSeries

SERIES = "/google.monitoring.v3.MetricService/ListTimeSeries"
SKUS = "/google.cloud.billing.v1.CloudCatalog/ListSkus"
BUDGETS = "/google.cloud.billing.budgets.v1.BudgetService/ListBudgets"
CPU = "tpu.googleapis.com/cpu/utilization"
DUTY = "tpu.googleapis.com/accelerator/duty_cycle"
MEMORY = "tpu.googleapis.com/memory/usage"
RECEIVED = "tpu.googleapis.com/network/received_bytes_count"
MINUTE = timedelta(minutes=1)
NOW = datetime(2026, 12, 1, 10, tzinfo=UTC)


@pytest.fixture
async def fake() -> AsyncIterator[FakeGoogle]:
    async with fake_google() as server:
        yield server


def series(metric: str, resource: dict[str, str], values: list[Any], **labels: str) -> Any:
    """Return a series whose points come newest first, a minute apart; None leaves a gap."""
    found = raw_class(monitoring_v3.TimeSeries)()
    found.metric.type = metric
    found.metric.labels.update(labels)
    found.resource.labels.update(resource)
    for age, value in enumerate(values):
        if value is None:
            continue
        point = found.points.add()
        point.interval.end_time.FromDatetime(NOW - age * MINUTE)
        if isinstance(value, int):
            point.value.int64_value = value
        elif isinstance(value, str):
            point.value.string_value = value
        else:
            point.value.double_value = value
    return found


async def test_points_come_oldest_first_with_their_gaps(fake: FakeGoogle) -> None:
    worker = {"node_id": "demo-1", "zone": "us-central1-b", "worker_id": "0"}
    pages = {
        "": [series(CPU, worker, [30.0, None, 10, math.nan, math.inf, "x"], core="all")],
        "1": [series(CPU, {**worker, "node_id": "demo-2"}, [])],
    }
    fake.on(
        SERIES,
        lambda request: raw_class(monitoring_v3.ListTimeSeriesResponse)(
            time_series=pages[request.page_token], next_page_token="" if request.page_token else "1"
        ),
    )
    async with connected(fake.endpoint) as cloud:
        first, second = await cloud.monitoring.list_series(
            CPU, start=NOW - 10 * MINUTE, end=NOW, period=MINUTE
        )
    assert [(point.time, point.value) for point in first.points] == [
        (NOW - 2 * MINUTE, 10.0),
        (NOW, 30.0),
    ]
    assert (first.node_id, first.zone, first.worker_id) == ("demo-1", "us-central1-b", "0")
    assert (first.unit, first.labels) == ("%", {"core": "all"})
    assert second.points == ()

    request = fake.requests[0]
    assert request.filter == f'metric.type = "{CPU}"'
    assert request.interval.end_time.ToDatetime(UTC) == NOW
    aggregation = request.aggregation
    assert aggregation.alignment_period.seconds == 60
    assert aggregation.per_series_aligner == monitoring_v3.Aggregation.Aligner.ALIGN_MEAN


@pytest.mark.parametrize(
    ("worker_id", "node_id"),
    [
        ("demo-1-w-0", "demo-1"),
        ("a-w-3-w-12", "a-w-3"),
        ("1234567890", None),
        ("demo-w-x", None),
        ("-w-1", None),
        ("", None),
    ],
)
async def test_an_accelerators_series_is_joined_by_its_workers_name(
    fake: FakeGoogle, worker_id: str, node_id: str | None
) -> None:
    resource = {"resource_container": "1", "location": "us-central1-b", "worker_id": worker_id}
    fake.on(
        SERIES,
        lambda _: raw_class(monitoring_v3.ListTimeSeriesResponse)(
            time_series=[series(DUTY, resource, [5.0], accelerator_id="0")]
        ),
    )
    async with connected(fake.endpoint) as cloud:
        (found,) = await cloud.monitoring.list_series(
            DUTY, start=NOW - MINUTE, end=NOW, period=MINUTE
        )
    assert (found.node_id, found.worker_id, found.zone) == (node_id, worker_id, "us-central1-b")


async def test_counts_are_read_as_rates(fake: FakeGoogle) -> None:
    worker = {"node_id": "demo-1", "zone": "us-central1-b", "worker_id": "0"}
    fake.on(
        SERIES,
        lambda _: raw_class(monitoring_v3.ListTimeSeriesResponse)(
            time_series=[series(RECEIVED, worker, [12.5])]
        ),
    )
    async with connected(fake.endpoint) as cloud:
        (found,) = await cloud.monitoring.list_series(
            RECEIVED, start=NOW - MINUTE, end=NOW, period=MINUTE
        )
    assert found.unit == "By/s"
    aligner = fake.requests[0].aggregation.per_series_aligner
    assert aligner == monitoring_v3.Aggregation.Aligner.ALIGN_RATE


async def test_the_emulators_own_metrics(emulator: Emulator) -> None:
    await emulator.create("demo-1", metadata={"startup-script": "sleep 600"})
    found: tuple[MetricSeries, ...] = ()
    async with asyncio.timeout(20), connected(emulator.endpoint) as cloud:
        while not found:
            await emulator.control.publish_metrics()
            now = datetime.now(UTC)
            found = await cloud.monitoring.list_series(
                MEMORY, start=now - 5 * MINUTE, end=now, period=MINUTE
            )
        absent = await cloud.monitoring.list_series(
            DUTY, start=now - 5 * MINUTE, end=now, period=MINUTE
        )
    assert [(item.node_id, item.worker_id, item.unit) for item in found] == [("demo-1", "0", "By")]
    assert found[0].last is not None
    assert found[0].last.value >= 0
    assert absent == ()


async def test_what_monitoring_refuses(fake: FakeGoogle) -> None:
    cases: list[tuple[Exception, type[Exception], ErrorClass]] = [
        (
            refusal("NOT_FOUND", 'Cannot find metric(s) that match type = "x".'),
            NotFoundError,
            ErrorClass.GONE,
        ),
        (
            refusal(
                "RESOURCE_EXHAUSTED",
                "Quota exceeded for quota metric 'Time series queries' and limit 'Time series"
                " queries per minute' of service 'monitoring.googleapis.com'.",
            ),
            CapacityError,
            ErrorClass.RATE_LIMIT,
        ),
        (
            refusal("PERMISSION_DENIED", "Permission monitoring.timeSeries.list denied."),
            NotAllowedError,
            ErrorClass.PERMISSION,
        ),
    ]
    async with connected(fake.endpoint) as cloud:
        for error, kind, error_class in cases:

            def refuse(_: Any, error: Exception = error) -> Any:
                raise error

            fake.on(SERIES, refuse)
            with pytest.raises(kind) as caught:
                await cloud.monitoring.list_series(CPU, start=NOW, end=NOW, period=MINUTE)
            found: Any = caught.value
            assert found.failure.error_class is error_class


async def test_prices_of_the_emulators_catalogue(emulator: Emulator) -> None:
    async with connected(emulator.endpoint) as cloud:
        found = await cloud.billing.list_tpu_prices()
    by_key = {
        (generation, variant, price.region, price.scheduling): price
        for generation, variant, price in found
    }
    v2 = by_key["v2", "device", "us-central1", Scheduling.ON_DEMAND]
    assert v2.per_chip_hour_usd == pytest.approx(1.125)
    assert v2.as_of is not None
    assert not v2.is_example
    assert by_key["v2", "pod", "us-central1", Scheduling.ON_DEMAND].per_chip_hour_usd == 1.5
    assert by_key["v2", "device", "us-central1", Scheduling.SPOT].per_chip_hour_usd == 0.3375
    assert by_key["v6e", "any", "us-central1", Scheduling.ON_DEMAND].per_chip_hour_usd == 2.7


def sku(description: str, units: int = 1, **changes: Any) -> Any:
    expression = {
        "usage_unit": changes.pop("unit", "h"),
        "tiered_rates": [
            {"unit_price": {"currency_code": "USD"}},
            {"unit_price": {"currency_code": "USD", "units": units, "nanos": 500_000_000}},
        ],
    }
    category = {
        "resource_group": changes.pop("group", "TPU"),
        "usage_type": changes.pop("usage", "OnDemand"),
    }
    return billing_v1.Sku.pb(
        billing_v1.Sku(
            description=description,
            category=category,
            service_regions=changes.pop("regions", ["us-east1"]),
            pricing_info=[{"pricing_expression": expression}],
            **changes,
        )
    )


async def test_only_plain_hourly_prices_of_tpus_are_taken(fake: FakeGoogle) -> None:
    skus = [
        sku("TpuV5e running in Americas"),
        sku("TpuV5p attached to Spot Preemptible VMs running in Americas", usage="Preemptible"),
        sku("Tpu7x running in Americas", regions=[]),
        sku("TPU7x running in Somewhere (europe-west4)", regions=[]),
        sku("Reserved TpuV5e running in Americas"),
        sku("TpuV5e Calendar Mode running in Americas"),
        sku("TpuV5e DWS Defined Duration running in Americas"),
        sku("Commitment: TpuV5e for 1 year", usage="Commit1Yr"),
        sku("TpuV5e storage", unit="GiBy.mo"),
        sku("N1 Predefined Core", group="CPU"),
        sku("TpuV99 running in Americas"),
    ]
    fake.on(
        SKUS,
        lambda request: raw_class(billing_v1.ListSkusResponse)(
            skus=skus if "6F81" in request.parent else []
        ),
    )
    async with connected(fake.endpoint) as cloud:
        found = await cloud.billing.list_tpu_prices()
    assert [
        (generation, variant, price.region, price.scheduling, price.per_chip_hour_usd)
        for generation, variant, price in found
    ] == [
        ("v5e", "any", "us-east1", Scheduling.ON_DEMAND, 1.5),
        ("v5p", "any", "us-east1", Scheduling.SPOT, 1.5),
        ("v7x", "any", "europe-west4", Scheduling.ON_DEMAND, 1.5),
    ]


async def test_the_account_and_its_budgets(emulator: Emulator) -> None:
    async with connected(emulator.endpoint) as cloud:
        info = await cloud.billing.billing_info()
        assert info.enabled
        assert await cloud.billing.list_budgets(info.account) == ()


async def test_budgets_with_and_without_an_amount(fake: FakeGoogle) -> None:
    budgets = [
        budgets_v1.Budget(
            name="billingAccounts/1/budgets/a",
            display_name="TPU",
            amount={"specified_amount": {"currency_code": "EUR", "units": 100, "nanos": 5 * 10**8}},
            threshold_rules=[{"threshold_percent": 0.5}, {"threshold_percent": 1.0}],
        ),
        budgets_v1.Budget(name="billingAccounts/1/budgets/b", amount={"last_period_amount": {}}),
    ]
    fake.on(
        BUDGETS,
        lambda _: raw_class(budgets_v1.ListBudgetsResponse)(
            budgets=[budgets_v1.Budget.pb(budget) for budget in budgets]
        ),
    )
    async with connected(fake.endpoint) as cloud:
        first, second = await cloud.billing.list_budgets("billingAccounts/1")
    assert (first.display_name, first.amount, first.currency) == ("TPU", 100.5, "EUR")
    assert first.thresholds == (0.5, 1.0)
    assert second.amount is None
    assert first.raw["displayName"] == "TPU"
