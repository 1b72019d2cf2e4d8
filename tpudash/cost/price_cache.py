"""The prices that the catalogue last gave, kept with their day, and what changed since the last.

The file may be deleted at any time: then the bundled table stands in until the catalogue is read.
"""

from __future__ import annotations

import logging
import math
import os
import tempfile
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

# msgspec resolves these annotations when it decodes, so they must exist at run time.
from tpudash.domain.node import Scheduling  # noqa: TC001
from tpudash.domain.price import Price

if TYPE_CHECKING:
    from collections.abc import Iterable

logger = logging.getLogger(__name__)

SCHEMA: Final = 1
JUMP: Final = 0.2
"""A change by more than this share between two reads is flagged."""
JUMP_SHOWN: Final = timedelta(days=7)
KEPT: Final = timedelta(days=400)
MOST_PAST: Final = 100
"""Changes of one price that are kept, so that what was READY then is charged at its price."""
LARGEST_FILE: Final = 8 * 2**20

Row = tuple[str, str, Price]
"""(generation, variant, price), as the billing gateway returns them."""


@dataclass(frozen=True, kw_only=True)
class _Entry:
    generation: str
    variant: str
    region: str
    scheduling: Scheduling
    per_chip_hour_usd: float
    source: str
    as_of: date | None = None
    before_usd: float | None = None
    changed: datetime | None = None
    past: tuple[tuple[datetime, float], ...] = ()


@dataclass(frozen=True, kw_only=True)
class _File:
    read: datetime
    prices: tuple[_Entry, ...]
    schema: int = SCHEMA


class PriceCache:
    """The last reading of the price catalogue, in one file that is replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> tuple[Row, ...]:
        """Return the prices of the last reading; none where there is no usable file."""
        kept = self._read()
        if kept is None:
            return ()
        return tuple(_row(entry, kept.read) for entry in kept.prices)

    def take(self, prices: Iterable[Row], now: datetime) -> tuple[Row, ...]:
        """Keep a new reading, and return it with what it was before where it jumped.

        A reading without any price is no reason to forget those that are known.
        """
        before = self._read()
        rows = tuple(prices)
        if not rows:
            return () if before is None else tuple(_row(one, before.read) for one in before.prices)
        known = {_key_of(entry): entry for entry in before.prices} if before else {}
        read = before.read if before else now
        entries = tuple(_entry(row, known.get(_key(row)), now, read) for row in rows)
        self._write(_File(read=now, prices=entries))
        return tuple(_row(entry, now) for entry in entries)

    def _read(self) -> _File | None:
        try:
            if self._path.stat().st_size > LARGEST_FILE:
                return None
            found = msgspec.json.decode(self._path.read_bytes(), type=_File)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            logger.warning("the kept prices can't be used: %s", error)
            return None
        usable = all(
            _is_price(entry.per_chip_hour_usd)
            and all(_is_price(usd) and until.tzinfo for until, usd in entry.past)
            for entry in found.prices
        )
        return found if usable and found.schema == SCHEMA and found.read.tzinfo else None

    def _write(self, content: _File) -> None:
        """Replace the file; a cache that can't be written is no reason to fail."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=".prices-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(msgspec.json.encode(content))
                Path(name).replace(self._path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            logger.warning("prices can't be kept: %s", error)


def has_jumped(before: float | None, now: float) -> bool:
    """Whether a price changed by more than a fifth of what it was."""
    return before is not None and before > 0 and abs(now - before) > JUMP * before + 1e-12


def _entry(row: Row, known: _Entry | None, now: datetime, read: datetime) -> _Entry:
    generation, variant, price = row
    entry = _Entry(
        generation=generation,
        variant=variant,
        region=price.region,
        scheduling=price.scheduling,
        per_chip_hour_usd=price.per_chip_hour_usd,
        source=price.source,
        as_of=price.as_of,
    )
    if known is None:
        return entry
    entry = replace(entry, past=_past(known, entry, now, read))
    if has_jumped(known.per_chip_hour_usd, entry.per_chip_hour_usd):
        return replace(entry, before_usd=known.per_chip_hour_usd, changed=now)
    still = known.changed is not None and now - known.changed <= JUMP_SHOWN
    return replace(entry, before_usd=known.before_usd, changed=known.changed) if still else entry


def _past(
    known: _Entry, entry: _Entry, now: datetime, read: datetime
) -> tuple[tuple[datetime, float], ...]:
    """Return what the price was before, of the time that is still looked back on.

    A new price holds since the day that its source says, unless that is before the last reading,
    when it was still the old one, or after this one.
    """
    past = known.past
    if entry.per_chip_hour_usd != known.per_chip_hour_usd:
        since = datetime.combine(entry.as_of, time(tzinfo=UTC)) if entry.as_of else now
        past = (*past, (min(max(since, read), now), known.per_chip_hour_usd))
    return tuple((until, usd) for until, usd in past if now - until <= KEPT)[-MOST_PAST:]


def _row(entry: _Entry, read: datetime) -> Row:
    price = Price(
        per_chip_hour_usd=entry.per_chip_hour_usd,
        source=entry.source,
        as_of=entry.as_of,
        region=entry.region,
        scheduling=entry.scheduling,
        read=read,
        before_usd=entry.before_usd,
        past=entry.past,
    )
    return entry.generation, entry.variant, price


def _key(row: Row) -> tuple[str, str, str, Scheduling]:
    generation, variant, price = row
    return generation, variant, price.region, price.scheduling


def _key_of(entry: _Entry) -> tuple[str, str, str, Scheduling]:
    return entry.generation, entry.variant, entry.region, entry.scheduling


def _is_price(amount: float) -> bool:
    return math.isfinite(amount) and amount > 0
