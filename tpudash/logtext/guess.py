"""What a line of text says of its own time and severity, for lines that carry no other.

Formats: glog and absl (`E1201 08:00:00.123456 77 file.cc:12] `), TensorFlow and XLA
(`2026-12-01 08:00:00.123456: E file.cc:12] `), Python's logging in its usual shapes
(`2026-12-01 08:00:00,123 - name - ERROR - `, `ERROR:name:`), RFC 3339, `[ERROR]`, and statuses
(`RESOURCE_EXHAUSTED: `, https://grpc.io/docs/guides/status-codes).
"""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime
from typing import Final, TypeAlias

from tpudash.domain.log import Severity

_WORDS: Final = {
    "D": Severity.DEBUG,
    "DEBUG": Severity.DEBUG,
    "I": Severity.INFO,
    "INFO": Severity.INFO,
    "NOTICE": Severity.NOTICE,
    "W": Severity.WARNING,
    "WARN": Severity.WARNING,
    "WARNING": Severity.WARNING,
    "E": Severity.ERROR,
    "ERROR": Severity.ERROR,
    "F": Severity.CRITICAL,
    "C": Severity.CRITICAL,
    "FATAL": Severity.CRITICAL,
    "CRITICAL": Severity.CRITICAL,
}
_NAMES: Final = "DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|FATAL|CRITICAL"
_MOMENT: Final = (
    r"(?P<date>\d{4}-\d\d-\d\d)[T ](?P<time>\d\d:\d\d:\d\d)(?:[.,](?P<part>\d{1,9}))?"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?"
)
_STARTS_WITH_MOMENT: Final = re.compile(
    rf"\[?{_MOMENT}\]?:?\s{{0,3}}(?:(?P<letter>[DIWEF]) |.{{0,60}}?\b(?P<word>{_NAMES})\b)?"
)
_GLOG: Final = re.compile(
    r"(?P<letter>[IWEF])(?P<month>\d\d)(?P<day>\d\d) (?P<time>\d\d:\d\d:\d\d)"
    r"(?:\.(?P<part>\d{1,9}))?"
)
_STARTS_WITH_WORD: Final = re.compile(rf"\[?(?P<word>{_NAMES})\b[\]: ]")
_FINAL_OF_TRACEBACK: Final = re.compile(
    r"(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Interrupt|Exit)(?::|$)"
)
_STATUSES: Final = frozenset(
    {
        *("CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND"),
        *("ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION"),
        *("ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"),
        "UNAUTHENTICATED",
    }
)
"""Codes that a status of gRPC, TensorFlow and XLA begins with when it is printed."""
_LETTERS: Final = frozenset("DIWEF")
_AFTER_MICROSECONDS: Final = frozenset(":] Z")
_MAY_BEGIN: Final = frozenset("[0123456789IWEFDNC")


Claim: TypeAlias = tuple[Severity | None, int]
"""What a line says of itself: its severity, if it names one, and where its message begins.

Behind time, process id and place, the same message of two workers is the same text. A plain
tuple, because this is asked of every line.
"""
NO_CLAIM: Final[Claim] = (None, 0)


def claim_of(text: str) -> Claim:
    """Return what a line claims of itself."""
    if text[26:28] == ": " and text[29:30] == " " and text[28] in _LETTERS and text[4] == "-":
        # TensorFlow's own, which is most of what is ever said.
        return (_WORDS[text[28]], _behind_place(text, 30))
    first, second = text[:1], text[1:2]
    if first.isdigit() or (first == "[" and second.isdigit()):
        found = _STARTS_WITH_MOMENT.match(text)
    elif second.isdigit() and first in _MAY_BEGIN:
        found = _GLOG.match(text)
    else:
        return (_claim_of_words(text, first), 0)
    if found is None:
        return NO_CLAIM
    said = found["letter"] or (found["word"] if found.re is _STARTS_WITH_MOMENT else None)
    return (_WORDS[said] if said else None, _behind_place(text, found.end()))


def _claim_of_words(text: str, first: str) -> Severity | None:
    if first in _MAY_BEGIN:
        found = _STARTS_WITH_WORD.match(text)
        if found is not None:
            return _WORDS[found["word"]]
    if "A" <= first <= "Z" and "A" <= text[1:2] <= "Z" and text[: text.find(": ")] in _STATUSES:
        return Severity.ERROR
    is_likely = "Err" in text or "Exc" in text or first in _MAY_BEGIN
    return Severity.ERROR if is_likely and _FINAL_OF_TRACEBACK.match(text) else None


def _behind_place(text: str, start: int) -> int:
    place = text.find("] ", start, start + 120)
    return start if place < 0 else place + 2


def guess_severity(text: str) -> Severity | None:
    """Return the severity that a line claims at its beginning, or None if it claims none."""
    return claim_of(text)[0]


def guess_moment(text: str, year: int) -> datetime | None:
    """Return the time that a line begins with, taken as UTC if it names no zone, or None.

    Args:
        text: The line.
        year: What glog's times leave out.
    """
    if not text or text[0] not in _MAY_BEGIN:
        return None
    if text[4:5] == "-" and text[19:20] == "." and text[26:27] in _AFTER_MICROSECONDS:
        with contextlib.suppress(ValueError):
            return datetime.fromisoformat(text[:26]).replace(tzinfo=UTC)
    found = _STARTS_WITH_MOMENT.match(text)
    try:
        if found is not None:
            part = (found["part"] or "0")[:6].ljust(6, "0")
            zone = (found["zone"] or "Z").replace("Z", "+00:00")
            return datetime.fromisoformat(
                f"{found['date']}T{found['time']}.{part}{zone}"
            ).astimezone(UTC)
        found = _GLOG.match(text)
        if found is not None:
            part = (found["part"] or "0")[:6].ljust(6, "0")
            day = f"{year:04d}-{found['month']}-{found['day']}"
            return datetime.fromisoformat(f"{day}T{found['time']}.{part}+00:00")
    except (ValueError, OverflowError):
        pass
    return None
