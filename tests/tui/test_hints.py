"""Texts that name keys follow the user's keymap."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import tpudash.tui
from tests.tui.factories import FakeControl, make_holder, make_world, read_runs
from tpudash.config.keymap import resolve_keymap
from tpudash.domain.control import Control
from tpudash.store.changes import ControlChanged
from tpudash.tui.actions import ACTIONS, keys_table
from tpudash.tui.acts import OperatorPorts
from tpudash.tui.hints import KeyHints
from tpudash.tui.settings import ConsoleSettings
from tpudash.tui.widgets.node_rows import node_key, run_key, tombstone_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractAsyncContextManager
    from typing import Any

IDS = frozenset(action.id for action in ACTIONS)
PLACEHOLDER = re.compile(r"\{([a-z][a-z-]*)\}(?!/s)")
"""What is a rate is a unit of UCUM."""
LITERAL_KEY = re.compile(
    r"(?<![\w'{.+])[b-zA-HJ-Z!&<>/?] (?:and [A-Za-z] )?(?!is |marks |takes too long)[a-z]+s\b"
    r"|\b[Pp]ress [^{\s]"
    r"|  [a-zA-Z]: [a-z]"
)
"""A character that stands alone before a verb, or what is to be pressed."""
OTHER_KEYS = {
    action.id: chr(0x0430 + at) if at < 32 else chr(0x0450 + at)
    for at, action in enumerate(ACTIONS)
}
"""A letter that no default key is, for each action."""


DIALOG_KEY = re.compile(r'Binding\("([^"]+)"')
"""A key that a dialog has for itself, whatever the keymap says."""


def sources() -> Iterator[tuple[Path, int, str]]:
    """Return every text that stands in the code of the screens, with where it does."""
    root = Path(tpudash.tui.__file__).parent
    for path in root.rglob("*.py"):
        tree = ast.parse(path.read_text())
        documented = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
            and node.body
            and isinstance(node.body[0], ast.Expr)
        } | {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or id(node) in documented:
                continue
            if isinstance(node.value, str):
                yield path, node.lineno, node.value


def test_no_text_names_a_key_by_itself() -> None:
    for path, line, text in sources():
        own = {key for keys in DIALOG_KEY.findall(path.read_text()) for key in keys.split(",")}
        found = LITERAL_KEY.search(text)
        assert found is None or found[0][0] in own, f"{path.name}:{line}: {text}"


def test_every_key_that_a_text_asks_for_is_one_of_an_action() -> None:
    asked = {name for *_, text in sources() for name in PLACEHOLDER.findall(text)}
    assert "take-control" in asked
    assert asked <= IDS


def test_a_key_that_was_taken_away_is_found_in_the_palette() -> None:
    hints = KeyHints(resolve_keymap(ACTIONS, {"take-control": ""}))
    assert hints.fill("{take-control} takes it.") == "'take control' in the palette takes it."


def test_the_readmes_table_shows_keys_in_its_sentences() -> None:
    assert "`space` | mark | Mark or unmark the selected row; D then deletes" in keys_table()


async def test_hints_follow_the_keymap(
    open_console: Callable[..., AbstractAsyncContextManager[Any]],
) -> None:
    store, control = make_world(), Control(is_ours=False, holder=make_holder("bob"))
    store.apply(ControlChanged(control))
    settings = ConsoleSettings(project="demo", keymap=OTHER_KEYS)
    ports = OperatorPorts(control=FakeControl(control))
    async with open_console(store, settings=settings, ports=ports, size=(160, 45)) as it:
        key = OTHER_KEYS
        gone = next(name for name in store.snapshot.tombstones if name.endswith("old-1"))
        it.table.move_to(tombstone_key(gone))
        await it.pilot.pause()
        assert f"{key['dismiss']} dismisses it" in it.screen_text

        await it.press(key["resume"])
        assert f"{key['take-control']} takes it over" in it.notices[-1]

        await it.press(key["operations"])
        assert f"{key['follow']} follows" in it.screen_text
        await it.press("escape", key["help"])
        assert f"{key['delete']} then deletes" in it.app.screen.plain_text
        assert f"until {key['dismiss']} dismisses them" in it.app.screen.plain_text
        await it.press("escape", key["details"])
        assert f"{key['copy']} copies" in it.screen_text
        await it.press(key["copy"])
        await it.until(lambda: "this page" in it.notices[-1])
        await it.press("escape", key["filter"], *"nothing such", "enter")
        assert f"Press {key['filter']} and then escape" in it.screen_text


async def test_what_to_do_next_is_named_by_key_and_on_a_wall_by_command(
    open_console: Callable[..., AbstractAsyncContextManager[Any]],
) -> None:
    reason = "Its node was preempted; `tpudash resume vision` continues it from step 300."
    for is_watch, words in (
        (False, "; R continues it"),
        (True, "`tpudash resume vision` continues"),
    ):
        store = make_world()
        vision = replace(store.snapshot.runs["vision"], reason=reason)
        read_runs(store, *{**store.snapshot.runs, "vision": vision}.values())
        async with open_console(store, size=(160, 45), is_watch=is_watch) as it:
            it.table.move_to(run_key("vision"))
            await it.until(lambda words=words: words in it.screen_text)
            name = next(one for one in store.snapshot.nodes if one.endswith("vision-1"))
            it.table.move_to(node_key(name))
            await it.pilot.pause()
            assert ("D deletes the node" in it.screen_text) is not is_watch
