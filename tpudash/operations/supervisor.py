"""The supervisor: resumes a run by the class of what went wrong, within its caps, until its end.

It only looks, and carries out resumes by the same plans as the user does. What it has done it knows
from the journal, so that it may be ended and begun again at any moment.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from tpudash.cost.cap import cap_of
from tpudash.domain.failure import ErrorClass, Failure, RetryPolicy
from tpudash.domain.operation import OperationState, ResumeChanges
from tpudash.domain.price import CostEstimate
from tpudash.domain.run import run_url_of
from tpudash.errors import (
    NotFoundError,
    OperationFailedError,
    TpudashError,
    UnreachableError,
)
from tpudash.operations.delete import plan_delete
from tpudash.operations.lease import BEAT, Lease, LostLeaseError
from tpudash.operations.reconcile import reconcile
from tpudash.operations.refusals import RefusedError, failure_for, leaves_doubt
from tpudash.operations.resume import plan_resume
from tpudash.operations.spending import Spending, spending_of
from tpudash.operations.supervise_policy import WAITING, Step, Verdict, decide

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from tpudash.cost.cap import CapState
    from tpudash.domain.operation import OperationProgress, Plan
    from tpudash.domain.run import Run
    from tpudash.domain.run_state import RunEvidence
    from tpudash.operations.course import Course
    from tpudash.operations.desk import Desk
    from tpudash.operations.payload import SupervisePayload

logger = logging.getLogger(__name__)

CAP_MARGIN_S: Final = 30.0
"""A node is not begun, and not left alone, for whose next half minute there is no money."""
UNKNOWN_SETTLES_S: Final = 300.0
"""How long an unanswered creation may take to show itself, before the same is asked for again."""


class Carrier(Protocol):
    """Carries out plans beside the supervisor, each an operation of its own in the journal."""

    async def carried_out(self, plan: Plan) -> OperationProgress:
        """Carry a plan out and return how it ended."""
        ...

    async def taken_up(self, operation_id: str) -> OperationProgress:
        """Take up what the journal holds and return how it ended."""
        ...


class SupervisionOverError(OperationFailedError):
    """The supervisor has stopped for good; nothing is in doubt."""


@dataclass(frozen=True, slots=True)
class _Look:
    run: Run
    evidence: RunEvidence
    spending: Spending


class Supervisor:
    """Supervises one run.

    Args:
        tries: How often it has tried before, by the journal.
    """

    def __init__(
        self, course: Course, desk: Desk, carrier: Carrier, payload: SupervisePayload, tries: int
    ) -> None:
        self._course = course
        self._desk = desk
        self._carrier = carrier
        self._payload = payload
        self._tries = tries
        self._lease = Lease(course, payload, desk.owner, tries)
        self._state = str(Step.WATCH)
        self._message = f"looking at {payload.run}"
        self._failures: dict[ErrorClass, int] = {}
        self._not_before = 0.0
        self._last: Failure | None = None
        self._is_first = tries == 0
        self._is_noted = False

    async def run(self) -> str:
        """Supervise until the run is over, and return how it ended.

        Raises:
            SupervisionOverError: It stopped for a reason of its own: a cap, a quota, a defect.
            TpudashError: The run can't be supervised from here.
        """
        try:
            await self._course.insist(self._lease.take, "take the supervision")
            message = await self._watch()
        except LostLeaseError as error:
            return f"supervision of {self._payload.run} ended: {error}"
        except SupervisionOverError as error:
            await self._release(str(Step.STOP), str(error))
            raise
        await self._release(str(Step.END), message)
        return message

    async def _release(self, state: str, message: str) -> None:
        try:
            await self._lease.release(state, message)
        except TpudashError as error:
            self._course.say(f"the end could not be written to the bucket: {error.title}")

    async def _watch(self) -> str:
        pause = self._course.tools.pause(self._course.tools.pace.watching)
        while True:
            before = self._message
            try:
                end = await self._round()
            except SupervisionOverError:
                raise
            except TpudashError as error:
                self._bear(error)
            else:
                if end is not None:
                    return end
            if self._message != before:
                pause.reset()
            await pause.wait()

    def _bear(self, error: TpudashError) -> None:
        """Go on asking where nothing is known; stop where asking is of no use.

        Raises:
            SupervisionOverError: What was refused will be refused again.
        """
        if isinstance(error, RefusedError) or leaves_doubt(error):
            words = f"nothing is done until there is an answer: {error}"
            self._tell("ASKING", words)
            return
        if isinstance(error, NotFoundError):
            self._tell("ASKING", f"{self._payload.run} is not to be found now: {error}")
            return
        raise self._over(f"supervision stopped: {error.title}", failure_for(error))

    async def _round(self) -> str | None:
        """Look once and do what there is to do; returns how it ended if it did."""
        look = await self._look()
        await self._lease.beat(self._state, self._message, self._tries, look.spending.usd)
        if look.spending.is_running and self._is_over(look, CAP_MARGIN_S):
            await self._end_by_cap(look)
            return None
        if await self._took_up(look):
            return None
        verdict = decide(
            look.run,
            look.evidence,
            self._course.tools.clock.now(),
            resume_stalled=self._payload.resume_stalled,
            is_first=self._is_first,
        )
        if verdict.step is Step.END:
            return f"supervision of {look.run.name} is over: {verdict.reason}"
        if verdict.step is Step.STOP:
            kind = verdict.error_class or ErrorClass.UNCLASSIFIED
            failure = Failure(kind, verdict.reason, self._how_on(), RetryPolicy.NEVER)
            raise self._over(f"{look.run.name} can't be resumed by itself", failure)
        if verdict.step is Step.RESUME:
            await self._resume(look, verdict)
        else:
            self._watched(look, verdict)
        return None

    async def _look(self) -> _Look:
        payload = self._payload
        bucket = payload.run_url.removesuffix(run_url_of("", payload.run))
        survey = await self._desk.survey(only=payload.run, buckets=(bucket,))
        reconcile(self._course.tools, survey, payload.run)
        for evidence in survey.of(payload.run):
            spec = evidence.spec
            if spec is None or (spec.run_url, spec.created) != (payload.run_url, payload.created):
                continue
            if evidence.records_unread:
                words = "; ".join(evidence.problems)
                raise UnreachableError("the run's records can't be read", detail=words)
            if not self._is_noted:
                # So that it is found again when no node and no request tells of it any more.
                self._course.tools.journal.note_spec(self._course.operation_id, spec)
                self._is_noted = True
            now = self._course.tools.clock.now()
            spending = spending_of(evidence, self._desk.rate, now)
            return _Look(self._desk.derive(survey, evidence), evidence, spending)
        raise NotFoundError(f"no run {payload.run} is left in {payload.run_url}")

    def _watched(self, look: _Look, verdict: Verdict) -> None:
        is_training = look.run.state == "TRAINING" and look.run.step is not None
        if is_training or look.run.state == "SERVING":
            self._failures.clear()
        words = verdict.reason
        if verdict.step is Step.ALARM:
            words = f"ALARM: {words}"
            if not self._payload.resume_stalled:
                words += f" Nothing is deleted without your word: tpudash resume {look.run.name}."
        self._tell(str(verdict.step), words)

    async def _took_up(self, look: _Look) -> bool:
        """Go on with a launch or resume that was begun here and is nobody's work any more."""
        spec = look.evidence.spec
        if spec is None or spec.deleted is not None:
            return False
        begun = self._desk.begun(self._payload.project, self._payload.run)
        if not begun:
            return False
        newest = begun[0]
        if newest.asked is not None and newest.unanswered is not None:
            waited = self._course.tools.clock.now() - newest.asked
            known = look.evidence.node is not None or look.evidence.request is not None
            is_ours = look.evidence.attempt >= _attempt_of(newest.unanswered)
            if not (known and is_ours) and waited.total_seconds() < UNKNOWN_SETTLES_S:
                self._tell("ASKING", f"it is not known whether {_short(newest.unanswered)} is made")
                return True
        if not self._is_due():
            return True
        self._tell("RESUMING", f"taking up: {newest.title}")
        self._judge(await self._meanwhile(self._carrier.taken_up(newest.operation_id)))
        return True

    async def _resume(self, look: _Look, verdict: Verdict) -> None:
        if not self._is_due():
            return
        payload = self._payload
        if self._tries >= payload.max_attempts:
            kind = self._last.error_class if self._last else verdict.error_class
            kind = kind or ErrorClass.PREEMPTED
            detail = self._last.evidence if self._last else verdict.reason
            failure = Failure(kind, detail, self._how_on(), RetryPolicy.NEVER)
            raise self._over(f"all {payload.max_attempts} tries are used up", failure)
        if self._is_over(look, CAP_MARGIN_S):
            raise self._over_money(look)
        cap = self._cap(look)
        changes = ResumeChanges(
            zones=payload.zones,
            max_cost_usd=cap.cap_usd if cap else None,
            queued=payload.queued,
            valid_until_s=payload.valid_until_s,
        )
        plan = await plan_resume(self._desk, payload.run, changes)
        if plan.confirm_word is not None and not payload.resume_stalled:
            # Something came to life since the look; nobody gave the word to delete it.
            self._watched(look, Verdict(Step.ALARM, "; ".join(plan.warnings)))
            return
        self._tries += 1
        words = f"{verdict.reason}; try {self._tries} of {payload.max_attempts}: {plan.title}"
        self._tell(str(Step.RESUME), words)
        # On the disk before anything is done, so that a restart never gives a try away.
        self._course.tools.journal.note(self._course.operation_id, words, tries=self._tries)
        await self._lease.beat(self._state, self._message, self._tries, look.spending.usd)
        self._is_first = False
        self._judge(await self._meanwhile(self._carrier.carried_out(plan)))

    async def _meanwhile(self, work: Coroutine[Any, Any, OperationProgress]) -> OperationProgress:
        """Return how a try ended, and show signs of life until then: it may queue for hours.

        Raises:
            LostLeaseError: The supervision was ended; the try goes on without it.
        """
        task = asyncio.create_task(work)
        try:
            while not task.done():
                timer = asyncio.create_task(self._course.tools.clock.sleep(BEAT.total_seconds()))
                await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
                timer.cancel()
                if not task.done():
                    await self._sign_of_life()
            return task.result()
        finally:
            task.cancel()

    async def _sign_of_life(self) -> None:
        spent = self._lease.record.spent_usd
        try:
            await self._lease.beat(self._state, self._message, self._tries, spent)
        except TpudashError as error:
            logger.info("no sign of life could be given: %s", error)

    def _judge(self, progress: OperationProgress) -> None:
        """Take in how a try ended.

        Raises:
            SupervisionOverError: Another one would end in the same way.
        """
        if progress.state is OperationState.DONE:
            self._not_before = 0.0
            self._tell(str(Step.WATCH), progress.message)
            return
        failure = progress.failure
        kind = failure.error_class if failure else ErrorClass.UNCLASSIFIED
        if progress.state in {OperationState.UNKNOWN, OperationState.INTERRUPTED}:
            self._wait(ErrorClass.UNKNOWN_OUTCOME, progress.message, "ASKING")
            return
        self._last = failure
        if kind not in WAITING:
            found = failure or Failure(kind, progress.message, "", RetryPolicy.NEVER)
            raise self._over(f"supervision stopped: {progress.message}", found)
        self._wait(kind, progress.message, "WAITING")

    def _wait(self, kind: ErrorClass, message: str, state: str) -> None:
        count = self._failures[kind] = self._failures.get(kind, 0) + 1
        waiting, tools = WAITING[kind], self._course.tools
        if waiting.most is not None and count > waiting.most:
            found = self._last or Failure(kind, message, "", RetryPolicy.NEVER)
            raise self._over(f"{count} times in a row: {message}", found)
        pause_s = waiting.pause_s(count, tools.random)
        self._not_before = tools.clock.monotonic() + pause_s
        detail = f": {self._last.evidence}" if self._last and state == "WAITING" else ""
        self._tell(state, f"{kind}: {message}{detail}; again in {pause_s:.0f} s")

    def _is_due(self) -> bool:
        return self._course.tools.clock.monotonic() >= self._not_before

    def _cap(self, look: _Look) -> CapState | None:
        cost = CostEstimate(look.spending.per_hour_usd, look.spending.usd)
        return cap_of(look.run, cost, self._payload.max_cost_usd)

    def _is_over(self, look: _Look, seconds: float) -> bool:
        cap = self._cap(look)
        return cap is not None and cap.is_reached_in(seconds)

    def _over_money(self, look: _Look) -> SupervisionOverError:
        cap = self._cap(look)
        spent, most = (cap.spent_usd or 0.0, cap.cap_usd) if cap else (0.0, 0.0)
        detail = f"about ${spent:,.2f} of ${most:,.2f} is spent (estimate)"
        failure = Failure(ErrorClass.UNCLASSIFIED, detail, self._how_on(), RetryPolicy.NEVER)
        return self._over(f"{look.run.name} has cost what it may", failure)

    async def _end_by_cap(self, look: _Look) -> None:
        """Delete the run's nodes, as the user confirmed with the cap.

        Raises:
            SupervisionOverError: They are gone.
        """
        self._tell("CAPPED", f"{look.run.name} has cost what it may; its nodes are deleted")
        plan = await plan_delete(replace(self._desk, owner=look.evidence.owner), (look.run.name,))
        progress = await self._carrier.carried_out(plan)
        if progress.state is not OperationState.DONE:
            self._tell("CAPPED", f"its nodes are not gone yet: {progress.message}")
            return
        raise self._over_money(look)

    def _how_on(self) -> str:
        name = self._payload.run
        return f"see what is wrong, then: tpudash resume {name}, or tpudash supervise {name}"

    def _over(self, title: str, failure: Failure) -> SupervisionOverError:
        hint = failure.advice or self._how_on()
        return SupervisionOverError(title, detail=failure.evidence, hint=hint, failure=failure)

    def _tell(self, state: str, message: str) -> None:
        self._state, self._message = state, message
        self._course.say(message, done=self._tries, phase=state)


def _short(name: str) -> str:
    return name.rsplit("/", 1)[-1]


def _attempt_of(node: str) -> int:
    number = node.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0
