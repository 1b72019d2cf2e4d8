"""The classifier of failures: what kind it is, where it holds, and what to do.

Pure and table-driven. Quota and stock-out are both code 8: they are told apart by words, by the
details (a QuotaFailure means quota) and by where they arrived (a quota refuses the call, a
stock-out ends the operation), and never by the code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tpudash.diagnostics.classifier_advice import RETRY, advice_for
from tpudash.diagnostics.classifier_scope import (
    compatible,
    merged,
    names_of,
    scope_of_metadata,
    scopes_of,
)
from tpudash.diagnostics.classifier_text import Piece, cleaned, pieces_of
from tpudash.diagnostics.patterns import ROWS, Row
from tpudash.domain.failure import CloudStatus, ErrorClass, Failure, Origin, RetryPolicy, Scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MOST_CHARACTERS: Final = 16_000
LONGEST_EVIDENCE: Final = 1_000
_EID: Final = re.compile(r"\s*\[?\bEID:?\s*(0x[0-9a-fA-F]{1,40})\]?", re.IGNORECASE)
_CLOUD_MARK: Final = re.compile(
    r"Error code \d+, message: |\(gcloud[\w.-]{0,120}\) |\b[A-Z]{4,20}(?:_[A-Z]{3,20}){0,2}: "
    r"|exceptions\.\w{3,40}: (?:\d{3} )?|googleapi: Error \d{3}: |['\"]message['\"]: ?['\"]"
    r"|\b(?:message|desc) = ['\"]?|(?:details|detail) = ['\"]|\bstatus_message: ['\"]"
)

_NO_ADVICE: Final = advice_for(ErrorClass.UNCLASSIFIED, None, Scope(), {})
_NEEDLES: Final = tuple(dict.fromkeys(row.needle for row in ROWS))

_BY_REASON: Final = {
    "SERVICE_DISABLED": ErrorClass.API_OFF,
    "accessNotConfigured": ErrorClass.API_OFF,
    "BILLING_DISABLED": ErrorClass.BILLING,
    "UREQ_PROJECT_BILLING_NOT_FOUND": ErrorClass.BILLING,
    "LOCATION_POLICY_VIOLATED": ErrorClass.LOCATION,
    "LOCATION_ORG_POLICY_VIOLATED": ErrorClass.LOCATION,
    "RATE_LIMIT_EXCEEDED": ErrorClass.RATE_LIMIT,
    "rateLimitExceeded": ErrorClass.RATE_LIMIT,
    "userRateLimitExceeded": ErrorClass.RATE_LIMIT,
    "RESOURCE_QUOTA_EXCEEDED": ErrorClass.QUOTA,
    "QUOTA_EXCEEDED": ErrorClass.QUOTA,
    "quotaExceeded": ErrorClass.QUOTA,
    "ZONE_RESOURCE_POOL_EXHAUSTED": ErrorClass.STOCKOUT,
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": ErrorClass.STOCKOUT,
    "resource_availability": ErrorClass.STOCKOUT,
    "ACCESS_TOKEN_EXPIRED": ErrorClass.AUTH_EXPIRED,
    "ACCESS_TOKEN_TYPE_UNSUPPORTED": ErrorClass.AUTH_EXPIRED,
    "CREDENTIALS_MISSING": ErrorClass.AUTH_EXPIRED,
    "authError": ErrorClass.AUTH_EXPIRED,
    "ACCESS_TOKEN_SCOPE_INSUFFICIENT": ErrorClass.PERMISSION,
    "CONSUMER_INVALID": ErrorClass.PERMISSION,
    "CONSUMER_SUSPENDED": ErrorClass.PERMISSION,
    "USER_PROJECT_DENIED": ErrorClass.PERMISSION,
    "SECURITY_POLICY_VIOLATED": ErrorClass.PERMISSION,
}
"""ErrorInfo.reason and the REST errors' `reason`, where it says more than the words may.

Source: google/api/error_reason.proto
"""

_BY_CODE: Final = {
    "PERMISSION_DENIED": ErrorClass.PERMISSION,
    "UNAUTHENTICATED": ErrorClass.AUTH_EXPIRED,
    "NOT_FOUND": ErrorClass.GONE,
    "ALREADY_EXISTS": ErrorClass.NAME_TAKEN,
    "INVALID_ARGUMENT": ErrorClass.BAD_REQUEST,
    "FAILED_PRECONDITION": ErrorClass.BAD_REQUEST,
    "OUT_OF_RANGE": ErrorClass.BAD_REQUEST,
    "DEADLINE_EXCEEDED": ErrorClass.UNKNOWN_OUTCOME,
    "CANCELLED": ErrorClass.UNKNOWN_OUTCOME,
    "UNAVAILABLE": ErrorClass.INTERNAL,
    "INTERNAL": ErrorClass.INTERNAL,
    "ABORTED": ErrorClass.INTERNAL,
    "DATA_LOSS": ErrorClass.INTERNAL,
}


_OF_PROGRAM: Final = {"UNAVAILABLE": ErrorClass.CONNECT}
"""Frameworks use the cloud's codes for faults of their own; few of them mean the same."""

