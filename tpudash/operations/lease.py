"""The lease of a run's supervisor: `supervisor.json` in its folder, for everybody to see.

A lock of this machine keeps two supervisors of one user apart; this keeps machines apart. Whoever
finds another's token, or that the supervision was ended, stands back.
"""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import psutil

from tpudash.domain.failure import ErrorClass
from tpudash.domain.run import RecordError, Supervision, decode_record, encode_record
from tpudash.operations.journal import scrubbed
from tpudash.operations.refusals import RefusedError, refused

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.gateways.protocols import BucketGateway
    from tpudash.operations.course import Course
    from tpudash.operations.payload import SupervisePayload

FILE_NAME: Final = "supervisor.json"
BEAT: Final = timedelta(seconds=60)


class LostLeaseError(Exception):
    """Somebody ended the supervision, or supervises the run now; the text says who."""


def lease_url(run_url: str) -> str:
    """Return the URL of a run's `supervisor.json`."""
    return f"{run_url}/{FILE_NAME}"


async def read_lease(bucket: BucketGateway, run_url: str) -> Supervision | None:
    """Return who supervises a run, or did; None where nobody ever has or the file is damaged."""
    data = await bucket.read(lease_url(run_url))
    if data is None:
        return None
    try:
        return decode_record(Supervision, data)
    except RecordError:
        return None


def is_in_force(found: Supervision | None, token: str, now: datetime) -> bool:
    """Whether somebody else supervises the run."""
    if found is None or found.token == token or not found.is_alive(now):
        return False
    return found.host != socket.gethostname() or psutil.pid_exists(found.pid)


def supervised_already(found: Supervision) -> RefusedError:
    """Return the refusal to supervise what somebody else does."""
    return refused(
        f"{found.run} is supervised already",
        ErrorClass.NAME_TAKEN,
        detail=f"by {found.owner} on {found.host} (pid {found.pid}) since "
        f"{found.since:%Y-%m-%d %H:%M} UTC: {found.message}",
        hint=f"end that first: tpudash supervise {found.run} --off",
    )


class Lease:
    """This supervisor's hold on its run."""

    def __init__(self, course: Course, payload: SupervisePayload, owner: str, tries: int) -> None:
        now = course.tools.clock.now()
        self._course = course
        self._url = payload.run_url
        self._written: datetime | None = None
        self.record = Supervision(
            run=payload.run,
            owner=owner,
            host=socket.gethostname(),
            pid=os.getpid(),
            token=course.operation_id,
            since=now,
            updated=now,
            tries=tries,
            max_attempts=payload.max_attempts,
            max_cost_usd=payload.max_cost_usd,
        )

    async def take(self) -> None:
        """Take the lease.

        Raises:
            RefusedError: Somebody else supervises the run.
            TpudashError: The bucket can't be read or written.
        """
        found = await read_lease(await self._course.tools.bucket(), self._url)
        if found is not None and is_in_force(found, self.record.token, self._now()):
            raise supervised_already(found)
        if found is not None and found.token == self.record.token:
            self.record = replace(self.record, since=found.since)
            if found.ended is not None:
                raise LostLeaseError("it was switched off")
        await self._write()

    async def beat(self, state: str, message: str, tries: int, spent_usd: float | None) -> None:
        """See that the lease is still ours, and show what the supervisor does.

        Raises:
            LostLeaseError: It is not.
            TpudashError: The bucket can't be read or written.
        """
        found = await read_lease(await self._course.tools.bucket(), self._url)
        if found is not None and found.token != self.record.token:
            raise LostLeaseError(f"{found.owner} on {found.host} supervises the run now")
        if found is not None and found.ended is not None:
            raise LostLeaseError("it was switched off")
        told = scrubbed(message)
        changed = replace(
            self.record, state=state, message=told, tries=tries, spent_usd=self.record.spent_usd
        )
        is_due = self._written is None or self._now() - self._written >= BEAT
        if found is None or changed != self.record or is_due:
            self.record = replace(changed, spent_usd=spent_usd)
            await self._write()

    async def release(self, state: str, message: str) -> None:
        """Say that the supervision is over; raises `TpudashError` where that can't be written."""
        ended = self._now()
        self.record = replace(self.record, state=state, message=scrubbed(message), ended=ended)
        await self._write()

    async def _write(self) -> None:
        self.record = replace(self.record, updated=self._now())
        data = encode_record(self.record)

        async def write() -> bool:
            return await (await self._course.tools.bucket()).write(lease_url(self._url), data)

        await self._course.insist(write, f"write {lease_url(self._url)}")
        self._written = self._now()

    def _now(self) -> datetime:
        return self._course.tools.clock.now()
