"""Files of a run: in a `gs://` bucket, or in a folder on this machine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tpudash.errors import ConfigurationError
from tpudash.gateways import local_files
from tpudash.gateways.cloud_storage import CloudStorage

if TYPE_CHECKING:
    from tpudash.gateways.clients import Clients
    from tpudash.gateways.retry import Caller

GS: Final = "gs://"


class Buckets:
    """`BucketGateway` for both kinds, told apart by the URL; nothing blocks the event loop."""

    def __init__(self, clients: Clients, caller: Caller, project: str) -> None:
        self._storage = CloudStorage(clients, caller, project)

    async def exists(self, url: str) -> bool:
        """Whether a bucket, folder or file exists.

        Raises:
            TpudashError: It could not be found out.
        """
        if url.startswith(GS):
            return await self._storage.exists(url)
        return await asyncio.to_thread(local_files.exists, local_path(url))

    async def read(self, url: str) -> bytes | None:
        """Return a file's content, or None when it does not exist.

        Raises:
            NotFoundError: The bucket itself does not exist.
        """
        if url.startswith(GS):
            return await self._storage.read(url)
        return await asyncio.to_thread(local_files.read, local_path(url))

    async def write(self, url: str, data: bytes, *, only_if_absent: bool = False) -> bool:
        """Write a whole file at once; False when it was there and must not be replaced.

        Raises:
            NotFoundError: The bucket does not exist.
            OutcomeUnknownError: No answer came.
        """
        if url.startswith(GS):
            return await self._storage.write(url, data, only_if_absent=only_if_absent)
        return await asyncio.to_thread(
            local_files.write, local_path(url), data, only_if_absent=only_if_absent
        )

    async def rename(self, url: str, new_url: str) -> None:
        """Move a file within its bucket, replacing what is there.

        Raises:
            NotFoundError: There is no such file.
        """
        if url.startswith(GS) and new_url.startswith(GS):
            await self._storage.rename(url, new_url)
            return
        await asyncio.to_thread(local_files.rename, local_path(url), local_path(new_url))

    async def list(self, url: str) -> tuple[str, ...]:
        """List the URLs of files and folders directly below a folder; none if it has none.

        Raises:
            NotFoundError: The bucket itself does not exist.
        """
        if url.startswith(GS):
            return await self._storage.list(url)
        return await asyncio.to_thread(local_files.list_folder, local_path(url))

    async def location(self, url: str) -> str | None:
        """Return where a bucket lies, such as `us-central1` or `us`; None for a folder.

        Raises:
            NotFoundError: The bucket does not exist.
        """
        return await self._storage.location(url) if url.startswith(GS) else None


def local_path(url: str) -> Path:
    """Return the path of a folder or file on this machine.

    Raises:
        ConfigurationError: Neither `gs://` nor an absolute path.
    """
    path = Path(url)
    if not path.is_absolute() or "\0" in url:
        raise ConfigurationError(
            "not a bucket",
            detail=repr(url),
            hint="give gs://NAME, or the absolute path of a folder on this machine",
        )
    return path
