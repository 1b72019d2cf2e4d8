"""The cleaner gives the same lines however bytes were cut, and nothing that a terminal obeys."""

from __future__ import annotations

import time
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpudash.logtext.clean import Cleaner, CleanLine, LineMachine, clean_text

HARMFUL = {"Cc", "Cf", "Cs", "Zl", "Zp"}
LONGEST = 64

PIECES = st.one_of(
    st.sampled_from(
        (
            *("\x1b[31m", "\x1b[0K", "\x1b[2K", "\x1b[1G", "\x1b]0;title\x07", "\x1b]8;;u\x1b\\"),
            *("\x1b", "\x1b[", "\x1b]", "\x9b1;2m", "\x90dcs\x9c", "\x1bP", "\x1b(B", "\x18"),
            *("\r", "\r\n", "\n", "\b", "\t", "\x00", "\x07", "\x0b", "\x85", "\u2028"),
            *("\u202e", "\u2066", "\u200b", "\ufeff", "漢", "🎉", "é", "e\u0301", "\U000e0041"),
            *("10%|#  | 1/10", "100%|###|", "plain words", "x" * 40),
        )
    ),
    st.text(max_size=6),
)
BYTES = st.lists(
    st.one_of(PIECES.map(lambda text: text.encode("utf-8", "replace")), st.binary(max_size=4)),
    max_size=40,
).map(b"".join)


def clean(pieces: list[bytes], longest: int = LONGEST) -> list[CleanLine]:
    cleaner = Cleaner(longest)
    return [line for piece in pieces for line in cleaner.feed(piece)] + cleaner.finish()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place for place in places if place < len(data))})
    return [data[start:end] for start, end in pairwise(edges)]


@given(BYTES, st.lists(st.integers(0, 400), max_size=12))
@settings(max_examples=600)
def test_any_cut_of_the_bytes_gives_the_same_lines(data: bytes, places: list[int]) -> None:
    whole = clean([data])
    assert clean(cut(data, places)) == whole
    assert clean([data[at : at + 1] for at in range(len(data))]) == whole


@given(BYTES)
def test_no_line_holds_a_control_character(data: bytes) -> None:
    cleaner = Cleaner(LONGEST)
    lines = cleaner.feed(data)
    partial = cleaner.partial
    for text in (*(line.text for line in [*lines, *cleaner.finish()]), partial):
        assert not {unicodedata.category(character) for character in text} & HARMFUL
        assert len(text) <= LONGEST


@given(st.text(max_size=200))
def test_a_whole_text_is_as_harmless_and_keeps_its_lines(text: str) -> None:
    cleaned = clean_text(text)
    kinds = {unicodedata.category(character) for character in cleaned.replace("\n", "")}
    assert not kinds & HARMFUL
    assert clean_text(cleaned) == cleaned


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=100))
def test_usual_text_stays_as_it_is(text: str) -> None:
    assert [line.text for line in clean([text.encode() + b"\n"], 1_000)] == [text]


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("10%\r50%\r100%\n", ["100%"]),
        ("100%\r\n", ["100%"]),
        ("100%\r\x1b[0m\n", ["100%"]),
        ("50%\r\x1b[K100%\n", ["100%"]),
        ("50%\x1b[2K100%\n", ["100%"]),
        ("50%\x1b[1G100%\n", ["100%"]),
        ("ab\b\bcd\n", ["cd"]),
        ("a\tb\n", ["a   b"]),
        ("\x1b[31mred\x1b[0m\n", ["red"]),
        ("\x1b]0;title\x07text\n", ["text"]),
        ("\x1b]0;never ended\nnext\n", ["", "next"]),
        ("\x1b[38;2;1\nnext\n", ["", "next"]),
        ("nul\x00\n", ["nul\ufffd"]),
        ("\u202eevil\n", ["\ufffdevil"]),
        ("no end", ["no end"]),
        ("", []),
    ],
)
def test_what_a_reader_would_see(written: str, seen: list[str]) -> None:
    assert [line.text for line in clean([written.encode()])] == seen


def test_a_character_cut_over_two_reads_is_joined_and_what_is_none_is_shown() -> None:
    data = "漢字".encode()
    assert clean([data[:2], data[2:4], data[4:] + b"\xff\n"])[0].text == "漢字\ufffd"


def test_a_long_line_goes_on_in_others_and_loses_nothing() -> None:
    lines = clean([b"0123456789" * 30 + b"\nnext\n"])
    assert "".join(line.text for line in lines[:-1]) == "0123456789" * 30
    assert [line.is_whole for line in lines] == [False] * 4 + [True, True]


def test_the_unfinished_line_can_be_seen() -> None:
    machine = LineMachine()
    machine.feed("done\n 10%|#  |\r 20%|## |")
    assert machine.partial == " 20%|## |"


@pytest.mark.parametrize("piece", ["x", "\t", "\r", "\b", "\x1b[31m", "a\b", "\x1b]", "\x00"])
def test_a_quarter_megabyte_of_anything_takes_little_work(piece: str) -> None:
    text = piece * (256 * 1024 // len(piece))
    began = time.process_time()
    clean_text(text)
    assert time.process_time() - began < 1.5
