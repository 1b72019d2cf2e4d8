"""Objects and buckets as records, and the conditions of a call on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tpudash.emulator.storage.errors import StorageError, invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

KEPT_FIELDS = (
    "contentType",
    "contentEncoding",
    "contentDisposition",
    "contentLanguage",
    "cacheControl",
    "customTime",
    "metadata",
    "storageClass",
)
"""Fields of an object that its writer chooses."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket."""

    name: str
    project: str
    location: str
    created: str
    updated: str
    metageneration: int = 1
    extra: dict[str, Any] = field(default_factory=dict)
    """Labels and whatever else its maker set."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """The live generation of an object."""

    bucket: str
    name: str
    generation: int
    metageneration: int
    size: int
    crc32c: str
    md5: str
    """Base64; empty for composed objects, as Cloud Storage has none for them."""

    created: str
    updated: str
    extra: dict[str, Any] = field(default_factory=dict)
    """What its writer chose, by the field's name in JSON."""

    @property
    def etag(self) -> str:
        """A text that changes with content and metadata."""
        return f"{self.generation:x}/{self.metageneration:x}"


@dataclass(frozen=True, slots=True)
class Conditions:
    """https://cloud.google.com/storage/docs/request-preconditions."""

    generation: int | None = None
    not_generation: int | None = None
    metageneration: int | None = None
    not_metageneration: int | None = None

    @classmethod
    def of_query(cls, query: Mapping[str, str], prefix: str = "if") -> Conditions:
        """Read `ifGenerationMatch` and its like; the prefix may be `ifSource`."""
        return cls(
            _whole(query, f"{prefix}GenerationMatch"),
            _whole(query, f"{prefix}GenerationNotMatch"),
            _whole(query, f"{prefix}MetagenerationMatch"),
            _whole(query, f"{prefix}MetagenerationNotMatch"),
        )

    @classmethod
    def of_headers(cls, headers: Mapping[str, str]) -> Conditions:
        """Read `x-goog-if-generation-match` and its like."""
        return cls(
            generation=_whole(headers, "x-goog-if-generation-match"),
            metageneration=_whole(headers, "x-goog-if-metageneration-match"),
        )

    def check(self, found: StoredObject | None, *, reading: bool = False) -> None:
        """Refuse a call whose conditions the object does not meet.

        Raises:
            StorageError: 412, or 304 for a read of what has not changed.
        """
        generation = found.generation if found else 0
        metageneration = found.metageneration if found else 0
        wanted = ((self.generation, generation), (self.metageneration, metageneration))
        if any(want is not None and want != have for want, have in wanted):
            raise _not_met()
        unwanted = ((self.not_generation, generation), (self.not_metageneration, metageneration))
        if any(other is not None and other == have for other, have in unwanted):
            if reading:
                raise StorageError(304, "notModified", "Not Modified")
            raise _not_met()


def _not_met() -> StorageError:
    text = "At least one of the pre-conditions you specified did not hold."
    return StorageError(412, "conditionNotMet", text)


def _whole(values: Mapping[str, str], key: str) -> int | None:
    text = values.get(key)
    if text is None:
        return None
    if not text.isdecimal():
        raise invalid(f"Invalid value for {key}: '{text}'")
    return int(text)
