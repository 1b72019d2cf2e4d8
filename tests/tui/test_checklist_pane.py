"""The checklist pane: worst first, in words, glyphs and colours, with what to do."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.tui.factories import NOW, report_source
from tests.tui.pane_host import PaneHost, screen_of, settle
from tpudash.domain.finding import Finding, Verdict
from tpudash.store.changes import FindingsMade
from tpudash.store.snapshot import SourceState
from tpudash.store.store import Store
from tpudash.tui.pane import Subject, SubjectKind
from tpudash.tui.widgets.checklist_pane import VERDICT_LOOKS, ChecklistPane
from tpudash.tui.widgets.row_view import RowView
from tpudash.tui.widgets.span_view import SpanView

FINDINGS = (
    Finding(
        "node-ready", "Node is READY", Verdict.PASS, "READY for 28m", subject="demo-2", as_of=NOW
    ),
    Finding(
        "preempted",
        "Node was preempted",
        Verdict.FAIL,
        "state PREEMPTED; it still holds quota",
        why="A preempted node never comes back.",
        advice="Resume the run on a new node.",
        subject="demo-1",
        action="resume",
        command="tpudash resume demo",
        as_of=NOW,
    ),
    Finding("tensorboard", "TensorBoard", Verdict.NOT_APPLICABLE, "nothing forwarded"),
    Finding(
        "quota",
        "Spot quota",
        Verdict.UNKNOWN,
        "403 [bold]denied[/bold] \x1b[31m\u202e",
        as_of=NOW - timedelta(minutes=7),
    ),
    Finding("checkpoint", "Checkpoint is recent", Verdict.WARN, "40 steps at risk", subject="demo"),
)


def make_store(*findings: Finding) -> Store:
    store = Store()
    report_source(store, "checklist")
    store.apply(FindingsMade(findings))
    return store


def table(app: PaneHost[ChecklistPane]) -> list[str]:
    return screen_of(app.pane.query_one(RowView))


def detail(app: PaneHost[ChecklistPane]) -> str:
    return "\n".join(screen_of(app.pane.query(SpanView).last()))


async def test_the_worst_is_first_and_is_explained() -> None:
    app = PaneHost(ChecklistPane(), make_store(*FINDINGS))
    async with app.run_test(size=(100, 20)) as pilot:
        await settle(pilot)
        words = [line.split()[:2] for line in table(app)[1:6]]
        assert [" ".join(word).strip("▌ ") for word in words] == [
            "✗ fail",
            "▲ warn",
            "? unknown",
            "✓ pass",
            "· n/a",
        ]
        text = detail(app)
        assert "Node was preempted: demo-1" in text
        assert "it still holds quota" in text
        assert "A preempted node never comes back." in text
        assert (
            "Resume the run on a new node. Press R (resume). Command: tpudash resume demo" in text
        )
        assert app.pane.title_note() == "1 fail 1 warn 1 unknown"


async def test_moving_through_the_rows_shows_each_one() -> None:
    app = PaneHost(ChecklistPane(), make_store(*FINDINGS))
    async with app.run_test(size=(100, 20)) as pilot:
        app.pane.query_one(RowView).focus()
        await pilot.press("down", "down")
        assert "Spot quota" in detail(app)
        assert "[bold]denied[/bold] �" in detail(app)
        assert "7m00s" in table(app)[3]
        await pilot.press("end")
        assert "nothing forwarded" in detail(app)
        assert "\x1b" not in app.pane.copy_text()


async def test_the_cursor_stays_on_its_row_when_others_come_and_go() -> None:
    store = make_store(*FINDINGS)
    app = PaneHost(ChecklistPane(), store)
    async with app.run_test(size=(100, 20)) as pilot:
        app.pane.query_one(RowView).focus()
        await pilot.press("down")
        worse = Finding("api", "API is on", Verdict.FAIL, "SERVICE_DISABLED")
        store.apply(FindingsMade((worse, *FINDINGS)))
        await settle(pilot)
        assert "Checkpoint is recent" in detail(app)
        assert "▌▲ warn" in table(app)[3]
        store.apply(FindingsMade((FINDINGS[0],)))
        await settle(pilot)
        assert "Node is READY" in detail(app)
        assert app.pane.title_note() == "all pass"


async def test_a_reader_at_the_top_sees_the_newest_trouble() -> None:
    store = make_store(FINDINGS[0], FINDINGS[3])
    app = PaneHost(ChecklistPane(), store)
    async with app.run_test(size=(100, 20)) as pilot:
        await settle(pilot)
        assert "Spot quota" in detail(app)
        store.apply(FindingsMade(FINDINGS))
        await settle(pilot)
        assert "Node was preempted: demo-1" in detail(app)
        assert "Resume the run on a new node." in detail(app)


async def test_watch_mode_names_no_key_that_it_does_not_have() -> None:
    app = PaneHost(ChecklistPane(), make_store(*FINDINGS), is_watch=True)
    async with app.run_test(size=(100, 20)) as pilot:
        await settle(pilot)
        assert "Press R" not in detail(app)
        assert "Command: tpudash resume demo" in detail(app)


async def test_a_selected_run_brings_up_what_is_wrong_with_it() -> None:
    app = PaneHost(ChecklistPane(), make_store(*FINDINGS))
    async with app.run_test(size=(100, 20)) as pilot:
        app.pane.selection_changed(Subject(SubjectKind.RUN, "demo", "demo"))
        await settle(pilot)
        assert "Checkpoint is recent" in detail(app)


@pytest.mark.parametrize("part", ["word", "glyph", "plain_glyph"])
def test_verdicts_are_told_apart_without_colour(part: str) -> None:
    assert len({getattr(look, part) for look in VERDICT_LOOKS.values()}) == len(Verdict)


async def test_filter_sizes_and_plain_glyphs() -> None:
    app = PaneHost(ChecklistPane(), make_store(*FINDINGS), plain=True)
    async with app.run_test(size=(80, 24)) as pilot:
        app.pane.filter("!pass demo")
        await settle(pilot)
        shown = [line for line in table(app)[1:] if line.strip()]
        assert len(shown) == 2
        assert shown[0].startswith(">x fail")
        for size in ((30, 7), (12, 3), (1, 1), (200, 60)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
        app.pane.filter("nothing like it")
        await settle(pilot)
        assert "No check matches the filter." in table(app)[0]


async def test_the_empty_pane_says_why() -> None:
    store = Store()
    app = PaneHost(ChecklistPane(), store)
    async with app.run_test(size=(80, 10)) as pilot:
        assert "Waiting for the first answer about checklist" in app.pane.empty_reason()
        report_source(store, "checklist", SourceState.FAILING, title="the checks crashed")
        await settle(pilot)
        assert "the checks crashed" in "".join(table(app))
        report_source(store, "checklist")
        assert "Nothing was checked yet" in app.pane.empty_reason()
