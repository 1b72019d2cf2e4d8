"""READY times by the audit log, of the time before anybody watched."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tpudash.cost.audit import late_lives, with_audit
from tpudash.domain.life import NodeLife, ReadySpan
from tpudash.domain.log import LogEntry, Severity
from tpudash.domain.node import Scheduling

NAME = "projects/demo/locations/us-central1-b/nodes/stray"
START = datetime(2026, 11, 1, tzinfo=UTC)
SEEN = START + timedelta(hours=50)


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def entry(hours: float, method: str, name: str = NAME, **more: Any) -> LogEntry:
    payload = {"methodName": method, "resourceName": name, **more}
    return LogEntry(at(hours), Severity.NOTICE, method, payload=payload)


def life(**more: Any) -> NodeLife:
    fields: dict[str, Any] = {
        "name": NAME,
        "create_time": START,
        "run": None,
        "owner": None,
        "attempt": None,
        "accelerator_type": "v2-8",
        "scheduling": Scheduling.ON_DEMAND,
        "spans": (ReadySpan(SEEN, SEEN, begins_late=True),),
        "is_open": True,
        "last_seen": SEEN,
        **more,
    }
    return NodeLife(**fields)


def create(begun: float, ready: float) -> list[LogEntry]:
    method = "google.cloud.tpu.v2.Tpu.CreateNode"
    return [entry(begun, method), entry(ready, method)]


def spans(*entries: LogEntry, **more: Any) -> list[tuple[float, float, bool]]:
    (found,) = with_audit([life(**more)], entries)
    return [
        (
            (span.start - START) / timedelta(hours=1),
            (span.end - START) / timedelta(hours=1),
            span.begins_late,
        )
        for span in found.spans
    ]


def test_a_node_is_ready_when_its_creation_ended() -> None:
    assert spans(*create(0, 0.1)) == [(0.1, 50, False)]


def test_stops_and_starts_are_left_out_in_any_order_and_version_of_the_api() -> None:
    v2, alpha = "google.cloud.tpu.v2.Tpu", "google.cloud.tpu.v2alpha1.Tpu"
    told = [
        *create(0, 0.5),
        entry(10, f"{v2}.StopNode"),
        entry(10.2, f"{v2}.StopNode"),
        entry(40, f"{alpha}.StartNode"),
        entry(40.5, f"{alpha}.StartNode"),
    ]
    assert spans(*reversed(told)) == [(0.5, 10, False), (40.5, 50, False)]


@pytest.mark.parametrize(
    "told",
    [
        [],
        create(0, 0.1)[:1],
        [entry(0, "google.cloud.tpu.v2.Tpu.CreateNode", NAME + "2")] * 2,
        [entry(0, "google.cloud.tpu.v2.Tpu.CreateNode", status={"code": 8})] * 2,
        [entry(1, "google.cloud.tpu.v2.Tpu.GetNode")] * 2,
        [LogEntry(at(1), Severity.INFO, "no payload")],
        [entry(1, "x", resourceName=None)],
    ],
)
def test_what_tells_nothing_leaves_it_at_least(told: list[LogEntry]) -> None:
    assert spans(*told) == [(50, 50, True)]
    assert late_lives(with_audit([life()], told))


def test_an_earlier_node_of_this_name_is_another_one() -> None:
    old = [
        entry(-30, "google.cloud.tpu.v2.Tpu.CreateNode"),
        entry(-29, "google.cloud.tpu.v2.Tpu.CreateNode"),
        entry(-1, "google.cloud.tpu.v2.Tpu.DeleteNode"),
    ]
    assert spans(*old, *create(0, 0.1)) == [(0.1, 50, False)]


def test_what_was_watched_stays_as_it_was() -> None:
    watched = life(spans=(ReadySpan(at(1), at(9)),), is_open=False)
    assert with_audit([watched], create(0, 0.1)) == (watched,)
    assert late_lives([watched]) == ()
