"""Themes: ours are complete and readable; a broken one says which file and key, and falls back."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml
from rich.cells import cell_len

from tpudash.config.theme_schema import ANSI_COLORS, SECTIONS, STATES, ThemeError
from tpudash.config.themes import (
    StateLook,
    ThemeSpec,
    builtin_themes_dir,
    find_theme,
    list_themes,
    theme_or_default,
)

if TYPE_CHECKING:
    from pathlib import Path

OURS = ("ansi-dark", "ansi-light", "colour-blind", "dark", "high-contrast", "light", "wall")
TRUE_COLOUR = tuple(name for name in OURS if not name.startswith("ansi"))
READABLE = 4.5


def luminance(color: str) -> float:
    """Return the relative luminance of `#rrggbb` by WCAG 2.1."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_measured_as_wcag_says() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_all_of_ours_are_listed_and_sound() -> None:
    infos = list_themes()
    assert tuple(info.name for info in infos) == OURS
    assert all(info.is_builtin and not info.problem for info in infos)


@pytest.mark.parametrize("name", OURS)
def test_ours_are_complete(name: str) -> None:
    spec = find_theme(name)
    assert tuple(sorted(spec.states)) == tuple(sorted(STATES))
    for section, keys in SECTIONS.items():
        assert set(getattr(spec, section)) == set(keys), section
    assert len(spec.workers) >= 6


def text_colors(spec: ThemeSpec) -> dict[str, str]:
    """Return every colour of a theme that text is written in."""
    base = ("primary", "secondary", "accent", "foreground", "muted", "success", "warning", "error")
    return {
        **{key: spec.colors[key] for key in base},
        **{f"states.{key}": look.color for key, look in spec.states.items()},
        **{f"charts.{key}": color for key, color in spec.charts.items()},
        **{f"log.{key}": color for key, color in spec.log.items()},
        **{f"modes.{key}": color for key, color in spec.modes.items()},
        **{f"workers[{at}]": color for at, color in enumerate(spec.workers)},
    }


@pytest.mark.parametrize("name", TRUE_COLOUR)
@pytest.mark.parametrize("ground", ["background", "surface", "panel"])
def test_every_colour_of_text_can_be_read_on_every_ground(name: str, ground: str) -> None:
    spec = find_theme(name)
    faint = {
        key: round(contrast(color, spec.colors[ground]), 2)
        for key, color in text_colors(spec).items()
        if contrast(color, spec.colors[ground]) < READABLE
    }
    assert faint == {}


@pytest.mark.parametrize("name", TRUE_COLOUR)
def test_the_cursor_can_be_read(name: str) -> None:
    colors = find_theme(name).colors
    assert contrast(colors["cursor-text"], colors["cursor"]) >= READABLE


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("part", ["glyph", "ascii", "word"])
def test_states_are_told_apart_without_colour(name: str, part: str) -> None:
    marks = [getattr(look, part) for look in find_theme(name).states.values()]
    assert len(set(marks)) == len(marks)
    if part != "word":
        assert all(cell_len(mark) == 1 for mark in marks)


@pytest.mark.parametrize("name", ["ansi-dark", "ansi-light"])
def test_terminal_themes_use_the_terminals_own_colours_only(name: str) -> None:
    spec = find_theme(name)
    assert spec.ansi
    used = {*spec.colors.values(), *text_colors(spec).values()}
    assert used <= set(ANSI_COLORS)


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.yaml"
    path.write_text(text, "utf-8")
    return path


def test_a_users_theme_is_found_and_filled_from_its_base(tmp_path: Path) -> None:
    write(
        tmp_path,
        "mine",
        'title: Mine\ndark: false\ncolors: {primary: "#123456"}\n'
        'states: {ready: "#004400", preempted: {glyph: "P", word: taken}}\n',
    )
    mine, light = find_theme("mine", tmp_path), find_theme("light")
    assert (mine.name, mine.title, mine.dark) == ("mine", "Mine", False)
    assert mine.colors == {**light.colors, "primary": "#123456"}
    assert mine.states["ready"] == StateLook("#004400", "●", "*", "ready")
    assert mine.states["preempted"] == StateLook(light.states["preempted"].color, "P", "!", "taken")
    assert mine.log == light.log


