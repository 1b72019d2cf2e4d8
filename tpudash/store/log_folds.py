"""Which rows of a log are folded behind another one, decided as they arrive."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tpudash.logtext.dumps import DumpFinder, Fold, may_begin
from tpudash.store.log_lines import FoldInfo

if TYPE_CHECKING:
    from tpudash.store.log_lines import LogSource

SAME_WITHIN_MICROS: Final = 30_000_000
"""Workers that say the same within this time say it together."""
MOST_REMEMBERED: Final = 4_096
MOST_WORKERS: Final = 8_192


class _Said:
    """What one worker of a slice said last, and who else said it."""

    __slots__ = ("head", "micros", "others", "worker")

    def __init__(self, head: int, micros: int, worker: str) -> None:
        self.head = head
        self.micros = micros
        self.worker = worker
        self.others: set[str] | None = None

    def take(self, worker: str) -> int:
        """Note that another worker said it too; 0 if it had said so, else how many now did."""
        if self.others is None:
            self.others = set()
        if worker == self.worker or worker in self.others:
            return 0
        self.others.add(worker)
        return len(self.others) + 1


@dataclass(slots=True)
class _Group:
    """The workers of one attempt."""

    workers: set[str] = field(default_factory=set)
    said: dict[int, _Said] = field(default_factory=dict)


class LogFolds:
    """Finds dumps of one source, and lines that several workers of an attempt said alike.

    Attributes:
        infos: What stands behind a row, by its number; only of rows that have something.
    """

    def __init__(self) -> None:
        self.infos: dict[int, FoldInfo] = {}
        self._finders: dict[int, DumpFinder] = {}
        self._groups: dict[tuple[str, int | None], _Group] = {}
        self._group_of: list[_Group] = []

    def add_source(self, source: LogSource) -> None:
        """Hear of a new source; they come in the order of their numbers."""
        key = (source.run or source.node_id, source.attempt)
        group = self._groups.setdefault(key, _Group())
        if len(group.workers) < MOST_WORKERS:
            group.workers.add(source.worker_id)
        self._group_of.append(group)

    def take(self, number: int, micros: int, text: str, source: LogSource, start: int = 0) -> Fold:
        """Say what a row is; rows of one source have to come in their order.

        `start` is where the message begins, behind a time that would differ between workers.
        """
        finder = self._finders.get(source.number)
        if finder is not None or may_begin(text):
            fold = self._take_dump(finder, number, text, source)
            if fold is not Fold.NONE:
                return fold
        group = self._group_of[source.number]
        if len(group.workers) > 1:
            return self._take_same(group, number, micros, text[start:], source.worker_id)
        return Fold.NONE

    def forget(self, number: int) -> None:
        """Forget what stood behind a row that is gone."""
        self.infos.pop(number, None)

    def _take_dump(
        self, finder: DumpFinder | None, number: int, text: str, source: LogSource
    ) -> Fold:
        if "\n" in text:
            self._finders.pop(source.number, None)
            return Fold.NONE
        if finder is None:
            finder = self._finders[source.number] = DumpFinder()
        fold = finder.take(number, text)
        if fold is Fold.MEMBER and finder.dump is not None:
            info = self.infos.setdefault(finder.dump.head, FoldInfo())
            info.members, info.last = finder.dump.count, finder.dump.last
        elif fold is Fold.NONE:
            del self._finders[source.number]
        return fold

    def _take_same(self, group: _Group, number: int, micros: int, text: str, worker: str) -> Fold:
        key = hash(text)
        said = group.said.get(key)
        if said is not None and abs(micros - said.micros) <= SAME_WITHIN_MICROS:
            count = said.take(worker)
            if count:
                self.infos.setdefault(said.head, FoldInfo()).workers = count
                return Fold.SAME
        if said is not None:
            del group.said[key]
        elif len(group.said) >= MOST_REMEMBERED:
            newer = list(group.said.items())[MOST_REMEMBERED // 2 :]
            group.said = dict(newer)
        group.said[key] = _Said(number, micros, worker)
        return Fold.NONE
