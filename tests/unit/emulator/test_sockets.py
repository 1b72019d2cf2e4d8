"""The kernel's byte counters of TCP sockets."""

from __future__ import annotations

import os
import socket
import sys

import pytest

from tests.waiting import wait_until
from tpudash.emulator.machines.sockets import SocketCounters

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux tells, only")


@linux_only
def test_payload_is_counted_since_the_last_look() -> None:
    counters = SocketCounters()
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        accepted, _ = server.accept()
        with accepted:
            counters.refresh()
            counters.take(1, [os.getpid()])
            client.sendall(b"x" * 50_000)
            received = 0
            while received < 50_000:
                received += len(accepted.recv(65_536))

            total = [0, 0]

            def all_counted() -> bool:
                counters.refresh()
                traffic = counters.take(1, [os.getpid()])
                assert traffic is not None
                total[0] += traffic[0]
                total[1] += traffic[1]
                return total[0] >= 50_000 and total[1] >= 50_000

            wait_until(all_counted, within=5, what="both ends are counted")


def test_without_counters_nothing_is_claimed() -> None:
    assert SocketCounters().take(1, [os.getpid()]) is None