_PROGRAM: Final = re.compile(
    r"XlaRuntimeError|\bjaxlib\b|\btorch_xla\b|errors_impl\.|\bOP_REQUIRES\b|/job:\w|\.cc:\d+\]"
)
_STAMP: Final = re.compile(
    r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,12} +(?:\[?[A-Z]{4,8}\]?:? +)?(?=\S)"
)
_WRAPPED: Final = re.compile(r"^ERROR: \(gcloud[\w.-]{0,120}\) (?:[A-Z][A-Z_]{3,30}: )?(?=\S)")
_PREAMBLE: Final = re.compile(r"Cloud TPU received an? [a-z ]{6,20}\W{0,3}$")
_ALLOCATION: Final = re.compile(
    r"quota(?: limit)? '?\w{0,80}PerProjectPer(?:Zone|Region)\w{0,40}'? [^\n]{0,40}\blimit",
    re.IGNORECASE,
)
_BY_TIME: Final = re.compile(r"/(?:s|min|h|d|100s)(?:/|$)")
_OTHER_HOST: Final = re.compile(
    r"https?://(?!(?:[\w-]{1,60}\.){0,6}(?:googleapis\.com|google\.com|google\.internal)\b"
    r"|localhost\b|127\.)[\w-]+\.[\w.-]+"
)


@dataclass(frozen=True, slots=True)
class _Found:
    """A class, why, and where in the text."""

    error_class: ErrorClass
    at: int = 0
    row: Row | None = None
    names: tuple[tuple[str, str], ...] = ()


def classify(status: CloudStatus) -> Failure:
    """Classify an error that the cloud gave; UNCLASSIFIED if nothing is known of it."""
    return _worst(_failures_of(status))


def classify_text(text: str) -> list[Failure]:
    """Find the failures that a text tells of, in any wrapper, in the order of their appearance.

    What is said twice is given once. A text that speaks of a failure of no known kind gives one
    that is UNCLASSIFIED; a text that speaks of none gives an empty list.
    """
    found: list[Failure] = []
    unknown: Failure | None = None
    for piece in pieces_of(text, _NEEDLES):
        for failure in _failures_in(piece):
            if failure.error_class is ErrorClass.UNCLASSIFIED:
                # The last one tells most, unless an earlier one came with an advice of its own.
                is_told = unknown is not None and unknown.advice != _NO_ADVICE
                unknown = unknown if is_told else failure
            else:
                _add(found, failure)
    if found or unknown is None:
        return found
    return [unknown]


def _failures_in(piece: Piece) -> Iterator[Failure]:
    if piece.given is not None:
        yield _failure(
            _Found(piece.given), piece.text, Scope(), advice=piece.hint, evidence=piece.text
        )
        return
    # Words that only begin a message say nothing without the next line.
    is_torn = bool(piece.more) and _PREAMBLE.search(piece.text) is not None
    text = f"{piece.text} {piece.more}" if is_torn else piece.text
    status = CloudStatus(piece.code, text, piece.details, piece.origin)
    for failure in _failures_of(status, more=piece.more):
        known = failure.error_class is not ErrorClass.UNCLASSIFIED
        if known or piece.looks_like_error:
            yield failure


def _failures_of(status: CloudStatus, more: str = "") -> list[Failure]:
    text = cleaned(status.message[:MOST_CHARACTERS])
    said = "\n".join(_strings_of(status.details))
    found = _find(status, text, said)
    metadata = Scope()
    for detail in status.details:
        inner = detail.get("metadata")
        if isinstance(inner, dict):
            metadata = merged(metadata, scope_of_metadata(inner))
    is_refused_for_good = metadata.limit == 0 and found.error_class is ErrorClass.RATE_LIMIT
    if is_refused_for_good:
        # A rate of 0 is no rate that waiting could restore.
        found = _Found(ErrorClass.QUOTA, found.at)
    scopes = scopes_of(found.error_class, text, found.at, said, more)
    return [_failure(found, text, merged(metadata, scope), said=said) for scope in scopes]


def _find(status: CloudStatus, text: str, said: str) -> _Found:
    by_words = _by_words(text, status)
    by_reason = next(
        (
            _BY_REASON[reason]
            for detail in status.details
            if (reason := str(detail.get("reason", ""))) in _BY_REASON
        ),
        None,
    )
    has_quota_failure = any("QuotaFailure" in str(d.get("@type", "")) for d in status.details)
    if has_quota_failure and (
        by_words is None or by_words.error_class is not ErrorClass.RATE_LIMIT
    ):
        rate = _by_words(said, status)
        if rate is not None and rate.error_class is ErrorClass.RATE_LIMIT:
            return _Found(ErrorClass.RATE_LIMIT)
        return _Found(ErrorClass.QUOTA, by_words.at if by_words else 0)
    if by_reason is ErrorClass.RATE_LIMIT and _is_allocation(status, text):
        by_reason = ErrorClass.QUOTA
    if by_reason is not None and (by_words is None or by_words.error_class is not by_reason):
        return _Found(by_reason)
    if by_words is None and said:
        by_words = _by_words(said, status)
    if by_words is not None:
        return by_words
    return _Found(_by_code(status))


