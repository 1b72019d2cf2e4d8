"""The logs pane on a screen: it follows, stands still, filters, jumps, and never misbehaves."""

from __future__ import annotations

import asyncio
import random
import time
import unicodedata
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.tui.factories import (
    NOW,
    add_logs,
    list_nodes,
    make_entry,
    make_node,
    make_run,
    node_name,
    read_runs,
    report_source,
)
from tests.tui.pane_host import PaneHost, screen_of, settle
from tpudash.domain.log import LogEntry, Severity
from tpudash.store.log_ring import LogRing
from tpudash.store.snapshot import SourceState
from tpudash.store.store import Store
from tpudash.tui.pane import Subject, SubjectKind
from tpudash.tui.widgets.line import Line
from tpudash.tui.widgets.logs_pane import LogsPane

SIZE = (80, 24)


def numbered(start: int, end: int, **more: Any) -> list[LogEntry]:
    return [make_entry(at, f"line {at}", **more) for at in range(start, end)]


def status(pane: LogsPane) -> str:
    return pane.query_one(Line).text.plain


def make_host(*entries: LogEntry, ring: LogRing | None = None, **more: Any) -> PaneHost[LogsPane]:
    store = Store()
    if ring is not None:
        store.logs = ring
    add_logs(store, *entries)
    return PaneHost(LogsPane(follow_interval_s=0), store, **more)


async def test_it_opens_at_the_newest_line_and_follows() -> None:
    app = make_host(*numbered(0, 100))
    async with app.run_test(size=SIZE) as pilot:
        assert "line 99" in screen_of(app.pane.view)[-1]
        assert "following" in status(app.pane)
        add_logs(app.context.store, make_entry(100, "line 100"))
        await settle(pilot)
        assert "line 100" in screen_of(app.pane.view)[-1]
        assert "line 77" not in "".join(screen_of(app.pane.view))


async def test_a_standing_view_does_not_move_on_append_late_lines_or_eviction() -> None:
    app = make_host(*numbered(0, 200), ring=LogRing(max_entries=200))
    async with app.run_test(size=SIZE) as pilot:
        app.pane.view.focus()
        await pilot.press("pageup", "pageup", "up")
        before = [line[:-1] for line in screen_of(app.pane.view)]
        assert "standing still, 45 newer below" in status(app.pane)

        for start in range(200, 350, 50):
            late = make_entry(start - 190.5, f"late {start}")
            add_logs(app.context.store, *numbered(start, start + 50), late)
            await settle(pilot)
            assert [line[:-1] for line in screen_of(app.pane.view)] == before
        assert app.pane.view.behind > 150

        # Far beyond what is held, the page stays and says so.
        add_logs(app.context.store, *numbered(350, 1_000))
        await settle(pilot)
        assert [line[:-1] for line in screen_of(app.pane.view)] == before
        assert "no longer held" in status(app.pane)
        await pilot.press("end")
        assert len(app.context.store.logs) <= 400
        assert "line 999" in screen_of(app.pane.view)[-1]
        assert "following" in status(app.pane)


async def test_a_stream_of_lines_repaints_at_its_own_pace() -> None:
    store = Store()
    app = PaneHost(LogsPane(follow_interval_s=1), store)
    async with app.run_test(size=SIZE) as pilot:
        add_logs(store, make_entry(0, "line 0"))
        await settle(pilot)
        assert "line 0" in screen_of(app.pane.view)[0]
        add_logs(store, *numbered(1, 5))
        await pilot.pause()
        assert screen_of(app.pane.view)[1].strip() == ""
        async with asyncio.timeout(5):
            while "line 4" not in screen_of(app.pane.view)[4]:
                await pilot.pause()


async def test_scrolling_to_the_end_follows_again() -> None:
    app = make_host(*numbered(0, 100))
    async with app.run_test(size=SIZE) as pilot:
        app.pane.view.focus()
        await pilot.press("up", "up")
        assert not app.pane.view.following
        await pilot.press("down", "down")
        assert app.pane.view.following


async def test_following_keeps_the_view_moved_sideways() -> None:
    app = make_host(*(make_entry(at, f"{at} " + "abcdefgh" * 30) for at in range(50)))
    async with app.run_test(size=SIZE) as pilot:
        app.pane.view.focus()
        await pilot.press("right", "right")
        assert app.pane.view.side == 16
        add_logs(app.context.store, make_entry(60, "x" * 16 + "RIGHT HERE"))
        await settle(pilot)
        assert app.pane.view.side == 16
        assert "RIGHT HERE" in screen_of(app.pane.view)[-1]
        assert "x" not in screen_of(app.pane.view)[-1]


