"""Whether the ways of asking for a node go together: queue, tier, reservation, labels, tags."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tpudash.domain.node import Scheduling
from tpudash.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tpudash.domain.operation import LaunchRequest

OWN_LABELS: Final = "tpudash-"
_LABEL_KEY: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE: Final = re.compile(r"[a-z0-9_-]{0,63}")
_EMAIL: Final = re.compile(r"[^\s@/]+@[^\s@/]+\.[a-z]{2,}")
_TAG: Final = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
"""Source: https://cloud.google.com/compute/docs/labeling-resources#requirements"""


def check_placement(request: LaunchRequest) -> None:
    """See that the ways of asking for a node go together.

    Raises:
        UsageError: They don't, or a label or tag can't be one.
    """
    wanted = request.placement
    if wanted.queued and request.scheduling is Scheduling.PREEMPTIBLE:
        raise UsageError(
            "a queued resource can't be preemptible", hint="use --spot, or no --queued"
        )
    needs_queue = {
        "a reservation": wanted.reservation,
        "the guaranteed tier": wanted.guaranteed,
        "how long it may wait": wanted.valid_until_s,
    }
    for what, value in needs_queue.items():
        if value and not wanted.queued:
            raise UsageError(f"only a queued resource can have {what}", hint="add --queued")
    if wanted.guaranteed and request.scheduling is Scheduling.SPOT:
        raise UsageError("spot capacity is never guaranteed", hint="use --on-demand --guaranteed")
    if wanted.reservation and request.scheduling is not Scheduling.RESERVED:
        raise UsageError("a reservation is for reserved capacity", hint="add --reserved")
    _check_labels(wanted.labels)
    account = wanted.service_account
    if account is not None and not _EMAIL.fullmatch(account):
        raise UsageError(
            f"{account!r} can't be the e-mail of a service account",
            hint="such as trainer@my-project.iam.gserviceaccount.com",
        )
    for tag in wanted.tags:
        if not _TAG.fullmatch(tag):
            raise UsageError(f"{tag!r} can't be a network tag", hint="such as allow-ssh")


def _check_labels(labels: Mapping[str, str]) -> None:
    for key, value in labels.items():
        if key.startswith(OWN_LABELS):
            raise UsageError(f"the label {key} is tpudash's own", hint="choose another key")
        if not (_LABEL_KEY.fullmatch(key) and _LABEL_VALUE.fullmatch(value)):
            raise UsageError(
                f"{key}={value} can't be a label",
                detail="lower-case letters, digits, _ and -, at most 63; a letter begins a key",
                hint="such as team=vision",
            )
