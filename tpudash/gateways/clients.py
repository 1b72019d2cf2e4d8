"""Google's asyncio clients, each made when it is first asked for.

Over a local endpoint all share one plaintext channel and no credentials are looked up; without
one, each speaks TLS, and each of its calls carries a token of the Application Default Credentials
that are in force then. Importing the packages takes up to 0.7 s, so that it happens in a thread.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import warnings
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from tpudash.gateways.credentials import CLOUD_PLATFORM, SignIn, find_sign_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.gateways.endpoint import Endpoint
    from tpudash.gateways.tokens import Headers, Tokens

    Dial = Callable[[str, list[Any]], Any]

LARGEST_ANSWER: Final = 128 * 2**20
"""Bytes of one answer; a page of a thousand nodes with long startup scripts has a fourth of it."""

_LIMITS: Final = (
    ("grpc.max_receive_message_length", LARGEST_ANSWER),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_metadata_size", 64 * 1024),
)
CHANNEL_OPTIONS: Final = (
    *_LIMITS,
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 250),
    # This is also how long one attempt to connect may take; a machine may be very busy.
    ("grpc.min_reconnect_backoff_ms", 10_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # Another channel of this process to the same address must not share our broken connection.
    ("grpc.use_local_subchannel_pool", 1),
)
TLS_OPTIONS: Final = (
    *_LIMITS,
    # A laptop that slept finds its connections dead only if somebody asks them.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 15_000),
)


class ClientKind(Enum):
    """A client: the package that holds it, and its class."""

    TPU = ("google.cloud.tpu_v2", "TpuAsyncClient")
    TPU_ALPHA = ("google.cloud.tpu_v2alpha1", "TpuAsyncClient")
    METRICS = ("google.cloud.monitoring_v3", "MetricServiceAsyncClient")
    LOGS = (
        "google.cloud.logging_v2.services.logging_service_v2",
        "LoggingServiceV2AsyncClient",
    )
    CATALOG = ("google.cloud.billing_v1", "CloudCatalogAsyncClient")
    BILLING = ("google.cloud.billing_v1", "CloudBillingAsyncClient")
    BUDGETS = ("google.cloud.billing.budgets_v1", "BudgetServiceAsyncClient")


READ_SCOPES: Final = {
    ClientKind.METRICS: "https://www.googleapis.com/auth/monitoring.read",
    ClientKind.LOGS: "https://www.googleapis.com/auth/logging.read",
    ClientKind.CATALOG: "https://www.googleapis.com/auth/cloud-billing.readonly",
    ClientKind.BILLING: "https://www.googleapis.com/auth/cloud-billing.readonly",
}
"""OAuth scopes that allow reading alone; the TPU and Budget APIs have none.

Source: the `oauth_scopes` options in the APIs' protos
"""

STORAGE_READ_SCOPE: Final = "https://www.googleapis.com/auth/devstorage.read_only"


def import_quietly(module: str) -> Any:
    """Import a module, keeping gRPC's core and deprecation notices off the terminal."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"google\.")
    return importlib.import_module(module)


class Clients:
    """The clients of one connection, all of which act as whoever is signed in at the time.

    Args:
        dial: Opens a channel to a host of Google's, with interceptors; over TLS if not given.
    """

    def __init__(
        self,
        endpoint: Endpoint | None,
        *,
        quota_project: str | None,
        impersonate: str | None,
        read_only: bool = False,
        dial: Dial | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._read_only = read_only
        self._quota_project = quota_project
        self._impersonate = impersonate
        self._dial = dial or _dial
        self.storage_url: str | None = None
        """Where a local endpoint's `gs://` buckets are; found out when connecting."""

        self._clients: dict[ClientKind, Any] = {}
        self._channel: Any = None
        self._tokens: Tokens | None = None
        self._lock = asyncio.Lock()

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
        """Return the credentials; looked up once, and again when they have changed or failed.

        Raises:
            NotAllowedError: There are no usable credentials.
        """
        return await (await self._ready_tokens()).sign_in()

    def forget_sign_in(self) -> None:
        """Have the next call read the credentials anew."""
        if self._tokens is not None:
            self._tokens.forget()

    def scopes_of(self, scope_to_read: str | None) -> tuple[str, ...]:
        """Return the OAuth scopes to ask for: the one to read with, where reading is all."""
        return (scope_to_read if self._read_only and scope_to_read else CLOUD_PLATFORM,)

    async def close(self) -> None:
        """Close every channel; calls in flight end with an error."""
        clients, self._clients = list(self._clients.values()), {}
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close(None)
        else:
            await asyncio.gather(*(client.transport.grpc_channel.close(None) for client in clients))
        if self._tokens is not None:
            await self._tokens.close()

    async def _ready_tokens(self) -> Tokens:
        if self._tokens is None:
            await asyncio.to_thread(import_quietly, "google.auth")
            tokens = await asyncio.to_thread(import_quietly, "tpudash.gateways.tokens")
            if self._tokens is None:
                self._tokens = tokens.Tokens(self._find)
        return self._tokens

    def _find(self) -> SignIn:
        return find_sign_in(quota_project=self._quota_project, impersonate=self._impersonate)

    async def _make(self, kind: ClientKind) -> Any:
        module, name = kind.value
        client_class = getattr(await asyncio.to_thread(import_quietly, module), name)
        transport = client_class.get_transport_class("grpc_asyncio")
        if self._endpoint is not None:
            return client_class(transport=transport(channel=self._shared_channel()))
        tokens = await self._ready_tokens()
        domain = (await tokens.sign_in()).credentials.universe_domain
        host = client_class._DEFAULT_ENDPOINT_TEMPLATE.format(UNIVERSE_DOMAIN=domain)  # noqa: SLF001
        scopes = self.scopes_of(READ_SCOPES.get(kind))

        async def headers() -> Headers:
            return await tokens.headers(scopes)

        from tpudash.gateways.tokens import token_interceptors

        # What may not be sent needs no token, so that refusing comes first.
        interceptors = [*self._interceptors(), *token_interceptors(headers)]
        return client_class(transport=transport(channel=self._dial(host, interceptors)))

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


def _dial(host: str, interceptors: list[Any]) -> Any:
    import grpc.aio

    return grpc.aio.secure_channel(
        f"{host}:443",
        grpc.ssl_channel_credentials(),
        options=TLS_OPTIONS,
        interceptors=interceptors,
    )