async def test_filter_and_inverse_show_only_what_they_should_and_mark_it() -> None:
    app = make_host(
        make_entry(1, "alpha one"), make_entry(2, "beta two"), make_entry(3, "alpha three")
    )
    async with app.run_test(size=SIZE) as pilot:
        app.pane.filter("alpha")
        await settle(pilot)
        text = "".join(screen_of(app.pane.view))
        assert "one" in text
        assert "three" in text
        assert "beta" not in text
        marked = [
            segment.text
            for segment in app.pane.view.render_line(0)
            if segment.style and segment.style.reverse
        ]
        assert marked == ["alpha"]
        app.pane.filter("!alpha")
        await settle(pilot)
        text = "".join(screen_of(app.pane.view))
        assert "beta two" in text
        assert "alpha" not in text
        app.pane.filter("gamma")
        await settle(pilot)
        assert "No lines that match the filter, among 3 lines" in " ".join(
            screen_of(app.pane.view)
        ).replace("  ", "")
        app.pane.filter("")
        await settle(pilot)
        assert app.pane.view.lines.count == 3


async def test_jumping_goes_from_error_to_error_and_stops_at_the_last() -> None:
    entries = [
        replace(entry, severity=Severity.ERROR if at % 40 == 7 else Severity.INFO)
        for at, entry in enumerate(numbered(0, 200))
    ]
    app = make_host(*entries)
    async with app.run_test(size=SIZE) as pilot:
        seen = []
        for _ in range(6):
            app.pane.perform("logs-previous-error")
            await settle(pilot)
            seen.append(app.pane.view.marked.entry.text if app.pane.view.marked else "")
        assert seen == ["line 167", "line 127", "line 87", "line 47", "line 7", "line 7"]
        app.pane.perform("logs-next-error")
        await settle(pilot)
        assert app.pane.view.marked is not None
        assert app.pane.view.marked.entry.text == "line 47"
        assert any(line.startswith("▌") and "line 47" in line for line in screen_of(app.pane.view))
        assert app.pane.copy_text() == "line 47"


async def test_wrapped_lines_can_be_read_to_their_end() -> None:
    app = make_host(
        *numbered(0, 30), make_entry(31, "head " + "w" * 400 + " tail"), *numbered(40, 43)
    )
    async with app.run_test(size=(60, 12)) as pilot:
        app.pane.perform("logs-wrap")
        await settle(pilot)
        text = screen_of(app.pane.view)
        assert "line 42" in text[-1]
        assert any("tail" in line for line in text)
        app.pane.view.focus()
        await pilot.press("up", "up", "up", "up")
        assert "line 42" not in "".join(screen_of(app.pane.view))
        await pilot.press("down", "down", "down", "down")
        assert "line 42" in screen_of(app.pane.view)[-1]


NASTY = (
    "\x1b[31mred\x1b[0m",
    "\x1b]52;c;aGFja2Vk\x07clipboard",
    "\x1b[2J\x1b[Hcleared",
    "[bold red]markup[/bold red] [@click=app.quit]click[/]",
    "\u202eright to left\u202c \u2066isolate\u2069",
    "nul\x00 bell\x07 back\x08space \x9b31m c1",
    "tab\there\vand\fthere",
    "漢字テスト한글",
    "🎉👩‍👩‍👧‍👦🏳️‍🌈 e\u0301 \u200b zero",
    "\ud800 lone surrogate",
    "line\u2028separator\u2029",
    "half a sequence \x1b[38;2;1",
)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("plain", [False, True])
async def test_no_cell_holds_anything_but_harmless_text(wrap: bool, plain: bool) -> None:
    chance = random.Random(7)
    pieces = [*NASTY, *(chr(chance.randrange(0x10FFFF)) for _ in range(200))]
    texts = ["".join(chance.choices(pieces, k=chance.randrange(1, 9))) for _ in range(300)]
    entries = [
        make_entry(at, text, node_id=chance.choice(NASTY), worker_id=chance.choice(("0", "\x1b[m")))
        for at, text in enumerate([*NASTY, *texts])
    ]
    app = make_host(*entries, plain=plain)
    async with app.run_test(size=SIZE) as pilot:
        if wrap:
            app.pane.perform("logs-wrap")
        app.pane.view.focus()
        for _ in range(40):
            for line in screen_of(app.pane.view):
                found = {unicodedata.category(character) for character in line}
                assert not found & {"Cc", "Cf", "Cs", "Zl", "Zp"}, repr(line)
            await pilot.press("pageup")
        assert "[bold red]markup[/bold red]" in app.pane.copy_text() or wrap


