"""Numbers on the command line: what Python reads as a number and no quantity can be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click import Context, Parameter


class AboveZero(click.FloatRange):
    """A number above 0 that is finite: `inf` is no limit, and JSON has no way to write it."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> float:
        """Return the number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number above 0.", param, ctx)
        return number
