"""How answers leave the process: one JSON envelope, or a table that reads well and pipes well."""

from __future__ import annotations

import json
import math
import shutil
import sys
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from tpudash.wording.text import ELLIPSIS, safe_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tpudash.errors import TpudashError

Item = dict[str, Any]
GAP: Final = "  "
NARROWEST: Final = 8
UNKNOWN: Final = "-"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        cell: Makes the cell's text from an item; it may hold anything, and is made safe here.
        gives_way: Whether the column is cut when the terminal is too narrow.
        spare: Whether the column is left out when cutting is not enough.
    """

    title: str
    cell: Callable[[Item], object]
    right: bool = False
    gives_way: bool = False
    spare: bool = False


@dataclass(frozen=True, slots=True)
class SourceError:
    """A part of the answer that could not be had, and why."""

    source: str
    title: str
    detail: str = ""
    hint: str = ""

    @classmethod
    def of(cls, source: str, error: TpudashError) -> SourceError:
        """Return an error as a part of an answer."""
        return cls(source, error.title, error.detail, error.hint)

    @classmethod
    def of_refusals(cls, refusals: Mapping[str, str]) -> list[SourceError]:
        """Return why places were left out, as parts of an answer."""
        return [cls(place, reason) for place, reason in refusals.items()]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a reading command found.

    Attributes:
        source: Where it was read, such as `emulator 127.0.0.1:4711, project demo`.
        unreachable: Locations that did not answer; nothing is known about them.
    """

    as_of: datetime
    source: str
    items: Sequence[Item]
    unreachable: Sequence[str] = ()
    errors: Sequence[SourceError] = ()


def print_answer(answer: Answer, columns: Sequence[Column], *, as_json: bool, empty: str) -> None:
    """Print an answer to stdout, and in a table's case what is missing from it to stderr."""
    if as_json:
        print_json(answer)
        return
    if answer.items:
        click.echo("\n".join(table(answer.items, columns, terminal_width())))
    else:
        click.echo(empty, err=True)
    for location in answer.unreachable:
        click.echo(f"unreachable: {safe_text(location)}: what is there is not known", err=True)
    for error in answer.errors:
        reason = ": ".join(part for part in (error.title, error.detail) if part)
        click.echo(f"incomplete: {error.source}: {safe_text(reason)}", err=True)


def print_json(answer: Answer) -> None:
    """Print the envelope that every `--json` shares."""
    envelope = {
        "as_of": timestamp(answer.as_of),
        "source": answer.source,
        "items": list(answer.items),
        "unreachable": list(answer.unreachable),
        "errors": [
            {"source": one.source, "title": one.title, "detail": one.detail, "hint": one.hint}
            for one in answer.errors
        ],
    }
    click.echo(json_text(envelope, indent=2))


def json_text(value: object, indent: int | None = None) -> str:
    """Return JSON that every parser reads: a figure that is no number (a lost loss) is null."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False, default=str)


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value


def timestamp(moment: datetime | None) -> str | None:
    """Return a time in RFC 3339 and UTC, or None."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def terminal_width() -> int | None:
    """Return the terminal's width, or None when stdout is none: then nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(items: Sequence[Item], columns: Sequence[Column], width: int | None) -> list[str]:
    """Lay items out as lines: a header, then a line each, cut to `width` cells if it is given."""
    rows = [[_cell(column, item) for column in columns] for item in items]
    widths = [
        max(display_width(text) for text in (column.title, *(row[at] for row in rows)))
        for at, column in enumerate(columns)
    ]
    if width is not None:
        widths = _fit(widths, columns, width)
        if sum(widths) + len(GAP) * (len(widths) - 1) > width:
            spare = [column for column in columns if column.spare]
            if spare:
                return table(items, [one for one in columns if one is not spare[-1]], width)
    lines = [[column.title for column in columns], *rows]
    return [
        GAP.join(
            _pad(text, widths[at], right=columns[at].right) for at, text in enumerate(line)
        ).rstrip()
        for line in lines
    ]


def details(pairs: Mapping[str, object]) -> list[str]:
    """Lay out names and values, a line each."""
    width = max((len(name) for name in pairs), default=0)
    return [f"{name.ljust(width)}  {safe_text(value)}" for name, value in pairs.items()]


def display_width(text: str) -> int:
    """Return how many cells of a terminal a harmless text takes."""
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _cell(column: Column, item: Item) -> str:
    value = column.cell(item)
    text = safe_text(UNKNOWN if value is None or value == "" else value).strip()
    return text or UNKNOWN


def _fit(widths: list[int], columns: Sequence[Column], width: int) -> list[int]:
    """Narrow the columns that give way until the line fits, widest first."""
    fitted = list(widths)
    soft = [at for at, column in enumerate(columns) if column.gives_way]
    excess = sum(fitted) + len(GAP) * (len(fitted) - 1) - width
    while excess > 0 and soft:
        widest = max(soft, key=lambda at: fitted[at])
        if fitted[widest] <= NARROWEST:
            break
        fitted[widest] -= 1
        excess -= 1
    return fitted


def _pad(text: str, width: int, *, right: bool) -> str:
    cut = _cut(text, width)
    blanks = " " * (width - display_width(cut))
    return blanks + cut if right else cut + blanks


def _cut(text: str, width: int) -> str:
    if display_width(text) <= width:
        return text
    kept = ""
    room = width - 1
    for character in text:
        room -= _cells(character)
        if room < 0:
            break
        kept += character
    return kept + ELLIPSIS
