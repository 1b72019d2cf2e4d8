"""Announced maintenance, which only v2alpha1 of the Cloud TPU API tells of.

Source: google/cloud/tpu/v2alpha1/cloud_tpu.proto, message UpcomingMaintenance.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from tpudash.domain.node import Maintenance
from tpudash.gateways.convert import enum_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def maintenance_of(messages: Iterable[Any]) -> Iterator[tuple[str, Maintenance]]:
    """Yield name and maintenance of those raw v2alpha1 nodes for which some is announced."""
    for message in messages:
        if message.HasField("upcoming_maintenance"):
            yield message.name, _announced(message.upcoming_maintenance)


def _announced(message: Any) -> Maintenance:
    return Maintenance(
        kind=enum_text(message, "type_"),
        status=enum_text(message, "maintenance_status"),
        can_reschedule=message.can_reschedule,
        window_start=_time(message.window_start_time),
        window_end=_time(message.window_end_time),
        latest_start=_time(message.latest_window_start_time),
    )


def _time(text: str) -> datetime | None:
    """Return a time of this message, which are texts; None for one that can't be read."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None
