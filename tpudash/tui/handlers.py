"""What each action that works everywhere does."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from tpudash.tui.pane import PaneId, SubjectKind
from tpudash.tui.spending import spending
from tpudash.tui.terminal import find_traits
from tpudash.tui.widgets.nodes_pane import NodesPane
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.tui.acts import Acts
    from tpudash.tui.app import TpudashApp
    from tpudash.tui.log_viewer import LogViewer


class Handlers:
    """Turns actions into what the main screen, the dialogs and the acts do.

    Args:
        acts: What changes the cloud, or None in watch mode.
    """

    def __init__(self, app: TpudashApp, acts: Acts | None) -> None:
        self._app = app
        self._acts = acts

    def table(self) -> dict[str, Callable[[], None]]:
        """Return a function for each action that works everywhere, by its id."""
        app, main = self._app, self._app.main
        return {
            **{f"pane-{pane}": self._focus(pane) for pane in PaneId},
            "zoom": main.toggle_zoom,
            "launch": self._launch,
            "resume": self._resume,
            "delete": self._delete,
            "supervise": self._supervise,
            "budgets": self._show_budgets,
            "clean-up": self._clean_up,
            "follow": self._follow,
            "take-control": self._take_control,
            "preempt": self._preempt,
            "operations": self._show_operations,
            "history": self._show_history,
            "filter": main.begin_filter,
            "sort": self._sort,
            "pause": app.stage.toggle_pause,
            "copy": self._copy,
            "palette": self._show_palette,
            "help": self._show_help,
            "theme": app.next_theme,
            "quit": self._ask_to_quit,
        }

    def _focus(self, pane: PaneId) -> Callable[[], None]:
        return lambda: self._app.main.focus_pane(pane)

    @property
    def _nodes(self) -> NodesPane | None:
        pane = self._app.main.panes.get(PaneId.NODES)
        return pane if isinstance(pane, NodesPane) else None

    @property
    def _run(self) -> str:
        subject = self._app.context.subject
        return (subject.run or "") if subject else ""

    def _launch(self) -> None:
        if self._acts is not None:
            self._acts.launch()

    def _resume(self) -> None:
        if self._acts is not None and self._run:
            self._acts.resume(self._run)

    def _supervise(self) -> None:
        if self._acts is not None and self._run:
            self._acts.supervise(self._run)

    def _show_budgets(self) -> None:
        if self._acts is not None:
            self._acts.show_budgets()

    def _clean_up(self) -> None:
        if self._acts is not None:
            self._acts.clean_up(self._app.settings.idle_for)

    def _follow(self) -> None:
        if self._acts is not None:
            self._acts.follow()

    def _take_control(self) -> None:
        if self._acts is not None:
            self._acts.take_control()

    def _delete(self) -> None:
        subject = self._app.context.subject
        wanted = self._nodes.marked_subjects if self._nodes else ()
        wanted = wanted or ((subject,) if subject else ())
        alive = tuple(one for one in wanted if one.kind is not SubjectKind.TOMBSTONE)
        if self._acts is not None and alive:
            self._acts.delete(alive)

    def _preempt(self) -> None:
        subject = self._app.context.subject
        if self._acts is not None and subject is not None and subject.node is not None:
            self._acts.preempt(subject.node)

    def _show_palette(self) -> None:
        from tpudash.tui.screens.command_palette import ActionPalette

        self._app.push_screen(ActionPalette())

    def _show_operations(self) -> None:
        from tpudash.tui.screens.operations import OperationsScreen

        self._app.main.strip.acknowledge()
        self._app.push_screen(OperationsScreen(self._app))

    def _show_history(self) -> None:
        from tpudash.tui.screens.past import PastScreen

        self._app.push_screen(PastScreen(self._app))

    def _show_help(self) -> None:
        from tpudash.tui.screens.help import HelpScreen

        app = self._app
        app.push_screen(HelpScreen(app, app.main.current, app.keymap, app.situation))

    def _sort(self) -> None:
        if self._nodes is not None:
            self._nodes.sort_by()
            self._app.main.draw_titles()

    def _copy(self) -> None:
        pane = self._app.main.current
        work = self._app.action_copy_text(pane.copy_text(), f"from {pane.title.lower()}")
        self._app.run_worker(work)

    def _ask_to_quit(self) -> None:
        from tpudash.tui.screens.confirm import ConfirmDialog

        app = self._app
        if app.screen.id == "quit-dialog":
            app.exit()
            return
        billed = spending(app.context.store.snapshot, app.context.prices)
        if self._acts is None or not billed.billed:
            app.exit()
            return
        nodes = "1 node keeps" if billed.billed == 1 else f"{billed.billed} nodes keep"
        rate = billed.text(plain=app.settings.ascii)
        lines = (f"{nodes} running and billed at {rate} (estimate).", app.settings.leave_note)
        key = app.hints.key_or("quit", "y")
        title, name = "Leave tpudash?", "quit-dialog"
        dialog = ConfirmDialog(app, title, lines, yes="Leave", no="Stay", yes_key=key, id=name)
        app.push_screen(dialog, lambda yes: app.exit() if yes else None)


async def copy_text(app: TpudashApp | LogViewer, text: str, what: str) -> None:
    """Copy a text to the terminal's clipboard and to a file, and say where it went."""
    from tpudash.tui.copying import fits_clipboard, report, save_copy

    if not text.strip():
        app.notify("There is nothing to copy here.", severity="warning", markup=False)
        return
    is_sent = fits_clipboard(text)
    if is_sent:
        app.copy_to_clipboard(text)
    saved, path = "", app.settings.copy_file
    if path is not None:
        with contextlib.suppress(OSError):
            await asyncio.to_thread(save_copy, path, text)
            saved = str(path)
    words = report(what, is_sent=is_sent, saved=saved, is_tmux=find_traits().is_tmux)
    app.notify(safe_text(words, 400), markup=False)
