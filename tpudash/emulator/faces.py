"""All faces of one emulator: gRPC, REST, Cloud Storage, and the proxy that ends TLS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tpudash.emulator.client_environment import ClientAddresses
from tpudash.emulator.dispatch import Dispatcher
from tpudash.emulator.grpc_face import GrpcFace
from tpudash.emulator.ports import LOOPBACK
from tpudash.emulator.rest.face import RestFace
from tpudash.emulator.services.all import GoogleServices
from tpudash.emulator.storage.authority import prepare_authority
from tpudash.emulator.storage.face import StorageFace
from tpudash.emulator.storage.proxy import TlsProxy
from tpudash.emulator.storage.store import BucketStore

if TYPE_CHECKING:
    from tpudash.emulator.counters import CallCounters
    from tpudash.emulator.rpc import Service
    from tpudash.emulator.settings import EmulatorSettings
    from tpudash.emulator.world.world import World

DEFAULT_BUCKET = "tpudash-emulator"
_DEFAULT_PROJECT = "demo"


class _Face(Protocol):
    async def start(self, port: int) -> int: ...
    async def stop(self) -> None: ...


class Faces:
    """Opens and closes what one world is spoken to by.

    Args:
        settings: Ports and folders.
        world: What is spoken to.
        counters: Counts the calls over all faces.
        control: The emulator's own service, spoken over gRPC.
    """

    def __init__(
        self, settings: EmulatorSettings, world: World, counters: CallCounters, control: Service
    ) -> None:
        self._settings = settings
        self._world = world
        self._dispatcher = Dispatcher(world.faults, counters)
        self._control = control
        self._open: list[_Face] = []
        self._store: BucketStore | None = None
        self.endpoint = ""
        """HOST:PORT of gRPC; set, like `addresses`, by `start`."""

        self.addresses: ClientAddresses

    async def start(self) -> None:
        """Open every face.

        Raises:
            ConfigurationError: A port is taken or may not be used.
        """
        settings, clock = self._settings, self._world.clock
        services = GoogleServices(self._world)
        self._store = store = BucketStore(settings.buckets_dir, clock)
        if not store.has_bucket(DEFAULT_BUCKET):
            store.make_bucket(DEFAULT_BUCKET, _DEFAULT_PROJECT, "US")
        authority = prepare_authority(settings.state_dir / "tls")
        grpc_face = GrpcFace([*services.over_grpc(), self._control], self._dispatcher)
        self.endpoint = await self._start(grpc_face, settings.port)
        rest_face = RestFace(services.over_rest(), self._dispatcher, clock)
        rest = await self._start(rest_face, settings.rest_port)
        storage_face = StorageFace(store, self._dispatcher, clock)
        storage = await self._start(storage_face, settings.storage_port)
        handlers = {
            "tpu.googleapis.com": rest_face.handler,
            "www.googleapis.com": storage_face.answer,
            "storage.googleapis.com": storage_face.answer,
            ".storage.googleapis.com": storage_face.answer,
        }
        proxy = await self._start(TlsProxy(handlers, authority.context()), 0)
        self.addresses = ClientAddresses(rest, storage, proxy, authority.bundle)

    async def _start(self, face: _Face, port: int) -> str:
        self._open.append(face)
        return f"{LOOPBACK}:{await face.start(port)}"

    async def stop(self) -> None:
        """Close every face, the last first."""
        while self._open:
            await self._open.pop().stop()
        if self._store is not None:
            self._store.close()
            self._store = None
