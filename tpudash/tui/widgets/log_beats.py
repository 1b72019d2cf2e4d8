"""The heartbeat view: for each worker its last line, its last step, and since when it is silent."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpudash.store.log_record import time_of
from tpudash.tui.widgets.log_view_text import one_line
from tpudash.tui.widgets.span_view import Span, Spans, fit
from tpudash.wording.format import age
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from tpudash.store.log_pulses import Pulse

SILENT: Final = timedelta(minutes=2)
LONG_SILENT: Final = timedelta(minutes=10)
_NAME: Final = 18
_AGE: Final = 8
_STEP: Final = 10


def draw_beats(
    pulses: Iterable[Pulse],
    now: datetime,
    size: tuple[int, int],
    *,
    belongs: Callable[[Pulse], bool],
) -> Sequence[Spans]:
    """Return a row for each worker, the one that is silent for longest first.

    Args:
        pulses: What was heard of all workers.
        now: The time.
        size: Width and height in cells.
        belongs: Whether a worker is to be shown.
    """
    width, height = size
    found = sorted((one for one in pulses if belongs(one)), key=lambda one: one.last_micros)
    if not found:
        return [(Span("No worker was heard yet.", "muted"),)]
    rows: list[Spans] = [_head(width)]
    room = max(1, height - 1)
    shown = found if len(found) <= room else found[: room - 1]
    rows += [_row(one, now, width) for one in shown]
    if len(shown) < len(found):
        rows.append((Span(f"{len(found) - len(shown)} more workers, heard later", "muted"),))
    return rows


def _head(width: int) -> Spans:
    figures = (("SILENT", _AGE), ("STEP", _STEP), ("STEP AGE", _AGE), ("ERRORS", _AGE))
    cells = [fit("WORKER", _NAME), *(fit(name, room, right=True) for name, room in figures)]
    words = f"{' '.join(cells)}  LAST LINE"
    return (Span(fit(words, width), "muted"),)


def _row(pulse: Pulse, now: datetime, width: int) -> Spans:
    heard = time_of(pulse.last_micros)
    silence = now - heard
    place = f"{pulse.node_id}:{pulse.worker_id}" if pulse.worker_id else pulse.node_id
    name = safe_text(place or pulse.run or "-", 80)
    step = "-" if pulse.step is None else f"{pulse.step:,}"
    step_age = age(time_of(pulse.step_micros), now, step=5) if pulse.step_micros else "-"
    variable = "" if silence < SILENT else "warning" if silence < LONG_SILENT else "error"
    used = _NAME + 3 * _AGE + _STEP + 6
    return (
        Span(f"{fit(name, _NAME)} "),
        Span(fit(age(heard, now, step=5), _AGE, right=True), variable, bold=bool(variable)),
        Span(f" {fit(step, _STEP, right=True)} {fit(step_age, _AGE, right=True)} "),
        Span(fit(f"{pulse.errors:,}", _AGE, right=True), "error" if pulse.errors else "muted"),
        Span(f"  {fit(one_line(pulse.last_text), max(0, width - used))}", "muted"),
    )
