"""Files of a `gs://` bucket, through google-cloud-storage in threads.

Reads are repeated after faults that pass; a write that got no answer is not, since whoever wrote
meanwhile would be overwritten.
Source: https://cloud.google.com/storage/docs/request-preconditions
"""

from __future__ import annotations

import asyncio
import os
import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tpudash.errors import ConfigurationError, NotFoundError, TpudashError
from tpudash.gateways.clients import STORAGE_READ_SCOPE, import_quietly
from tpudash.gateways.credentials import SignIn

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.gateways.clients import Clients
    from tpudash.gateways.retry import Caller

T = TypeVar("T")
CALL_S: Final = 30.0
EMULATOR_VARIABLE: Final = "STORAGE_EMULATOR_HOST"
"""What google-cloud-storage itself reads for the address of a local storage server."""

BACKGROUND_VARIABLE: Final = "DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA"
"""Keeps google-cloud-storage from reading a bucket's metadata behind our back."""

TRANSFER_S: Final = 300.0
"""How long a bundle or record may take; the checkpoints themselves never pass through here."""


_BUCKET_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
"""Source: https://cloud.google.com/storage/docs/buckets#naming"""


class CloudStorage:
    """Reads and writes whole objects."""

    def __init__(self, clients: Clients, caller: Caller, project: str) -> None:
        self._clients = clients
        self._caller = caller
        self._project = project
        self._client: Any = None
        self._made_for: Any = None
        self._anonymous: SignIn | None = None
        self._lock = asyncio.Lock()

    async def exists(self, url: str) -> bool:
        """Whether a bucket, an object, or anything below a folder's name exists."""
        bucket, name = split_url(url)

        def look(client: Any) -> bool:
            if not name:
                return client.lookup_bucket(bucket, timeout=CALL_S, retry=None) is not None
            found = client.bucket(bucket).blob(name).exists(timeout=CALL_S, retry=None)
            if found:
                return True
            prefix = name.rstrip("/") + "/"
            below = client.list_blobs(
                bucket, prefix=prefix, max_results=1, timeout=CALL_S, retry=None
            )
            return any(True for _ in below)

        try:
            return await self._read(f"look at {url}", look, bucket)
        except NotFoundError:
            return False

    async def read(self, url: str) -> bytes | None:
        """Return an object's content, or None when there is no such object."""
        bucket, name = split_url(url)

        def get(client: Any) -> bytes | None:
            from google.api_core.exceptions import NotFound

            try:
                data: bytes = (
                    client.bucket(bucket)
                    .blob(name)
                    .download_as_bytes(timeout=TRANSFER_S, retry=None)
                )
            except NotFound:
                # The same answer tells of a missing object and of a missing bucket.
                if client.lookup_bucket(bucket, timeout=CALL_S, retry=None) is None:
                    raise
                return None
            return data

        return await self._read(f"read {url}", get, bucket)

    async def write(self, url: str, data: bytes, *, only_if_absent: bool) -> bool:
        """Write an object; False when it was there and must not be replaced."""
        bucket, name = split_url(url)

        def put(client: Any) -> bool:
            from google.api_core.exceptions import PreconditionFailed

            try:
                client.bucket(bucket).blob(name).upload_from_string(
                    data,
                    timeout=TRANSFER_S,
                    retry=None,
                    if_generation_match=0 if only_if_absent else None,
                )
            except PreconditionFailed:
                if only_if_absent:
                    return False
                raise
            return True

        return await self._change(f"write {url}", put, bucket)

    async def rename(self, url: str, new_url: str) -> None:
        """Copy an object to its new name and delete the one that was copied."""
        bucket, name = split_url(url)
        new_bucket, new_name = split_url(new_url)
        if bucket != new_bucket:
            raise ConfigurationError("a file can't be moved to another bucket", detail=new_url)

        def move(client: Any) -> None:
            source = client.bucket(bucket).get_blob(name, timeout=CALL_S, retry=None)
            if source is None:
                raise NotFoundError(f"no such file: {url}")
            generation = source.generation
            source.bucket.copy_blob(
                source,
                source.bucket,
                new_name,
                if_source_generation_match=generation,
                timeout=TRANSFER_S,
                retry=None,
            )
            source.delete(if_generation_match=generation, timeout=CALL_S, retry=None)

        await self._change(f"move {url}", move, bucket)

    async def list(self, url: str) -> tuple[str, ...]:
        """List the objects and folders directly below a folder."""
        bucket, name = split_url(url)
        prefix = name.rstrip("/") + "/" if name else ""

        def find(client: Any) -> tuple[str, ...]:
            found = client.list_blobs(
                bucket, prefix=prefix, delimiter="/", timeout=CALL_S, retry=None
            )
            names = {blob.name for blob in found if blob.name != prefix}
            names.update(folder.rstrip("/") for folder in found.prefixes)
            return tuple(f"gs://{bucket}/{entry}" for entry in sorted(names))

        return await self._read(f"list {url}", find, bucket)

    async def location(self, url: str) -> str | None:
        """Return the bucket's location in small letters: a region, a dual-region or a continent.

        Source: https://cloud.google.com/storage/docs/locations
        """
        bucket, _ = split_url(url)

        def get(client: Any) -> str | None:
            found = client.get_bucket(bucket, timeout=CALL_S, retry=None)
            return found.location.lower() if found.location else None

        return await self._read(f"look where {url} lies", get, bucket)

    async def _read(self, what: str, call: Callable[[Any], T], bucket: str) -> T:
        client = await self._ready()
        try:
            return await self._caller.read(
                what, lambda _: asyncio.to_thread(call, client), timeout_s=TRANSFER_S
            )
        except TpudashError as error:
            raise self._explained(error, bucket) from error

    async def _change(self, what: str, call: Callable[[Any], T], bucket: str) -> T:
        client = await self._ready()
        try:
            return await self._caller.change(
                what, lambda _: asyncio.to_thread(call, client), timeout_s=TRANSFER_S
            )
        except TpudashError as error:
            raise self._explained(error, bucket) from error

    async def _ready(self) -> Any:
        """Return a client for the credentials that are in force."""
        sign_in = await self._sign_in()
        async with self._lock:
            if self._client is None or self._made_for is not sign_in:
                os.environ.setdefault(BACKGROUND_VARIABLE, "true")
                storage = await asyncio.to_thread(import_quietly, "google.cloud.storage")
                url = self._clients.storage_url
                self._client = await asyncio.to_thread(
                    storage.Client,
                    project=self._project,
                    credentials=sign_in.scoped(self._clients.scopes_of(STORAGE_READ_SCOPE)),
                    client_options={"api_endpoint": url} if url else None,
                )
                self._made_for = sign_in
            return self._client

    async def _sign_in(self) -> SignIn:
        if not self._clients.is_local:
            return await self._clients.sign_in()
        # Whoever works with a local endpoint must not touch real buckets by the way.
        if not (self._clients.storage_url or os.environ.get(EMULATOR_VARIABLE)):
            raise ConfigurationError(
                "a local endpoint has no gs:// buckets",
                detail=f"{EMULATOR_VARIABLE} is not set",
                hint="use a folder on this machine as --bucket",
            )
        if self._anonymous is None:
            auth = await asyncio.to_thread(import_quietly, "google.auth.credentials")
            self._anonymous = SignIn(auth.AnonymousCredentials(), self._project, None)
        return self._anonymous

    def _explained(self, error: TpudashError, bucket: str) -> TpudashError:
        """Say which bucket is missing where the cloud only says that something is."""
        if not isinstance(error, NotFoundError) or error.title.startswith("no such file"):
            return error
        return NotFoundError(
            f"the bucket gs://{bucket} does not exist",
            detail=error.detail,
            hint=f"make it with: gcloud storage buckets create gs://{bucket} "
            f"--project {self._project} --location REGION",
            failure=error.failure,
        )


def split_url(url: str) -> tuple[str, str]:
    """Return bucket and object name of a `gs://` URL.

    Raises:
        ConfigurationError: The URL names no bucket.
    """
    bucket, _, name = url.removeprefix("gs://").partition("/")
    if not url.startswith("gs://") or not _BUCKET_NAME.fullmatch(bucket):
        raise ConfigurationError("not a bucket", detail=repr(url), hint="give gs://NAME")
    return bucket, name.strip("/")
