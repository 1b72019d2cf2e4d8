"""Refusals as Google words them: a `google.rpc.Status` that knows nothing of a transport.

Texts and details follow what public reports and Google's pages show; where no wording was found,
the nearest known shape is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2

if TYPE_CHECKING:
    from tpudash.emulator.identifiers import Identifiers

ZONES_PAGE = "https://cloud.google.com/tpu/docs/regions"


def make_status(code: int, message: str, *details: Any) -> Any:
    """Build a `google.rpc.Status` with packed details."""
    status = status_pb2.Status(code=code, message=message)
    for detail in details:
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    return status


class ApiError(Exception):
    """A call that is refused, with the status that the caller receives."""

    def __init__(self, code: int, message: str, *details: Any) -> None:
        super().__init__(message)
        self.status = make_status(code, message, *details)

    @classmethod
    def of(cls, status: Any) -> ApiError:
        """Wrap a ready-made status."""
        error = cls(status.code, status.message)
        error.status = status
        return error


class ConnectionLostError(ApiError):
    """The connection breaks instead of an answer: UNAVAILABLE where it cannot be broken."""


def invalid_argument(message: str, *details: Any) -> ApiError:
    """Return a plain INVALID_ARGUMENT."""
    return ApiError(code_pb2.INVALID_ARGUMENT, message, *details)


def invalid_field(field: str, description: str) -> ApiError:
    """Return INVALID_ARGUMENT with a BadRequest detail that names the field."""
    violation = error_details_pb2.BadRequest.FieldViolation(field=field, description=description)
    detail = error_details_pb2.BadRequest(field_violations=[violation])
    return invalid_argument(f"Invalid value for {field}: {description}", detail)


def not_found(name: str) -> ApiError:
    """Return NOT_FOUND for a resource name."""
    detail = error_details_pb2.ResourceInfo(resource_name=name)
    return ApiError(code_pb2.NOT_FOUND, f"Resource '{name}' was not found", detail)


def already_exists(name: str) -> ApiError:
    """Return ALREADY_EXISTS for a resource name."""
    detail = error_details_pb2.ResourceInfo(resource_name=name)
    return ApiError(code_pb2.ALREADY_EXISTS, f"Resource '{name}' already exists", detail)


def failed_precondition(message: str, *details: Any) -> ApiError:
    """Return a plain FAILED_PRECONDITION."""
    return ApiError(code_pb2.FAILED_PRECONDITION, message, *details)


def quota_exceeded(limit_name: str, limit: int, place: str, project_number: int) -> ApiError:
    """Return the refusal of a call over quota.

    Args:
        limit_name: Google's name of the limit, e.g. `TPUV2sPodPerProjectPerZoneForTPUAPI`.
        limit: The limit itself.
        place: `zone us-central1-b` or `region us-central1`.
        project_number: The consumer's number.
    """
    text = f"Quota limit '{limit_name}' has been exceeded. Limit: {limit} in {place}."
    violation = error_details_pb2.QuotaFailure.Violation(
        subject=f"project:{project_number}", description=text
    )
    detail = error_details_pb2.QuotaFailure(violations=[violation])
    return ApiError(code_pb2.RESOURCE_EXHAUSTED, text, detail)


class Refusals:
    """Refusals that carry an error id, as nearly every answer of the Cloud TPU API does."""

    def __init__(self, identifiers: Identifiers) -> None:
        self._identifiers = identifiers

    def bad_request(self, text: str) -> ApiError:
        """Return INVALID_ARGUMENT in the Cloud TPU API's own words."""
        return invalid_argument(
            f"Cloud TPU received a bad request. {text} {self._identifiers.error_id()}"
        )

    def wrong_state(self, verb: str, state: str) -> ApiError:
        """Return the refusal of a verb that the node's state does not allow."""
        return self.bad_request(f"{verb} is not supported while in state {state}")

    def bad_field(self, field: str, value: str) -> ApiError:
        """Return the refusal of a value that the field does not know."""
        return invalid_argument(
            f'Cloud TPU received an invalid argument. The field "{field}" cannot be "{value}". '
            f"{self._identifiers.error_id()}"
        )

    def zone_unsupported(self, zone: str) -> ApiError:
        """Return the refusal of a zone without Cloud TPU."""
        return self.bad_request(f'The requested zone "{zone}" is not supported.')

    def type_not_in_zone(self, accelerator_type: str, zone: str) -> ApiError:
        """Return the refusal of an accelerator type that the zone does not list."""
        return self.bad_request(
            f'The requested accelerator configuration for accelerator type, "{accelerator_type}",'
            f' could not be found in the zonal accelerator configurations for "{zone}".; '
            f"the accelerator {accelerator_type} was not found in zone {zone}"
        )

    def no_guest_attribute(self, path: str) -> ApiError:
        """Return the refusal of a guest attribute that no worker has published."""
        return invalid_argument(
            f'Cloud TPU received an invalid argument. The "GuestAttributes" value "{path}" '
            f"was not found. {self._identifiers.error_id()}"
        )

    def stock_out(self, zone: str) -> ApiError:
        """Return the failure of a creation that finds no free chips; it ends an operation."""
        return ApiError(
            code_pb2.RESOURCE_EXHAUSTED,
            f'There is no more capacity in the zone "{zone}"; you can try in another zone where '
            f"Cloud TPU Nodes are offered (see {ZONES_PAGE}) {self._identifiers.error_id()}",
        )

    def reservation_too_small(self) -> ApiError:
        """Return the failure of a reserved creation beyond the reservation."""
        return failed_precondition(
            "Insufficient reserved capacity. Contact customer support to increase your "
            f"reservation. {self._identifiers.error_id()}"
        )
