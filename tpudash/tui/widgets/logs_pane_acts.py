"""What the keys of the logs pane do."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tpudash.tui.widgets.log_input import Typing
from tpudash.tui.widgets.log_saving import append, chunks, file_for
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tpudash.tui.widgets.log_causes import Cause
    from tpudash.tui.widgets.log_view import LogView
    from tpudash.tui.widgets.logs_pane import LogsPane

JUMPS: Final = ("error", "step", "checkpoint", "restart", "event")


class LogsActs:
    """The acts of one pane, by the names of its actions without `logs-`."""

    def __init__(self, pane: LogsPane) -> None:
        self._pane = pane

    @property
    def _view(self) -> LogView:
        return self._pane.view

    def table(self) -> dict[str, Callable[[], object]]:
        """Return a function for each action."""
        pane, view, jumps = self._pane, self._view, self._view.jumps
        acts: dict[str, Callable[[], object]] = {
            "follow": view.toggle_follow,
            "wrap": view.toggle_wrap,
            "time": view.toggle_since,
            "fold": view.choices.toggle_folding,
            "scope": pane.toggle_scope,
            "search": lambda: pane.begin_typing(Typing.SEARCH),
            "filter": lambda: pane.begin_typing(Typing.FILTER),
            "next-match": lambda: jumps.to_match(1, self.missed("newer match")),
            "previous-match": lambda: jumps.to_match(-1, self.missed("older match")),
            "more-context": lambda: view.choices.change_context(1),
            "less-context": lambda: view.choices.change_context(-1),
            "severity": pane.next_severity,
            "only-worker": self._toggle_only,
            "bookmark": jumps.toggle_bookmark,
            "next-bookmark": self._next_bookmark,
            "cause": self._go_to_cause,
            "heartbeat": pane.toggle_beats,
            "line": self._open_line,
            "save": self._save,
        }
        for name in JUMPS:
            for word, step in (("next", 1), ("previous", -1)):
                missed = self.missed(f"{'newer' if step > 0 else 'older'} {name}")
                acts[f"{word}-{name}"] = partial(jumps.to_mark, name, step, missed)
        return acts

    def missed(self, what: str) -> Callable[[], None]:
        """Return what says that there is no such line."""
        return lambda: self.say(f"No {what} among these lines.")

    def search_from_newest(self) -> None:
        """Go to the nearest match: towards older lines first, for they are read from the end."""
        jumps = self._view.jumps
        jumps.to_match(-1, lambda: jumps.to_match(1, self.missed("match")))

    def say(self, words: str, severity: Any = "information") -> None:
        """Say something for a moment."""
        text = safe_text(words, 300)
        self._pane.app.notify(text, severity=severity, markup=False, timeout=4)

    def _toggle_only(self) -> None:
        row = self._view.current
        only = ""
        if row is not None and not self._view.lines.filter.is_of_worker:
            node, worker = row.source
            named = (("node", node), ("worker", worker))
            only = " ".join(f"{key}:{_quoted(value)}" for key, value in named if value)
        self._pane.show_only(only)

    def _next_bookmark(self) -> None:
        if not self._view.jumps.to_bookmark():
            words = "There is no bookmark among these lines; {logs-bookmark} sets one."
            self.say(self._pane.host.hints.fill(words))

    def _open_line(self) -> None:
        from tpudash.tui.widgets.log_page import LogLinePage

        row = self._view.current
        if row is not None:
            tag = self._view.tags.get(row.number, "")
            members = self._view.lines.members_of(row)
            self._pane.app.push_screen(LogLinePage(self._pane.host, row, members, tag))

    def _go_to_cause(self) -> None:
        cause = self._pane.cause
        if cause is None:
            search = self._pane.causes.search_back(self._view.lines)
            self._view.seeker.seek(
                search, lambda: self.say("No line tells of a cause that is known.")
            )
            return
        marked = self._view.marked
        if marked is not None and marked.number == cause.number:
            self._show_check(cause)
        elif not self._view.jumps.to_line(cause.number, cause.micros):
            self.say("The line that names the cause is no longer held.")

    def _show_check(self, cause: Cause) -> None:
        """Go to the row of the checklist that is about the same run."""
        from tpudash.tui.widgets.checklist_pane import ChecklistPane

        found = list(self._pane.screen.query(ChecklistPane))
        if not found:
            self.say(cause.advice)
            return
        app = self._pane.app
        app.call_later(getattr(app, "perform", lambda _: None), "pane-checklist")
        if not found[0].show_finding("run-failed", cause.group[0]):
            self.say(f"{cause.error_class}: {cause.advice}")

    def _save(self) -> None:
        folder = self._save_folder()
        if folder is None:
            self.say("Nothing is saved from here.", "warning")
            return
        path = file_for(folder, self._pane.scope_name, self._pane.context.now())
        self._pane.run_worker(self._write(path), name="save the log", exit_on_error=False)

    def _save_folder(self) -> Path | None:
        settings = getattr(self._pane.app, "settings", None)
        file: Path | None = getattr(settings, "copy_file", None)
        return None if file is None else file.parent / "logs"

    async def _write(self, path: Path) -> None:
        count = 0
        try:
            for chunk in chunks(self._view.lines):
                await asyncio.to_thread(append, path, chunk)
                count += chunk.count("\n")
        except OSError as error:
            self.say(f"{path} can't be written: {error.strerror}", "error")
            return
        self.say(f"Saved {count:,} lines in {path}" if count else "There is no line to save.")


def _quoted(value: str) -> str:
    return f'"{value.replace(chr(34), "")}"'
