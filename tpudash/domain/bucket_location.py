"""Where buckets lie: in a region, in a pair of regions, or in a continent.

Source: https://cloud.google.com/storage/docs/locations
"""

from __future__ import annotations

from typing import Final

_CONTINENTS: Final = {"us": "us-", "eu": "europe-", "asia": "asia-"}
_PAIRS: Final = {
    "nam4": ("us-central1", "us-east1"),
    "eur4": ("europe-north1", "europe-west4"),
    "eur5": ("europe-west1", "europe-west2"),
    "eur7": ("europe-west2", "europe-west3"),
    "eur8": ("europe-west3", "europe-west6"),
    "asia1": ("asia-northeast1", "asia-northeast2"),
}
"""Predefined dual-regions."""


def is_near(location: str, region: str) -> bool:
    """Whether a bucket's location, in any case, holds a region: itself, its continent, a pair."""
    place = location.lower()
    if place in _CONTINENTS:
        return region.startswith(_CONTINENTS[place])
    return region in _PAIRS.get(place, (place,))
