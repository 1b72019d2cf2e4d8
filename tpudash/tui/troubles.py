"""Which sources of facts are in trouble now, and what to say of it in one line."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from tpudash.store.snapshot import SourceState
from tpudash.wording import format as fmt

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.store.snapshot import Snapshot, SourceStatus

OLD_AFTER_INTERVALS: Final = 3
OLD_AFTER_LEAST_S: Final = 30
MOST_NAMES: Final = 2
STALE: Final = "stale"


class Trouble(NamedTuple):
    """Sources that have the same trouble.

    Attributes:
        names: The sources.
        word: `failing`, `throttled` or `stale`.
        title: What is wrong; from outside.
        hint: What to do about it, or "".
        last_success: When the first of them last answered, or None.
    """

    names: tuple[str, ...]
    word: str
    title: str
    hint: str
    last_success: datetime | None

    @property
    def who(self) -> str:
        """The sources in words, few enough for one line."""
        more = len(self.names) - MOST_NAMES
        named = ", ".join(self.names[:MOST_NAMES])
        return f"{named} +{more}" if more > 0 else named

    def since(self, now: datetime) -> str:
        """Return when the sources last answered, in words."""
        if self.last_success is None:
            return "no answer yet"
        return f"last answer {fmt.age(self.last_success, now, step=5)} ago"


def is_old_status(status: SourceStatus, now: datetime) -> bool:
    """Whether a source's facts are older than they should ever be."""
    age = status.age(now)
    limit = max(OLD_AFTER_LEAST_S, OLD_AFTER_INTERVALS * status.interval_s)
    return age is not None and age > timedelta(seconds=limit)


def troubles(snapshot: Snapshot, now: datetime) -> list[Trouble]:
    """Return all troubles: what fails first, then what is throttled, then what is stale."""
    found: dict[tuple[str, str, str], list[SourceStatus]] = {}
    for status in snapshot.sources.values():
        word = _word(status, now)
        if word:
            title = "" if word == STALE else status.title
            found.setdefault((word, title, status.hint), []).append(status)
    order = (SourceState.FAILING, SourceState.THROTTLED, STALE)
    return [
        Trouble(tuple(one.name for one in some), *key, some[0].last_success)
        for key, some in sorted(found.items(), key=lambda item: order.index(item[0][0]))
    ]


def _word(status: SourceStatus, now: datetime) -> str:
    if status.state in {SourceState.FAILING, SourceState.THROTTLED}:
        return str(status.state)
    is_stale = status.state is SourceState.OK and is_old_status(status, now)
    return STALE if is_stale else ""
