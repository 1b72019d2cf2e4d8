"""The emulator's Cloud Storage face on its own, for tests that need a bucket and no nodes."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, TypeVar

from google.rpc import code_pb2

from tpudash.clock import SystemClock
from tpudash.emulator.client_environment import ClientAddresses
from tpudash.emulator.counters import CallCounters
from tpudash.emulator.dispatch import Dispatcher
from tpudash.emulator.errors import make_status
from tpudash.emulator.fault_rules import Fault, FaultKind
from tpudash.emulator.faults import Faults
from tpudash.emulator.storage.authority import prepare_authority
from tpudash.emulator.storage.content import Content
from tpudash.emulator.storage.face import StorageFace
from tpudash.emulator.storage.objects import Conditions
from tpudash.emulator.storage.proxy import TlsProxy
from tpudash.emulator.storage.store import BucketStore

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

ResultT = TypeVar("ResultT")
BUCKET = "bkt"
_WAIT_S = 10.0
_WRITES = ("*objects.insert", "*objects.rewrite", "*objects.delete")


class StorageServer(MutableMapping[str, bytes]):
    """Serves one bucket called `bkt`; as a mapping, its objects by name.

    Attributes:
        environment: what a process must be given to use this server as gs://.
    """

    def __init__(self, folder: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.environment = self._run(self._start(folder))

    async def _start(self, folder: Path) -> dict[str, str]:
        clock = SystemClock()
        self._store = BucketStore(folder / "buckets", clock)
        self._store.make_bucket(BUCKET, "demo", "US")
        self._faults = Faults(clock, random.Random(1))
        dispatcher = Dispatcher(self._faults, CallCounters())
        self._face = StorageFace(self._store, dispatcher, clock)
        port = await self._face.start(0)
        authority = prepare_authority(folder / "tls")
        hosts = ("www.googleapis.com", "storage.googleapis.com")
        self._proxy = TlsProxy(dict.fromkeys(hosts, self._face.answer), authority.context())
        proxy = f"127.0.0.1:{await self._proxy.start(0)}"
        storage = f"127.0.0.1:{port}"
        addresses = ClientAddresses("127.0.0.1:1", storage, proxy, authority.bundle)
        return {**addresses.environment(), "GCS_RETRY_CONFIG_MAX_RETRIES": "1"}

    def close(self) -> None:
        """Stop serving."""
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_WAIT_S)
        self._loop.close()

    def refuse_writes(self) -> None:
        """Answer 403 to every write from now on, as when a role was taken away."""
        denied = make_status(code_pb2.PERMISSION_DENIED, "no storage.objects.create access")
        for method in _WRITES:
            fault = Fault(FaultKind.ERROR, method=method, status=denied)
            self._call(lambda fault=fault: self._faults.add(fault))  # type: ignore[misc]

    async def _stop(self) -> None:
        await self._proxy.stop()
        await self._face.stop()
        self._store.close()

    def _run(self, work: Coroutine[None, None, ResultT]) -> ResultT:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_WAIT_S)

    def _call(self, work: Callable[[], ResultT]) -> ResultT:
        async def run() -> ResultT:
            return work()

        return self._run(run())

    def __getitem__(self, name: str) -> bytes:
        def read() -> bytes | None:
            found = self._store.find(BUCKET, name)
            return None if found is None else self._store.path_of(found).read_bytes()

        content = self._call(read)
        if content is None:
            raise KeyError(name)
        return content

    def __setitem__(self, name: str, data: bytes) -> None:
        def write() -> None:
            content = Content(self._store.parts)
            content.write(data)
            self._store.put(BUCKET, name, content, {})

        self._call(write)

    def __delitem__(self, name: str) -> None:
        self._call(lambda: self._store.remove(BUCKET, name, Conditions()))

    def __iter__(self) -> Iterator[str]:
        return iter(self._call(lambda: [item.name for item in self._store.scan(BUCKET, b"")]))

    def __len__(self) -> int:
        return len(list(iter(self)))
