"""What the terminal's environment says, and what is set before Textual is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tpudash.tui.terminal import find_traits, prepare_environment


@pytest.mark.parametrize(
    ("environment", "is_ascii"),
    [
        ({"LANG": "en_US.UTF-8"}, False),
        ({"LANG": "C.utf8"}, False),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "C"}, True),
        ({"LC_CTYPE": "de_DE.ISO-8859-1"}, True),
        ({"LANG": "POSIX"}, True),
    ],
)
def test_ascii_is_chosen_by_the_locale(environment: dict[str, str], is_ascii: bool) -> None:
    assert find_traits(environment).ascii is is_ascii


def test_the_mouse_is_off_over_ssh() -> None:
    assert find_traits({}).mouse
    assert not find_traits({"SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}).mouse


def test_no_color_counts_only_when_it_is_not_empty() -> None:
    assert find_traits({"NO_COLOR": "1"}).no_color
    assert not find_traits({"NO_COLOR": ""}).no_color
    environment = {"NO_COLOR": ""}
    prepare_environment(environment)
    assert "NO_COLOR" not in environment


def test_the_users_own_choices_are_kept() -> None:
    environment = {"TEXTUAL_FPS": "5"}
    prepare_environment(environment)
    assert environment["TEXTUAL_FPS"] == "5"
    assert environment["TEXTUAL_ANIMATIONS"] == "none"


def test_preparing_imports_no_textual() -> None:
    code = (
        "import sys, tpudash.tui.terminal as t; t.prepare_environment({});"
        "print([m for m in sys.modules if m.split('.')[0] in ('textual', 'rich')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_nothing_that_takes_long_is_imported_before_the_first_frame() -> None:
    code = (
        "import sys; from tpudash.commands.state import CliState;"
        "from tpudash.commands import console, screen, lazy_operations, operator_ports;"
        "console._is_newcomer(CliState()); import tpudash.tui.app;"
        "print([m for m in sys.modules if m.startswith(('google', 'grpc', 'tpudash.diagnostics."
        "classifier', 'tpudash.diagnostics.patterns', 'tpudash.operations', 'requests'))])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
