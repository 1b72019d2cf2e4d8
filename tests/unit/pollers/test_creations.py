"""What this machine's journal tells of capacity in zones, whatever else stands in it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from tpudash.domain.failure import ErrorClass
from tpudash.pollers.creations import read_creations

if TYPE_CHECKING:
    from pathlib import Path

NO_ROOM = (
    'There is no more capacity in the zone "{zone}"; you can try in another zone where Cloud TPU'
    " Nodes are offered (see https://cloud.google.com/tpu/docs/regions)"
)
QUOTA = "Quota limit 'TPUV2sPerProjectPerRegionForTPUAPI' has been exceeded. Limit: 0 in region {}."


def record(minute: int, event: str, operation: str = "launch-1", **more: Any) -> str:
    time = datetime(2026, 12, 1, 11, minute, tzinfo=UTC).isoformat()
    return json.dumps(
        {"schema": 1, "time": time, "event": event, "operation": operation, **more},
        separators=(",", ":"),
    )


def begin(zone: str, operation: str = "launch-1", **more: Any) -> str:
    fields = {
        "kind": "launch",
        "project": "demo",
        "run": "demo",
        "nodes": [f"projects/demo/locations/{zone}/nodes/demo-1"],
        "payload": {"spec": {"accelerator_type": "v2-8"}},
        **more,
    }
    return record(0, "begin", operation, **fields)


def creates(minute: int, zone: str) -> str:
    node = f"projects/demo/locations/{zone}/nodes/demo-1"
    return record(minute, "intend", message="creating", node=node, creates=True)


def left(minute: int, words: str) -> str:
    return record(minute, "progress", message=words + NO_ROOM.format(zone="us-central1-b"))


def read(tmp_path: Path, *lines: str) -> list[tuple[int, str, str, ErrorClass | None]]:
    journal = tmp_path / "operations.jsonl"
    journal.write_text("\n".join(lines) + "\n")
    return [
        (one.time.minute, one.zone, one.accelerator_type, one.error_class)
        for one in read_creations(journal, "demo")
    ]


def test_each_zone_that_was_tried_is_told_with_its_reason(tmp_path: Path) -> None:
    ended = "; ".join(f"{z}: {NO_ROOM.format(zone=z)}" for z in ("us-central1-b", "us-east1-d"))
    found = read(
        tmp_path,
        begin("us-central1-b"),
        creates(1, "us-central1-b"),
        left(2, "us-central1-b could not provide v2-8; "),
        creates(3, "us-east1-d"),
        record(4, "end", state="FAILED", message=f"no capacity for v2-8 (spot): {ended}"),
    )
    assert found == [
        (4, "us-central1-b", "v2-8", ErrorClass.STOCKOUT),
        (4, "us-east1-d", "v2-8", ErrorClass.STOCKOUT),
    ]


def test_success_after_a_refusal_and_what_is_no_stock_out(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        begin("us-central1-b"),
        creates(1, "us-central1-b"),
        left(2, "no node in us-central1-b: "),
        creates(3, "us-east1-d"),
        record(5, "end", state="DONE", message="demo-1 is READY"),
        begin("us-east5-a", "launch-2"),
        record(6, "end", "launch-2", state="FAILED", message=QUOTA.format("us-east5")),
    )
    assert found == [
        (2, "us-central1-b", "v2-8", ErrorClass.STOCKOUT),
        (5, "us-east1-d", "v2-8", None),
        (6, "us-east5-a", "v2-8", ErrorClass.QUOTA),
    ]


def test_a_compacted_journal_and_other_projects(tmp_path: Path) -> None:
    message = "us-central1-b: " + NO_ROOM.format(zone="us-central1-b")
    assert read(
        tmp_path,
        begin("us-central1-b"),
        record(4, "end", state="FAILED", message=message),
        begin("us-east1-d", "other", project="else"),
        record(5, "end", "other", state="FAILED", message=NO_ROOM.format(zone="us-east1-d")),
        begin("us-east1-d", "gone", kind="delete"),
        record(6, "end", "gone", state="FAILED", message=NO_ROOM.format(zone="us-east1-d")),
    ) == [(4, "us-central1-b", "v2-8", ErrorClass.STOCKOUT)]


def test_without_a_journal_nothing_was_tried(tmp_path: Path) -> None:
    assert read_creations(tmp_path / "none.jsonl", "demo") == ()


KEYS = st.sampled_from(
    ["event", "operation", "project", "kind", "time", "nodes", "payload", "state"]
)
WORDS = ["begin", "end", "launch", "demo", "FAILED", "2026-12-01T11:00:00+00:00"]
SIMPLE = st.none() | st.integers() | st.text(max_size=8) | st.sampled_from(WORDS)
VALUES = SIMPLE | st.lists(SIMPLE, max_size=2) | st.dictionaries(st.text(max_size=4), SIMPLE)


@given(st.lists(st.dictionaries(KEYS, VALUES) | st.text(max_size=20), max_size=6))
def test_no_journal_makes_it_raise(tmp_path_factory: Any, records: list[Any]) -> None:
    journal = tmp_path_factory.mktemp("journal") / "operations.jsonl"
    journal.write_text("\n".join(json.dumps(one) for one in records))
    read_creations(journal, "demo")