async def test_every_row_is_exactly_as_wide_as_the_view() -> None:
    entries = [make_entry(at, text * 9) for at, text in enumerate(NASTY)]
    app = make_host(*entries)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        for side in range(4):
            for y in range(app.pane.view.size.height):
                assert app.pane.view.render_line(y).cell_length in {0, 80}, (side, y)
            app.pane.view.action_scroll_side(1)


async def test_a_line_of_five_megabytes_does_not_freeze() -> None:
    app = make_host(*numbered(0, 50))
    async with app.run_test(size=SIZE) as pilot:
        long = "\x1b[31mx" * 500_000 + "y" * 3_000_000
        add_logs(app.context.store, make_entry(60, long))
        began = time.process_time()
        screen_of(app.pane.view)
        app.pane.perform("logs-wrap")
        screen_of(app.pane.view)
        app.pane.filter("zzz")
        app.pane.filter("")
        screen_of(app.pane.view)
        assert time.process_time() - began < 1.5
        await settle(pilot)
        assert app.context.store.logs.newest(1)[0].text == "x" * 500_000 + "y" * 3_000_000


async def test_a_burst_of_fifty_thousand_lines_leaves_the_screen_quick() -> None:
    app = make_host()
    async with app.run_test(size=SIZE) as pilot:
        worst = 0.0
        for start in range(0, 50_000, 12_500):
            entries = numbered(start, start + 12_500)
            began = time.process_time()
            ring = app.context.store.logs
            ring.add(entries)
            taken = time.process_time()
            app.pane.view.sync()
            screen_of(app.pane.view)
            worst = max(worst, time.process_time() - taken)
            assert taken - began < 1
        assert "line 49999" in screen_of(app.pane.view)[-1]
        assert worst < 0.5
        await settle(pilot)


async def test_the_selected_run_or_node_limits_what_is_shown() -> None:
    store = Store()
    list_nodes(store, make_node("demo-1"), make_node("demo-2"), make_node("other-1", run="other"))
    add_logs(
        store,
        make_entry(1, "of the first life", node_id="demo-1", run="demo"),
        make_entry(2, "of the second life", node_id="demo-2", run="demo"),
        make_entry(3, "of another run", node_id="other-1", run="other"),
    )
    app = PaneHost(LogsPane(follow_interval_s=0), store)
    async with app.run_test(size=SIZE) as pilot:

        async def shown(subject: Subject | None) -> str:
            app.pane.selection_changed(subject)
            await settle(pilot)
            return "".join(screen_of(app.pane.view))

        everything = await shown(None)
        assert "another run" in everything
        assert "first life" in everything
        of_run = await shown(Subject(SubjectKind.RUN, "demo", "demo", node_name("demo-2")))
        assert "first life" in of_run
        assert "second life" in of_run
        assert "another run" not in of_run
        name = node_name("demo-2")
        of_node = await shown(Subject(SubjectKind.NODE, name, "demo", name))
        assert "second life" in of_node
        assert "first life" not in of_node
        app.pane.perform("logs-scope")
        await settle(pilot)
        assert "another run" in "".join(screen_of(app.pane.view))


async def test_the_empty_pane_says_why_and_what_to_press() -> None:
    store = Store()
    app = PaneHost(LogsPane(follow_interval_s=0), store)
    async with app.run_test(size=SIZE) as pilot:
        assert "Waiting for the first answer about logs" in app.pane.empty_reason()
        report_source(
            store,
            "logs",
            SourceState.FAILING,
            title="permission denied",
            hint="ask for roles/logging.viewer",
            last_success=NOW - timedelta(minutes=7),
        )
        reason = app.pane.empty_reason()
        assert "Logs can't be read (last answer 7m00s ago): permission denied." in reason
        assert "roles/logging.viewer" in reason
        report_source(store, "logs")
        assert "Press L to launch" in app.pane.empty_reason()
        await settle(pilot)
        assert "Press L to launch" in "".join(screen_of(app.pane.view))
        read_runs(store, make_run())
        assert "agent has started" in app.pane.empty_reason()


async def test_ages_go_on_and_touch_nothing_else() -> None:
    app = make_host(make_entry(-65, "a line"))
    async with app.run_test(size=SIZE) as pilot:
        app.pane.perform("logs-time")
        await settle(pilot)
        assert "1m05s" in screen_of(app.pane.view)[0]
        app.tick(2)
        await settle(pilot)
        assert "1m07s" in screen_of(app.pane.view)[0]


async def test_any_size_and_shrinking_to_nothing() -> None:
    app = make_host(*numbered(0, 100), make_entry(200, "漢" * 400))
    async with app.run_test(size=SIZE) as pilot:
        for size in ((10, 3), (1, 1), (200, 60), (21, 2), (80, 24)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            app.pane.perform("logs-wrap")
            await settle(pilot)
        assert "漢" in screen_of(app.pane.view)[-1]
