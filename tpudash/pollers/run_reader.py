"""Reads runs: which there are, by nodes, buckets and what this machine began; and their records.

A reader never changes anything: a record that is damaged is told in the run's reason and left
where it is.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeVar

from tpudash.domain.node import OWNER_LABEL, SPEC_METADATA_KEY
from tpudash.domain.run import (
    AttemptRecord,
    RecordError,
    RunResult,
    RunSpec,
    Supervision,
    decode_record,
    decode_spec,
    run_url_of,
    runs_url_of,
)
from tpudash.domain.run_state import PATIENCE, Patience, RunEvidence, derive_run
from tpudash.errors import NotFoundError, TpudashError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from tpudash.clock import Clock
    from tpudash.domain.node import Node, NodeListing
    from tpudash.domain.request import QueuedResource, RequestListing
    from tpudash.domain.run import Run
    from tpudash.gateways.protocols import BucketGateway

RecordT = TypeVar("RecordT")

PARALLEL_READS: Final = 8
"""Files read at a time, so that a bucket with hundreds of runs is not asked for all at once."""

RUN_FILE: Final = "run.json"
RESULT_FILE: Final = "result.json"
SUPERVISOR_FILE: Final = "supervisor.json"
ATTEMPTS_FOLDER: Final = "attempts"
UNKNOWN_OWNER: Final = "unknown"


@dataclass(frozen=True, slots=True)
class RunReading:
    """All runs that could be found, and the buckets that could not be listed.

    Attributes:
        evidence: What each run was derived from, in the order of `runs`.
    """

    runs: tuple[Run, ...]
    evidence: tuple[RunEvidence, ...] = ()
    errors: tuple[TpudashError, ...] = ()


@dataclass
class _Sketch:
    """A run as far as it is known without its records."""

    name: str
    url: str | None
    specs: list[RunSpec] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    requests: list[QueuedResource] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Records:
    spec: RunSpec | None = None
    attempts: tuple[AttemptRecord, ...] = ()
    result: RunResult | None = None
    supervision: Supervision | None = None
    problems: tuple[str, ...] = ()
    unread: bool = False


class RunReader:
    """Reads the records of runs, a few files at a time, and remembers those that never change.

    Args:
        bucket: Where the records are.
        patience: How long silence is nothing unusual.
    """

    def __init__(self, bucket: BucketGateway, clock: Clock, patience: Patience = PATIENCE) -> None:
        self._bucket = bucket
        self._clock = clock
        self._patience = patience
        self._slots = asyncio.Semaphore(PARALLEL_READS)
        self._ended: dict[str, AttemptRecord] = {}
        self._last_known: dict[str, _Records] = {}

    async def read(
        self,
        nodes: NodeListing,
        requests: RequestListing | None = None,
        *,
        known: Iterable[RunSpec] = (),
        buckets: Sequence[str] = (),
        only: str | None = None,
        nodes_as_of: datetime | None = None,
    ) -> RunReading:
        """Read every run that a node, a bucket or `known` tells of.

        Args:
            nodes: All nodes, as listed now.
            requests: All queued resources, where they are known.
            known: Specs of runs that were begun on this machine; their nodes may be gone.
            buckets: `gs://NAME` or absolute folders, to be searched for further runs.
            only: Name of the one run that is wanted, which saves listing the buckets.
            nodes_as_of: When the nodes were listed, where that was not just now.
        """
        sketches = sketch_runs(nodes.nodes, requests.requests if requests else (), known)
        errors = await self._search(sketches, buckets, only)
        if only is not None:
            sketches = [one for one in sketches if one.name == only]
        silent = (*nodes.unreachable, *(requests.unreachable if requests else ()))
        evidence = await asyncio.gather(*(self._evidence(one, silent) for one in sketches))
        real = [replace(one, nodes_as_of=nodes_as_of) for one in evidence if one is not None]
        real.sort(key=lambda one: (one.name, one.owner))
        return RunReading(tuple(map(self.derive, real)), tuple(real), tuple(errors))

    async def _search(
        self, sketches: list[_Sketch], buckets: Sequence[str], only: str | None
    ) -> list[TpudashError]:
        """Add the runs that lie in the buckets; return why a bucket could not be listed."""
        errors = []
        for bucket in dict.fromkeys(bucket.rstrip("/") for bucket in buckets):
            if only is not None:
                _sketch_of(sketches, only, run_url_of(bucket, only))
                continue
            try:
                found = await self._bucket.list(runs_url_of(bucket))
            except NotFoundError:
                continue
            except TpudashError as error:
                errors.append(error)
                continue
            for url in found:
                name = url.rstrip("/").rsplit("/", 1)[-1]
                _sketch_of(sketches, name, url.rstrip("/"))
        return errors

    def derive(self, evidence: RunEvidence) -> Run:
        """Put one run together as it stands now."""
        return derive_run(evidence, self._clock.now(), self._patience)

    async def _evidence(self, sketch: _Sketch, silent: tuple[str, ...]) -> RunEvidence | None:
        records = _Records() if sketch.url is None else await self._records(sketch.url)
        if not (sketch.nodes or sketch.requests or records != _Records()):
            # A folder that lies there by chance, or a run whose folder was removed since.
            return None
        specs = [*([records.spec] if records.spec else []), *sketch.specs]
        spec = max(specs, key=lambda one: one.attempt) if specs else None
        owner = spec.owner if spec else _label_of(sketch, OWNER_LABEL) or UNKNOWN_OWNER
        return RunEvidence(
            name=sketch.name,
            owner=owner,
            spec=spec,
            attempts=records.attempts,
            result=records.result,
            nodes=tuple(sketch.nodes),
            requests=tuple(sketch.requests),
            unreachable=silent,
            problems=(*sketch.problems, *records.problems),
            records_unread=records.unread,
            supervision=records.supervision,
        )

    async def _records(self, url: str) -> _Records:
        try:
            records = await self._read_records(url)
        except TpudashError as error:
            # What was read before is kept: its own time stamps tell how old it is.
            before = self._last_known.get(url, _Records())
            problem = f"its records could not be read ({error})"
            return replace(before, problems=(problem,), unread=True)
        self._last_known[url] = records
        return records

    async def _read_records(self, url: str) -> _Records:
        problems: list[str] = []
        spec, result, supervision, files = await asyncio.gather(
            self._decoded(f"{url}/{RUN_FILE}", decode_spec, problems),
            self._decoded(
                f"{url}/{RESULT_FILE}", lambda data: decode_record(RunResult, data), problems
            ),
            self._decoded(
                f"{url}/{SUPERVISOR_FILE}", lambda data: decode_record(Supervision, data), problems
            ),
            self._listed(f"{url}/{ATTEMPTS_FOLDER}"),
        )
        newest = max(files, key=_number_of, default=None)
        found = await asyncio.gather(
            *(self._attempt(file, problems, is_newest=file == newest) for file in files)
        )
        attempts = sorted(
            (record for record in found if record is not None), key=lambda one: one.attempt
        )
        return _Records(spec, tuple(attempts), result, supervision, tuple(sorted(problems)))

    async def _attempt(
        self, url: str, problems: list[str], *, is_newest: bool
    ) -> AttemptRecord | None:
        if url in self._ended and not is_newest:
            return self._ended[url]
        record = await self._decoded(url, lambda data: decode_record(AttemptRecord, data), problems)
        if record is not None and not is_newest:
            # An attempt that another one followed is over, and its record never changes again.
            self._ended[url] = record
        return record

    async def _listed(self, url: str) -> tuple[str, ...]:
        async with self._slots:
            try:
                found = await self._bucket.list(url)
            except NotFoundError:
                return ()
        names = ((one, one.rsplit("/", 1)[-1]) for one in found)
        return tuple(one for one, name in names if name.endswith(".json") and name[:-5].isdecimal())

    async def _decoded(
        self, url: str, decode: Callable[[bytes], RecordT], problems: list[str]
    ) -> RecordT | None:
        async with self._slots:
            try:
                data = await self._bucket.read(url)
            except NotFoundError:
                return None
        if data is None:
            return None
        try:
            return decode(data)
        except RecordError as error:
            problems.append(f"{url} is damaged: {error}")
            return None


def sketch_runs(
    nodes: Iterable[Node], requests: Iterable[QueuedResource], known: Iterable[RunSpec]
) -> list[_Sketch]:
    """Return the runs that nodes, requests and known specs tell of, without their records."""
    sketches: list[_Sketch] = []
    for spec in known:
        _sketch_of(sketches, spec.run, spec.run_url).specs.append(spec)
    without_spec = []
    for node in nodes:
        if node.run is None:
            continue
        own, problem = _spec_of(node.metadata, node.run, f"node {node.node_id}")
        if own is None:
            without_spec.append((node, problem))
            continue
        sketch = _sketch_of(sketches, own.run, own.run_url)
        sketch.specs.append(own)
        sketch.nodes.append(node)
    for node, problem in without_spec:
        sketch = _sketch_of(sketches, node.run or "", None)
        sketch.nodes.append(node)
        if problem:
            sketch.problems.append(problem)
    for request in requests:
        if request.run is None:
            continue
        # Before its node is made, a request is all that tells another machine of a run.
        asked, _ = _spec_of(request.metadata, request.run, f"request {request.request_id}")
        sketch = _sketch_of(sketches, request.run, asked.run_url if asked else None)
        sketch.requests.append(request)
        if asked is not None:
            sketch.specs.append(asked)
    return sketches


def _sketch_of(sketches: list[_Sketch], name: str, url: str | None) -> _Sketch:
    """Return the sketch of a run, a new one if need be; without a URL the name must do."""
    for sketch in sketches:
        if sketch.name == name and (url is None or sketch.url in {None, url}):
            sketch.url = sketch.url or url
            return sketch
    sketches.append(_Sketch(name, url))
    return sketches[-1]


def _spec_of(
    metadata: Mapping[str, str], run: str | None, where: str
) -> tuple[RunSpec | None, str]:
    text = metadata.get(SPEC_METADATA_KEY)
    if not text:
        return None, ""
    try:
        spec = decode_spec(text)
    except RecordError as error:
        return None, f"the spec of {where} can't be used: {error}"
    if spec.run != run:
        return None, f"{where} is labelled {run} and its spec says {spec.run}"
    return spec, ""


def _label_of(sketch: _Sketch, label: str) -> str | None:
    labelled = (node.labels.get(label) for node in sketch.nodes)
    return next((value for value in labelled if value), None)


def _number_of(url: str) -> int:
    """Return the attempt that a record's file is named for, 0 if it is no such file."""
    stem, dot, ending = url.rsplit("/", 1)[-1].partition(".")
    is_record = dot and ending == "json" and stem.isascii() and stem.isdecimal()
    return int(stem) if is_record else 0
