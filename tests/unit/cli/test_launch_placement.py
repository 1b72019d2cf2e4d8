"""Options for how a node is asked for: what is given twice must agree."""

from __future__ import annotations

import pytest

from tpudash.commands.launch_placement import _labels
from tpudash.errors import UsageError


def test_one_label_with_two_values_is_refused() -> None:
    with pytest.raises(UsageError, match="label team is given two values"):
        _labels(("team=vision", "team=speech"))


def test_labels_given_once_or_twice_alike_are_taken() -> None:
    assert _labels(("team=vision", "env=", "team=vision")) == {"team": "vision", "env": ""}
