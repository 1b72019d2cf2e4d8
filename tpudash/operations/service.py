"""The operations room's front: plans, and operations carried out in the background and followed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tpudash.domain.failure import ErrorClass, Failure, RetryPolicy
from tpudash.domain.operation import (
    LaunchChoices,
    OperationKind,
    OperationProgress,
    OperationState,
    Plan,
)
from tpudash.errors import NotFoundError, OperationFailedError, TpudashError
from tpudash.operations import delete, launch, resume, supervise
from tpudash.operations.awaiting import first_step
from tpudash.operations.course import Course, Tools
from tpudash.operations.desk import Desk
from tpudash.operations.journal import JournalledOperation
from tpudash.operations.options import OperationsOptions
from tpudash.operations.owner import default_owner
from tpudash.operations.payload import (
    LaunchPayload,
    Payload,
    ResumePayload,
    StandDownPayload,
    SupervisePayload,
)
from tpudash.operations.progress import lock_of, progress_of, project_of, replaces, steps_of
from tpudash.operations.reconcile import reconcile
from tpudash.operations.refusals import failure_for, leaves_doubt
from tpudash.operations.supervisor import SupervisionOverError, Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tpudash.domain.operation import LaunchRequest, ResumeChanges, SupervisionWish
    from tpudash.operations.bundle import TrainerBundle
    from tpudash.operations.course import Connecting
    from tpudash.operations.desk import Rate
    from tpudash.operations.journal import Journal

    Report = Callable[[OperationProgress], None]

__all__ = ["Operations", "OperationsOptions"]
logger = logging.getLogger(__name__)

FORMER_END: Final = "another operation took its place"
_MAKING: Final = frozenset({OperationKind.LAUNCH, OperationKind.RESUME})
_RUN_KINDS: Final = (LaunchPayload, ResumePayload)


class Operations:
    """Launch, resume, delete and supervise (`tpudash.domain.operation.OperationsPort`).

    Each operation that was started is a task of this object. Cancelling it ends our following and
    never the cloud's work: the journal keeps the operation, and `follow` takes it up again.

    Args:
        connection: Gives the gateways.
        rate: US dollars an hour of a type in a zone, or None where the price is not known.
        report: Told whenever an operation moves on; must not block.
        owner: Label value of whoever is acting; None takes the login name.
        options: Where to look, and what tests replace.
    """

    def __init__(
        self,
        connection: Connecting,
        journal: Journal,
        *,
        rate: Rate,
        report: Report,
        owner: str | None = None,
        options: OperationsOptions | None = None,
    ) -> None:
        options = options or OperationsOptions()
        self._journal = journal
        self._report = report
        self._clock = options.clock
        self._random = options.random
        self._bundle: TrainerBundle | None = None
        self._make_bundle = options.make_bundle
        self._progress: dict[str, OperationProgress] = {}
        self._payloads: dict[str, Payload] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._tools = Tools(
            connection=connection,
            journal=journal,
            clock=options.clock,
            random=options.random,
            classify=options.classify,
            bundle=self._made_bundle,
            pace=options.pace,
        )
        self._desk = Desk(self._tools, owner or default_owner(), rate, tuple(options.buckets))

    async def launch_choices(self, zone: str) -> LaunchChoices:
        """List the accelerator types and runtime versions that a zone offers."""
        tpu = await self._tools.tpu()
        types, runtimes = await asyncio.gather(
            tpu.list_accelerator_types(zone), tpu.list_runtime_versions(zone)
        )
        return LaunchChoices(zone, types, runtimes)

    async def plan_launch(self, request: LaunchRequest) -> Plan:
        """Check the request against the cloud and return the plan; changes nothing."""
        return await launch.plan_launch(self._desk, request)

    async def plan_resume(self, run: str, changes: ResumeChanges | None = None) -> Plan:
        """Return the plan to continue a run on a new node; changes nothing."""
        return await resume.plan_resume(self._desk, run, changes)

    async def plan_delete(self, targets: Sequence[str]) -> Plan:
        """Return the plan to delete runs (by name) or nodes (by full name); changes nothing."""
        return await delete.plan_delete(self._desk, targets)

    async def plan_supervise(self, run: str, wish: SupervisionWish) -> Plan:
        """Return the plan to have a run resumed by itself; changes nothing."""
        return await supervise.plan_supervise(self._desk, run, wish)

    async def plan_stand_down(self, run: str) -> Plan:
        """Return the plan to end the supervision of a run; changes nothing."""
        return await supervise.plan_stand_down(self._desk, run)

    def start(self, plan: Plan) -> OperationProgress:
        """Carry out a confirmed plan in the background.

        Raises:
            ConfigurationError: The journal can't be written, so nothing may be done.
            RefusedError: An operation on the same run is going on.
        """
        payload = plan.payload
        if not isinstance(payload, Payload):
            msg = "this plan was not made here"
            raise TypeError(msg)
        self._journal.prepare()
        now = self._clock.now()
        former: str | None = getattr(payload, "operation_id", None)
        operation = JournalledOperation(
            operation_id=former or self._new_id(plan),
            kind=plan.kind,
            project=project_of(payload),
            run=plan.run,
            title=plan.title,
            started=now,
            updated=now,
            nodes=plan.nodes,
            payload=payload,
        )
        return self._begin(operation, is_new=former is None)

    def unfinished(self) -> tuple[JournalledOperation, ...]:
        """Return what was begun on this machine and has not ended, here or in other sessions."""
        return self._journal.unfinished()

    async def reconcile(self) -> None:
        """End in the journal what has come to its end since; asks only when there is something.

        Raises:
            TpudashError: What there is could not be listed.
        """
        if self._journal.unfinished():
            reconcile(self._tools, await self._desk.survey())

    def left_behind(self, project: str) -> tuple[OperationProgress, ...]:
        """Return what was begun on this machine, has not ended, and is not followed here."""
        found = []
        for one in self._journal.unfinished(project):
            if one.operation_id in self._progress:
                continue
            lock = lock_of(one)
            is_held = lock is not None and self._journal.is_held(lock)
            state = OperationState.RUNNING if is_held else OperationState.INTERRUPTED
            found.append(replace(progress_of(one), state=state))
        return tuple(found)

    def follow(self, operation_id: str) -> OperationProgress:
        """Take up an operation of the journal, here or left behind by another session.

        Raises:
            NotFoundError: The journal does not know it.
            RefusedError: Another process is working on its run.
        """
        if operation_id in self._progress:
            return self._progress[operation_id]
        operation = self._journal.find(operation_id)
        if operation is None:
            raise NotFoundError(
                f"there is no operation {operation_id!r}", hint=f"see {self._journal.path}"
            )
        if operation.is_finished:
            return progress_of(operation)
        if operation.payload is None:
            raise OperationFailedError(
                f"operation {operation_id} was begun by another version of tpudash",
                hint="see what became of it: tpudash runs, tpudash nodes",
            )
        return self._begin(operation, is_new=False)

    async def wait(self, operation_id: str) -> OperationProgress:
        """Return how an operation ended; after a launch or resume, once the run shows a step.

        Cancelling this leaves the operation running.

        Raises:
            NotFoundError: The operation was never started or followed here.
            TpudashError: What became of the run could not be found out.
        """
        task = self._tasks.get(operation_id)
        if task is None:
            raise NotFoundError(f"operation {operation_id!r} is not followed here")
        await asyncio.wait({task})
        progress = self._progress[operation_id]
        payload = self._payloads[operation_id]
        if progress.state != OperationState.DONE or not isinstance(payload, _RUN_KINDS):
            return progress

        def tell(message: str) -> None:
            waiting = replace(progress, state=OperationState.RUNNING, message=message)
            self._report(replace(waiting, updated=self._clock.now()))

        message, failure = await first_step(self._desk, payload.spec, tell)
        state = OperationState.DONE if failure is None else OperationState.FAILED
        self._move(operation_id, message=message, state=state, failure=failure)
        return self._progress[operation_id]

    async def carried_out(self, plan: Plan) -> OperationProgress:
        """Carry a plan out and return how it ended; what a supervisor does with its plans."""
        return await self._ended(self.start(plan))

    async def taken_up(self, operation_id: str) -> OperationProgress:
        """Take up an operation and return how it ended, even one that had ended in doubt here."""
        task = self._tasks.get(operation_id)
        if task is not None and task.done():
            del self._tasks[operation_id], self._progress[operation_id]
        return await self._ended(self.follow(operation_id))

    async def _ended(self, begun: OperationProgress) -> OperationProgress:
        task = self._tasks.get(begun.operation_id)
        if task is None:
            return begun
        await asyncio.wait({task})
        return self._progress[begun.operation_id]

    async def aclose(self) -> None:
        """Stop following. What the cloud was asked for goes on, and the journal knows of it."""
        tasks = {known: task for known, task in self._tasks.items() if not task.done()}
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        for known, task in tasks.items():
            if task.cancelled():
                self._move(
                    known,
                    state=OperationState.INTERRUPTED,
                    message="no longer followed here; the cloud goes on with it",
                )

    def _begin(self, operation: JournalledOperation, *, is_new: bool) -> OperationProgress:
        payload = operation.payload
        assert payload is not None  # noqa: S101  every caller saw to it
        holding = contextlib.ExitStack()
        lock = lock_of(operation)
        if lock is not None and operation.kind in {*_MAKING, OperationKind.SUPERVISE}:
            holding.enter_context(self._journal.held(lock))
        try:
            if is_new:
                self._journal.begin(operation)
            self._end_former(operation)
        except BaseException:
            holding.close()
            raise
        known = operation.operation_id
        self._payloads[known] = payload
        self._progress[known] = replace(
            progress_of(operation), updated=self._clock.now(), steps_total=steps_of(payload)
        )
        self._tasks[known] = asyncio.create_task(self._carry_out(known, payload), name=known)
        self._tasks[known].add_done_callback(lambda _: holding.close())
        self._report(self._progress[known])
        return self._progress[known]

    def _end_former(self, operation: JournalledOperation) -> None:
        """Close what was begun before on the same run and is nobody's work any more."""
        kind = operation.kind
        for one in self._journal.unfinished(operation.project):
            if one.run is None or one.run != operation.run or one is operation:
                continue
            if one.operation_id == operation.operation_id or not replaces(kind, one.kind):
                continue
            lock = lock_of(one)
            is_ours = kind in {*_MAKING, OperationKind.SUPERVISE}
            # Whoever works on it sees a deletion, or that it was switched off, by itself.
            if is_ours or lock is None or not self._journal.is_held(lock):
                self._journal.end(one.operation_id, OperationState.FAILED, FORMER_END)

    async def _carry_out(self, operation_id: str, payload: Payload) -> None:
        """Do it, whatever happens; the edge at which an operation's faults end."""

        def tell(message: str, done: int | None, phase: str) -> None:
            self._move(operation_id, message=message, done=done, phase=phase)

        course = Course(operation_id, self._tools, tell)
        try:
            message = await self._applied(course, payload)
        except TpudashError as error:
            self._fail(operation_id, error)
        except Exception as error:
            logger.exception("operation %s met a defect", operation_id)
            failure = Failure(ErrorClass.UNCLASSIFIED, repr(error), "", RetryPolicy.NEVER)
            text = "tpudash met a defect; see its log, and `tpudash nodes` for what there is"
            self._move(operation_id, state=OperationState.UNKNOWN, message=text, failure=failure)
        else:
            # Where that fails, whoever reads the journal next finds nothing left to do.
            self._journal.tried_to_end(operation_id, OperationState.DONE, message)
            known = self._progress[operation_id]
            # What a supervisor counts are its tries, which need not be used up.
            is_counted = isinstance(payload, SupervisePayload)
            done = known.steps_done if is_counted else known.steps_total
            self._move(operation_id, state=OperationState.DONE, message=message, done=done)

    async def _applied(self, course: Course, payload: Payload) -> str:
        if isinstance(payload, LaunchPayload):
            return await launch.apply_launch(course, payload)
        if isinstance(payload, ResumePayload):
            return await resume.apply_resume(course, payload)
        if isinstance(payload, SupervisePayload):
            known = self._journal.find(course.operation_id)
            tries = known.tries if known is not None else 0
            return await Supervisor(course, self._desk, self, payload, tries).run()
        if isinstance(payload, StandDownPayload):
            return await supervise.apply_stand_down(course, payload)
        return await delete.apply_delete(course, payload)

    def _fail(self, operation_id: str, error: TpudashError) -> None:
        failure = failure_for(error)
        if error.hint and error.hint != failure.advice:
            failure = replace(failure, advice=error.hint)
        if error.detail and error.detail != failure.evidence:
            failure = replace(failure, evidence=error.detail)
        state = OperationState.FAILED
        is_open = leaves_doubt(error) and not isinstance(error, SupervisionOverError)
        if is_open or not self._journal.tried_to_end(operation_id, state, str(error)):
            # Not ended in the journal: it is taken up again when somebody follows it.
            state = OperationState.UNKNOWN
        self._move(operation_id, state=state, message=error.title, failure=failure)

    def _move(
        self,
        operation_id: str,
        *,
        message: str,
        state: OperationState = OperationState.RUNNING,
        done: int | None = None,
        failure: Failure | None = None,
        phase: str = "",
    ) -> None:
        known = self._progress[operation_id]
        self._progress[operation_id] = replace(
            known,
            message=message,
            state=state,
            phase=phase,
            updated=self._clock.now(),
            steps_done=known.steps_done if done is None else max(done, known.steps_done),
            failure=failure,
        )
        self._report(self._progress[operation_id])

    def _new_id(self, plan: Plan) -> str:
        moment = self._clock.now().strftime("%Y%m%dT%H%M%S")
        return f"{plan.kind}-{plan.run or 'nodes'}-{moment}-{self._random.randrange(16**4):04x}"

    async def _made_bundle(self) -> TrainerBundle:
        if self._bundle is None:
            self._bundle = await asyncio.to_thread(self._make_bundle)
        return self._bundle
