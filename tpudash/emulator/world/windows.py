"""When a queued resource may be served."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tpudash.emulator.messages import Message


def validity_of(request: Message, now: datetime) -> tuple[datetime, datetime | None]:
    """Return the first and the last moment of a request's validity.

    Durations count from the request's creation, as the proto says.
    """
    policy = request.queueing_policy
    created = request.create_time.ToDatetime(UTC)
    start, end = now, None
    kind = policy.WhichOneof("start_timing_constraints")
    if kind == "valid_until_duration":
        end = created + policy.valid_until_duration.ToTimedelta()
    elif kind == "valid_until_time":
        end = policy.valid_until_time.ToDatetime(UTC)
    elif kind == "valid_after_duration":
        start = created + policy.valid_after_duration.ToTimedelta()
    elif kind == "valid_after_time":
        start = policy.valid_after_time.ToDatetime(UTC)
    elif kind == "valid_interval":
        start = policy.valid_interval.start_time.ToDatetime(UTC)
        end = policy.valid_interval.end_time.ToDatetime(UTC)
    return start, end
