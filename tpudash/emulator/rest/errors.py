"""Refusals in Google's REST shape: https://cloud.google.com/apis/design/errors."""

from __future__ import annotations

from typing import Any

from google.protobuf import json_format
from google.rpc import code_pb2, error_details_pb2

HTTP_OF_CODE = {
    code_pb2.OK: 200,
    code_pb2.CANCELLED: 499,
    code_pb2.UNKNOWN: 500,
    code_pb2.INVALID_ARGUMENT: 400,
    code_pb2.DEADLINE_EXCEEDED: 504,
    code_pb2.NOT_FOUND: 404,
    code_pb2.ALREADY_EXISTS: 409,
    code_pb2.PERMISSION_DENIED: 403,
    code_pb2.RESOURCE_EXHAUSTED: 429,
    code_pb2.FAILED_PRECONDITION: 400,
    code_pb2.ABORTED: 409,
    code_pb2.OUT_OF_RANGE: 400,
    code_pb2.UNIMPLEMENTED: 501,
    code_pb2.INTERNAL: 500,
    code_pb2.UNAVAILABLE: 503,
    code_pb2.DATA_LOSS: 500,
    code_pb2.UNAUTHENTICATED: 401,
}
"""After `google/rpc/code.proto`, whose comments name the HTTP status of each code."""


def http_status(status: Any) -> int:
    """Return the HTTP status of a google.rpc.Status."""
    return HTTP_OF_CODE.get(status.code, 500)


def error_body(status: Any) -> dict[str, Any]:
    """Return the JSON body of a google.rpc.Status."""
    error: dict[str, Any] = {
        "code": http_status(status),
        "message": status.message,
        "status": code_pb2.Code.Name(status.code),
    }
    if status.details:
        error["details"] = [json_format.MessageToDict(detail) for detail in status.details]
    return {"error": error}


def error_headers(status: Any) -> dict[str, str]:
    """Return the headers that go with a refusal: the login challenge, and when to come back."""
    headers = {}
    if status.code == code_pb2.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = 'Bearer realm="https://accounts.google.com/"'
    retry = error_details_pb2.RetryInfo()
    for detail in status.details:
        if detail.Is(retry.DESCRIPTOR) and detail.Unpack(retry):
            headers["Retry-After"] = str(max(1, retry.retry_delay.seconds))
    return headers
