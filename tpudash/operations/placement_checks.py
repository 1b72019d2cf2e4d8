"""Whether a run's bucket lies near its node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.domain.resource_name import region_of
from tpudash.errors import TpudashError

if TYPE_CHECKING:
    from tpudash.gateways.protocols import Cloud

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
