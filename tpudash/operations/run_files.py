"""The files of a run that operations write: `run.json` and the bundle. Nothing is lost in writing.

Keys that this version does not know are kept; a damaged `run.json` is renamed, never overwritten.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.failure import ErrorClass
from tpudash.domain.run import RecordError, RunSpec, decode_spec, encode_record
from tpudash.errors import NotFoundError
from tpudash.operations.refusals import refused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from tpudash.gateways.protocols import BucketGateway
    from tpudash.operations.bundle import TrainerBundle
    from tpudash.operations.course import Course

RUN_FILE: Final = "run.json"
_SHARD: Final = re.compile(r"ckpt-(\d+)\.data-(\d{5})-of-(\d{5})")
_INDEX: Final = re.compile(r"ckpt-(\d+)\.index")
_FOLDER: Final = re.compile(r"ckpt-(\d+)")
_DESCRIPTION: Final = re.compile(r"ckpt-(\d+)\.json")


@dataclass(frozen=True, slots=True)
class SpecFile:
    """`run.json` as it was found.

    Attributes:
        spec: None when there is no such file, or when it is damaged.
        problem: What is wrong with it, or "".
        fields: Everything in it, keys of other versions included.
    """

    spec: RunSpec | None = None
    problem: str = ""
    fields: dict[str, Any] | None = None


def spec_url(run_url: str) -> str:
    """Return the URL of a run's `run.json`."""
    return f"{run_url}/{RUN_FILE}"


def bundle_url(run_url: str, sha256: str) -> str:
    """Return the URL of a bundle, which is named by its content."""
    return f"{run_url}/bundle/{sha256}.tar.gz"


async def read_spec(bucket: BucketGateway, run_url: str) -> SpecFile:
    """Read `run.json`; a damaged one is told and left where it is."""
    try:
        data = await bucket.read(spec_url(run_url))
    except NotFoundError:
        data = None
    if data is None:
        return SpecFile()
    try:
        spec = decode_spec(data)
        fields: dict[str, Any] = json.loads(data)
    except (RecordError, ValueError) as error:
        return SpecFile(problem=f"{spec_url(run_url)} is damaged: {error}")
    return SpecFile(spec, fields=fields)


async def newest_checkpoint(bucket: BucketGateway, run_url: str) -> int | None:
    """Return the newest step whose checkpoint has all its files, or None.

    Whether the bytes are good only the trainer can tell, which verifies them before it restores.
    """
    try:
        urls = await bucket.list(f"{run_url}/checkpoints")
    except NotFoundError:
        return None
    return complete_checkpoint(url.rstrip("/").rsplit("/", 1)[-1] for url in urls)


def complete_checkpoint(names: Iterable[str]) -> int | None:
    """Return the newest complete step among the names in a checkpoint folder.

    TensorFlow's have an index and all shards beside it; Orbax' have a folder, and the description
    that the trainer writes last.
    """
    indexed: set[int] = set()
    folders: set[int] = set()
    described: set[int] = set()
    shards: dict[int, set[int]] = {}
    wanted: dict[int, int] = {}
    for name in names:
        if index := _INDEX.fullmatch(name):
            indexed.add(int(index[1]))
        elif shard := _SHARD.fullmatch(name):
            step = int(shard[1])
            shards.setdefault(step, set()).add(int(shard[2]))
            wanted[step] = int(shard[3])
        elif folder := _FOLDER.fullmatch(name):
            folders.add(int(folder[1]))
        elif description := _DESCRIPTION.fullmatch(name):
            described.add(int(description[1]))
    complete = {step for step in indexed if step in wanted and len(shards[step]) == wanted[step]}
    return max(complete | (folders & described), default=None)


class RunFiles:
    """Writes the files of one operation, and asks again while the bucket is silent."""

    def __init__(self, course: Course) -> None:
        self._course = course

    async def read(self, run_url: str) -> SpecFile:
        """Return `run.json` as it is for sure."""

        async def ask() -> SpecFile:
            return await read_spec(await self._bucket(), run_url)

        found = await self._course.definite(ask, spec_url(run_url))
        return found or SpecFile()

    async def write_bundle(self, url: str, bundle: TrainerBundle) -> None:
        """Write the bundle unless it is there: its name tells its content."""

        async def write() -> bool:
            bucket = await self._bucket()
            return await bucket.exists(url) or await bucket.write(
                url, bundle.data, only_if_absent=True
            )

        await self._insist(write, f"write {url}")

    async def claim(self, spec: RunSpec) -> None:
        """Write the first `run.json` of a run, unless the run is somebody else's by now.

        Raises:
            RefusedError: Another run has this name in this bucket.
        """
        url = spec_url(spec.run_url)
        data = encode_record(spec)

        async def write() -> bool:
            return await (await self._bucket()).write(url, data, only_if_absent=True)

        self._course.tools.journal.note_spec(self._course.operation_id, spec)
        found = await self.read(spec.run_url)
        if found.problem:
            await self.set_aside(url)
        elif found.spec is None and await self._insist(write, f"write {url}"):
            return
        else:
            found = await self.read(spec.run_url)
        if found.spec is not None and not is_same_run(found.spec, spec):
            raise refused(
                f"run {spec.run} was begun by {found.spec.owner} just now",
                ErrorClass.NAME_TAKEN,
                detail=f"{url} is of {found.spec.created.isoformat()}",
                hint="choose another name",
            )
        await self.write(spec)

    async def write(self, spec: RunSpec) -> None:
        """Write `run.json` over what is there, which is kept under another name if damaged."""
        url = spec_url(spec.run_url)
        self._course.tools.journal.note_spec(self._course.operation_id, spec)
        found = await self.read(spec.run_url)
        if found.problem:
            await self.set_aside(url)
        fields = _merged(found.fields, spec)
        if fields == found.fields:
            return
        data = json.dumps(fields, indent=2, ensure_ascii=False).encode() + b"\n"

        async def write() -> bool:
            return await (await self._bucket()).write(url, data)

        await self._insist(write, f"write {url}")

    async def set_aside(self, url: str) -> str:
        """Rename a damaged file to the first free `<name>.corrupt-<n>`, and return that URL."""
        number = 1
        while True:
            aside = f"{url}.corrupt-{number}"

            async def is_taken(aside: str = aside) -> bool:
                return await (await self._bucket()).exists(aside)

            if not await self._insist(is_taken, f"look for {aside}"):
                break
            number += 1
        self._course.say(f"{url} is damaged; it is set aside as {aside}")
        await (await self._bucket()).rename(url, aside)
        return aside

    async def _insist(self, change: Callable[[], Awaitable[bool]], what: str) -> bool:
        return await self._course.insist(change, what)

    async def _bucket(self) -> BucketGateway:
        return await self._course.tools.bucket()


def is_same_run(one: RunSpec, other: RunSpec) -> bool:
    """Whether two specs are of the same launch."""
    return (one.run, one.owner, one.created) == (other.run, other.owner, other.created)


def _merged(fields: dict[str, Any] | None, spec: RunSpec) -> dict[str, Any]:
    ours: dict[str, Any] = json.loads(encode_record(spec))
    return {**(fields or {}), **ours}
