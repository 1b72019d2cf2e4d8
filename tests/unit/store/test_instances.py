"""Time series of hidden VMs find the node whose agent told of its VM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.tui.factories import make_entry
from tpudash.domain.metric import MetricSeries
from tpudash.store.instances import InstanceBook

if TYPE_CHECKING:
    from tpudash.domain.log import LogEntry


def host(node_id: str = "demo-1", worker: str = "0", **payload: Any) -> LogEntry:
    told = {"event": "host", **payload}
    return make_entry(1, "host figures", node_id=node_id, worker_id=worker, payload=told)


def series(worker_id: str, **labels: str) -> MetricSeries:
    metric = "tpu.googleapis.com/accelerator/duty_cycle"
    return MetricSeries(metric, None, "us-central1-b", worker_id, "%", (), labels)


TOLD = host(worker="2", instance="t1v-n-5db23080-w-2", instance_id="8123456789")


@pytest.mark.parametrize(
    ("one", "node_id", "worker_id"),
    [
        (series("t1v-n-5db23080-w-2"), "demo-1", "t1v-n-5db23080-w-2"),
        (series("8123456789"), "demo-1", "2"),
        (series("t1v-n-5db23080-w-2.us-central1-b.c.demo.internal"), "demo-1", "2"),
        (series("7", instance_name="t1v-n-5db23080-w-2"), "demo-1", "2"),
        (series("t1v-n-other-w-0"), None, "t1v-n-other-w-0"),
        (series(""), None, ""),
    ],
)
def test_a_series_is_joined_by_the_name_or_number_of_its_vm(
    one: MetricSeries, node_id: str | None, worker_id: str
) -> None:
    book = InstanceBook()
    book.take([TOLD])
    (found,) = book.joined([one])
    assert (found.node_id, found.worker_id) == (node_id, worker_id)


def test_the_newest_word_counts_and_what_is_no_name_is_left_out() -> None:
    book = InstanceBook()
    book.take([TOLD, host("demo-2", "0", instance="t1v-n-5db23080-w-2")])
    book.take([host("x", instance=""), host("x", instance_id=None), host("x", instance=["a"])])
    (found,) = book.joined([series("t1v-n-5db23080-w-2")])
    assert found.node_id == "demo-2"
    assert book.joined([series("")])[0].node_id is None
