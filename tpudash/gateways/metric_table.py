"""How each metric of Cloud TPU is read: its unit, and how its points are brought to a period.

Source: https://cloud.google.com/monitoring/api/metrics_gcp, prefix tpu.googleapis.com.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PREFIX: Final = "tpu.googleapis.com/"


@dataclass(frozen=True, slots=True)
class MetricRule:
    """How one metric is read.

    Attributes:
        unit: UCUM unit of the aligned values.
        aligner: Name of a `google.monitoring.v3.Aggregation.Aligner`.
    """

    unit: str
    aligner: str = "ALIGN_MEAN"

    @property
    def unit_of_points(self) -> str:
        """Unit of the points as they were written: a rate is made of amounts."""
        return self.unit.removesuffix("/s") if self.aligner == "ALIGN_RATE" else self.unit


OTHER: Final = MetricRule("1")
_RULES: Final = {
    "cpu/utilization": MetricRule("%"),
    "memory/usage": MetricRule("By"),
    "network/received_bytes_count": MetricRule("By/s", "ALIGN_RATE"),
    "network/sent_bytes_count": MetricRule("By/s", "ALIGN_RATE"),
    "tpu/mxu/utilization": MetricRule("%"),
    "container/cpu/utilization": MetricRule("%"),
    "container/memory/usage": MetricRule("By"),
    "tpu/tensorcore/idle_duration": MetricRule("s", "ALIGN_MAX"),
    "accelerator/duty_cycle": MetricRule("%"),
    "accelerator/tensorcore_utilization": MetricRule("%"),
    "accelerator/memory_bandwidth_utilization": MetricRule("%"),
    "accelerator/memory_used": MetricRule("By"),
    "accelerator/memory_total": MetricRule("By"),
    "instance/interruption_count": MetricRule("1", "ALIGN_MAX"),
    "instance/uptime_total": MetricRule("s", "ALIGN_MAX"),
}


def rule_for(metric: str) -> MetricRule:
    """Return how to read a metric; a plain mean for one that is not in the table."""
    return _RULES.get(metric.removeprefix(PREFIX), OTHER)
