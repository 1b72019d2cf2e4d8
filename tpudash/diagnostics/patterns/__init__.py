"""The classifier's table: one row for each kind of text, the more telling ones first."""

from __future__ import annotations

from typing import Final

from tpudash.diagnostics.patterns.access import ACCESS
from tpudash.diagnostics.patterns.capacity import CAPACITY
from tpudash.diagnostics.patterns.elsewhere import ELSEWHERE
from tpudash.diagnostics.patterns.life import LIFE
from tpudash.diagnostics.patterns.refusals import ABSENCE, REFUSALS
from tpudash.diagnostics.patterns.row import Row
from tpudash.diagnostics.patterns.training import TRAINING
from tpudash.diagnostics.patterns.transport import TRANSPORT

ROWS: Final[tuple[Row, ...]] = (
    *ELSEWHERE,
    *CAPACITY,
    *ACCESS,
    *TRAINING,
    *LIFE,
    *TRANSPORT,
    *REFUSALS,
    *ABSENCE,
)

__all__ = ["ROWS", "Row"]
