"""Waits until a run that was launched or resumed shows its first step, or can't."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.domain.failure import ErrorClass, Failure, RetryPolicy
from tpudash.domain.run import RunState
from tpudash.errors import TpudashError
from tpudash.operations.refusals import is_passing

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.domain.run import Run, RunSpec
    from tpudash.operations.desk import Desk

_ENDINGS: Final = {
    RunState.FAILED: ErrorClass.UNCLASSIFIED,
    RunState.PREEMPTED: ErrorClass.PREEMPTED,
    RunState.STALLED: ErrorClass.STALLED,
    RunState.DELETED: ErrorClass.GONE,
}


async def first_step(
    desk: Desk, spec: RunSpec, tell: Callable[[str], None]
) -> tuple[str, Failure | None]:
    """Return in a sentence where the run got, and why it can't go on if it can't.

    Args:
        desk: Where the run is looked at.
        spec: The attempt that is waited for; a later one is as good.
        tell: Shows what is waited for.

    Raises:
        TpudashError: The cloud refuses to tell, or is silent for very long.
    """
    pause = desk.tools.pause()
    while True:
        try:
            run = await _look(desk, spec)
        except TpudashError as error:
            if not is_passing(error) or pause.waited_s > desk.tools.pace.give_up_s:
                raise
            tell(f"no answer about {spec.run} ({error.title}); asking again")
        else:
            if run is not None:
                pause_over = _judge(run)
                if pause_over is not None:
                    return pause_over
                tell(run.reason)
        await pause.wait()


async def _look(desk: Desk, spec: RunSpec) -> Run | None:
    survey = await desk.survey(only=spec.run, buckets=(spec.bucket,))
    for evidence in survey.of(spec.run):
        found = evidence.spec
        if found is not None and found.created == spec.created and found.attempt >= spec.attempt:
            return desk.derive(survey, evidence)
    return None


def _judge(run: Run) -> tuple[str, Failure | None] | None:
    """Return the end of waiting, or None while there is something to wait for."""
    if run.state is RunState.SERVING:
        return f"{run.name} serves", None
    if run.state is RunState.TRAINING and run.step is not None:
        return f"{run.name} trains at step {run.step}", None
    if run.state is RunState.FINISHED:
        return f"{run.name} is finished: {run.reason}", None
    kind = _ENDINGS.get(run.state)
    if kind is None:
        return None
    told = (run.attempts[-1].error or {}).get("class") if run.attempts else None
    if run.state is RunState.FAILED and told in set(ErrorClass):
        kind = ErrorClass(str(told))
    return f"{run.name} is {run.state}", Failure(kind, run.reason, "", RetryPolicy.NEVER)
