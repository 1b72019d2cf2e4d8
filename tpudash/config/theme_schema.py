"""The shape of a theme file, and errors that name the file, the key and the nearest valid key."""

from __future__ import annotations

import difflib
import re
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tpudash.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

COLORS: Final = (
    "primary",
    "secondary",
    "accent",
    "background",
    "surface",
    "panel",
    "foreground",
    "muted",
    "border",
    "cursor",
    "cursor-text",
    "success",
    "warning",
    "error",
)
STATES: Final = (
    "ready",
    "finished",
    "creating",
    "waiting",
    "repairing",
    "preempted",
    "terminated",
    "deleting",
    "stopped",
    "gone",
    "unknown",
)
STATE_PARTS: Final = ("color", "glyph", "ascii", "word")
CHARTS: Final = ("ok", "warn", "bad", "line", "axis")
LOG: Final = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "step",
    "checkpoint",
    "restart",
    "time",
)
MODES: Final = ("operator", "watch", "emulator")
SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "colors": COLORS,
    "charts": CHARTS,
    "log": LOG,
    "modes": MODES,
}
TOP_LEVEL: Final = ("name", "title", "base", "dark", "ansi", *SECTIONS, "states", "workers")
ANSI_NAMES: Final = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
ANSI_COLORS: Final = (
    "ansi_default",
    *(f"ansi_{name}" for name in ANSI_NAMES),
    *(f"ansi_bright_{name}" for name in ANSI_NAMES),
)
MAX_WORKERS: Final = 32
MAX_WORD: Final = 20
_HEX: Final = re.compile(r"#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})")


class ThemeError(ConfigurationError):
    """A theme is missing or is not what it should be."""


@dataclass(frozen=True, slots=True)
class ThemeFile:
    """One theme as its file says it, defaults not filled in.

    Attributes:
        sections: Colours by section and key.
        states: For each kind of state the parts that the file gives.
    """

    path: Path
    name: str
    title: str
    base: str | None
    dark: bool
    ansi: bool
    sections: Mapping[str, Mapping[str, str]]
    states: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    workers: tuple[str, ...] = ()


def parse_theme(data: Any, path: Path) -> ThemeFile:
    """Check what a YAML file held.

    Raises:
        ThemeError: A key is unknown, or a value is not what it should be.
    """
    return _Parser(path).parse(data)


class _Parser:
    """Checks one file; every complaint begins with the file and the key."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ansi = False

    def parse(self, data: Any) -> ThemeFile:
        top = self._table("", data, TOP_LEVEL)
        self._ansi = self._boolean("ansi", top.get("ansi", False))
        sections = {
            section: self._colors(section, top.get(section, {}), keys)
            for section, keys in SECTIONS.items()
        }
        return ThemeFile(
            path=self._path,
            name=self._name(top.get("name")),
            title=self._text("title", top.get("title", self._path.stem)),
            base=self._text("base", top["base"]) if "base" in top else None,
            dark=self._boolean("dark", top.get("dark", True)),
            ansi=self._ansi,
            sections=sections,
            states=self._states(top.get("states", {})),
            workers=self._workers(top.get("workers", [])),
        )

    def _fail(self, key: str, problem: str, hint: str = "") -> ThemeError:
        place = f"{self._path}: {key}" if key else str(self._path)
        return ThemeError(f"{place}: {problem}", hint=hint)

    def _table(self, key: str, value: Any, known: Iterable[str]) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self._fail(key, "must be a table of keys and values")
        for name in value:
            if name not in known:
                word = str(name)[:40] if isinstance(name, (str, int, float)) else "a key"
                full = f"{key}.{word}" if key else word
                near = difflib.get_close_matches(word, tuple(known), n=1, cutoff=0.5)
                hint = f"Did you mean {near[0]}?" if near else f"Known keys: {', '.join(known)}."
                raise self._fail(full, "unknown key", hint)
        return value

    def _name(self, value: Any) -> str:
        if value is not None and value != self._path.stem:
            raise self._fail("name", f"must be {self._path.stem!r}, as the file is called")
        return self._path.stem

    def _text(self, key: str, value: Any) -> str:
        if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= 80:
            raise self._fail(key, "must be a short text")
        return value

    def _boolean(self, key: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self._fail(key, "must be true or false")
        return value

    def _color(self, key: str, value: Any) -> str:
        if value is None:
            raise self._fail(key, "has no value", 'Put colours in quotes: "#rrggbb".')
        if self._ansi:
            if not isinstance(value, str) or value not in ANSI_COLORS:
                near = difflib.get_close_matches(_shown(value), ANSI_COLORS, n=1)
                hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(ANSI_COLORS)}."
                raise self._fail(key, f"{_shown(value)} is no colour of an ANSI theme", hint)
        elif not isinstance(value, str) or not _HEX.fullmatch(value):
            raise self._fail(
                key, f"{_shown(value)} is no colour", 'Write it as "#rgb" or "#rrggbb".'
            )
        return value

    def _colors(self, section: str, value: Any, known: Iterable[str]) -> Mapping[str, str]:
        table = self._table(section, value, known)
        return {name: self._color(f"{section}.{name}", color) for name, color in table.items()}

    def _states(self, value: Any) -> Mapping[str, Mapping[str, str]]:
        table = self._table("states", value, STATES)
        return {name: self._state(f"states.{name}", look) for name, look in table.items()}

    def _state(self, key: str, value: Any) -> Mapping[str, str]:
        """Read one look: either its colour alone, or a table of its parts."""
        if not isinstance(value, dict):
            return {"color": self._color(key, value)}
        table = self._table(key, value, STATE_PARTS)
        parts = {}
        for name, part in table.items():
            full = f"{key}.{name}"
            parts[name] = self._color(full, part) if name == "color" else self._text(full, part)
        if "glyph" in parts and not _is_one_cell(parts["glyph"]):
            raise self._fail(f"{key}.glyph", "must be one character that is one cell wide")
        if "ascii" in parts and not (len(parts["ascii"]) == 1 and parts["ascii"].isascii()):
            raise self._fail(f"{key}.ascii", "must be one ASCII character")
        if len(parts.get("word", "")) > MAX_WORD:
            raise self._fail(f"{key}.word", f"must have at most {MAX_WORD} characters")
        return parts

    def _workers(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or len(value) > MAX_WORKERS:
            raise self._fail("workers", f"must be a list of at most {MAX_WORKERS} colours")
        return tuple(self._color(f"workers[{at}]", color) for at, color in enumerate(value))


def _shown(value: Any) -> str:
    """Return a value as a complaint shows it: short, whatever it is."""
    return repr(value)[:40] if isinstance(value, (str, int, float)) else type(value).__name__


def _is_one_cell(text: str) -> bool:
    return (
        len(text) == 1
        and text.isprintable()
        and unicodedata.east_asian_width(text) not in {"W", "F"}
        and not unicodedata.combining(text)
    )
