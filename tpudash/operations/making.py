"""What makers of nodes and of queued requests share: to ask once, to know one's own, to give up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tpudash.domain.failure import ErrorClass, Failure, RetryPolicy
from tpudash.domain.node import SPEC_METADATA_KEY, Node, NodeState
from tpudash.domain.operation import OperationKind
from tpudash.domain.run import RecordError, decode_spec
from tpudash.domain.run_state import age_text
from tpudash.errors import (
    CapacityError,
    NotFoundError,
    OperationFailedError,
    OutcomeUnknownError,
    TpudashError,
    UnreachableError,
)
from tpudash.operations.calls import labels_of
from tpudash.operations.refusals import NotMadeError, class_of, is_passing, refused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from tpudash.domain.request import QueuedResource
    from tpudash.domain.run import RunSpec
    from tpudash.gateways.protocols import CloudOperation, TpuGateway
    from tpudash.operations.course import Course
    from tpudash.operations.run_files import RunFiles


class ZoneRefusedError(CapacityError):
    """A zone has no capacity; another one may."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Something that is asked of the cloud at most once.

    Attributes:
        method: The call, as the API names it.
        what: The thing that is asked for, such as `demo-1`.
        facts: What the journal keeps of it: the node's full name, and the request's.
        call: Makes the call.
        is_there: Whether it exists and is ours; raises when somebody else has the name.
    """

    method: str
    what: str
    facts: Mapping[str, str]
    call: Callable[[TpuGateway], Awaitable[CloudOperation]]
    is_there: Callable[[], Awaitable[bool]]


async def ask_once(course: Course, spec: RunSpec, asking: Asking) -> CloudOperation | None:
    """Call until it is accepted or refused; None when the thing is there already.

    Raises:
        ZoneRefusedError: This zone can't serve it; another one may.
        OutcomeUnknownError: The call was not answered and nothing has shown itself.
        TpudashError: The cloud refuses.
    """
    tools = course.tools
    pause = tools.pause()
    for _ in range(tools.pace.retries):
        try:
            operation = await asking.call(await tools.tpu())
        except OutcomeUnknownError as error:
            await _settled(course, asking, error)
            return None
        except TpudashError as error:
            if class_of(error) is ErrorClass.NAME_TAKEN:
                if await asking.is_there():
                    return None
            elif not _may_repeat(error):
                raise judged(error, spec) from error
            course.say(f"{error.title}; asking again")
            last = error
        else:
            course.intend(
                f"{asking.what} is being created", **asking.facts, cloud_operation=operation.name
            )
            return operation
        await pause.wait()
    raise last


async def _settled(course: Course, asking: Asking, error: OutcomeUnknownError) -> None:
    """Find out whether an unanswered call made its thing; never by calling again."""
    pause = course.tools.pause()
    course.say(f"{asking.method} was not answered; looking whether {asking.what} is there")
    while not await asking.is_there():
        if pause.waited_s > course.tools.pace.settle_s:
            raise OutcomeUnknownError(
                f"it is not known whether {asking.what} will be made",
                detail=f"{error.title}; the cloud lists no such thing {pause.waited_s:.0f} s later",
                hint="do the same again in a while: it is taken up if it is there",
                failure=error.failure,
            ) from error
        await pause.wait()


def _may_repeat(error: TpudashError) -> bool:
    """Whether a refused call may be made again: it surely made nothing."""
    if error.failure is not None and error.failure.retry is RetryPolicy.SAME_PLACE:
        return True
    return isinstance(error, UnreachableError) or is_passing(error)


def judged(error: TpudashError, spec: RunSpec) -> TpudashError:
    """Return a refusal at the call as one of its zone alone, where it is that."""
    failure = error.failure
    if failure is None or failure.retry is not RetryPolicy.NEXT_ZONE:
        return error
    return error if failure.error_class is ErrorClass.QUOTA else zone_refused(spec, failure)


def zone_refused(spec: RunSpec, failure: Failure) -> TpudashError:
    """Return why a zone could not provide: one of its own, or one that holds everywhere."""
    is_local = failure.retry is RetryPolicy.NEXT_ZONE
    kind = ZoneRefusedError if is_local else NotMadeError
    return kind(
        f"{spec.zone} could not provide {spec.accelerator_type}",
        detail=failure.evidence,
        hint=failure.advice,
        failure=failure,
    )


async def check_still_wanted(course: Course, files: RunFiles, spec: RunSpec) -> None:
    """See that nobody asked for the run's end while this was under way.

    Raises:
        RefusedError: Somebody did, on this machine or on another.
    """
    operations = course.tools.journal.operations()
    known = [one.operation_id for one in operations]
    later = known.index(course.operation_id) if course.operation_id in known else 0
    ended = any(
        one.kind is OperationKind.DELETE
        for one in operations[later:]
        if (one.run, one.project) == (spec.run, spec.project)
    )
    found = (await files.read(spec.run_url)).spec
    if found is not None and found.deleted is not None:
        begun = spec.attempt_started
        is_same = found.attempt >= spec.attempt
        ended = ended or (is_same if begun is None else found.deleted > begun)
    if ended:
        raise refused(f"run {spec.run} was deleted meanwhile; no node is made", ErrorClass.GONE)


def is_own(thing: Node | QueuedResource, spec: RunSpec) -> bool:
    """Whether a node or request was made for this very attempt: by its labels and its spec."""
    if any(thing.labels.get(key) != value for key, value in labels_of(spec).items()):
        return False
    try:
        found = decode_spec(thing.metadata.get(SPEC_METADATA_KEY, ""))
    except RecordError:
        return False
    return (found.run_url, found.created) == (spec.run_url, spec.created)


def name_taken(thing: Node | QueuedResource, course: Course) -> TpudashError:
    """Return the refusal to use what somebody made for another purpose."""
    if thing.create_time is None:
        return taken_error(thing, "at an unknown time")
    return taken_error(thing, f"{age_text(course.tools.clock.now() - thing.create_time)} ago")


def taken_error(thing: Node | QueuedResource, age: str) -> TpudashError:
    """Return the error that says whose a thing is that has the name we want."""
    owner = thing.owner or "somebody (it has no owner label)"
    return refused(
        f"the name {thing.name.rsplit('/', 1)[-1]} is taken in {thing.zone}",
        ErrorClass.NAME_TAKEN,
        detail=f"it belongs to {owner}, is {thing.state} and was made {age}",
        hint="choose another name",
    )


def is_ready(node: Node, spec: RunSpec) -> bool:
    """Whether a node has come up.

    Raises:
        OperationFailedError: It was taken away while it was made.
    """
    if node.is_dead:
        raise taken_away(spec, f"{node.node_id} is {node.state}")
    return node.state == NodeState.READY


def taken_away(spec: RunSpec, evidence: str) -> TpudashError:
    """Return that the cloud took a node back before it was of any use."""
    failure = Failure(
        ErrorClass.PREEMPTED_IN_CREATE,
        evidence,
        f"tpudash resume {spec.run} makes another one",
        RetryPolicy.NEVER,
    )
    return OperationFailedError(
        f"{spec.node_id} was taken away while it was made",
        detail=failure.evidence,
        hint=failure.advice,
        failure=failure,
    )


def went_away(spec: RunSpec) -> TpudashError:
    """Return that somebody deleted a node while it was made."""
    failure = Failure(
        ErrorClass.GONE,
        f"{spec.node_id} is not listed any more",
        f"tpudash resume {spec.run} makes another one",
        RetryPolicy.NEVER,
    )
    return NotFoundError(
        f"{spec.node_id} was deleted while it was made", hint=failure.advice, failure=failure
    )
