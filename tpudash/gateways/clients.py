"""Google's asyncio clients, each made when it is first asked for.

Over a local endpoint all share one plaintext channel and no credentials are looked up; without
one, each speaks TLS with Application Default Credentials. Importing the packages takes up to 0.7 s,
so that it happens in a thread.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import warnings
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from tpudash.gateways.credentials import SignIn, find_sign_in

if TYPE_CHECKING:
    from tpudash.gateways.endpoint import Endpoint

CLOSE_GRACE_S: Final = 2.0

CHANNEL_OPTIONS: Final = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_metadata_size", 64 * 1024),
    ("grpc.initial_reconnect_backoff_ms", 250),
    # This is also how long one attempt to connect may take; a machine may be very busy.
    ("grpc.min_reconnect_backoff_ms", 10_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # Another channel of this process to the same address must not share our broken connection.
    ("grpc.use_local_subchannel_pool", 1),
)


class ClientKind(Enum):
    """A client: the package that holds it, and its class."""

    TPU = ("google.cloud.tpu_v2", "TpuAsyncClient")
    METRICS = ("google.cloud.monitoring_v3", "MetricServiceAsyncClient")
    LOGS = (
        "google.cloud.logging_v2.services.logging_service_v2",
        "LoggingServiceV2AsyncClient",
    )
    CATALOG = ("google.cloud.billing_v1", "CloudCatalogAsyncClient")
    BILLING = ("google.cloud.billing_v1", "CloudBillingAsyncClient")
    BUDGETS = ("google.cloud.billing.budgets_v1", "BudgetServiceAsyncClient")


def import_quietly(module: str) -> Any:
    """Import a module, keeping gRPC's core and deprecation notices off the terminal."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"google\.")
    return importlib.import_module(module)


class Clients:
    """The clients of one connection; a source of fresh ones after the sign-in was renewed."""

    def __init__(
        self,
        endpoint: Endpoint | None,
        *,
        quota_project: str | None,
        impersonate: str | None,
        read_only: bool = False,
    ) -> None:
        self._endpoint = endpoint
        self._read_only = read_only
        self._quota_project = quota_project
        self._impersonate = impersonate
        self.storage_url: str | None = None
        """Where a local endpoint's `gs://` buckets are; found out when connecting."""

        self._clients: dict[ClientKind, Any] = {}
        self._channel: Any = None
        self._sign_in: SignIn | None = None
        self._lock = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def is_local(self) -> bool:
        """Whether everything goes to one plaintext server on this machine."""
        return self._endpoint is not None

    async def get(self, kind: ClientKind) -> Any:
        """Return the client of a kind.

        Raises:
            NotAllowedError: There are no usable credentials.
        """
        found = self._clients.get(kind)
        if found is not None:
            return found
        async with self._lock:
            if kind not in self._clients:
                self._clients[kind] = await self._make(kind)
            return self._clients[kind]

    async def channel(self) -> Any:
        """Return the one plaintext channel to the endpoint."""
        await asyncio.to_thread(import_quietly, "grpc.aio")
        return self._shared_channel()

    async def sign_in(self) -> SignIn:
        """Return the credentials, looked up once.

        Raises:
            NotAllowedError: There are no usable credentials.
        """
        if self._sign_in is None:
            await asyncio.to_thread(import_quietly, "google.auth")
            self._sign_in = await asyncio.to_thread(
                find_sign_in, quota_project=self._quota_project, impersonate=self._impersonate
            )
        return self._sign_in

    def forget_sign_in(self) -> None:
        """Have the next call read the credentials anew; calls in flight may still end."""
        if self._endpoint is not None:
            return
        self._sign_in = None
        stale, self._clients = list(self._clients.values()), {}
        for client in stale:
            task = asyncio.create_task(_close(client), name="close a stale client")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close every channel; calls in flight end with an error."""
        clients, self._clients = list(self._clients.values()), {}
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close(None)
        else:
            await asyncio.gather(*(_close(client, grace_s=None) for client in clients))
        closing = list(self._closing)
        for task in closing:
            task.cancel()
        await asyncio.gather(*closing, return_exceptions=True)

    async def _make(self, kind: ClientKind) -> Any:
        module, name = kind.value
        client_class = getattr(await asyncio.to_thread(import_quietly, module), name)
        transport = client_class.get_transport_class("grpc_asyncio")
        if self._endpoint is not None:
            return client_class(transport=transport(channel=self._shared_channel()))
        credentials = (await self.sign_in()).credentials
        if not self._read_only:
            return client_class(credentials=credentials)

        def channel(*arguments: Any, **more: Any) -> Any:
            return transport.create_channel(*arguments, interceptors=self._interceptors(), **more)

        return client_class(transport=transport(credentials=credentials, channel=channel))

    def _interceptors(self) -> list[Any]:
        """Return what every channel of this connection is to have; imports gRPC."""
        from tpudash.gateways.read_only import read_only_interceptors

        return read_only_interceptors() if self._read_only else []

    def _shared_channel(self) -> Any:
        if self._channel is None:
            import grpc.aio

            self._channel = grpc.aio.insecure_channel(
                str(self._endpoint), options=CHANNEL_OPTIONS, interceptors=self._interceptors()
            )
        return self._channel


async def _close(client: Any, grace_s: float | None = CLOSE_GRACE_S) -> None:
    await client.transport.grpc_channel.close(grace_s)
