"""The one line below a log view that says how it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from tpudash.logtext.entries import UNKNOWN_TIME
from tpudash.store.log_record import time_of
from tpudash.wording.format import age
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.store.log_ring import LogRing
    from tpudash.tui.pane import HostApp
    from tpudash.tui.widgets.log_causes import Cause
    from tpudash.tui.widgets.log_view import LogView


@dataclass(frozen=True, slots=True)
class LogStatus:
    """What is said of a view.

    Attributes:
        scope: Whose lines are shown.
        filter: The filter as it was typed.
        cause: The root of the newest failure, or None.
        source: What is said of where the lines come from.
    """

    scope: str
    filter: str
    cause: Cause | None
    source: tuple[str, ...]

    def text(self, view: LogView, host: HostApp) -> Text:
        """Return the line."""
        text = Text(" ")
        if view.following:
            text.append("following", host.style_of("state-ready"))
        else:
            text.append(
                f"standing still, {view.behind:,} newer below, "
                f"{host.hints.key('logs-follow')} follows",
                host.style_of("warning", bold=True),
            )
        for problem in (view.lines.filter.problem, view.search.problem):
            if problem:
                text.append(f"  {safe_text(problem, 80)}", host.style_of("error"))
        if self.cause is not None:
            text.append(f"  {_cause_words(self.cause)}", host.style_of("error", bold=True))
        for part in self._parts(view):
            text.append(f"  {part}", host.style_of("muted"))
        return text

    def _parts(self, view: LogView) -> list[str]:
        lines = view.lines
        least = "at least " if lines.is_partial else ""
        parts = [f"{self.scope}: {least}{lines.count:,} lines"]
        if lines.is_lost:
            parts.append("these lines are no longer held")
        if lines.is_searching or view.seeker.is_busy:
            parts.append("searching")
        if self.filter:
            parts.append(f"filter {safe_text(self.filter, 40)}")
        if lines.context:
            parts.append(f"with {lines.context} beside")
        if view.search.text:
            parts.append(f"search {safe_text(view.search.text, 40)} (n N)")
        if not lines.folding:
            parts.append("unfolded")
        if view.bookmarks:
            parts.append(f"{len(view.bookmarks)} bookmarks")
        if view.side:
            parts.append(f"from column {view.side}")
        return [*parts, *self.source]


def _cause_words(cause: Cause) -> str:
    worker = f" worker {safe_text(cause.worker_id, 10)}" if cause.worker_id else ""
    moment = time_of(cause.micros)
    time = "" if moment == UNKNOWN_TIME else f" {moment:%H:%M:%S}"
    return f"cause: {cause.error_class}{',' if worker or time else ''}{worker}{time} (!)"


def about_ring(ring: LogRing, now: datetime) -> list[str]:
    """Return what is to be said of the log of all nodes: how old, how late, how complete."""
    parts = []
    newest = ring.newest(1)
    if newest and newest[0].timestamp != UNKNOWN_TIME:
        parts.append(f"last {age(newest[0].timestamp, now, step=5)} ago")
    if ring.lag_s is not None and ring.lag_s >= 1:
        parts.append(f"lag {ring.lag_s:.0f}s")
    if ring.suppressed:
        parts.append(f"{ring.suppressed:,} left out by the source")
    if ring.evicted:
        parts.append(f"{ring.evicted:,} older ones forgotten")
    if ring.spool.problem:
        parts.append(f"kept in memory only: {safe_text(ring.spool.problem, 80)}")
    return parts
