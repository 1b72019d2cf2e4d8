"""Whatever text an address or an account stands in, a screen that everybody sees never shows it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from tests.tui.conftest import run_console_under_test as console
from tests.tui.factories import (
    NOW,
    add_logs,
    list_nodes,
    list_requests,
    make_attempt,
    make_entry,
    make_node,
    make_request,
    make_run,
    make_spec,
    read_runs,
    report_source,
)
from tpudash.domain.finding import Finding, Verdict
from tpudash.domain.masking import without_addresses
from tpudash.domain.node import Symptom, Worker
from tpudash.domain.run import RunState, Supervision
from tpudash.store.changes import Connected, FindingsMade
from tpudash.store.masked import MaskedStore
from tpudash.store.snapshot import SOURCES, ConnectionInfo, SourceState
from tpudash.tui.pane import PaneId
from tpudash.tui.screens.details import DetailsScreen

if TYPE_CHECKING:
    from tests.tui.conftest import Console

OWNER, HOST, OTHER_OWNER = "zeppelina", "bastionhost", "quixotico"
ACCOUNT = "trainer-sa@my-project.iam.gserviceaccount.com"
SECRETS = (OWNER, HOST, OTHER_OWNER, ACCOUNT, "eve@example.org", "10.9.8.7", "203.0.113.9")
LONGEST_WORD = 3
"""`::` and `::1` stand in programs as well."""
IPV6 = "2001:db8::beef"
WORDS = f"asked by eve@example.org at 10.9.8.7 (203.0.113.9, {IPV6}) as {ACCOUNT}"
BY_WHOM = f"Supervised by {OWNER} on {HOST} since 08:00, resumed for {OTHER_OWNER}. {WORDS}."


def poisoned_world() -> MaskedStore:
    """A store that was told of addresses and accounts in every text that comes from outside."""
    store = MaskedStore()
    store.apply(Connected(ConnectionInfo("demo", "127.0.0.1:9000", ACCOUNT, is_emulator=True)))
    labels = {"tpudash-owner": OWNER, "contact": "eve@example.org"}
    node: dict[str, Any] = {
        "labels": labels,
        "health": "UNHEALTHY_TENSORFLOW",
        "health_description": WORDS,
        "symptoms": (Symptom("OUT_OF_MEMORY", WORDS, "0", NOW - timedelta(minutes=3)),),
        "workers": (Worker(0, "10.9.8.7", "203.0.113.9"), Worker(1, IPV6, None)),
        "metadata": {"startup-script": f"# {BY_WHOM}\n", "tpudash-spec": f'{{"owner":"{OWNER}"}}'},
        "raw": {"serviceAccount": {"email": ACCOUNT}, "networkEndpoints": [{"ip": "10.9.8.7"}]},
    }
    gone = make_node("gone-1", run="gone", **node)
    lost = make_request("lost", failure=WORDS, labels={"tpudash-owner": OTHER_OWNER})
    list_nodes(store, gone, at=NOW - timedelta(hours=1))
    add_logs(store, *(make_entry(at, f"line {at} {WORDS}", node_id="gone-1") for at in range(3)))
    list_requests(store, lost)
    list_nodes(store, make_node("demo-1", **node), make_node("stray", run=None, **node))
    waiting = make_request(failure=WORDS, raw={"why": WORDS}, labels=labels)
    list_requests(store, waiting)
    supervision = Supervision(
        run="demo", owner=OWNER, host=HOST, pid=1, token="t", since=NOW, updated=NOW
    )
    spec = make_spec(owner=OTHER_OWNER, recipe=replace(make_spec().recipe, command=("x", WORDS)))
    failed = make_attempt(error={"class": "UNCLASSIFIED", "detail": WORDS, "hint": WORDS})
    run: dict[str, Any] = {"reason": BY_WHOM, "supervision": supervision, "spec": spec}
    read_runs(
        store,
        make_run(state=RunState.FAILED, owner=OTHER_OWNER, attempts=(failed,), **run),
        make_run("other", owner=OWNER, attempts=(), nodes=(), **run),
    )
    payload = {"event": "start", "message": WORDS, "arguments": {"by": [WORDS]}}
    add_logs(store, *(make_entry(at, f"{at} {WORDS}", payload=payload) for at in range(20)))
    finding = Finding("node-ready", f"T {WORDS}", Verdict.FAIL, BY_WHOM, WORDS, BY_WHOM, WORDS)
    store.apply(FindingsMade((finding, replace(finding, verdict=Verdict.WARN, command=WORDS))))
    for name in SOURCES:
        report_source(store, name, SourceState.FAILING, title=WORDS, detail=WORDS, hint=WORDS)
    return store


def seen_in(text: str) -> list[str]:
    return [secret for secret in (*SECRETS, IPV6) if secret in text]


def check(it: Console, where: str) -> None:
    shown = it.screen_text
    found = seen_in(shown)
    assert not found, f"{found} in {where}:\n{shown}"


async def test_no_pane_page_or_line_shows_them() -> None:
    async with console(poisoned_world(), is_watch=True, size=(200, 60)) as it:
        check(it, "the first frame")
        for key in it.table.row_keys:
            it.table.move_to(key)
            await it.press("enter")
            check(it, f"the details of {key}")
            assert isinstance(it.app.screen, DetailsScreen)
            assert not seen_in(it.app.screen.plain_text), key
            await it.press("escape")
        check(it, "the last row")
        for keys in (("3", "enter"), ("h",), ("?",), ("o",), ("4", "down"), ("5", "down", "z")):
            for key in keys:
                await it.press(key)
                check(it, f"after {key}")
            await it.press("escape")
        assert not seen_in(it.app.main.panes[PaneId.LOGS].copy_text() + it.nodes.copy_text())


async def test_a_small_screen_shows_none_either() -> None:
    async with console(poisoned_world(), is_watch=True, size=(80, 24)) as it:
        for pane in PaneId:
            await it.press(str(pane.number))
            check(it, f"pane {pane}")


@given(
    st.one_of(
        st.emails(),
        st.ip_addresses(v=4).map(str),
        st.ip_addresses(v=6).map(str).filter(lambda text: len(text) > LONGEST_WORD),
        st.ip_addresses(v=6).map(lambda one: one.exploded),
    ),
    st.sampled_from(("{}", "to {}.", "({})", "[{}]:8470", "by={},", "<{}>", '"{}"', "x {} y")),
)
def test_every_address_is_masked_whatever_stands_around_it(secret: str, around: str) -> None:
    assert secret not in without_addresses(around.format(secret))
