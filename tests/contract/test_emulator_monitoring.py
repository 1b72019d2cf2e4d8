"""Monitoring through Google's own client: descriptors, filters, alignment, origin of data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from google.api_core import exceptions
from google.cloud import monitoring_v3

from tests.contract.test_emulator_logging import entry, write
from tests.emulator_fixture import CALL, Cloud, fast_settings, running_cloud

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = "projects/demo"
Aggregation = monitoring_v3.Aggregation
View = monitoring_v3.ListTimeSeriesRequest.TimeSeriesView
GAUGE = "custom.googleapis.com/tpudash/gauge"
DUTY = "tpu.googleapis.com/accelerator/duty_cycle"


async def put(cloud: Cloud, host: str, moment: datetime, value: float) -> None:
    """Write one point of a custom metric."""
    series = monitoring_v3.TimeSeries(
        metric={"type": GAUGE, "labels": {"host": host}},
        resource={"type": "global", "labels": {"project_id": "demo"}},
        points=[{"interval": {"end_time": moment}, "value": {"double_value": value}}],
    )
    await cloud.monitoring.create_time_series(name=PROJECT, time_series=[series], **CALL)


async def get(
    cloud: Cloud, text: str, end: datetime, minutes: float = 10, **fields: Any
) -> list[Any]:
    """Return the series of an interval that ends at `end`."""
    request = {
        "name": PROJECT,
        "filter": text,
        "interval": {"end_time": end, "start_time": end - timedelta(minutes=minutes)},
        "view": View.FULL,
        **fields,
    }
    return [item async for item in await cloud.monitoring.list_time_series(request, **CALL)]


def values(series: Any) -> list[float]:
    """Return a series' values in the order of the answer."""
    return [point.value.double_value for point in series.points]


async def fill(cloud: Cloud) -> datetime:
    """Write six points to each of two series and return the time of the last."""
    now = datetime.now(UTC) - timedelta(seconds=1)
    for index in range(6):
        moment = now - timedelta(seconds=30 * (5 - index))
        await put(cloud, "a", moment, float(index))
        await put(cloud, "b", moment, float(10 * index))
    return now


async def test_points_come_newest_first_and_filters_choose_series(emulator: Cloud) -> None:
    now = await fill(emulator)
    text = f'metric.type="{GAUGE}" AND metric.labels.host="a"'
    (series,) = await get(emulator, text, now)
    assert values(series) == [5, 4, 3, 2, 1, 0]
    assert len(await get(emulator, f'metric.type="{GAUGE}"', now)) == 2
    chosen = await get(emulator, f'metric.type="{GAUGE}" metric.label.host=one_of("b","c")', now)
    assert [item.metric.labels["host"] for item in chosen] == ["b"]
    assert await get(emulator, f'metric.type="{GAUGE}" resource.type="tpu_worker"', now) == []


async def test_alignment_and_reduction(emulator: Cloud) -> None:
    now = await fill(emulator)
    aggregation = {
        "alignment_period": {"seconds": 60},
        "per_series_aligner": Aggregation.Aligner.ALIGN_MEAN,
    }
    text = f'metric.type="{GAUGE}" metric.labels.host="a"'
    (series,) = await get(emulator, text, now, aggregation=aggregation)
    assert values(series) == [4.5, 2.5, 0.5]
    aggregation["cross_series_reducer"] = Aggregation.Reducer.REDUCE_MAX
    (reduced,) = await get(emulator, f'metric.type="{GAUGE}"', now, aggregation=aggregation)
    assert values(reduced) == [45, 25, 5]
    assert dict(reduced.metric.labels) == {}
    aggregation["group_by_fields"] = ["metric.labels.host"]
    grouped = await get(emulator, f'metric.type="{GAUGE}"', now, aggregation=aggregation)
    assert [item.metric.labels["host"] for item in grouped] == ["a", "b"]


