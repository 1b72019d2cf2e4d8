"""Cloud Monitoring, reading: one question for each metric type, for all nodes of the project.

Source: google/monitoring/v3/metric_service.proto.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from tpudash.gateways.clients import ClientKind
from tpudash.gateways.convert import to_timestamp_text
from tpudash.gateways.convert_series import series_of
from tpudash.gateways.log_filters import quoted
from tpudash.gateways.metric_table import OTHER, rule_for
from tpudash.gateways.pace import Spend
from tpudash.gateways.paging import all_pages, raw_page

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.domain.metric import MetricSeries
    from tpudash.gateways.clients import Clients
    from tpudash.gateways.retry import Caller

LIST_S: Final = 20.0
PAGE_SIZE: Final = 10_000
SHORTEST_ALIGNMENT: Final = timedelta(seconds=60)
"""Cloud Monitoring aligns to no less; finer points, which only an emulator has, are read raw."""


class GoogleMonitoring:
    """`MonitoringGateway` over Google's client."""

    def __init__(self, clients: Clients, caller: Caller, project: str) -> None:
        self._clients = clients
        self._caller = caller
        self._project = project

    async def list_series(
        self, metric: str, *, start: datetime, end: datetime, period: timedelta
    ) -> tuple[MetricSeries, ...]:
        """Read one metric for all nodes of the project, oldest first.

        Points are aligned to `period`, or come as they were written where that is below 60 s.
        """
        from google.cloud.monitoring_v3 import ListTimeSeriesRequest

        client = await self._clients.get(ClientKind.METRICS)
        rule = rule_for(metric)
        is_aligned = period >= SHORTEST_ALIGNMENT
        request: dict[str, Any] = {
            "name": f"projects/{self._project}",
            "filter": f"metric.type = {quoted(metric)}",
            "interval": {
                "start_time": to_timestamp_text(start),
                "end_time": to_timestamp_text(end),
            },
            "view": ListTimeSeriesRequest.TimeSeriesView.FULL,
            "page_size": PAGE_SIZE,
        }
        if is_aligned:
            request["aggregation"] = {
                "alignment_period": {"seconds": int(period.total_seconds())},
                "per_series_aligner": rule.aligner,
            }

        async def page(token: str, timeout_s: float) -> Any:
            return await raw_page(
                await client.list_time_series(
                    request={**request, "page_token": token}, timeout=timeout_s, retry=None
                )
            )

        found: list[Any] = []
        async for answer in all_pages(
            self._caller,
            f"read the metric {metric}",
            page,
            timeout_s=LIST_S,
            spend=Spend.SERIES,
        ):
            found.extend(answer.time_series)
        unit = rule.unit if is_aligned else rule.unit_of_points
        return tuple(
            series_of(message, (message.unit or unit) if rule is OTHER else unit)
            for message in found
        )
