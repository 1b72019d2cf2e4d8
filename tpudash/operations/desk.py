"""What planning works with: the tools, whose runs these are, what things cost, where to look."""

from __future__ import annotations

import asyncio
import difflib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tpudash.domain.operation import OperationKind
from tpudash.domain.resource_name import may_be_in, node_name
from tpudash.domain.run import Bundle
from tpudash.errors import NotFoundError, UnreachableError
from tpudash.operations.run_files import bundle_url
from tpudash.pollers.run_reader import RunReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tpudash.domain.node import Node, NodeListing, Scheduling
    from tpudash.domain.request import RequestListing
    from tpudash.domain.run import Run, RunSpec
    from tpudash.domain.run_state import RunEvidence
    from tpudash.gateways.protocols import Cloud
    from tpudash.operations.bundle import TrainerBundle
    from tpudash.operations.course import Course, Tools
    from tpudash.operations.journal import JournalledOperation
    from tpudash.operations.run_files import RunFiles

    Rate = Callable[[str, str, Scheduling], float | None]


@dataclass(frozen=True, slots=True)
class Survey:
    """What there is now, read once for one plan."""

    cloud: Cloud
    nodes: NodeListing
    requests: RequestListing
    runs: tuple[Run, ...]
    evidence: tuple[RunEvidence, ...]

    def of(self, name: str) -> tuple[RunEvidence, ...]:
        """Return what is known of the runs of a name; there is one for each bucket and owner."""
        return tuple(one for one in self.evidence if one.name == name)


@dataclass(frozen=True, slots=True)
class Desk:
    """Where plans are made.

    Attributes:
        owner: Label value of whoever is planning.
        rate: US dollars an hour of a type in a zone, or None where the price is not known.
        buckets: Buckets in which runs are looked for besides those that nodes name.
    """

    tools: Tools
    owner: str
    rate: Rate
    buckets: Sequence[str] = ()

    async def survey(self, *, only: str | None = None, buckets: Iterable[str] = ()) -> Survey:
        """Read nodes, requests and runs, all of them or those of one name.

        What an answer holds of other projects is left out, so that nothing can be done to it.

        Raises:
            TpudashError: Nodes or requests could not be listed.
        """
        cloud = await self.tools.connection.cloud()
        nodes, requests = await asyncio.gather(cloud.tpu.list_nodes(), cloud.tpu.list_requests())
        nodes, requests = _only_of(cloud.project, nodes, requests)
        reader = RunReader(cloud.bucket, self.tools.clock)
        reading = await reader.read(
            nodes,
            requests,
            known=self.tools.journal.known_specs(cloud.project),
            buckets=(*buckets, *self.buckets),
            only=only,
        )
        return Survey(cloud, nodes, requests, reading.runs, reading.evidence)

    def highest_rate(self, spec: RunSpec) -> float | None:
        """Return US dollars an hour of a run's node in the dearest of its candidate zones.

        The agent holds the run's cap by it, wherever the node comes to lie.
        """
        kind, scheduling = spec.accelerator_type, spec.scheduling
        rates = [self.rate(kind, zone, scheduling) for zone in spec.zones]
        return max((rate for rate in rates if rate is not None), default=None)

    def derive(self, survey: Survey, evidence: RunEvidence) -> Run:
        """Put a run together from evidence that was completed since."""
        return RunReader(survey.cloud.bucket, self.tools.clock).derive(evidence)

    def begun(self, project: str, run: str) -> tuple[JournalledOperation, ...]:
        """Return the unfinished launches and resumes that nobody is working on, newest first."""
        if self.tools.journal.is_held(run):
            return ()
        making = {OperationKind.LAUNCH, OperationKind.RESUME}
        every = self.tools.journal.unfinished(project)
        found = (one for one in every if one.run == run and one.kind in making)
        return tuple(reversed(tuple(found)))


def _only_of(
    project: str, nodes: NodeListing, requests: RequestListing
) -> tuple[NodeListing, RequestListing]:
    own = tuple(node for node in nodes.nodes if may_be_in(node.name, project))
    queue = tuple(one for one in requests.requests if may_be_in(one.name, project))
    return replace(nodes, nodes=own), replace(requests, requests=queue)


async def with_definite_node(survey: Survey, evidence: RunEvidence) -> RunEvidence:
    """Return the evidence with the newest attempt's node as it is for sure.

    A listing may leave a zone out; here the node itself is asked for.

    Raises:
        UnreachableError: Nobody answers, so that nothing may be done.
    """
    spec = evidence.spec
    if spec is None or evidence.zone not in evidence.unreachable:
        return evidence
    name = node_name(spec.project, evidence.zone, f"{spec.run}-{evidence.attempt}")
    found: Node | None
    try:
        found = await survey.cloud.tpu.get_node(name)
    except NotFoundError:
        found = None
    except UnreachableError as error:
        raise UnreachableError(
            f"zone {evidence.zone} does not answer, so nothing is known of {evidence.name}",
            detail=error.detail,
            hint="nothing was done; try again when the zone answers",
            failure=error.failure,
        ) from error
    others = tuple(node for node in evidence.nodes if node.name != name)
    silent = tuple(zone for zone in evidence.unreachable if zone != evidence.zone)
    own = (found,) if found is not None and found.run == evidence.name else ()
    return replace(evidence, nodes=(*others, *own), unreachable=silent)


async def with_bundle(course: Course, files: RunFiles, spec: RunSpec) -> RunSpec:
    """Return the spec with a bundle that lies in the bucket: its own, or else the installed one."""

    async def is_there() -> bool:
        url = spec.bundle.url if spec.bundle else ""
        return bool(url) and await (await course.tools.bucket()).exists(url)

    if await course.insist(is_there, "look for the run's code"):
        return spec
    made = await course.tools.bundle()
    spec = spec_with_bundle(spec, made)
    course.say("writing the trainer's code to the bucket")
    await files.write_bundle(bundle_url(spec.run_url, made.sha256), made)
    return spec


def spec_with_bundle(spec: RunSpec, made: TrainerBundle) -> RunSpec:
    """Return the spec with the installed trainer as its code."""
    bundle = Bundle(url=bundle_url(spec.run_url, made.sha256), sha256=made.sha256)
    return replace(spec, bundle=bundle)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint that names what is spelled nearly like this, or "" ."""
    found = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f"did you mean {' or '.join(found)}?" if found else ""
