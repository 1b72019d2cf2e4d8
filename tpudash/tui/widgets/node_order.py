"""Which rows of the nodes pane are shown, and in what order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from tpudash.cost.prices import PriceBook
    from tpudash.tui.widgets.node_rows import Group, RowFacts

# The order of a day's work: what needs a hand first, what is over last.
_STATE_ORDER: Final = (
    *("FAILED", "PREEMPTED", "STALLED", "TERMINATED", "REPAIRING", "UNKNOWN", "TRAINING"),
    "SERVING",
    *("READY", "RESUMING", "LAUNCHING", "CREATING", "PROVISIONING", "WAITING_FOR_RESOURCES"),
    *("WAITING", "ACCEPTED", "ACTIVE", "DELETING", "SUSPENDED", "FINISHED", "DELETED", "GONE"),
)
_FIELDS: Final[dict[str, Callable[[RowFacts], str]]] = {
    "name": lambda facts: facts.name,
    "state": lambda facts: f"{facts.state} {facts.health}",
    "health": lambda facts: facts.health,
    "type": lambda facts: facts.accelerator_type,
    "zone": lambda facts: facts.zone,
    "project": lambda facts: facts.project,
    "owner": lambda facts: facts.owner,
    "run": lambda facts: facts.subject.run or "",
    "scheduling": lambda facts: facts.scheduling,
}


@dataclass(frozen=True, slots=True)
class _Term:
    text: str
    field: str
    is_inverse: bool

    def admits(self, facts: RowFacts) -> bool:
        if self.field:
            found = self.text in _FIELDS[self.field](facts).casefold()
        else:
            found = self.text in facts.words.casefold()
        return found != self.is_inverse


def parse_filter(text: str) -> tuple[_Term, ...]:
    """Read a filter: words that must all match, `!word` must not, `field:word` in one field."""
    terms = []
    for part in text.casefold().split():
        is_inverse, word = part.startswith("!"), part.removeprefix("!")
        field, colon, rest = word.partition(":")
        if colon and field in _FIELDS:
            terms.append(_Term(rest, field, is_inverse))
        elif word:
            terms.append(_Term(word, "", is_inverse))
    return tuple(terms)


def filtered(groups: Iterable[Group], text: str) -> list[tuple[RowFacts, tuple[RowFacts, ...]]]:
    """Return what matches: a matching head keeps its children, a matching child its head."""
    terms = parse_filter(text)
    kept = []
    for group in groups:
        if all(term.admits(group.head) for term in terms):
            kept.append((group.head, group.children))
            continue
        children = tuple(
            child for child in group.children if all(term.admits(child) for term in terms)
        )
        if children:
            kept.append((group.head, children))
    return kept


def ordered(
    groups: list[tuple[RowFacts, tuple[RowFacts, ...]]],
    column: str,
    book: PriceBook,
    now: datetime,
) -> list[RowFacts]:
    """Return the rows in order of a column of the groups' heads; children stay below them."""
    keyed = sorted(groups, key=lambda group: _sort_key(group[0], column, book, now))
    return [facts for head, children in keyed for facts in (head, *children)]


def _sort_key(facts: RowFacts, column: str, book: PriceBook, now: datetime) -> tuple[Any, ...]:
    """Return what to compare; the largest numbers come first, and what is unknown last."""
    name = (facts.name, facts.key)
    if column == "state":
        known = facts.state in _STATE_ORDER
        place = _STATE_ORDER.index(facts.state) if known else len(_STATE_ORDER)
        return (place, facts.state, *name)
    if column == "type":
        return (not facts.accelerator_type, facts.accelerator_type, *name)
    if column == "name":
        return name
    value = _number(facts, column, book, now)
    return (value is None, -(value or 0.0), *name)


def _number(facts: RowFacts, column: str, book: PriceBook, now: datetime) -> float | None:
    if column == "age":
        return None if facts.since is None else (now - facts.since).total_seconds()
    if column == "step":
        return facts.step
    cost = facts.cost(book, now)
    return cost.per_hour_usd if column == "rate" else cost.accrued_usd
