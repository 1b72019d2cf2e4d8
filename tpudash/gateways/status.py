"""From the exceptions and protos of Google's packages to `CloudStatus`, which knows none of them.

Source: google/rpc/status.proto, google/rpc/error_details.proto.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.failure import CloudStatus, Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TOO_LARGE: Final = "message larger than max"
"""gRPC's own words for an answer that this side refuses to take in."""

_STATUS_KEY: Final = "grpc-status-details-bin"
_CODE_OF_HTTP: Final[dict[int, str]] = {
    HTTPStatus.BAD_REQUEST: "INVALID_ARGUMENT",
    HTTPStatus.UNAUTHORIZED: "UNAUTHENTICATED",
    HTTPStatus.FORBIDDEN: "PERMISSION_DENIED",
    HTTPStatus.NOT_FOUND: "NOT_FOUND",
    HTTPStatus.CONFLICT: "ABORTED",
    HTTPStatus.PRECONDITION_FAILED: "FAILED_PRECONDITION",
    HTTPStatus.TOO_MANY_REQUESTS: "RESOURCE_EXHAUSTED",
    HTTPStatus.INTERNAL_SERVER_ERROR: "INTERNAL",
    HTTPStatus.NOT_IMPLEMENTED: "UNIMPLEMENTED",
    HTTPStatus.BAD_GATEWAY: "UNAVAILABLE",
    HTTPStatus.SERVICE_UNAVAILABLE: "UNAVAILABLE",
    HTTPStatus.GATEWAY_TIMEOUT: "DEADLINE_EXCEEDED",
}


def foreign_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions by which Google's packages and the network tell of a fault."""
    import grpc.aio
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError
    from google.protobuf.message import DecodeError

    return (
        grpc.RpcError,
        grpc.aio.BaseError,
        GoogleAPIError,
        GoogleAuthError,
        DecodeError,
        OSError,
        TimeoutError,
    )


def status_of(error: BaseException) -> CloudStatus:
    """Return what an exception of grpc, api_core, google-auth or a time-out says."""
    import grpc
    from google.api_core import exceptions
    from google.protobuf.message import DecodeError

    if isinstance(error, DecodeError) and isinstance(error.__context__, grpc.RpcError):
        # What could not be read are the details of a refusal, not an answer.
        error = error.__context__
    if isinstance(error, grpc.RpcError):
        return _of_rpc_error(error)
    if isinstance(error, exceptions.GoogleAPICallError):
        for cause in error.errors:
            if isinstance(cause, grpc.RpcError):
                return _of_rpc_error(cause)
        return CloudStatus(_code_of(error), error.message or str(error))
    if isinstance(error, TimeoutError):
        return CloudStatus("DEADLINE_EXCEEDED", str(error) or "no answer came in time")
    if isinstance(error, DecodeError):
        return CloudStatus("DATA_LOSS", f"the answer can't be read: {error}")
    text = f"{type(error).__name__}: {error}"
    return CloudStatus("UNAUTHENTICATED" if _is_sign_in_error(error) else "UNKNOWN", text)


def status_of_proto(status: Any, origin: Origin) -> CloudStatus:
    """Return what a `google.rpc.Status` proto says."""
    return CloudStatus(code_name(status.code), status.message, _details(status.details), origin)


def code_name(number: int) -> str:
    """Return the canonical name of a `google.rpc.Code`, or the number where it has none."""
    from google.rpc import code_pb2

    try:
        return str(code_pb2.Code.Name(number))
    except ValueError:
        return str(number)


def _of_rpc_error(error: Any) -> CloudStatus:
    code = error.code() if callable(getattr(error, "code", None)) else None
    details = error.details() if callable(getattr(error, "details", None)) else ""
    if TOO_LARGE in (details or ""):
        # gRPC gives this the code of quotas, although the cloud has said nothing of the kind.
        return CloudStatus("DATA_LOSS", f"the answer is too large: {details}")
    return CloudStatus(
        code.name if code is not None else "UNKNOWN", details or "", _trailing_details(error)
    )


def _trailing_details(error: Any) -> tuple[Mapping[str, Any], ...]:
    from google.protobuf.message import DecodeError
    from google.rpc import status_pb2

    read = getattr(error, "trailing_metadata", None)
    for key, value in (read() if callable(read) else None) or ():
        if key == _STATUS_KEY:
            try:
                return _details(status_pb2.Status.FromString(value).details)
            except DecodeError:
                return ()
    return ()


def _details(packed: Iterable[Any]) -> tuple[Mapping[str, Any], ...]:
    return tuple(_detail(item) for item in packed)


def _detail(packed: Any) -> Mapping[str, Any]:
    """Return one detail as JSON-like data; of a type that is not known here, its name alone."""
    from google.protobuf import json_format
    from google.protobuf.message import DecodeError
    from google.rpc import error_details_pb2  # noqa: F401  registers the well-known details

    try:
        found: dict[str, Any] = json_format.MessageToDict(packed)
    except (TypeError, ValueError, DecodeError, json_format.Error):
        return {"@type": packed.type_url}
    return found


def _code_of(error: Any) -> str:
    grpc_code = getattr(error, "grpc_status_code", None)
    if grpc_code is not None:
        return str(grpc_code.name)
    http_code = getattr(error, "code", None)
    return _CODE_OF_HTTP.get(http_code, "UNKNOWN") if isinstance(http_code, int) else "UNKNOWN"


def _is_sign_in_error(error: BaseException) -> bool:
    from google.auth import exceptions

    return isinstance(error, exceptions.GoogleAuthError) and not isinstance(
        error, exceptions.TransportError
    )
