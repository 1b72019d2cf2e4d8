"""Steps of a run over all its attempts: how far it is, what is saved, what had to be done again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tpudash.domain.run import AttemptRecord, RunSpec


def step_of(attempts: Sequence[AttemptRecord]) -> int | None:
    """Return the newest step seen: of the newest attempt that tells one."""
    return _newest(_reached(record) for record in reversed(attempts))


def checkpoint_of(attempts: Sequence[AttemptRecord]) -> int | None:
    """Return the step of the newest checkpoint that a later attempt can begin from."""
    return _newest(
        record.restored_step or None if record.checkpoint_step is None else record.checkpoint_step
        for record in reversed(attempts)
    )


def target_of(spec: RunSpec | None, attempts: Sequence[AttemptRecord]) -> int | None:
    """Return the step that the run is to reach, or None where nobody has told yet."""
    told = _newest(record.target_step for record in reversed(attempts))
    return told if told is not None else spec.target_step if spec else None


def steps_lost(attempts: Sequence[AttemptRecord]) -> int | None:
    """Return how many steps had to be done again, over all attempts.

    An attempt that tells its own figure is believed; else it is what the lives before had reached
    less what it began from. None when no attempt that followed another has told anything yet.
    """
    if not attempts:
        return None
    known = [record.steps_lost for record in attempts[:1] if record.steps_lost is not None]
    for at, record in enumerate(attempts[1:], start=1):
        before = step_of(attempts[:at])
        if record.steps_lost is not None:
            known.append(max(0, record.steps_lost))
        elif before is not None and record.restored_step is not None:
            known.append(max(0, before - record.restored_step))
    if len(attempts) > 1 and not known:
        return None
    return sum(known)


def restart_alarm(attempts: Sequence[AttemptRecord]) -> str | None:
    """Return a sentence if an attempt began at step 0 although checkpoints existed before it."""
    saved: AttemptRecord | None = None
    alarm = None
    for record in attempts:
        if record.restored_step == 0 and saved is not None:
            alarm = (
                f"ALARM: attempt {record.attempt} began again at step 0 although attempt "
                f"{saved.attempt} had saved step {saved.checkpoint_step}; look into quarantine/."
            )
        if record.checkpoint_step:
            saved = record
    return alarm


def _reached(record: AttemptRecord) -> int | None:
    return record.restored_step if record.step is None else record.step


def _newest(values: Iterable[int | None]) -> int | None:
    return next((value for value in values if value is not None), None)
