"""`launch --serve`: options that only a trainer or only a server has are refused, not passed on."""

from __future__ import annotations

import pytest

from tpudash.commands.launch import _check_kind
from tpudash.errors import UsageError


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"serve": None, "port": 8501}, "--port has a meaning only with --serve"),
        ({"serve": "mnist", "batch_size": 64}, "--batch-size has a meaning only without --serve"),
        ({"serve": "mnist", "train_files": ("a",)}, "--train-files has a meaning only without"),
    ],
)
def test_options_of_the_other_kind_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        _check_kind(options)


def test_options_of_their_own_kind_are_taken() -> None:
    _check_kind({"serve": "mnist", "port": 8501, "train_files": ()})
    _check_kind({"serve": None, "port": None, "batch_size": 64})
