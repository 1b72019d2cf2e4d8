"""What the keys of the logs pane do: search, jump, mark, fold, name causes, save."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.tui.factories import add_logs, make_entry
from tests.tui.pane_host import PaneHost, screen_of, settle
from tests.tui.test_logs_pane import SIZE, make_host, numbered, status
from tpudash.clock import SystemClock
from tpudash.domain.log import LogEntry, Severity
from tpudash.store.log_file import LogFile
from tpudash.tui.log_viewer import LogViewer
from tpudash.tui.settings import ConsoleSettings
from tpudash.tui.widgets.log_page import MOST_CHARACTERS, LogLinePage, pieces

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from textual.pilot import Pilot

    from tpudash.tui.widgets.logs_pane import LogsPane

HBM = "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 17.5G of 15.48G hbm."


def entry(second: float, text: str, severity: Severity = Severity.INFO, **more: Any) -> LogEntry:
    return replace(make_entry(second, text, **more), severity=severity)


def all_of(app: PaneHost[LogsPane]) -> str:
    return "\n".join(screen_of(app.pane.view))


def marked(app: PaneHost[LogsPane]) -> str:
    row = app.pane.view.marked
    return row.entry.text if row else ""


async def search(app: PaneHost[LogsPane], pilot: Pilot[None], words: str) -> None:
    app.pane.perform("logs-search")
    await settle(pilot)
    await pilot.press(*words, "enter")
    await settle(pilot)


async def test_a_search_marks_all_it_finds_and_goes_both_ways() -> None:
    app = make_host(
        *(replace(one, text=f"{one.text} x{at % 30}") for at, one in enumerate(numbered(0, 120)))
    )
    async with app.run_test(size=SIZE) as pilot:
        await search(app, pilot, "x7")
        assert marked(app) == "line 97 x7"
        assert app.pane.view.lines.count == 120, "a search hides nothing"
        app.pane.perform("logs-previous-match")
        await settle(pilot)
        assert marked(app) == "line 67 x7"
        app.pane.perform("logs-next-match")
        app.pane.perform("logs-next-match")
        await settle(pilot)
        assert marked(app) == "line 97 x7"
        shown = screen_of(app.pane.view)
        at = next(y for y, line in enumerate(shown) if "line 97" in line)
        bright = [
            segment.text
            for segment in app.pane.view.render_line(at)
            if segment.style and segment.style.reverse
        ]
        assert bright == ["x7"]
        await pilot.press("n")
        assert app.pane.view.has_focus


async def test_escape_ends_a_search_and_clears_it() -> None:
    app = make_host(*numbered(0, 10))
    async with app.run_test(size=SIZE) as pilot:
        app.pane.perform("logs-search")
        await settle(pilot)
        await pilot.press("l", "escape")
        await settle(pilot)
        assert app.pane.view.search.terms == ()
        assert app.pane.view.has_focus


async def test_a_filter_typed_here_can_show_lines_beside() -> None:
    app = make_host(*numbered(0, 50))
    async with app.run_test(size=SIZE) as pilot:
        app.pane.perform("logs-filter")
        await settle(pilot)
        await pilot.press(*'"line 33"', "enter")
        await settle(pilot)
        assert app.pane.view.lines.count == 1
        app.pane.perform("logs-more-context")
        await settle(pilot)
        assert app.pane.view.lines.count == 3
        assert "with 1 beside" in status(app.pane)
        app.pane.perform("logs-less-context")
        assert app.pane.view.lines.count == 1


def steps() -> list[LogEntry]:
    events = ("start", "step", "checkpoint", "step", "preempt", "restore", "step", "finish")
    return [
        entry(at, "", run="demo", payload={"event": event, "step": at + 1})
        for at, event in enumerate(events)
    ]


async def test_steps_checkpoints_and_restarts_can_be_jumped_to() -> None:
    app = make_host(*steps())
    async with app.run_test(size=SIZE) as pilot:
        found = []
        for what in ("step", "checkpoint", "restart", "restart", "event"):
            app.pane.perform(f"logs-previous-{what}")
            await settle(pilot)
            row = app.pane.view.marked
            found.append(row.entry.event if row else None)
        assert found == ["step", "checkpoint", "start", "start", "start"]
        app.pane.perform("logs-next-restart")
        await settle(pilot)
        assert app.pane.view.marked is not None
        assert app.pane.view.marked.entry.event == "preempt"


async def test_bookmarks_can_be_set_gone_to_and_taken_away() -> None:
    app = make_host(*numbered(0, 200))
    async with app.run_test(size=SIZE) as pilot:
        app.pane.perform("logs-bookmark")
        await settle(pilot)
        assert any(line.startswith("◆") and "line 199" in line for line in screen_of(app.pane.view))
        app.pane.view.action_go_home()
        app.pane.perform("logs-next-bookmark")
        await settle(pilot)
        assert marked(app) == "line 199"
        app.pane.perform("logs-bookmark")
        assert app.pane.view.bookmarks == {}


def slice_lines() -> list[LogEntry]:
    return [
        entry(
            at + worker / 100,
            f"said {at}",
            worker_id=str(worker),
            attempt=1,
        )
        for at in range(5)
        for worker in range(4)
    ]


async def test_what_all_workers_say_is_one_line_and_one_worker_can_be_seen_alone() -> None:
    app = make_host(*slice_lines())
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert "x4 said 4" in all_of(app)
        assert all_of(app).count("said 4") == 1
        app.pane.perform("logs-fold")
        await settle(pilot)
        assert all_of(app).count("said 4") == 4
        app.pane.perform("logs-only-worker")
        await settle(pilot)
        assert all_of(app).count("said 4") == 1
        assert 'worker:"3"' in status(app.pane)
        app.pane.perform("logs-only-worker")
        await settle(pilot)
        assert all_of(app).count("said 4") == 4


async def test_severities_are_stepped_through() -> None:
    levels = (Severity.INFO, Severity.WARNING, Severity.ERROR)
    app = make_host(*(entry(at, str(level), severity=level) for at, level in enumerate(levels)))
    async with app.run_test(size=SIZE) as pilot:
        counts = []
        for _ in range(3):
            app.pane.perform("logs-severity")
            await settle(pilot)
            counts.append(app.pane.view.lines.count)
        assert counts == [2, 1, 3]


async def test_the_cause_is_named_in_place_and_can_be_gone_to() -> None:
    def failed(second: float, text: str, worker: str) -> LogEntry:
        more: dict[str, Any] = {"severity": Severity.ERROR, "worker_id": worker, "run": "demo"}
        return entry(second, text, attempt=1, **more)

    app = make_host(
        *numbered(0, 60),
        failed(61, "UNAVAILABLE: failed to connect to all addresses", "0"),
        failed(60.5, HBM, "3"),
        *numbered(70, 130),
    )
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert "cause: HBM_OOM, worker 3" in status(app.pane)
        app.pane.perform("logs-cause")
        await settle(pilot)
        assert marked(app) == HBM
        assert "[cause: HBM_OOM] RESOURCE_EXHAUSTED" in all_of(app)


async def test_a_line_can_be_read_in_full() -> None:
    trace = ("Traceback (most recent call last):", "  File x", "ValueError: no")
    app = make_host(
        *(entry(at, text, stream="stderr") for at, text in enumerate(trace)),
        entry(5, "[b]long[/b] " + "y" * 5_000, payload={"deep": {"er": [1, 2]}}),
    )
    async with app.run_test(size=SIZE) as pilot:
        app.pane.perform("logs-line")
        await settle(pilot)
        page = app.screen
        assert isinstance(page, LogLinePage)
        assert '"er": [' in page.plain_text
        assert "[b]long[/b]" in page.plain_text
        assert page.plain_text.count("y") >= 5_000
        await pilot.press("escape")
        app.pane.perform("logs-previous-error")
        await settle(pilot)
        app.pane.perform("logs-line")
        await settle(pilot)
        page = app.screen
        assert isinstance(page, LogLinePage)
        assert "ValueError: no" in page.plain_text


def test_what_a_page_leaves_out_of_a_line_is_said() -> None:
    assert pieces("short\nlines") == ["short", "lines"]
    *shown, last = pieces("x" * (MOST_CHARACTERS + 4_321))
    assert sum(map(len, shown)) == MOST_CHARACTERS
    assert last == "(4,321 more characters)"


async def test_the_heartbeat_shows_who_is_silent() -> None:
    app = make_host(
        entry(-700, "long ago", worker_id="1"),
        entry(-3, "", worker_id="0", payload={"event": "step", "step": 1_234}),
    )
    async with app.run_test(size=SIZE) as pilot:
        app.pane.perform("logs-heartbeat")
        await settle(pilot)
        rows = ["".join(span.text for span in row) for row in app.pane.query_one(".beats").rows]  # type: ignore[attr-defined]
        assert "SILENT" in rows[0]
        assert "demo-1:1" in rows[1]
        assert "11m" in rows[1]
        assert "1,234" in rows[2]
        app.pane.perform("logs-heartbeat")
        await settle(pilot)
        assert app.pane.view.display


async def test_a_late_line_of_a_standing_view_does_not_move_what_is_searched() -> None:
    app = make_host(*numbered(0, 100))
    async with app.run_test(size=SIZE) as pilot:
        await search(app, pilot, '"line 50"')
        before = [line[:-1] for line in screen_of(app.pane.view)]
        add_logs(app.context.store, entry(10.5, "late"), entry(200, "newest"))
        await settle(pilot)
        assert [line[:-1] for line in screen_of(app.pane.view)] == before


def make_viewer(path: Path, folder: Path) -> LogViewer:
    file = LogFile(path)
    settings = ConsoleSettings(copy_file=folder / "copied.txt")
    return LogViewer(
        file, poll=file.poll, about=list, clock=SystemClock(), settings=settings, title="a file"
    )


async def test_the_viewer_shows_the_tail_of_a_file_follows_and_saves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tpudash.tui.log_viewer.POLL_S", 0.01)
    path = tmp_path / "log"
    path.write_text("".join(f"line {at}\n" for at in range(60_000)))
    app = make_viewer(path, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert any("line 59999" in line for line in screen_of(app.pane.view))
        with path.open("a") as more:
            more.write("one more\n")
        for _ in range(200):
            await pilot.pause(0.01)
            if any("one more" in line for line in screen_of(app.pane.view)):
                break
        else:
            raise AssertionError("the new line never came")
        await pilot.press("home")
        await settle(pilot)
        assert "line 0" in screen_of(app.pane.view)[0]
        await pilot.press("/", *"line 31234", "enter")
        await settle(pilot)
        row = app.pane.view.marked
        assert row is not None
        assert row.text == "line 31234"
        await pilot.press("h")
        await settle(pilot)
        (told,) = app.pane.query_one(".beats").rows  # type: ignore[attr-defined]
        assert "only live logs do" in told[0].text
        await pilot.press("h", "?")
        await settle(pilot)
        assert app.screen.id == "help-screen"
        await pilot.press("escape")
        app.pane.filter('"line 5999"')
        app.pane.perform("logs-save")
        saved = tmp_path / "logs"
        for _ in range(200):
            await pilot.pause(0.01)
            if saved.exists() and list(saved.iterdir()):
                break
        (file,) = saved.iterdir()
        assert file.stat().st_mode & 0o777 == 0o600
        await pilot.press("q")


async def test_a_cause_far_back_in_a_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "log"
    rest = "".join(f"an ordinary line of a file {at}\n" for at in range(20_000))
    path.write_text(f"{rest}{HBM}\n{rest}")
    app = make_viewer(path, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert app.pane.cause is None
        await pilot.press("!")
        for _ in range(200):
            await pilot.pause(0.01)
            if app.pane.view.marked is not None:
                break
        assert any("[cause: HBM_OOM]" in line for line in screen_of(app.pane.view))
        await pilot.press("enter")
        await settle(pilot)
        page = app.screen
        assert isinstance(page, LogLinePage)
        assert "Without a time" in page.plain_text


async def test_a_bookmark_that_the_filter_leaves_out_is_not_gone_to() -> None:
    app = make_host(*numbered(0, 100))
    async with app.run_test(size=SIZE) as pilot:
        await search(app, pilot, '"line 50"')
        app.pane.perform("logs-bookmark")
        for words, shown in (('"line 3"', "line 3"), ('"line 50"', "line 50")):
            app.pane.filter(words)
            await settle(pilot)
            app.pane.perform("logs-next-bookmark")
            await settle(pilot)
            assert shown in all_of(app)
        assert "line 50" in marked(app)


async def test_a_cause_without_a_time_is_not_given_one(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(f"{HBM}\n")
    app = make_viewer(path, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await until_status(app, pilot, "cause: HBM_OOM (!)")


async def test_a_filter_that_is_no_regular_expression_says_so_on_a_narrow_screen(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log"
    path.write_text(f"{HBM}\n" * 10_000)
    app = make_viewer(path, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        app.pane.filter("/[a-/")
        problem = app.pane.view.lines.filter.problem
        assert problem
        await until_status(app, pilot, problem[:50])
        app.pane.filter('"said by nobody"')
        for _ in range(200):
            await pilot.pause(0.01)
            if "among" in app.pane.empty_reason():
                break
        assert "Press & for another filter." in app.pane.empty_reason()


async def until_status(app: LogViewer, pilot: Pilot[None], words: str) -> None:
    """Wait until the line below the log can be seen to say something."""
    told = ""
    for _ in range(300):
        await pilot.pause(0.01)
        told = status(app.pane)[: app.size.width]
        if words in told:
            return
    raise AssertionError(told)
