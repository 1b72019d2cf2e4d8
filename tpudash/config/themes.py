"""Themes: YAML files that say how states, charts and logs look, with word and glyph.

A theme lies in `themes/NAME.yaml`, either ours or in the user's configuration folder. What it
leaves out is taken from its base. Nothing here imports Textual, so that a listing is quick.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import yaml

from tpudash.config.theme_schema import (
    SECTIONS,
    ThemeError,
    ThemeFile,
    parse_theme,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DEFAULT_THEME: Final = "dark"
MAX_THEME_BYTES: Final = 64 * 1024
MAX_BASES: Final = 8
_SAFE_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""As safe as the one in Python, and five times as fast where libyaml is there."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


@dataclass(frozen=True, slots=True)
class StateLook:
    """How one kind of state looks; colour never stands alone.

    Attributes:
        glyph: One character that is one cell wide.
        ascii: Its stand-in where only ASCII may be drawn.
        word: The kind of state in a word, for legends.
    """

    color: str
    glyph: str
    ascii: str
    word: str


@dataclass(frozen=True, slots=True)
class ThemeSpec:
    """A complete theme: nothing in it is left to a default any more.

    Attributes:
        colors: Base colours of the screen, by the names in `theme_schema.COLORS`.
        states: Looks by kind of state.
        charts: Colours of charts.
        log: Colours of log lines, by severity or kind of event.
        modes: Colours of the mode badge.
        workers: Colours that tell workers apart, in order of worker.
    """

    name: str
    title: str
    dark: bool
    ansi: bool
    colors: Mapping[str, str]
    states: Mapping[str, StateLook]
    charts: Mapping[str, str]
    log: Mapping[str, str]
    modes: Mapping[str, str]
    workers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ThemeInfo:
    """One line of a listing of themes.

    Attributes:
        is_builtin: Whether it ships with tpudash.
        problem: Why it can't be used; "" when it can.
    """

    name: str
    title: str
    path: Path
    is_builtin: bool
    dark: bool = True
    ansi: bool = False
    problem: str = ""


def builtin_themes_dir() -> Path:
    """Return the folder of our own themes: in the installed package, or beside it in a checkout.

    Raises:
        ThemeError: The installation has no themes.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "themes", package.parent / "themes"):
        if (folder / f"{DEFAULT_THEME}.yaml").is_file():
            return folder
    raise ThemeError("The themes of tpudash are missing", detail=str(package), hint="Reinstall it.")


def list_themes(user_dir: Path | None = None) -> tuple[ThemeInfo, ...]:
    """Return all themes that can be found, the user's own first where names are the same.

    Args:
        user_dir: The user's `themes` folder; it does not have to exist.
    """
    found: dict[str, ThemeInfo] = {}
    for folder, is_builtin in _folders(user_dir):
        for path in sorted(folder.glob("*.yaml")):
            found.setdefault(path.stem, _describe(path, user_dir, is_builtin=is_builtin))
    return tuple(sorted(found.values(), key=lambda info: (not info.is_builtin, info.name)))


def find_theme(name: str, user_dir: Path | None = None) -> ThemeSpec:
    """Return a theme by name, the user's own before ours.

    Raises:
        ThemeError: No such theme, or its file is not what it should be.
    """
    for folder, _ in _folders(user_dir):
        path = folder / f"{name}.yaml"
        if _NAME.fullmatch(name) and path.is_file():
            return _complete(_read(path), user_dir)
    known = [info.name for info in list_themes(user_dir)]
    nearest = difflib.get_close_matches(name, known, n=1)
    raise ThemeError(
        f"No theme is called {name!r}",
        detail=f"known themes: {', '.join(known)}",
        hint=f"Did you mean {nearest[0]}?" if nearest else "",
    )


