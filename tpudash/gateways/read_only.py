"""The last gate of watch mode: on a channel of its, only methods that read can be called at all.

What is not on the list is refused before a byte of it leaves the process, whoever calls it. Files
have no channel, so that a bucket is given to watch mode without the means to write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import grpc.aio

from tpudash.errors import NotAllowedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.gateways.protocols import BucketGateway

_TPU: Final = "/google.cloud.tpu.v2.Tpu/"
_LOGGING: Final = "/google.logging.v2.LoggingServiceV2/"
_BILLING: Final = "/google.cloud.billing.v1."

READ_METHODS: Final = frozenset(
    {
        f"{_TPU}ListNodes",
        "/google.cloud.tpu.v2alpha1.Tpu/ListNodes",
        f"{_TPU}GetNode",
        f"{_TPU}ListQueuedResources",
        f"{_TPU}GetQueuedResource",
        f"{_TPU}ListAcceleratorTypes",
        f"{_TPU}ListRuntimeVersions",
        "/google.cloud.location.Locations/ListLocations",
        "/google.longrunning.Operations/GetOperation",
        "/google.monitoring.v3.MetricService/ListTimeSeries",
        f"{_LOGGING}ListLogEntries",
        f"{_LOGGING}TailLogEntries",
        f"{_BILLING}CloudCatalog/ListSkus",
        f"{_BILLING}CloudBilling/GetProjectBillingInfo",
        "/google.cloud.billing.budgets.v1.BudgetService/ListBudgets",
        "/tpudash.emulator.Control/Describe",
    }
)
"""Every method that a read-only connection may call; each only returns what there is."""


class ReadOnlyError(NotAllowedError):
    """Something that changes the world was asked of a read-only connection."""

    def __init__(self, what: str) -> None:
        super().__init__(
            "this connection can only read",
            detail=f"{what} was refused before it left tpudash",
            hint="watch mode changes nothing; operators use `tpudash`",
        )


def _check(details: Any) -> None:
    method = details.method
    name = method.decode() if isinstance(method, bytes) else str(method)
    if name not in READ_METHODS:
        raise ReadOnlyError(name.lstrip("/"))


class _UnaryUnary(grpc.aio.UnaryUnaryClientInterceptor):  # type: ignore[type-arg]
    async def intercept_unary_unary(
        self, continuation: Callable[[Any, Any], Any], details: Any, request: Any
    ) -> Any:
        _check(details)
        return await continuation(details, request)


class _UnaryStream(grpc.aio.UnaryStreamClientInterceptor):  # type: ignore[type-arg]
    async def intercept_unary_stream(
        self, continuation: Callable[[Any, Any], Any], details: Any, request: Any
    ) -> Any:
        _check(details)
        return await continuation(details, request)


class _StreamUnary(grpc.aio.StreamUnaryClientInterceptor):  # type: ignore[type-arg]
    async def intercept_stream_unary(
        self, continuation: Callable[[Any, Any], Any], details: Any, requests: Any
    ) -> Any:
        _check(details)
        return await continuation(details, requests)


class _StreamStream(grpc.aio.StreamStreamClientInterceptor):  # type: ignore[type-arg]
    async def intercept_stream_stream(
        self, continuation: Callable[[Any, Any], Any], details: Any, requests: Any
    ) -> Any:
        _check(details)
        return await continuation(details, requests)


def read_only_interceptors() -> list[Any]:
    """Return what a channel needs in order to refuse all but `READ_METHODS`."""
    return [_UnaryUnary(), _UnaryStream(), _StreamUnary(), _StreamStream()]


class ReadOnlyBucket:
    """`BucketGateway` that only reads."""

    def __init__(self, bucket: BucketGateway) -> None:
        self._bucket = bucket

    async def exists(self, url: str) -> bool:
        """Whether a bucket, folder or file exists."""
        return await self._bucket.exists(url)

    async def read(self, url: str) -> bytes | None:
        """Return a file's content, or None when it does not exist."""
        return await self._bucket.read(url)

    async def list(self, url: str) -> tuple[str, ...]:
        """List the URLs of files and folders directly below a folder."""
        return await self._bucket.list(url)

    async def location(self, url: str) -> str | None:
        """Return where a bucket lies."""
        return await self._bucket.location(url)

    async def write(self, url: str, data: bytes, *, only_if_absent: bool = False) -> bool:  # noqa: ARG002
        """Refuse; raises `ReadOnlyError`."""
        raise ReadOnlyError(f"writing {url}")

    async def rename(self, url: str, new_url: str) -> None:
        """Refuse; raises `ReadOnlyError`."""
        raise ReadOnlyError(f"moving {url} to {new_url}")