def _is_allocation(status: CloudStatus, text: str) -> bool:
    """Whether what a quota counts is things rather than calls in a time, whatever its reason."""
    if _ALLOCATION.search(text):
        return True
    inner = (detail.get("metadata") for detail in status.details)
    units = [
        str(one.get("quota_unit")) for one in inner if isinstance(one, dict) and "quota_unit" in one
    ]
    return bool(units) and not any(_BY_TIME.search(unit) for unit in units)


def _by_words(text: str, status: CloudStatus) -> _Found | None:
    lowered = text.lower()
    is_text = status.origin in {Origin.TEXT, Origin.LOG}
    for row in ROWS:
        where = row.find(text, lowered, status.code, is_text=is_text)
        if where is None:
            continue
        if isinstance(where, int):
            return _Found(row.error_class, where, row)
        names = tuple((name, value) for name, value in where.groupdict().items() if value)
        return _Found(row.error_class, where.start(), row, names)
    return None


def _by_code(status: CloudStatus) -> ErrorClass:
    if status.origin in {Origin.TEXT, Origin.LOG}:
        if _PROGRAM.search(status.message):
            return _OF_PROGRAM.get(status.code, ErrorClass.UNCLASSIFIED)
        if "googleapi" not in status.message and _OTHER_HOST.search(status.message):
            return ErrorClass.UNCLASSIFIED
    if status.code != "RESOURCE_EXHAUSTED":
        return _BY_CODE.get(status.code, ErrorClass.UNCLASSIFIED)
    if status.origin is Origin.OPERATION:
        return ErrorClass.STOCKOUT
    return ErrorClass.QUOTA if status.origin is Origin.CALL else ErrorClass.UNCLASSIFIED


def _failure(
    found: _Found,
    text: str,
    scope: Scope,
    *,
    said: str = "",
    advice: str = "",
    evidence: str | None = None,
) -> Failure:
    row = found.row
    eid = _EID.search(text)
    names = {**names_of(found.error_class, f"{text}\n{said}"), **dict(found.names)}
    retry = row.retry if row is not None and row.retry is not None else None
    template = row.advice if row is not None else None
    return Failure(
        error_class=found.error_class,
        evidence=_evidence(text, found.at) if evidence is None else evidence[:LONGEST_EVIDENCE],
        advice=advice or advice_for(found.error_class, template, scope, names),
        retry=retry or RETRY.get(found.error_class, RetryPolicy.NEVER),
        scope=scope,
        eid=eid[1] if eid else None,
    )


def _evidence(text: str, at: int) -> str:
    """Return the cloud's own words around a place, without wrappers, error id and excess."""
    start = 0
    for mark in _CLOUD_MARK.finditer(text, 0, max(at, 0) + 1):
        if mark.end() <= at + 1:
            start = mark.end()
    if at - start > LONGEST_EVIDENCE // 2:
        start = at - 80
    words = _EID.sub("", text[start : start + LONGEST_EVIDENCE + 60])
    words = " ".join(words.split())
    if not start:
        words = _WRAPPED.sub("", _STAMP.sub("", words))
    if start:
        words = words.rstrip("'\"}], ")
    return words[:LONGEST_EVIDENCE]


def _strings_of(details: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the sentences inside details: descriptions of violations, debug text, links."""
    for detail in details:
        for key in ("detail", "description", "message", "resourceName", "reason"):
            if isinstance(detail.get(key), str):
                yield detail[key]
        for group in ("violations", "fieldViolations", "field_violations", "links"):
            rows = detail.get(group)
            for row in rows[:50] if isinstance(rows, list) else ():
                if isinstance(row, dict):
                    yield " ".join(str(value) for value in row.values() if isinstance(value, str))


def _worst(failures: list[Failure]) -> Failure:
    """Return the one that blocks: of several quotas, the one with the lowest limit."""
    return min(
        failures,
        key=lambda failure: float("inf") if failure.scope.limit is None else failure.scope.limit,
    )


def _add(found: list[Failure], failure: Failure) -> None:
    for index, earlier in enumerate(found):
        if earlier.error_class is failure.error_class and compatible(earlier.scope, failure.scope):
            if earlier.scope != failure.scope or earlier.eid is None:
                found[index] = Failure(
                    earlier.error_class,
                    earlier.evidence,
                    earlier.advice if earlier.scope == failure.scope else _fuller(earlier, failure),
                    earlier.retry,
                    merged(earlier.scope, failure.scope),
                    earlier.eid or failure.eid,
                )
            return
    found.append(failure)


def _fuller(earlier: Failure, later: Failure) -> str:
    """Return the advice of whichever knew more about the place and thing."""
    known = [sum(value is not None for value in _values(item.scope)) for item in (earlier, later)]
    return later.advice if known[1] > known[0] else earlier.advice


def _values(scope: Scope) -> Iterator[object]:
    return (getattr(scope, name) for name in Scope.__slots__)
