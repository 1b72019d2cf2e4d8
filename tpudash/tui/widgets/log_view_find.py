"""Looking for a line in one direction, in slices that can be put off, over any number of lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.store.log_lines import RANK_MASK, RANKS, event_of
from tpudash.tui.widgets.log_view_match import Matcher
from tpudash.tui.widgets.log_view_model import LogLines, Spot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tpudash.tui.widgets.log_view_filter import LogFilter
    from tpudash.tui.widgets.log_view_part import Part

_ERROR: Final = next(rank for severity, rank in RANKS.items() if severity == "ERROR")
LANDMARKS: Final = frozenset({"start", "restore", "checkpoint", "preempt", "finish", "error"})
RESTARTS: Final = frozenset({"start", "restore", "preempt"})
MARK_TESTS: Final[dict[str, Callable[[int], bool]]] = {
    "error": lambda mark: mark & RANK_MASK >= _ERROR,
    "step": lambda mark: event_of(mark) == "step",
    "checkpoint": lambda mark: event_of(mark) == "checkpoint",
    "restart": lambda mark: event_of(mark) in RESTARTS,
    "event": lambda mark: event_of(mark) in LANDMARKS,
    "line": lambda _: True,
}
"""What can be jumped to, by severity and kind of event alone."""


def find_mark(lines: LogLines, what: str, start: Spot, step: int) -> Iterator[Spot | None]:
    """Look for a shown row of some kind.

    Args:
        lines: Where to look.
        what: A key of `MARK_TESTS`.
        start: Where to begin; the row there is not looked at.
        step: 1 towards newer rows, -1 towards older ones.

    Yields:
        None after each block without such a row, and at last the place of the row, if any.
    """
    table = bytes(MARK_TESTS[what](mark) for mark in range(256))
    for part, after in _parts(lines, start, step):
        if not part.is_searched:
            lines.look(part)
        lines.source.load(part.block)
        fits = part.block.marks.tobytes().translate(table)
        shown = range(len(part)) if part.shown is None else part.shown
        place = _nearest([at for at in shown if fits[at]], after, step)
        index = lines.index_of(part)
        if place is not None and index is not None:
            yield Spot(index, part.index_at(place))
            return
        yield None


def find_text(lines: LogLines, search: LogFilter, start: Spot, step: int) -> Iterator[Spot | None]:
    """Look for a row that a search finds, among those that are shown or folded away.

    Args:
        lines: Where to look.
        search: What to look for.
        start: Where to begin; the row there is not looked at.
        step: 1 towards newer rows, -1 towards older ones.

    Yields:
        None after each block without such a row, and at last the place of the row, if any.
    """
    matcher = Matcher(lines.source, search)
    for part, after in _parts(lines, start, step):
        if matcher.needles and not lines.source.may_hold(part.block, matcher.needles):
            yield None
            continue
        lines.source.load(part.block)
        found = lines.allowed(part, matcher.rows(part.block))
        place = _nearest(found, after, step)
        index = lines.index_of(part)
        if place is not None and index is not None:
            yield lines.reveal(index, place)
            return
        yield None


def _parts(lines: LogLines, start: Spot, step: int) -> Iterator[tuple[Part, int | None]]:
    """Yield parts in the direction of travel; in the first one, only what is after a place counts.

    Parts that vanish meanwhile, because others may be looked at later, do no harm.
    """
    first = min(start.part, len(lines.parts) - 1)
    parts = lines.parts[first:] if step > 0 else lines.parts[first::-1]
    for count, part in enumerate(parts):
        after = None if count else _place_of(part, start.at)
        yield part, after


def _place_of(part: Part, at: int) -> int:
    """Return the place in the block of a shown row, or one beyond either end."""
    if at < 0:
        return -1
    return part.place(at) if at < len(part) else len(part.block)


def _nearest(found: Sequence[int], after: int | None, step: int) -> int | None:
    """Return the first of some ascending places in the direction of travel."""
    if after is None:
        return (found[0] if step > 0 else found[-1]) if found else None
    if step > 0:
        return next((at for at in found if at > after), None)
    return next((at for at in reversed(found) if at < after), None)
