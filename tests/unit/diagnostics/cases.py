"""Evidence for checks, made from a store that is filled by hand."""

from __future__ import annotations

import importlib
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.tui.factories import (
    NOW,
    add_logs,
    connect,
    list_nodes,
    make_entry,
    make_node,
    read_runs,
    report_source,
)
from tpudash.cost.prices import PriceBook
from tpudash.diagnostics.evidence import Evidence, gather
from tpudash.store.snapshot import SOURCES
from tpudash.store.store import Store

if TYPE_CHECKING:
    from tpudash.domain.finding import Finding
    from tpudash.domain.log import LogEntry
    from tpudash.domain.node import Node
    from tpudash.domain.run import Run

BOOK = PriceBook.bundled()


def ago(**spans: float) -> datetime:
    return NOW - timedelta(**spans)


def healthy_store() -> Store:
    """A store of which every source has answered."""
    store = Store()
    for source in SOURCES:
        report_source(store, source)
    return store


def evidence(
    *nodes: Node,
    runs: tuple[Run, ...] = (),
    emulator: bool = False,
    store: Store | None = None,
    **more: Any,
) -> Evidence:
    """Evidence of nodes and runs, listed two hours ago and since then unchanged."""
    store = store or healthy_store()
    list_nodes(store, *nodes, at=ago(hours=2))
    read_runs(store, *runs)
    if emulator:
        connect(store)
    return replace(gather(store, BOOK, NOW), **more)


def check_node(name: str, node: Node, *others: Node, **more: Any) -> Finding:
    """Run one check on a node."""
    return _run(name, evidence(node, *others, **more).about_node(node))


def check_run(name: str, run: Run, *nodes: Node, **more: Any) -> Finding:
    """Run one check on a run."""
    return _run(name, evidence(*nodes, runs=(run,), **more).about_run(run))


def check_project(name: str, **more: Any) -> Finding:
    """Run one check on the project."""
    return _run(name, evidence(**more))


def check_with(name: str, given: Evidence) -> Finding:
    """Run one check on evidence as it is."""
    return _run(name, given)


def event(name: str, second: float = -5, /, **payload: Any) -> LogEntry:
    """A trainer event of the first attempt of the run `demo`."""
    return make_entry(second, "", attempt=1, stream="event", payload={"event": name, **payload})


def _run(name: str, given: Evidence) -> Finding:
    module = importlib.import_module(f"tpudash.diagnostics.checks.{name}")
    finding: Finding = module.check(given)
    assert finding.check_id == name.replace("_", "-")
    return finding


def with_logs(name: str, run: Any, *entries: Any, **more: Any) -> Finding:
    store = healthy_store()
    add_logs(store, *entries)
    return check_run(name, run, make_node(), store=store, **more)
