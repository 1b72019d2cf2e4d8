"""The README says what the product does."""

from __future__ import annotations

import re

import click
import pytest

from tests.readme import PICTURE, README, with_tables
from tpudash.cli import root

TEXT = README.read_text("utf-8")


def test_generated_parts_are_what_the_registries_say() -> None:
    assert with_tables(TEXT) == TEXT, "run: python -m tests.readme"


def test_the_picture_is_there() -> None:
    assert PICTURE.read_text("utf-8").startswith("<svg")


def test_every_command_is_in_the_readme_and_every_command_in_the_readme_exists() -> None:
    context = click.Context(root)
    named = set(re.findall(r"^\| `tpudash ([a-z]+)", TEXT, re.MULTILINE))
    assert named == set(root.list_commands(context)) - {"console"}


@pytest.mark.parametrize("name", ["demo", "tests"])
def test_the_two_first_commands_are_marked_for_the_continuous_check(name: str) -> None:
    assert f"<!-- command: {name} -->\n```sh\npython3 -m venv .venv" in TEXT