def test_a_users_theme_may_change_one_of_ours_under_its_own_name(tmp_path: Path) -> None:
    write(tmp_path, "dark", 'log: {error: "#ff0000"}')
    ours = find_theme("dark")
    theirs = find_theme("dark", tmp_path)
    assert theirs.log == {**ours.log, "error": "#ff0000"}
    assert theirs.colors == ours.colors
    names = [(info.name, info.is_builtin) for info in list_themes(tmp_path)]
    assert ("dark", False) in names
    assert ("dark", True) not in names


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("colour: {}", "colour: unknown key", "colors"),
        ('colors: {primry: "#fff"}', "colors.primry: unknown key", "primary"),
        ('states: {redy: "#fff"}', "states.redy: unknown key", "ready"),
        ("states: {ready: {glyf: x}}", "states.ready.glyf: unknown key", "glyph"),
        ("colors: {primary: blue}", "colors.primary: 'blue' is no colour", "#rrggbb"),
        ("colors:\n  primary: #fff", "colors.primary: has no value", "quotes"),
        ("colors: {primary: 123456}", "colors.primary: 123456 is no colour", "#rrggbb"),
        ("ansi: true\ncolors: {primary: ansi_blu}", "'ansi_blu' is no colour", "ansi_blue"),
        ("colors: [1]", "colors: must be a table", ""),
        ("- 1", "must be a table", ""),
        ("", "must be a table", ""),
        ("states: {ready: {glyph: 漢}}", "states.ready.glyph: must be one character", ""),
        ('states: {ready: {glyph: "\\u202e"}}', "states.ready.glyph", ""),
        ("states: {ready: {ascii: é}}", "states.ready.ascii: must be one ASCII", ""),
        ("dark: maybe", "dark: must be true or false", ""),
        ("name: other", "name: must be 'broken'", ""),
        ("base: drak", "base: no theme is called 'drak'", "dark"),
        ("base: ../dark", "base: no theme is called", ""),
        ("base: ansi-dark", "base: must agree in `ansi`", ""),
        ("workers: [1, 2]", "workers[0]: 1 is no colour", ""),
        ("colors: {a: [", "not YAML", ""),
    ],
)
def test_a_broken_theme_is_named_and_ours_stands_in(
    tmp_path: Path, text: str, said: str, hint: str
) -> None:
    path = write(tmp_path, "broken", text)
    with pytest.raises(ThemeError) as caught:
        find_theme("broken", tmp_path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)
    assert hint in caught.value.hint

    spec, message = theme_or_default("broken", tmp_path)
    assert spec == find_theme("dark")
    assert str(path) in message
    assert "\n" not in message
    listed = {info.name: info.problem for info in list_themes(tmp_path)}
    assert said in listed["broken"]


def test_an_unknown_name_suggests_the_nearest(tmp_path: Path) -> None:
    spec, message = theme_or_default("hihg-contrast", tmp_path / "not there")
    assert spec.name == "dark"
    assert "Did you mean high-contrast?" in message


def test_no_name_leaves_the_theme_folders(tmp_path: Path) -> None:
    write(tmp_path, "outside", "")
    with pytest.raises(ThemeError, match="No theme is called"):
        find_theme("../outside", tmp_path / "themes")


def test_themes_that_are_each_others_base_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "one", "base: two")
    write(tmp_path, "two", "base: one")
    with pytest.raises(ThemeError, match="its own base"):
        find_theme("one", tmp_path)


def test_a_hostile_file_is_refused_quickly(tmp_path: Path) -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + at)}: &{chr(98 + at)} [{','.join([f'*{chr(97 + at)}'] * 9)}]\n"
        for at in range(10)
    )
    write(tmp_path, "bomb", bomb + "colors: {primary: *k}\n")
    with pytest.raises(ThemeError, match="unknown key"):
        find_theme("bomb", tmp_path)
    write(tmp_path, "deep", "[" * 5_000)
    with pytest.raises(ThemeError):
        find_theme("deep", tmp_path)
    write(tmp_path, "big", "#" * 100_000)
    with pytest.raises(ThemeError, match="larger than"):
        find_theme("big", tmp_path)


def test_our_files_hold_nothing_but_the_schema() -> None:
    for path in builtin_themes_dir().glob("*.yaml"):
        assert yaml.safe_load(path.read_text("utf-8"))["name"] == path.stem


def test_listing_themes_imports_no_textual() -> None:
    code = (
        "import sys; from tpudash.config.themes import list_themes; list_themes();"
        "sys.exit(any(name.split('.')[0] in {'textual', 'rich', 'google'} for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