async def test_pages_count_points(emulator: Cloud) -> None:
    now = await fill(emulator)
    request = {
        "name": PROJECT,
        "filter": f'metric.type="{GAUGE}"',
        "interval": {"end_time": now, "start_time": now - timedelta(minutes=10)},
        "page_size": 5,
    }
    pager = await emulator.monitoring.list_time_series(request, **CALL)
    sizes = [sum(len(item.points) for item in page.time_series) async for page in pager.pages]
    assert sizes == [5, 5, 2]
    headers = await get(emulator, f'metric.type="{GAUGE}"', now, view=View.HEADERS)
    assert [len(item.points) for item in headers] == [0, 0]


@pytest.mark.parametrize(
    "text", ["", 'resource.type="tpu_worker"', 'metric.type="a" metric.type="b"', "metric.type="]
)
async def test_a_filter_must_name_one_metric(emulator: Cloud, text: str) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        await get(emulator, text, datetime.now(UTC))


async def test_descriptors(emulator: Cloud) -> None:
    listed = await emulator.monitoring.list_metric_descriptors(
        {"name": PROJECT, "filter": 'metric.type = starts_with("tpu.googleapis.com/accelerator")'},
        **CALL,
    )
    found = {item.type: item async for item in listed}
    assert found[DUTY].unit == "%"
    assert len(found) == 5
    resources = await emulator.monitoring.list_monitored_resource_descriptors(
        {"name": PROJECT}, **CALL
    )
    assert "tpu_worker" in [item.type async for item in resources]
    series = monitoring_v3.TimeSeries(
        metric={"type": DUTY},
        points=[{"interval": {"end_time": datetime.now(UTC)}, "value": {"double_value": 1}}],
    )
    with pytest.raises(exceptions.InvalidArgument):
        await emulator.monitoring.create_time_series(name=PROJECT, time_series=[series], **CALL)


async def test_host_metrics_are_measured_and_accelerators_stay_silent(emulator: Cloud) -> None:
    script = "python3 -c 'while True: pass'"
    await emulator.create("demo-1", metadata={"startup-script": script})
    cpu = 'metric.type="tpu.googleapis.com/cpu/utilization" resource.labels.node_id="demo-1"'
    found: list[Any] = []
    for _ in range(500):
        await emulator.control.publish_metrics()
        found = await get(emulator, cpu, datetime.now(UTC))
        if found and values(found[0])[0] > 1:
            break
    (series,) = found
    assert 1 < values(series)[0] <= 100
    now = datetime.now(UTC)
    assert series.resource.labels["worker_id"] == "0"
    (memory,) = await get(emulator, 'metric.type="tpu.googleapis.com/memory/usage"', now)
    assert memory.points[0].value.int64_value > 1_000_000
    assert await get(emulator, f'metric.type="{DUTY}"', now) == []


async def test_duty_cycle_is_what_the_trainer_reported(emulator: Cloud) -> None:
    await emulator.create("demo-1", metadata={"startup-script": "sleep 600"})
    steps = [
        entry(number, json_payload={"event": "step", "device_fraction": fraction})
        for number, fraction in enumerate((0.5, 0.5, 0.9))
    ]
    await write(emulator, *steps)
    await emulator.control.publish_metrics()
    await emulator.control.publish_metrics()
    now = datetime.now(UTC)
    series = await get(emulator, f'metric.type="{DUTY}"', now)
    assert {item.metric.labels["accelerator_id"] for item in series} == {"0", "1", "2", "3"}
    assert {item.resource.labels["worker_id"] for item in series} == {"demo-1-w-0"}
    (duty,) = values(series[0])
    assert duty == pytest.approx(100 * (0.5 + 0.5 + 0.9) / 3)


async def test_samples_become_visible_late(tmp_path: Path) -> None:
    settings = fast_settings(tmp_path / "emulator", metrics_latency_s=180)
    async with running_cloud(settings) as cloud:
        await put(cloud, "a", datetime.now(UTC) - timedelta(seconds=200), 1.0)
        await put(cloud, "a", datetime.now(UTC), 2.0)
        (series,) = await get(cloud, f'metric.type="{GAUGE}"', datetime.now(UTC))
        assert values(series) == [1.0]
