"""What leaves the process: tables that fit, text that is harmless, JSON that every parser reads."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from tpudash.commands.output import (
    Answer,
    Column,
    SourceError,
    display_width,
    json_text,
    print_answer,
    table,
    timestamp,
)

MOMENT = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)
COLUMNS = (
    Column("NAME", lambda item: item["name"], gives_way=True),
    Column("STATE", lambda item: item["state"]),
    Column("$/H", lambda item: item["cost"], right=True),
)


def item(name: str, state: str = "READY", cost: object = "1.35") -> dict[str, object]:
    return {"name": name, "state": state, "cost": cost}


def test_columns_line_up_and_the_unknown_is_a_dash() -> None:
    lines = table([item("demo-1"), item("a", cost=None)], COLUMNS, None)
    assert lines == ["NAME    STATE   $/H", "demo-1  READY  1.35", "a       READY     -"]


@pytest.mark.parametrize("width", [24, 40, 80])
def test_a_table_is_cut_to_the_terminal_and_keeps_what_matters(width: int) -> None:
    lines = table([item("a-very-long-name-" * 5, "PREEMPTED")], COLUMNS, width)
    assert max(display_width(line) for line in lines) <= max(width, 8 + 2 + 9 + 2 + 4)
    assert "PREEMPTED" in lines[1]
    assert "1.35" in lines[1]


def test_nothing_from_outside_moves_the_cursor() -> None:
    hostile = item("\x1b[2J\x1b]0;owned\x07name\r\nnext\u202egnp", "[red]READY[/red]")
    (_, line) = table([hostile], COLUMNS, None)
    assert "\x1b" not in line
    assert "\n" not in line
    assert "\u202e" not in line
    assert "[red]READY[/red]" in line, "markup is text"


def test_wide_characters_take_two_cells() -> None:
    lines = table([item("日本"), item("abcd")], COLUMNS, None)
    assert display_width(lines[1]) == display_width(lines[2])


def test_the_envelope_has_its_five_fields_whatever_is_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = Answer(
        MOMENT, "here", [item("a")], ("us-east1-d",), [SourceError("runs", "no", "why", "do")]
    )
    print_answer(answer, COLUMNS, as_json=True, empty="none")
    out, err = capsys.readouterr()
    assert json.loads(out) == {
        "as_of": "2026-12-01T08:00:00Z",
        "source": "here",
        "items": [item("a")],
        "unreachable": ["us-east1-d"],
        "errors": [{"source": "runs", "title": "no", "detail": "why", "hint": "do"}],
    }
    assert err == ""


def test_a_table_says_on_stderr_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    answer = Answer(MOMENT, "here", [], ("us-east1-d",), [SourceError("runs", "no answer")])
    print_answer(answer, COLUMNS, as_json=False, empty="no nodes")
    out, err = capsys.readouterr()
    assert out == ""
    assert "no nodes" in err
    assert "us-east1-d" in err
    assert "no answer" in err


def test_a_figure_that_is_no_number_is_null() -> None:
    assert json_text({"loss": float("nan"), "more": [float("inf"), 1.5]}) == (
        '{"loss": null, "more": [null, 1.5]}'
    )


def test_times_are_in_utc_with_a_z() -> None:
    there = datetime(2026, 12, 1, 9, 0, tzinfo=timezone(timedelta(hours=1)))
    assert timestamp(there) == "2026-12-01T08:00:00Z"
    assert timestamp(None) is None
