"""Refusals as Cloud Storage words them.

https://cloud.google.com/storage/docs/json_api/v1/status-codes and
https://cloud.google.com/storage/docs/xml-api/reference-status.
"""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

_XML_CODES = {
    "notFound": "NoSuchKey",
    "conditionNotMet": "PreconditionFailed",
    "conflict": "BucketNameUnavailable",
    "invalid": "InvalidArgument",
    "requestedRangeNotSatisfiable": "InvalidRange",
}


class StorageError(Exception):
    """A call that is refused.

    Args:
        status: HTTP status.
        reason: Google's word for it, such as `notFound`.
        message: Text for people.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message

    def as_json(self) -> dict[str, Any]:
        """Return the body of the JSON API."""
        item = {"message": self.message, "domain": "global", "reason": self.reason}
        return {"error": {"code": self.status, "message": self.message, "errors": [item]}}

    def as_xml(self) -> str:
        """Return the body of the XML API."""
        code = _XML_CODES.get(self.reason, self.reason[:1].upper() + self.reason[1:])
        return (
            "<?xml version='1.0' encoding='UTF-8'?>"
            f"<Error><Code>{escape(code)}</Code><Message>{escape(self.message)}</Message></Error>"
        )


def no_bucket(name: str) -> StorageError:
    """Return the refusal of a bucket that does not exist."""
    return StorageError(404, "notFound", f"The specified bucket does not exist: {name}")


def no_object(bucket: str, name: str) -> StorageError:
    """Return the refusal of an object that does not exist."""
    return StorageError(404, "notFound", f"No such object: {bucket}/{name}")


def invalid(message: str) -> StorageError:
    """Return the refusal of a request that makes no sense."""
    return StorageError(400, "invalid", message)
