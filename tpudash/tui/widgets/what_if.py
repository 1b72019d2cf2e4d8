"""The accelerator types of a zone side by side, for the launch form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.wording.format import dollars
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tpudash.cost.what_if import WhatIf

HEAD: Final = ("TYPE", "CHIPS", "HBM", "PEAK", "$/H", "$/H PER TF")
WIDTHS: Final = (14, 5, 8, 8, 9, 10)
MARK: Final = ">"


def what_if_lines(
    rows: Sequence[WhatIf], chosen: str, *, most: int = 8, plain: bool = False
) -> list[str]:
    """Return a small table: the chosen type marked, and what is nearest to it in price.

    Args:
        rows: The types, cheapest first.
        chosen: The type that is selected in the form.
        most: How many types are shown.
        plain: Whether only ASCII may be used.
    """
    at = next((place for place, row in enumerate(rows) if row.accelerator_type == chosen), 0)
    first = max(0, min(at - most // 2, len(rows) - most))
    lines = [f"  {_line(HEAD)}"]
    for row in rows[first : first + most]:
        mark = MARK if row.accelerator_type == chosen else " "
        lines.append(f"{mark} {_line(_cells(row))}".rstrip())
    if any(row.price is not None and row.price.is_example for row in rows):
        lines.append("~ example prices: spot changes at any time")
    text = [line.replace("≥", ">=") if plain else line for line in lines]
    return [safe_text(line) for line in text]


def _cells(row: WhatIf) -> tuple[str, ...]:
    example = "~" if row.price is not None and row.price.is_example else ""
    per_tflop = row.per_peak_tflop_usd
    return (
        row.accelerator_type,
        str(row.chips),
        f"{row.hbm_gib:g} GiB",
        "-" if row.peak_tflops is None else f"{row.peak_tflops:g} TF",
        dollars(row.per_hour_usd) + example,
        "-" if per_tflop is None else f"${per_tflop:.5f}",
    )


def _line(cells: Sequence[str]) -> str:
    name, *figures = cells
    padded = [name.ljust(WIDTHS[0])]
    padded += [text.rjust(width) for text, width in zip(figures, WIDTHS[1:], strict=True)]
    return " ".join(padded)
