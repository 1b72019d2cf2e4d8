"""Names of buckets and objects, and the files that stand for objects.

https://cloud.google.com/storage/docs/buckets#naming and .../docs/objects#naming.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import PurePosixPath
from urllib.parse import quote

from tpudash.emulator.storage.errors import invalid

_BUCKET = re.compile(r"[a-z0-9][a-z0-9_.-]{1,220}[a-z0-9]")
_MAX_OBJECT_BYTES = 1024
_MAX_PART = 200
_SAFE = "-_=+, "


def check_bucket_name(name: str) -> None:
    """Refuse what cannot name a bucket.

    Raises:
        StorageError: 400.
    """
    if not _BUCKET.fullmatch(name) or ".." in name:
        raise invalid(f"Invalid bucket name: '{name}'")


def check_object_name(name: str) -> None:
    """Refuse what cannot name an object.

    Raises:
        StorageError: 400.
    """
    too_long = len(name.encode()) > _MAX_OBJECT_BYTES
    if not name or too_long or "\r" in name or "\n" in name or name in {".", ".."}:
        raise invalid(f"Invalid object name: '{name[:80]}'")


def file_of(name: str, generation: int) -> PurePosixPath:
    """Return the relative path of the file that holds one generation of an object.

    Folders keep their names so that people find their way; every file ends in `@GENERATION`, which
    no folder does, so that `a` and `a/b` can both exist.
    """
    *folders, last = (_part(part) for part in name.split("/"))
    return PurePosixPath(*folders, f"{last}@{generation}")


def _part(part: str) -> str:
    """Escape one part of a name: no dot at its begin, no `@`, nothing that a disk may not like."""
    escaped = quote(part, safe=_SAFE).replace("~", "%7E")
    if not escaped or escaped.startswith("."):
        escaped = f"%{escaped}"  # an escape is a % with two digits, so this stays unique
    if len(escaped) > _MAX_PART:
        digest = hashlib.sha256(part.encode()).hexdigest()[:32]
        escaped = f"{escaped[: _MAX_PART - 40]}%{digest}"
    return escaped
