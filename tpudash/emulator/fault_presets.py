"""What Google says with each status when a fault names only the status.

Texts and details after the public error reports that `google/rpc/error_details.proto` and
https://cloud.google.com/apis/design/errors describe.
"""

from __future__ import annotations

from typing import Any

from google.rpc import code_pb2, error_details_pb2

from tpudash.emulator.errors import make_status

_SERVICE = "tpu.googleapis.com"
CODE_OF_HTTP = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ALREADY_EXISTS",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_TEXTS = {
    "INVALID_ARGUMENT": "Request contains an invalid argument.",
    "UNAUTHENTICATED": (
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login "
        "cookie or other valid authentication credential. "
        "See https://developers.google.com/identity/sign-in/web/devconsole-project."
    ),
    "PERMISSION_DENIED": "The caller does not have permission",
    "NOT_FOUND": "Requested entity was not found.",
    "ALREADY_EXISTS": "Requested entity already exists",
    "ABORTED": "The operation was aborted.",
    "RESOURCE_EXHAUSTED": (
        "Quota exceeded for quota metric 'Requests' and limit 'Requests per minute' of service "
        f"'{_SERVICE}' for consumer 'project_number:100000000000'."
    ),
    "FAILED_PRECONDITION": "Precondition check failed.",
    "INTERNAL": "Internal error encountered.",
    "UNAVAILABLE": "The service is currently unavailable.",
    "DEADLINE_EXCEEDED": "Deadline expired before operation could complete.",
}


def code_named(code: object) -> str | None:
    """Return the name of a status code: from its name in any spelling, or an HTTP status."""
    text = str(int(code) if isinstance(code, float) else code)
    name = CODE_OF_HTTP.get(int(text), "") if text.isdecimal() else text
    name = name.upper().replace("-", "_")
    return name if name in code_pb2.Code.keys() else None  # noqa: SIM118  (an enum wrapper)


def preset_status(name: str, message: str | None) -> Any:
    """Return the status of a code's name with Google's own text and details."""
    return make_status(
        code_pb2.Code.Value(name), message or _TEXTS.get(name, name), *_details(name)
    )


def _details(name: str) -> list[Any]:
    info = error_details_pb2.ErrorInfo
    if name == "UNAUTHENTICATED":
        metadata = {"service": _SERVICE}
        return [info(reason="ACCESS_TOKEN_EXPIRED", domain="googleapis.com", metadata=metadata)]
    if name == "PERMISSION_DENIED":
        return [info(reason="IAM_PERMISSION_DENIED", domain="iam.googleapis.com")]
    if name == "RESOURCE_EXHAUSTED":
        metadata = {
            "service": _SERVICE,
            "consumer": "projects/100000000000",
            "quota_metric": f"{_SERVICE}/requests",
            "quota_limit": "RequestsPerMinutePerProject",
        }
        return [info(reason="RATE_LIMIT_EXCEEDED", domain="googleapis.com", metadata=metadata)]
    return []