def theme_or_default(name: str, user_dir: Path | None = None) -> tuple[ThemeSpec, str]:
    """Return a theme, or ours if it can't be used, with one message that says why ("" if not)."""
    try:
        return find_theme(name, user_dir), ""
    except ThemeError as error:
        parts = (str(error), error.hint, f"Using {DEFAULT_THEME} instead.")
        return find_theme(DEFAULT_THEME), " ".join(part for part in parts if part)


def _folders(user_dir: Path | None) -> Iterator[tuple[Path, bool]]:
    if user_dir is not None and user_dir.is_dir():
        yield user_dir, False
    yield builtin_themes_dir(), True


def _describe(path: Path, user_dir: Path | None, *, is_builtin: bool) -> ThemeInfo:
    try:
        spec = _complete(_read(path), user_dir)
    except ThemeError as error:
        return ThemeInfo(path.stem, path.stem, path, is_builtin, problem=str(error))
    return ThemeInfo(path.stem, spec.title, path, is_builtin, spec.dark, spec.ansi)


def _read(path: Path) -> ThemeFile:
    try:
        if path.stat().st_size > MAX_THEME_BYTES:
            raise ThemeError(f"{path}: larger than {MAX_THEME_BYTES} bytes")
        data: Any = yaml.load(path.read_text("utf-8"), Loader=_SAFE_LOADER)  # noqa: S506
    except yaml.YAMLError as error:
        raise ThemeError(f"{path}: not YAML", detail=_where(error)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ThemeError(f"{path}: can't be read", detail=str(error)) from error
    except RecursionError as error:
        raise ThemeError(f"{path}: nested too deeply") from error
    return parse_theme(data, path)


def _where(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "it can't be understood"
    return f"line {mark.line + 1}: {problem}" if mark else str(problem)


def _complete(theme: ThemeFile, user_dir: Path | None) -> ThemeSpec:
    """Lay a theme over its bases until nothing is left out."""
    chain = [theme]
    while (base := _base_of(chain[-1])) is not None:
        if len(chain) > MAX_BASES:
            raise ThemeError(f"{theme.path}: base: a theme can't be its own base")
        chain.append(_read_base(base, chain[-1], user_dir))
    if any(one.ansi != theme.ansi for one in chain):
        raise ThemeError(f"{theme.path}: base: must agree in `ansi`")
    merged = {
        section: MappingProxyType(
            {key: value for one in reversed(chain) for key, value in one.sections[section].items()}
        )
        for section in SECTIONS
    }
    fields: dict[str, dict[str, str]] = {}
    for one in reversed(chain):
        for key, parts in one.states.items():
            fields.setdefault(key, {}).update(parts)
    return ThemeSpec(
        name=theme.name,
        title=theme.title,
        dark=theme.dark,
        ansi=theme.ansi,
        colors=merged["colors"],
        states=MappingProxyType({key: StateLook(**parts) for key, parts in fields.items()}),
        charts=merged["charts"],
        log=merged["log"],
        modes=merged["modes"],
        workers=next(one.workers for one in chain if one.workers),
    )


def _base_of(theme: ThemeFile) -> str | None:
    """Return the name of the theme that fills what this one leaves out, or None for a root."""
    if theme.base is not None:
        return theme.base
    root = ("ansi-" if theme.ansi else "") + ("dark" if theme.dark else "light")
    return None if theme.path == builtin_themes_dir() / f"{root}.yaml" else root


def _read_base(base: str, theme: ThemeFile, user_dir: Path | None) -> ThemeFile:
    """Read a base; a theme of the user's that is named as its base means ours."""
    for folder, is_builtin in _folders(user_dir):
        path = folder / f"{base}.yaml"
        if _NAME.fullmatch(base) and path.is_file() and (is_builtin or path != theme.path):
            return _read(path)
    known = [info.stem for info in builtin_themes_dir().glob("*.yaml")]
    nearest = difflib.get_close_matches(base, known, n=1)
    raise ThemeError(
        f"{theme.path}: base: no theme is called {base!r}",
        hint=f"Did you mean {nearest[0]}?" if nearest else "",
    )
