"""Canonical codes as texts of many wrappers write them.

Source: google/rpc/code.proto.
"""

from __future__ import annotations

import re
from typing import Final

CODES: Final = (
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
)
"""By number."""

_OF_HTTP: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    412: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""409 is left out: it stands for ALREADY_EXISTS and for ABORTED."""

_OF_CLASS: Final = {
    "InvalidArgument": "INVALID_ARGUMENT",
    "BadRequest": "INVALID_ARGUMENT",
    "DeadlineExceeded": "DEADLINE_EXCEEDED",
    "GatewayTimeout": "DEADLINE_EXCEEDED",
    "NotFound": "NOT_FOUND",
    "AlreadyExists": "ALREADY_EXISTS",
    "PermissionDenied": "PERMISSION_DENIED",
    "Forbidden": "PERMISSION_DENIED",
    "ResourceExhausted": "RESOURCE_EXHAUSTED",
    "TooManyRequests": "RESOURCE_EXHAUSTED",
    "FailedPrecondition": "FAILED_PRECONDITION",
    "Aborted": "ABORTED",
    "OutOfRange": "OUT_OF_RANGE",
    "Unimplemented": "UNIMPLEMENTED",
    "Internal": "INTERNAL",
    "InternalServerError": "INTERNAL",
    "Unavailable": "UNAVAILABLE",
    "ServiceUnavailable": "UNAVAILABLE",
    "Unauthenticated": "UNAUTHENTICATED",
    "Unauthorized": "UNAUTHENTICATED",
}
"""As Go's gRPC and Python's google-api-core call them."""

_CALM: Final = frozenset({"OK", "UNKNOWN", "CANCELLED"})
_LONG: Final = "|".join(code for code in CODES if "_" in code or code == "UNAUTHENTICATED")
_SHORT: Final = "INTERNAL|UNAVAILABLE|ABORTED|UNIMPLEMENTED"
_NAMED: Final = re.compile(
    rf"\b({_LONG})\b|(?:StatusCode\.|status['\"]?[:=] ?['\"]?|^|[\s(\[\"'])({_SHORT})(?=[:'\",)\]])"
    rf"|(?:StatusCode\.)({_SHORT})\b"
)
_CLASSED: Final = re.compile(
    rf"(?:\bcode = |\bexceptions\.)({'|'.join(_OF_CLASS)})\b|\b({'|'.join(_OF_CLASS)}): \d{{3}}\b"
)
_NUMBERED: Final = re.compile(
    r"(?:['\"]?\bcode['\"]?[ :=]+|Error code )(\d{1,3})\b(?!\.)", re.IGNORECASE
)
_HTTP: Final = re.compile(
    r"(?:HTTP(?:Error|/\d(?:\.\d)?)?|HTTP (?:response|status|error)(?: code)?|status(?: code)?"
    r"|Error|exceptions\.\w{3,40}:)[ :=]{1,3}([45]\d\d)\b"
    r"|\b(4\d\d (?=unauthorized|forbidden|not found|too many requests)"
    r"|5\d\d (?=internal server error|bad gateway|service unavailable|gateway time-?out))",
    re.IGNORECASE,
)
_LOOKS: Final = re.compile(
    r"\b(?:error|failed|failure|exception|fatal|panic|denied|refused|traceback|aborted|cannot"
    r"|could not|unable to|invalid|critical)\b|(?:Error|Exception)\b|exit(?:ed)? (?:code|status)"
    r" [1-9]",
    re.IGNORECASE,
)


_NOTHING: Final = re.compile(
    r"\b(?:no|0|zero|without(?: any)?) (?:errors?|exceptions?|failed|failures?|invalid|denied)\b",
    re.IGNORECASE,
)
"""Words that say that nothing went wrong."""


def name_of(number: int) -> str:
    """Return the canonical name of a gRPC or HTTP code, "" for one that has none."""
    if 0 < number < len(CODES):
        return CODES[number]
    return _OF_HTTP.get(number, "")


def code_in(line: str) -> str:
    """Return the canonical code that a line names in whatever form, or ""."""
    match = _NAMED.search(line)
    if match is not None:
        return next(group for group in match.groups() if group)
    match = _CLASSED.search(line)
    if match is not None:
        return _OF_CLASS[match[1] or match[2]]
    for pattern in (_NUMBERED, _HTTP):
        match = pattern.search(line)
        if match is None:
            continue
        number = next(group for group in match.groups() if group)
        if (name := name_of(int(number))) and name not in _CALM:
            return name
    return ""


def looks_like_error(line: str) -> bool:
    """Whether a line speaks of something that went wrong."""
    return _LOOKS.search(_NOTHING.sub("", line)) is not None
