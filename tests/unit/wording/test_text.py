"""Nothing that comes from outside can move the cursor, colour the screen or turn the writing."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpudash.wording.text import safe_block, safe_lines, safe_text


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("plain", "plain"),
        ("[red]markup[/red]", "[red]markup[/red]"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred", "red"),
        ("a\tb\nc\rd", "a b c d"),
        ("abc\u202edef", "abc\ufffddef"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("bell\x07", "bell\ufffd"),
        ("\x1b", "\ufffd"),
        ("日本", "日本"),
    ],
)
def test_text_from_outside_is_made_harmless(given_text: str, shown: str) -> None:
    assert safe_text(given_text) == shown


@given(st.text(st.characters(), max_size=200))
def test_no_control_and_no_format_character_survives(text: str) -> None:
    shown = safe_text(text)
    assert not any(unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} for char in shown)
    assert not set(shown) & set(
        "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f"
    )


@given(st.text(st.sampled_from("\x1b[]0;m\x07\\P^_X \n"), max_size=60))
def test_broken_escape_sequences_do_no_harm_either(text: str) -> None:
    assert "\x1b" not in safe_text(text)
    assert "\x1b" not in safe_block(text)


def test_long_text_is_cut_with_a_mark() -> None:
    shown = safe_text("x" * 5_000_000, 100)
    assert len(shown) == 100
    assert shown.endswith("…")


def test_lines_are_kept_apart_and_counted() -> None:
    assert safe_lines("one\r\ntwo\n\x1b[1mthree") == ["one", "two", "three"]
    assert safe_lines("a\nb\nc", most=2) == ["a", "b", "… 1 more lines"]
