"""Objects and buckets as the JSON API shows them.

https://cloud.google.com/storage/docs/json_api/v1/objects#resource and .../buckets#resource.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tpudash.emulator.identifiers import project_number

if TYPE_CHECKING:
    from tpudash.emulator.storage.objects import Bucket, StoredObject

_REGIONS = frozenset({"US", "EU", "ASIA"})


def object_resource(item: StoredObject, origin: str) -> dict[str, Any]:
    """Return an object; `origin` is where the caller reaches the server, such as `http://h:1`."""
    path = f"b/{item.bucket}/o/{quote(item.name, safe='')}"
    resource: dict[str, Any] = {
        "kind": "storage#object",
        "id": f"{item.bucket}/{item.name}/{item.generation}",
        "selfLink": f"{origin}/storage/v1/{path}",
        "mediaLink": (
            f"{origin}/download/storage/v1/{path}?generation={item.generation}&alt=media"
        ),
        "name": item.name,
        "bucket": item.bucket,
        "generation": str(item.generation),
        "metageneration": str(item.metageneration),
        "storageClass": "STANDARD",
        "size": str(item.size),
        "crc32c": item.crc32c,
        "etag": item.etag,
        "timeCreated": item.created,
        "timeStorageClassUpdated": item.created,
        "updated": item.updated,
    }
    if item.md5:
        resource["md5Hash"] = item.md5
    return resource | item.extra


def bucket_resource(bucket: Bucket, origin: str) -> dict[str, Any]:
    """Return a bucket."""
    resource: dict[str, Any] = {
        "kind": "storage#bucket",
        "id": bucket.name,
        "selfLink": f"{origin}/storage/v1/b/{bucket.name}",
        "projectNumber": str(project_number(bucket.project)),
        "name": bucket.name,
        "location": bucket.location,
        "locationType": "multi-region" if bucket.location in _REGIONS else "region",
        "storageClass": "STANDARD",
        "metageneration": str(bucket.metageneration),
        "etag": f"{bucket.metageneration:x}",
        "timeCreated": bucket.created,
        "updated": bucket.updated,
        "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}},
        "versioning": {"enabled": False},
    }
    return resource | bucket.extra
