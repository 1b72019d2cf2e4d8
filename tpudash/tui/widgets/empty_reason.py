"""Why a pane is empty, in the same words for every source, and what to press."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.store.snapshot import NODES, SourceState
from tpudash.wording.format import age
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from tpudash.tui.hints import KeyHints
    from tpudash.tui.pane import ViewContext

FAILING_LIMIT: Final = 200


def source_problem(context: ViewContext, source: str) -> str:
    """Return what keeps a source from answering, with its age, or "" if it answers."""
    status = context.snapshot.sources.get(source)
    if status is None or status.state is SourceState.OK:
        return ""
    if status.state is SourceState.WAITING:
        return f"Waiting for the first answer about {source}."
    since = age(status.last_success, context.now(), step=5)
    heard = f"last answer {since} ago" if status.last_success else "no answer yet"
    parts = (
        f"{source} can't be read ({heard}): {safe_text(status.title or 'no reason given')}.",
        safe_text(status.detail, FAILING_LIMIT),
        safe_text(status.hint, FAILING_LIMIT),
    )
    text = " ".join(part for part in parts if part)
    return text[0].upper() + text[1:]


def nothing_runs(context: ViewContext, hints: KeyHints) -> str:
    """Return what to do where there is no run and no node at all, or "" if there is one."""
    snapshot = context.snapshot
    if snapshot.runs or snapshot.nodes or snapshot.requests:
        return ""
    if context.options.is_watch:
        return "Nothing runs in this project yet; it appears here once someone launches a run."
    return hints.fill("Nothing runs in this project yet. Press {launch} to launch a training run.")


def nothing_listed(context: ViewContext, hints: KeyHints) -> str:
    """Return why there is no run, no node and no request, and what to press."""
    status = context.snapshot.sources[NODES]
    if status.state is SourceState.FAILING:
        return " ".join(part for part in (status.title + ".", status.hint) if part)
    if status.state is SourceState.WAITING:
        return "Asking for nodes, requests and runs ..."
    launch = "" if context.options.is_watch else hints.fill(" Press {launch} to launch a run.")
    connection = context.snapshot.connection
    is_google = connection is not None and connection.endpoint is None
    newer = " TPU7x and later are not in the Cloud TPU API." if is_google else ""
    return f"There are no nodes, no requests and no runs here.{newer}{launch}"
