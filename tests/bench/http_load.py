"""Closed-loop HTTP clients in one process: `python -m tests.bench.http_load PORT PATH FILE ...`.

Each client sends the next request when it has the answer to the one before. Bytes are looked at no
more than it takes to tell where an answer ends, so that the load costs little beside the server.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from pathlib import Path
from typing import cast

import uvloop


class Client(asyncio.Protocol):
    """One connection."""

    def __init__(self, request: bytes, until: float, times: list[float], bad: list[bytes]) -> None:
        self._request = request
        self._until = until
        self._times = times
        self._bad = bad
        self._answer = b""
        self._length = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport is one of asyncio's by its methods only.
        self._transport = cast("asyncio.Transport", transport)
        self._send()

    def _send(self) -> None:
        self._answer, self._length = b"", 0
        self._sent = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if not self._length:
            head, ended, _ = self._answer.partition(b"\r\n\r\n")
            if not ended:
                return
            declared = head.lower().partition(b"content-length: ")[2]
            self._length = len(head) + 4 + int(declared.split(b"\r\n", 1)[0])
        if len(self._answer) < self._length:
            return
        self._times.append(time.perf_counter() - self._sent)
        if not self._answer.startswith(b"HTTP/1.1 200"):
            self._bad.append(self._answer[:200])
        if time.perf_counter() < self._until:
            self._send()
        else:
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)


async def load(port: int, request: bytes, clients: int, seconds: float) -> dict[str, float]:
    """Return rate, latencies in milliseconds, failures, and what the load itself cost."""
    times: list[float] = []
    bad: list[bytes] = []
    began = time.perf_counter()
    used = resource.getrusage(resource.RUSAGE_SELF)
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(
            lambda: Client(request, began + seconds, times, bad), "127.0.0.1", port
        )
        for _ in range(clients)
    ]
    await asyncio.gather(*(client.done for _, client in made))
    took = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_SELF)
    times.sort()
    cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return {
        "requests_per_second": len(times) / took,
        "p50_ms": 1000 * times[len(times) // 2],
        "p99_ms": 1000 * times[int(0.99 * len(times))],
        "failed": len(bad),
        "client_cpu_us": 1e6 * cpu / len(times),
    }


def main() -> None:
    """Load a server and print the figures as JSON."""
    port, path, file, clients, seconds = sys.argv[1:]
    body = Path(file).read_bytes()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    found = uvloop.run(load(int(port), head.encode() + body, int(clients), float(seconds)))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
