"""Whether the ways of asking for a node go together, and whether its bucket lies near."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tpudash.domain.node import Scheduling
from tpudash.domain.resource_name import region_of
from tpudash.errors import TpudashError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tpudash.domain.operation import LaunchRequest
    from tpudash.gateways.protocols import Cloud

OWN_LABELS: Final = "tpudash-"
_LABEL_KEY: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE: Final = re.compile(r"[a-z0-9_-]{0,63}")
_TAG: Final = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
"""Source: https://cloud.google.com/compute/docs/labeling-resources#requirements"""

_CONTINENTS: Final = {"us": "us-", "eu": "europe-", "asia": "asia-"}
_PAIRS: Final = {
    "nam4": ("us-central1", "us-east1"),
    "eur4": ("europe-north1", "europe-west4"),
    "eur5": ("europe-west1", "europe-west2"),
    "eur7": ("europe-west2", "europe-west3"),
    "eur8": ("europe-west3", "europe-west6"),
    "asia1": ("asia-northeast1", "asia-northeast2"),
}
"""Predefined dual-regions of Cloud Storage."""


def check_placement(request: LaunchRequest) -> None:
    """See that the ways of asking for a node go together.

    Raises:
        UsageError: They don't, or a label or tag can't be one.
    """
    wanted = request.placement
    if wanted.queued and request.scheduling is Scheduling.PREEMPTIBLE:
        raise UsageError(
            "a queued resource can't be preemptible", hint="use --spot, or no --queued"
        )
    needs_queue = {
        "a reservation": wanted.reservation,
        "the guaranteed tier": wanted.guaranteed,
        "how long it may wait": wanted.valid_until_s,
    }
    for what, value in needs_queue.items():
        if value and not wanted.queued:
            raise UsageError(f"only a queued resource can have {what}", hint="add --queued")
    if wanted.guaranteed and request.scheduling is Scheduling.SPOT:
        raise UsageError("spot capacity is never guaranteed", hint="use --on-demand --guaranteed")
    if wanted.reservation and request.scheduling is not Scheduling.RESERVED:
        raise UsageError("a reservation is for reserved capacity", hint="add --reserved")
    _check_labels(wanted.labels)
    for tag in wanted.tags:
        if not _TAG.fullmatch(tag):
            raise UsageError(f"{tag!r} can't be a network tag", hint="such as allow-ssh")


def _check_labels(labels: Mapping[str, str]) -> None:
    for key, value in labels.items():
        if key.startswith(OWN_LABELS):
            raise UsageError(f"the label {key} is tpudash's own", hint="choose another key")
        if not (_LABEL_KEY.fullmatch(key) and _LABEL_VALUE.fullmatch(value)):
            raise UsageError(
                f"{key}={value} can't be a label",
                detail="lower-case letters, digits, _ and -, at most 63; a letter begins a key",
                hint="such as team=vision",
            )


async def distance_warning(cloud: Cloud, bucket: str, zones: tuple[str, ...]) -> tuple[str, ...]:
    """Return what it means that a bucket lies elsewhere than the TPU; nothing where it is near.

    Traffic between regions is charged for, and every checkpoint and every read of data is traffic.
    Source: https://cloud.google.com/storage/pricing#network-pricing
    """
    try:
        place = await cloud.bucket.location(bucket)
    except TpudashError as error:
        return (f"where {bucket} lies is not known ({error.title}); far from the TPU it costs",)
    if place is None:
        return ()
    regions = dict.fromkeys(region_of(zone) for zone in zones)
    far = [region for region in regions if not is_near(place, region)]
    if not far:
        return ()
    words = (
        f"{bucket} lies in {place} and the TPU in {', '.join(far)}: every byte between them is "
        f"charged as egress; a bucket in {far[0]} costs nothing to reach"
    )
    return (words,)


def is_near(place: str, region: str) -> bool:
    """Whether a bucket's location holds a region: itself, its continent, or a pair with it.

    Source: https://cloud.google.com/storage/docs/locations
    """
    if place == region:
        return True
    if place in _CONTINENTS:
        return region.startswith(_CONTINENTS[place])
    return region in _PAIRS.get(place, ())
