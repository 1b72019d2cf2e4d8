"""Log text is one harmless, bounded line, whatever the entry holds."""

from __future__ import annotations

import time
import unicodedata
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tpudash.domain.log import LogEntry, Severity
from tpudash.logtext.events import describe_event
from tpudash.tui.widgets.log_view_text import (
    MARKS,
    MAX_LINES,
    PAINT_LIMIT,
    LogRow,
    cut_cells,
    one_line,
    row_of,
    wrap_cells,
)

NOW = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)
HARMFUL = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def make_row(
    text: str = "", payload: dict[str, Any] | None = None, severity: Severity = Severity.INFO
) -> LogRow:
    return row_of(LogEntry(NOW, severity, text, payload=payload))


def is_harmless(text: str) -> bool:
    return not any(unicodedata.category(character) in HARMFUL for character in text)


TEXTS = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("\x1b\x00\x07\r\n\t\x9b\u202e\u2066\u200f\u2028\ufeff[];m0"),
    ),
    max_size=400,
)


@given(TEXTS)
def test_no_line_holds_a_control_character(text: str) -> None:
    assert is_harmless(one_line(text))


@given(TEXTS, st.integers(1, 40))
def test_no_wrapped_line_is_too_wide_or_harmful(text: str, width: int) -> None:
    for line in make_row(text).lines(width, MAX_LINES):
        assert is_harmless(line)
        assert cell_len(line) <= max(width, 2)


@given(st.text(max_size=80), st.integers(0, 40))
def test_cutting_keeps_within_the_width(text: str, width: int) -> None:
    cut = cut_cells(text, width)
    assert text.startswith(cut)
    assert cell_len(cut) <= max(width, 2)


@given(st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=80), st.integers(2, 40))
def test_wrapping_loses_nothing(text: str, width: int) -> None:
    assert "".join(wrap_cells(text, width)) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [bold]text[/bold]", "plain [bold]text[/bold]"),
        ("\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07", "red link"),
        ("10%|# |\r 50%|## |\r100%|###|", "100%|###|"),
        ("100%|###|\r", "100%|###|"),
        ("first\nsecond\n", "first ⏎ second"),
        ("Traceback:\n a\n b\nValueError: no", "Traceback: … (+2 lines) ValueError: no"),
        ("a\tb", "a   b"),
        ("\u202eevil\u202c", "�evil�"),
        ("", ""),
    ],
)
def test_what_trainers_print(text: str, shown: str) -> None:
    assert one_line(text) == shown


def test_a_long_line_is_bounded_and_says_how_much_is_left_out() -> None:
    shown = one_line("x" * 5_000_000)
    assert shown.startswith("x" * PAINT_LIMIT)
    assert shown.endswith(f"…(+{5_000_000 - PAINT_LIMIT:,} characters)")
    assert len(shown) < PAINT_LIMIT + 40


@pytest.mark.parametrize("piece", ["x", "\x1b[31m", "漢", "a\n", "\t", "\r"])
def test_five_megabytes_take_little_work(piece: str) -> None:
    text = piece * (5_000_000 // len(piece))
    began = time.process_time()
    row = make_row(text)
    row.lines(80, MAX_LINES)
    assert len(row.text) < 3 * PAINT_LIMIT
    assert time.process_time() - began < 0.6


def test_wrapped_lines_are_bounded() -> None:
    lines = make_row("\n".join(str(number) for number in range(10_000))).lines(80, 20)
    assert len(lines) == 20
    assert lines[:2] == ["0", "1"]
    assert lines[-1].endswith("…")


def test_events_are_compact_text() -> None:
    payload = {
        "event": "step",
        "step": 120,
        "target_step": 600,
        "loss": 0.41234,
        "accuracy": 0.88,
        "examples_per_second": 1420.4,
        "step_time_s": 0.0912,
        "input_wait_fraction": 0.4,
    }
    row = make_row("step 120", payload)
    assert row.text == "step 120/600 loss 0.4123 acc 0.880 1,420 ex/s 91 ms input wait 40%"
    assert row.kind == "step"
    assert (
        make_row(payload={"event": "restore", "step": 200, "steps_lost": 37}).text
        == "restored step 200 37 steps lost"
    )
    assert make_row(payload={"event": "restore", "step": 0}).text == "starting from scratch"
    checkpoint = make_row(
        payload={"event": "checkpoint", "step": 9, "seconds": 0.41, "bytes": 2**20, "path": "/b"}
    )
    assert checkpoint.text == "checkpoint at step 9 in 0.4 s (1.0 MiB) /b"
    assert checkpoint.kind == "checkpoint"
    host = {"cpu_fraction": 0.29, "memory_used_bytes": 2**30, "memory_total_bytes": 2**34}
    chips = [{"duty_cycle_percent": 80}, {"duty_cycle_percent": 90}, {"hbm_used_bytes": 1}, 7]
    row = make_row("host figures", payload={"event": "host", **host, "chips": chips})
    assert row.text == "host cpu 29% memory 1.0 GiB of 16.0 GiB duty 85% on 2 chips"
    assert make_row("host figures", payload={"event": "host"}).text == "host figures"


def test_severity_outranks_the_kind_of_event() -> None:
    assert make_row(payload={"event": "restore", "step": 1}, severity=Severity.WARNING).kind == (
        "warning"
    )
    assert make_row(severity=Severity.ALERT).kind == "critical"
    assert {make_row(severity=severity).kind for severity in Severity} <= set(MARKS)


def test_an_event_without_figures_shows_its_message() -> None:
    assert make_row("said so", {"event": "step", "step": "many"}).text == "said so"
    assert make_row("", {"event": "unheard", "a": {"b": [1]}}).text.startswith('{"event"')


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = (
    "step",
    "target_step",
    "loss",
    "seconds",
    "bytes",
    "path",
    "quarantined",
    "metrics",
    "chips",
)


@given(
    st.sampled_from(
        ["step", "checkpoint", "eval", "restore", "preempt", "error", "finish", "host", "x"]
    ),
    st.dictionaries(st.sampled_from(KEYS), JSON),
    st.text(max_size=20),
)
def test_payloads_of_any_shape_are_shown(event: str, fields: dict[str, Any], text: str) -> None:
    payload = {**fields, "event": event}
    assert isinstance(describe_event(payload), str)
    assert is_harmless(make_row(text, payload).text)


def test_a_payload_of_any_depth_is_shown() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"in": deep}
    assert make_row("", deep).text
