"""One row of the classifier's table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tpudash.domain.failure import ErrorClass, RetryPolicy


@dataclass(frozen=True, slots=True)
class Row:
    """A kind of text and what it means.

    Attributes:
        needle: What the text must contain, in lower case; looked for first because it is cheap.
        pattern: What must be found besides; its named groups may be used in the advice.
        codes: Canonical codes that the row holds for, besides an unknown one; None is any. Where
            the words alone would lead to an act, the code must agree.
        in_text_only: Whether it holds for logs and texts alone, and not for answers of the cloud.
        advice: What to do, instead of the class's own advice. `{name}` stands for a fact.
        retry: What may be repeated, instead of the class's own policy.
    """

    error_class: ErrorClass
    needle: str
    pattern: re.Pattern[str] | None = None
    codes: frozenset[str] | None = None
    in_text_only: bool = False
    advice: str | None = None
    retry: RetryPolicy | None = None

    def find(
        self, text: str, lowered: str, code: str, *, is_text: bool
    ) -> re.Match[str] | int | None:
        """Return where the row holds: a match, or the position of the needle; None if it fails."""
        position = lowered.find(self.needle)
        if position < 0 or (self.in_text_only and not is_text):
            return None
        if self.codes is not None and code and code not in self.codes:
            return None
        return position if self.pattern is None else self.pattern.search(text)


def regex(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that ignores case."""
    return re.compile(pattern, re.IGNORECASE)
