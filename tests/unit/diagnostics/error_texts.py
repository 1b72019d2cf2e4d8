"""Error texts from the field, and what each of them means."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tpudash.domain.failure import ErrorClass as E
from tpudash.domain.failure import RetryPolicy as R

EID = "[EID: 0x191e4b746b2c69a9]"


@dataclass(frozen=True)
class Case:
    """A text, the code that it comes with, and what has to be made of it."""

    id: str
    text: str
    expected: E
    code: str = ""
    retry: R | None = None
    scope: dict[str, Any] = field(default_factory=dict)
    advice: tuple[str, ...] = ()


def stock_out(zone: str) -> str:
    return (
        f'There is no more capacity in the zone "{zone}"; you can try in another zone where Cloud'
        f" TPU Nodes are offered (see https://cloud.google.com/tpu/docs/regions) {EID}"
    )


def api_off(number: str) -> str:
    return (
        f"Cloud TPU API has not been used in project {number} before or it is disabled. Enable it"
        " by visiting https://console.developers.google.com/apis/api/tpu.googleapis.com/overview"
        f"?project={number} then retry. If you enabled this API recently, wait a few minutes."
    )


V6E = "TPUV6EPreemptiblePerProjectPerRegionForTPUAPI"
V2 = "TPUV2sPreemptiblePodPerProjectPerRegionForTPUAPI"
V5 = "TPUV5sLitepodServingPerProjectPerZoneForTPUAPI"

CLOUD = (
    Case(
        "stock-out",
        stock_out("us-central1-a"),
        E.STOCKOUT,
        "RESOURCE_EXHAUSTED",
        R.NEXT_ZONE,
        {"zone": "us-central1-a"},
        ("us-central1-a", "sign-in"),
    ),
    Case(
        "quota-zone",
        f"Quota limit '{V5}' has been exceeded. Limit: 4 in zone us-east5-a.",
        E.QUOTA,
        "RESOURCE_EXHAUSTED",
        R.NEVER,
        {"zone": "us-east5-a", "region": None, "quota": V5, "limit": 4.0},
        ("hold quota",),
    ),
    Case(
        "quota-zero",
        f"Quota limit '{V6E}' has been exceeded. Limit: 0 in region us-east5.",
        E.QUOTA,
        "RESOURCE_EXHAUSTED",
        R.NEVER,
        {"zone": None, "region": "us-east5", "quota": V6E, "limit": 0.0},
        ("waiting won't help",),
    ),
    Case(
        "quota-exhausted-region",
        f"Quota '{V2}' exhausted. Limit 32 in region europe-west4",
        E.QUOTA,
        "RESOURCE_EXHAUSTED",
        R.NEVER,
        {"region": "europe-west4", "quota": V2, "limit": 32.0},
    ),
    Case(
        "quota-exhausted-zone",
        f"Quota '{V2}' exhausted. Limit 32 in zone europe-west4-a",
        E.QUOTA,
        "RESOURCE_EXHAUSTED",
        R.NEVER,
        {"zone": "europe-west4-a", "limit": 32.0},
    ),
    Case(
        "quota-metric-per-minute",
        "Quota exceeded for quota metric 'Descriptor read requests' and limit 'Descriptor read"
        " requests per minute' of service 'monitoring.googleapis.com' for consumer"
        " 'project_number:123456789'.",
        E.RATE_LIMIT,
        "RESOURCE_EXHAUSTED",
        R.SAME_PLACE,
    ),
    Case(
        "rate-create",
        "Maximum number of CreateNode requests per minute",
        E.RATE_LIMIT,
        "RESOURCE_EXHAUSTED",
        R.SAME_PLACE,
    ),
    Case(
        "rate-delete",
        "maximum number of DeleteNode requests per minute",
        E.RATE_LIMIT,
        "RESOURCE_EXHAUSTED",
        R.SAME_PLACE,
    ),
    Case(
        "rate-query",
        "Query aborted. Please reduce the query rate.",
        E.RATE_LIMIT,
        "RESOURCE_EXHAUSTED",
    ),
    Case(
        "reservation",
        "Insufficient reserved capacity. Contact customer support to increase your reservation."
        f" {EID}",
        E.RESERVATION,
        "FAILED_PRECONDITION",
        R.NEVER,
    ),
    Case(
        "preempted-in-create",
        f"Cloud TPU received a bad request. update is not supported while in state PREEMPTED {EID}",
        E.PREEMPTED_IN_CREATE,
        "INVALID_ARGUMENT",
        R.SAME_PLACE,
    ),
    Case(
        "wrong-state",
        f"Cloud TPU received a bad request. delete is not supported while in state CREATING {EID}",
        E.BAD_REQUEST,
        "INVALID_ARGUMENT",
        R.NEVER,
        advice=("CREATING", "delete"),
    ),
    Case(
        "type-not-in-zone",
        "Cloud TPU received a bad request. The requested accelerator configuration for accelerator"
        ' type, "v6e-1", could not be found in the zonal accelerator configurations for'
        ' "asia-east1-a".; the accelerator v6e-1 was not found in zone asia-east1-a'
        f" {EID}",
        E.BAD_REQUEST,
        "INVALID_ARGUMENT",
        R.NEXT_ZONE,
        {"zone": "asia-east1-a"},
        ("accelerator-types list --zone asia-east1-a", "v6e-1"),
    ),
    Case(
        "type-mismatch",
        "Cloud TPU received a bad request. the accelerator v4-128 was not found in zone"
        f" us-central2-b {EID}",
        E.BAD_REQUEST,
        "INVALID_ARGUMENT",
        R.NEXT_ZONE,
        {"zone": "us-central2-b"},
        ("v4-128",),
    ),
    Case(
        "zone-unsupported",
        f'Cloud TPU received a bad request. The requested zone "asia-south1-a" is not supported.'
        f" {EID}",
        E.LOCATION,
        "INVALID_ARGUMENT",
        R.NEXT_ZONE,
        {"zone": "asia-south1-a"},
    ),
    Case(
        "flex-start",
        "FLEX_START provisioning model is not supported for accelerator type v5litepod-1 in"
        " location us-west1-c",
        E.BAD_REQUEST,
        "INVALID_ARGUMENT",
        scope={"zone": "us-west1-c"},
    ),
    Case(
        "api-off",
        api_off("123456789"),
        E.API_OFF,
        "PERMISSION_DENIED",
        R.NEVER,
        {"project": "123456789"},
        ("gcloud services enable tpu.googleapis.com --project 123456789",),
    ),
    Case(
        "permission",
        "Permission 'tpu.nodes.get' denied on 'projects/p1-x/locations/us-east1-b/nodes/ai'",
        E.PERMISSION,
        "PERMISSION_DENIED",
        R.NEVER,
        {"project": "p1-x"},
        ("tpu.nodes.get", "roles/tpu"),
    ),
    Case(
        "location-policy",
        "Permission denied on 'locations/us-central2-b' (or it may not exist).",
        E.LOCATION,
        "PERMISSION_DENIED",
        R.NEXT_ZONE,
        {"zone": "us-central2-b"},
    ),
    Case(
        "location-closed",
        "Location us-east1-d is not found or access is unauthorized.",
        E.LOCATION,
        "PERMISSION_DENIED",
        R.NEXT_ZONE,
        {"zone": "us-east1-d"},
    ),
    Case(
        "name-taken",
        "Resource 'projects/demo/locations/us-east1-b/nodes/sky_tpu' already exists",
        E.NAME_TAKEN,
        "ALREADY_EXISTS",
        R.NEVER,
        {"project": "demo", "zone": "us-east1-b"},
    ),
    Case(
        "gone",
        "Resource 'projects/demo/locations/us-east1-b/nodes/x' was not found",
        E.GONE,
        "NOT_FOUND",
        R.NEVER,
    ),
    Case(
        "bad-runtime",
        'Cloud TPU received an invalid argument. The field "TensorflowVersion" cannot be "2.4".'
        f" {EID}",
        E.BAD_REQUEST,
        "INVALID_ARGUMENT",
        advice=("tpu-vm versions",),
    ),
    Case(
        "no-guest-attribute",
        'Cloud TPU received an invalid argument. The "GuestAttributes" value "" was not found.',
        E.BAD_REQUEST,
        "NOT_FOUND",
    ),
    Case(
        "internal",
        "TPU operation failed: an internal error has occurred",
        E.INTERNAL,
        "INTERNAL",
        R.SAME_PLACE,
    ),
    Case(
        "timeout",
        "TPU operation projects/p/locations/z/operations/o timed out after 600s",
        E.UNKNOWN_OUTCOME,
        "DEADLINE_EXCEEDED",
        R.ASK_AGAIN,
        advice=("delete nothing",),
    ),
    Case(
        "bucket",
        "service-123@cloud-tpu.iam.gserviceaccount.com does not have storage.objects.create access"
        " to my-bucket/run/ckpt-1.",
        E.BUCKET_ACCESS,
        "PERMISSION_DENIED",
        R.NEVER,
        {"bucket": "my-bucket"},
        ("service-123@cloud-tpu", "storage.objects.create", "my-bucket"),
    ),
    Case(
        "project-read",
        "Read access to project 'demo-1' was denied",
        E.PERMISSION,
        "PERMISSION_DENIED",
    ),
    Case(
        "expired",
        "Request had invalid authentication credentials. Expected OAuth 2 access token,"
        " login cookie or other valid authentication credential.",
        E.AUTH_EXPIRED,
        "UNAUTHENTICATED",
        R.NEVER,
        advice=("gcloud auth application-default login",),
    ),
    Case(
        "reauth",
        "Reauthentication is needed. Please run `gcloud auth application-default login`"
        " to reauthenticate.",
        E.AUTH_EXPIRED,
        "UNAVAILABLE",
        R.NEVER,
    ),
    Case(
        "no-credentials",
        "Your default credentials were not found. To set up Application Default"
        " Credentials, see https://cloud.google.com/docs/authentication/external/set-up-adc",
        E.AUTH_EXPIRED,
        advice=("gcloud auth application-default login",),
    ),
    Case(
        "billing",
        "This API method requires billing to be enabled. Please enable billing on"
        " project #123456 by visiting https://console.developers.google.com/billing/enable"
        "?project=123456 then retry.",
        E.BILLING,
        "PERMISSION_DENIED",
        R.NEVER,
        {"project": "123456"},
    ),
    Case(
        "connect",
        "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1:"
        " Failed to connect to remote host: Connection refused",
        E.CONNECT,
        "UNAVAILABLE",
        R.ASK_AGAIN,
    ),
)
"""Texts that the cloud itself gives, which come in any wrapper."""
