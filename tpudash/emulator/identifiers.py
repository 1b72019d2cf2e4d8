"""Names and numbers that the cloud makes up, and the reading of resource names."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tpudash.emulator.errors import invalid_field

if TYPE_CHECKING:
    import random

    from tpudash.clock import Clock

_PARENT = re.compile(r"projects/([^/]+)/locations/([^/]+)")
_NAME = re.compile(r"projects/([^/]+)/locations/([^/]+)/(\w+)/([^/]+)")
ANY_ZONE = "-"


class Identifiers:
    """A source of ids that a seed makes repeatable."""

    def __init__(self, random: random.Random, clock: Clock) -> None:
        self._random = random
        self._clock = clock

    def error_id(self) -> str:
        """Return an error id in brackets, as it ends a message of the Cloud TPU API."""
        return f"[EID: {self._random.getrandbits(64):#018x}]"

    def operation_id(self) -> str:
        """Return an id like `operation-1781625689032-654610e51473f-b8557a36-8a68155f`."""
        milliseconds = int(self._clock.now().timestamp() * 1000)
        return (
            f"operation-{milliseconds}-{self._random.getrandbits(52):013x}"
            f"-{self._random.getrandbits(32):08x}-{self._random.getrandbits(32):08x}"
        )

    def unique_number(self) -> int:
        """Return a positive 63-bit number, as nodes and instances have."""
        return self._random.getrandbits(62) | 1 << 62

    def insert_id(self) -> str:
        """Return the id of a log entry that its writer left unnamed."""
        return f"{self._random.getrandbits(80):020x}"


def project_number(project: str) -> int:
    """Return the number of a project: made from its name, so that it never changes."""
    if project.isdecimal():
        return int(project)
    digest = hashlib.sha256(project.encode()).digest()
    return 100_000_000_000 + int.from_bytes(digest[:8], "big") % 900_000_000_000


def region_of(zone: str) -> str:
    """Return the region of a zone: `us-central1` of `us-central1-b`."""
    return zone.rsplit("-", 1)[0]


@dataclass(frozen=True, slots=True)
class ResourceName:
    """A parsed `projects/P/locations/Z/COLLECTION/ID`."""

    project: str
    zone: str
    collection: str
    id: str

    @property
    def parent(self) -> str:
        """The name of the location that holds the resource."""
        return f"projects/{self.project}/locations/{self.zone}"

    def __str__(self) -> str:
        return f"{self.parent}/{self.collection}/{self.id}"

    @classmethod
    def parse(cls, name: str, collection: str) -> ResourceName:
        """Read a resource name.

        Raises:
            ApiError: INVALID_ARGUMENT when the name has another shape.
        """
        match = _NAME.fullmatch(name)
        if match is None or match[3] != collection:
            raise invalid_field("name", f'"{name}" is not a name of {collection}')
        return cls(*match.groups())


def parse_parent(parent: str) -> tuple[str, str]:
    """Split `projects/P/locations/Z` into project and zone; the zone may be `-`.

    Raises:
        ApiError: INVALID_ARGUMENT when the parent has another shape.
    """
    match = _PARENT.fullmatch(parent)
    if match is None:
        raise invalid_field("parent", f'"{parent}" is not projects/*/locations/*')
    return match[1], match[2]
