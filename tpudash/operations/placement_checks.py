"""Whether a run's bucket lies near its node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpudash.domain.bucket_location import is_near
from tpudash.domain.resource_name import region_of
from tpudash.errors import TpudashError

if TYPE_CHECKING:
    from tpudash.gateways.protocols import Cloud


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
