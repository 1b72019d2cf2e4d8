"""The registry is complete, its keys are unique, and a bad keymap is refused with a near name."""

from __future__ import annotations

import pytest

from tpudash.config.keymap import canonical_key, resolve_keymap
from tpudash.errors import ConfigurationError
from tpudash.tui.action import Danger
from tpudash.tui.actions import ACTIONS, find_action, keys_table


def test_every_action_has_id_label_and_a_sentence_of_help() -> None:
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)
    for action in ACTIONS:
        assert action.label, action.id
        assert action.help[0].isupper(), action.id
        assert not action.help.endswith("."), action.id


def test_default_keys_do_not_clash() -> None:
    keymap = resolve_keymap(ACTIONS, {})
    assert keymap["launch"] == ("L",)
    assert keymap["palette"] == (":", "ctrl+p")


def test_the_keys_of_the_design_are_there() -> None:
    wanted = {
        **{
            str(at): f"pane-{pane}"
            for at, pane in enumerate(("nodes", "utilization", "logs", "cost", "checklist"), 1)
        },
        "z": "zoom",
        "/": "filter",
        "s": "sort",
        "p": "pause",
        ":": "palette",
        "ctrl+p": "palette",
        "?": "help",
        "y": "copy",
        "enter": "details",
        "q": "quit",
        "L": "launch",
        "R": "resume",
        "D": "delete",
        "A": "supervise",
    }
    for key, action_id in wanted.items():
        action = find_action(action_id)
        assert action is not None
        assert key in action.keys


def test_what_changes_the_cloud_needs_an_operator_and_a_capital() -> None:
    for action in ACTIONS:
        if action.danger is not Danger.NONE:
            assert action.needs_operator
            assert all(key.isupper() for key in action.keys), action.id
        else:
            assert not any(len(key) == 1 and key in "LRDA" for key in action.keys), action.id


def test_the_users_keys_replace_the_default_ones() -> None:
    keymap = resolve_keymap(ACTIONS, {"launch": "f5, ctrl+l", "sort": ""})
    assert keymap["launch"] == ("f5", "ctrl+l")
    assert keymap["sort"] == ()


def test_an_unknown_action_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve_keymap(ACTIONS, {"lanch": "f5"})
    assert "'launch'" in caught.value.hint


def test_a_clash_names_both_actions() -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve_keymap(ACTIONS, {"zoom": "q"})
    assert "zoom" in caught.value.detail
    assert "quit" in caught.value.detail


def test_panes_may_use_a_key_twice_but_not_one_that_works_everywhere() -> None:
    resolve_keymap(ACTIONS, {"mark": "f"})
    with pytest.raises(ConfigurationError):
        resolve_keymap(ACTIONS, {"mark": "p"})


def test_a_key_that_terminals_send_as_another_is_refused() -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve_keymap(ACTIONS, {"zoom": "ctrl+h"})
    assert "ctrl+h" in str(caught.value)


@pytest.mark.parametrize("key", ["g", "G", "j", "tab", "escape", "PageDown"])
def test_a_key_that_moves_can_mean_nothing_else(key: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve_keymap(ACTIONS, {"zoom": key})
    assert "moves through the rows" in caught.value.detail


@pytest.mark.parametrize(
    ("written", "key"),
    [("slash", "/"), ("Ctrl+P", "ctrl+p"), ("question_mark", "?"), ("L", "L"), ("Enter", "enter")],
)
def test_keys_have_one_spelling(written: str, key: str) -> None:
    assert canonical_key(written) == key


def test_the_table_for_the_readme_has_a_row_for_each_action() -> None:
    table = keys_table()
    assert table.count("\n") == len(ACTIONS) + 2
    assert "| `A` | supervise |" in table
    assert "| `L` | launch |" in table
