"""Texts about requests that make no sense, and about what is not there; read after all others."""

from __future__ import annotations

from typing import Final

from tpudash.diagnostics.patterns.row import Row, regex
from tpudash.domain.failure import ErrorClass, RetryPolicy

_GONE: Final = frozenset({"NOT_FOUND"})
_NOT_THERE: Final = (
    "{zone} does not offer {kind}. List what it offers with:"
    " gcloud compute tpus accelerator-types list --zone {zone_id}"
)
_RUNTIME: Final = (
    "This runtime version does not exist in the zone, or does not fit the accelerator type. List"
    " them with: gcloud compute tpus tpu-vm versions list --zone {zone_id}"
)

REFUSALS: Final = (
    Row(
        ErrorClass.BAD_REQUEST,
        "accelerator",
        regex(
            r"accelerator (?:configuration for accelerator )?(?:type,? ?)?['\"]?(?P<kind>v\d[\w-]*)"
            r"['\"]?,? (?:was not found|could not be found|is not found|not found)"
        ),
        advice=_NOT_THERE,
        retry=RetryPolicy.NEXT_ZONE,
    ),
    Row(
        ErrorClass.BAD_REQUEST,
        "zonal accelerator configurations",
        advice=_NOT_THERE,
        retry=RetryPolicy.NEXT_ZONE,
    ),
    Row(
        ErrorClass.BAD_REQUEST,
        "provisioning model is not supported",
        retry=RetryPolicy.NEXT_ZONE,
        advice="This way of getting capacity is not offered for the type in {zone}: use another"
        " zone, or another way (spot, on demand).",
    ),
    Row(ErrorClass.BAD_REQUEST, 'the field "tensorflowversion" cannot be', advice=_RUNTIME),
    Row(
        ErrorClass.BAD_REQUEST,
        "runtime",
        regex(
            r"runtime[ _]?version[^\n]{0,120}(?:not (?:found|supported|valid)|invalid|unknown"
            r"|cannot be|does not exist)|(?:invalid|unknown|unsupported)[^\n]{0,40}runtime"
        ),
        advice=_RUNTIME,
    ),
    Row(
        ErrorClass.BAD_REQUEST,
        "stop is not supported",
        advice="A slice of several hosts can't be stopped: delete the node instead. Its checkpoints"
        " are kept, and the run can be resumed.",
    ),
    Row(ErrorClass.BAD_REQUEST, "cloud tpu received a bad request"),
    Row(ErrorClass.BAD_REQUEST, "cloud tpu received an invalid argument"),
    Row(ErrorClass.BAD_REQUEST, "invalid value for"),
    Row(ErrorClass.BAD_REQUEST, "invalid value at"),
    Row(ErrorClass.BAD_REQUEST, "invalid json payload"),
    Row(ErrorClass.BAD_REQUEST, "request contains an invalid argument"),
    Row(ErrorClass.BAD_REQUEST, "failedprecondition"),
)

ABSENCE: Final = (
    Row(
        ErrorClass.BAD_REQUEST,
        "was not found on this server",
        advice="There is nothing at this address, which says nothing of any node: check the URL,"
        " the API's version and the endpoint.",
    ),
    Row(
        ErrorClass.BAD_REQUEST,
        "required property [project]",
        advice="No project is set. Run: gcloud config set project ID, or give --project ID",
    ),
    Row(
        ErrorClass.BAD_REQUEST,
        "such",
        regex(r"no such object\b|\bNoSuchKey\b|no such file or directory: ['\"]?gs://"),
        advice="This file is not in the bucket: check the path that the message names, and that it"
        " was written at all.",
    ),
    Row(
        ErrorClass.GONE,
        "was not found",
        regex(
            r"(?:projects/|node|queued ?resource|tpu|entity|instance|operation)[^\n]{0,200}was not"
            r" found"
        ),
        codes=_GONE,
    ),
    Row(
        ErrorClass.GONE,
        "no tpus matched id",
        codes=_GONE,
        advice="There is no such node now. A run's checkpoints are still there: resume it.",
    ),
    Row(ErrorClass.GONE, "instance not found", codes=_GONE),
    Row(
        ErrorClass.GONE,
        "not found",
        regex(
            r"(?:node|queued ?resource|tpu|entity|instance|operation)s?\b[^\n]{0,160}not found"
            r"|not found: (?:projects/|resource|node)"
        ),
        codes=_GONE,
    ),
    Row(
        ErrorClass.GONE,
        "does not exist",
        regex(r"(?:node|queued ?resource|tpu)s?/?\b[^\n]{0,160}does not exist"),
        codes=_GONE,
    ),
)
