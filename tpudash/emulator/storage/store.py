"""Buckets and their objects: content in files, everything else in the index.

Each change is made between two turns of the event loop, so that conditions hold when it is made.
"""

from __future__ import annotations

import base64
import binascii
import shutil
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tpudash.emulator.storage.content import Content
from tpudash.emulator.storage.errors import StorageError, invalid, no_bucket, no_object
from tpudash.emulator.storage.index import Index
from tpudash.emulator.storage.names import check_bucket_name, check_object_name, file_of
from tpudash.emulator.storage.objects import KEPT_FIELDS, Bucket, Conditions, StoredObject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tpudash.clock import Clock

_MAX_COMPOSED = 32
_NO_CONDITIONS = Conditions()
DEFAULT_LOCATION = "US-CENTRAL1"


class BucketStore:
    """All buckets of one emulator.

    Args:
        folder: Its folder; made if it does not exist.
        clock: Time for generations and dates.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self.parts = folder / ".parts"
        """Where content lies until it is complete."""

        self.uploads = folder / ".uploads"
        """The same for uploads that may go on after a restart."""

        shutil.rmtree(self.parts, ignore_errors=True)
        self.uploads.mkdir(parents=True, exist_ok=True)
        self.parts.mkdir(parents=True)
        self._index = Index(folder / ".index.sqlite3")
        self._generation = self._index.newest_generation()

    def close(self) -> None:
        """Let go of the files."""
        self._index.close()

    # --------------------------------------------------------------- buckets

    def make_bucket(
        self, name: str, project: str, location: str, extra: Mapping[str, Any] | None = None
    ) -> Bucket:
        """Create a bucket.

        Raises:
            StorageError: 400 for the name, 409 if it is taken.
        """
        check_bucket_name(name)
        if self._index.bucket(name) is not None:
            text = (
                "Your previous request to create the named bucket succeeded and you already own it."
            )
            raise StorageError(409, "conflict", text)
        now = self._now()
        bucket = Bucket(name, project, location.upper(), now, now, 1, dict(extra or {}))
        (self._folder / name).mkdir(exist_ok=True)
        self._index.put_bucket(bucket)
        return bucket

    def bucket(self, name: str) -> Bucket:
        """Return a bucket.

        Raises:
            StorageError: 404.
        """
        found = self._index.bucket(name)
        if found is None:
            raise no_bucket(name)
        return found

    def has_bucket(self, name: str) -> bool:
        """Return whether a bucket exists."""
        return self._index.bucket(name) is not None

    def buckets(self, project: str, prefix: str = "") -> list[Bucket]:
        """Return the buckets of a project, by name."""
        return self._index.buckets(project, prefix)

    def change_bucket(self, name: str, changes: Mapping[str, Any]) -> Bucket:
        """Change what a bucket's maker may change, such as its labels."""
        bucket = self.bucket(name)
        extra = {**bucket.extra, **changes}
        changed = replace(
            bucket,
            extra={key: value for key, value in extra.items() if value is not None},
            metageneration=bucket.metageneration + 1,
            updated=self._now(),
        )
        self._index.put_bucket(changed)
        return changed

    def remove_bucket(self, name: str) -> None:
        """Delete an empty bucket.

        Raises:
            StorageError: 404, or 409 if it is not empty.
        """
        self.bucket(name)
        if next(self._index.scan(name, b""), None) is not None:
            raise StorageError(409, "conflict", "The bucket you tried to delete is not empty.")
        self._index.remove_bucket(name)
        shutil.rmtree(self._folder / name, ignore_errors=True)

    # --------------------------------------------------------------- objects

    def find(self, bucket: str, name: str) -> StoredObject | None:
        """Return an object or None.

        Raises:
            StorageError: 404 for the bucket.
        """
        self.bucket(bucket)
        return self._index.get(bucket, name)

    def get(
        self, bucket: str, name: str, generation: str | None = None, *, check: Conditions
    ) -> StoredObject:
        """Return an object for reading.

        Raises:
            StorageError: 404, 412 or 304.
        """
        found = self.find(bucket, name)
        if found is None or generation not in {None, str(found.generation)}:
            check.check(None, reading=True)
            raise no_object(bucket, name)
        check.check(found, reading=True)
        return found

    def path_of(self, item: StoredObject) -> Path:
        """Return the file that holds an object's content."""
        return self._folder / item.bucket / file_of(item.name, item.generation)

    def put(
        self,
        bucket: str,
        name: str,
        content: Content,
        fields: Mapping[str, Any],
        check: Conditions = _NO_CONDITIONS,
    ) -> StoredObject:
        """Make uploaded content the new generation of an object.

        Raises:
            StorageError: The conditions or the checksums in `fields` are not met.
        """
        check_object_name(name)
        old = self.find(bucket, name)
        check.check(old)
        _verify(content, fields)
        now = self._now()
        item = StoredObject(
            bucket=bucket,
            name=name,
            generation=self._next_generation(),
            metageneration=1,
            size=content.size,
            crc32c=content.crc32c,
            md5="" if "componentCount" in fields else content.md5,
            created=now,
            updated=now,
            extra=_kept(fields),
        )
        content.close()
        path = self.path_of(item)
        path.parent.mkdir(parents=True, exist_ok=True)
        content.path.replace(path)
        self._index.put(item)
        if old is not None:
            self.path_of(old).unlink(missing_ok=True)
        return item

    def change(
        self, bucket: str, name: str, changes: Mapping[str, Any], check: Conditions
    ) -> StoredObject:
        """Change an object's metadata; None takes a field away."""
        found = self.find(bucket, name)
        check.check(found)
        if found is None:
            raise no_object(bucket, name)
        extra = dict(found.extra)
        for key, value in changes.items():
            if key == "metadata" and isinstance(value, dict):
                value = {**extra.get("metadata", {}), **value}  # noqa: PLW2901  (merged)
                value = {name: text for name, text in value.items() if text is not None}  # noqa: PLW2901
            if key in KEPT_FIELDS:
                extra[key] = value
        changed = replace(
            found,
            extra={key: value for key, value in extra.items() if value is not None},
            metageneration=found.metageneration + 1,
            updated=self._now(),
        )
        self._index.put(changed)
        return changed

    def remove(
        self, bucket: str, name: str, check: Conditions, generation: str | None = None
    ) -> None:
        """Delete an object.

        Raises:
            StorageError: 404 or 412.
        """
        found = self.find(bucket, name)
        check.check(found)
        if found is None or generation not in {None, str(found.generation)}:
            raise no_object(bucket, name)
        self._index.remove(bucket, name)
        path = self.path_of(found)
        path.unlink(missing_ok=True)
        with suppress(OSError):
            for folder in path.parents:
                if folder == self._folder / bucket:
                    break
                folder.rmdir()

    def copy(
        self,
        source: StoredObject,
        bucket: str,
        name: str,
        fields: Mapping[str, Any],
        check: Conditions,
    ) -> StoredObject:
        """Copy an object; `fields` replace its metadata where there are any."""
        check_object_name(name)
        check.check(self.find(bucket, name))
        content = Content(self.parts)
        try:
            content.append_files([self.path_of(source)])
            kept = {**source.extra, **fields} if fields else source.extra
            return self.put(bucket, name, content, kept, check)
        finally:
            content.discard()

    def compose(
        self,
        bucket: str,
        name: str,
        sources: Sequence[StoredObject],
        fields: Mapping[str, Any],
        check: Conditions,
    ) -> StoredObject:
        """Join objects of a bucket into one.

        Raises:
            StorageError: 400 for none or more than 32 of them.
        """
        if not 1 <= len(sources) <= _MAX_COMPOSED:
            raise invalid(f"The number of source components must be 1 to {_MAX_COMPOSED}")
        count = sum(int(item.extra.get("componentCount", 1)) for item in sources)
        content = Content(self.parts)
        try:
            content.append_files(self.path_of(item) for item in sources)
            return self.put(bucket, name, content, {**fields, "componentCount": count}, check)
        finally:
            content.discard()

    def scan(self, bucket: str, start: bytes) -> Any:
        """Yield the objects of a bucket from a name on, in name order."""
        return self._index.scan(bucket, start)

    def _next_generation(self) -> int:
        moment = int(self._clock.now().timestamp() * 1_000_000)
        self._generation = max(moment, self._generation + 1)
        return self._generation

    def _now(self) -> str:
        return self._clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _kept(fields: Mapping[str, Any]) -> dict[str, Any]:
    names = (*KEPT_FIELDS, "componentCount")
    return {key: fields[key] for key in names if fields.get(key) is not None}


def _verify(content: Content, fields: Mapping[str, Any]) -> None:
    """Compare the checksums that the writer sent along with what has arrived."""
    for key, have in (("crc32c", content.crc32c), ("md5Hash", content.md5)):
        want = fields.get(key)
        if want is not None and _digest(str(want)) != _digest(have):
            raise invalid(f'Provided {key} "{want}" doesn\'t match calculated {key} "{have}".')


def _digest(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return text.encode()
