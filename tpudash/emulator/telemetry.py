"""Publishes metrics: of hosts as measured, of accelerators as the trainer reports its steps.

The accelerator of an emulated node is the CPU. Its duty cycle is the share of wall time that the
trainer spent inside device steps, taken from the `device_fraction` of its `step` events. Where no
trainer reports, nothing is published.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tpudash.emulator.identifiers import ResourceName
from tpudash.emulator.machines.sampler import HostSample, HostSampler
from tpudash.emulator.world.series import (
    GCE_WORKER,
    TPU_WORKER,
    Point,
    SeriesKey,
    gce_worker_labels,
    labels_of,
    tpu_worker_labels,
)

if TYPE_CHECKING:
    from tpudash.emulator.machines.host import ProcessHost
    from tpudash.emulator.world.nodes import NodeRecord
    from tpudash.emulator.world.world import World

_PREFIX = "tpu.googleapis.com/"
_FIRST_STEP_S = 1.0
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Workload:
    """What one worker's trainer has reported."""

    last_step: datetime | None = None
    busy_s: float = 0.0
    """Seconds inside device steps since the last publication."""

    covered_s: float = 0.0
    """Seconds that the reports since the last publication account for."""

    def step(self, moment: datetime, fraction: float, longest_s: float) -> None:
        """Take a step event; it accounts for the time since the one before it."""
        elapsed = _FIRST_STEP_S
        if self.last_step is not None:
            elapsed = (moment - self.last_step).total_seconds()
            if elapsed <= 0:
                return
        self.last_step = moment
        elapsed = min(elapsed, longest_s)
        self.covered_s += elapsed
        self.busy_s += elapsed * min(max(fraction, 0.0), 1.0)

    def take(self) -> float | None:
        """Return the duty cycle in percent since the last call, or None without reports."""
        if not self.covered_s:
            return None
        percent = 100.0 * self.busy_s / self.covered_s
        self.busy_s = self.covered_s = 0.0
        return percent


class Telemetry:
    """Samples and publishes once a period."""

    def __init__(self, world: World, host: ProcessHost) -> None:
        self._world = world
        self._host = host
        self._sampler = HostSampler(host)
        self._workloads: dict[tuple[str, int], Workload] = {}
        self._task: asyncio.Task[None] | None = None
        world.logs.listeners.append(self._log_arrived)
        world.nodes.listeners.append(self._node_changed)

    def start(self) -> None:
        """Begin to publish."""
        self._task = asyncio.create_task(self._run(), name="telemetry")

    async def stop(self) -> None:
        """End publishing."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await self._world.clock.sleep(self._world.settings.metrics_period_s)
            try:
                await self.publish()
            except Exception:  # noqa: BLE001  (the edge of the publishing task)
                _log.exception("a sample was lost")

    # --------------------------------------------------------------- intake

    def _log_arrived(self, entry: Any) -> None:
        """Take the device's share of time out of a trainer's step event."""
        if entry.resource.type != TPU_WORKER or not entry.HasField("json_payload"):
            return
        payload = entry.json_payload.fields
        # Reading a key that a map lacks would add it to the entry.
        if "event" not in payload or "device_fraction" not in payload:
            return
        if payload["event"].string_value != "step":
            return
        if payload["device_fraction"].WhichOneof("kind") != "number_value":
            return
        labels = entry.resource.labels
        name = ResourceName(
            labels.get("project_id", "") or entry.log_name.split("/")[1],
            labels.get("zone", ""),
            "nodes",
            labels.get("node_id", ""),
        )
        worker = labels.get("worker_id", "") or "0"
        if str(name) not in self._world.nodes or not worker.isdecimal():
            return
        workload = self._workloads.setdefault((str(name), int(worker)), Workload())
        moment = entry.timestamp.ToDatetime(UTC)
        fraction = payload["device_fraction"].number_value
        workload.step(moment, fraction, self._world.settings.metrics_period_s)

    def _node_changed(self, record: NodeRecord) -> None:
        """Forget the workload of a node that no longer runs."""
        name = str(record.name)
        if name not in self._world.nodes or not record.live:
            for key in [key for key in self._workloads if key[0] == name]:
                del self._workloads[key]

    # -------------------------------------------------------------- publish

    async def publish(self) -> None:
        """Publish one sample of everything that runs."""
        samples = await self._sampler.sample()
        now = self._world.clock.now()
        for sample in samples:
            if str(sample.record.name) in self._world.nodes:
                self._world.series.write(*self._host_points(sample, now))
        for (name, worker), workload in list(self._workloads.items()):
            if name in self._world.nodes:
                record = self._world.nodes.get(name)
                self._world.series.write(*self._accelerator_points(record, worker, workload, now))

    def _host_points(self, sample: HostSample, now: datetime) -> list[tuple[SeriesKey, Point]]:
        record, number = sample.record, sample.worker
        gauges: list[tuple[str, dict[str, str], float | int]] = [
            ("memory/usage", {}, sample.memory_bytes)
        ]
        if sample.cpu_percent is not None:
            gauges.append(("cpu/utilization", {"core": "all"}, sample.cpu_percent))
        points = []
        for metric, labels, value in gauges:
            key = self._tpu_worker_key(record, number, metric, labels)
            points.append((key, Point(now, now, value)))
        start = now - timedelta(seconds=sample.elapsed_s)
        for metric, count in (
            ("network/received_bytes_count", sample.received_bytes),
            ("network/sent_bytes_count", sample.sent_bytes),
        ):
            if count is not None:
                key = self._tpu_worker_key(record, number, metric, {})
                points.append((key, Point(start, now, count)))
        return points

    def _accelerator_points(
        self, record: NodeRecord, worker: int, workload: Workload, now: datetime
    ) -> list[tuple[SeriesKey, Point]]:
        points = []
        duty = workload.take()
        for chip in range(record.accelerator.chips_per_host):
            if duty is not None:
                labels = labels_of(accelerator_id=str(chip))
                for metric in ("accelerator/duty_cycle", "accelerator/tensorcore_utilization"):
                    key = SeriesKey(
                        record.name.project,
                        _PREFIX + metric,
                        labels,
                        GCE_WORKER,
                        gce_worker_labels(record, worker),
                    )
                    points.append((key, Point(now, now, duty)))
            if workload.last_step is not None:
                idle = max(0, round((now - workload.last_step).total_seconds()))
                key = self._tpu_worker_key(
                    record, worker, "tpu/tensorcore/idle_duration", {"chip": str(chip)}
                )
                points.append((key, Point(now, now, idle)))
        return points

    @staticmethod
    def _tpu_worker_key(
        record: NodeRecord, worker: int, metric: str, labels: dict[str, str]
    ) -> SeriesKey:
        return SeriesKey(
            record.name.project,
            _PREFIX + metric,
            labels_of(**labels),
            TPU_WORKER,
            tpu_worker_labels(record, worker),
        )
