"""Texts about capacity, quota, rates and reservations, which look alike and mean four things."""

from __future__ import annotations

from typing import Final

from tpudash.diagnostics.patterns.row import Row, regex
from tpudash.domain.failure import ErrorClass

_BY_TIME: Final = r"per[ _-]?(?:second|minute|hour|day|100[ _-]?seconds)"

CAPACITY: Final = (
    Row(ErrorClass.STOCKOUT, "there is no more capacity in the zone"),
    Row(ErrorClass.RESERVATION, "insufficient reserved capacity"),
    Row(
        ErrorClass.RESERVATION,
        "reservation",
        regex(
            r"reservations?\b.{0,160}(?:not found|(?:does|do) not exist|not exist|exhausted|expired"
            r"|insufficient|does not have|not enough|no (?:available|matching)|not (?:ready|usable)"
            r"|fully (?:used|utili[sz]ed|consumed)|in use|too small|cannot be used|can't be used"
            r"|must be (?:specified|given|set))"
            r"|(?:no matching|increase your|insufficient|not enough|could not find).{0,40}"
            r"reservation"
        ),
    ),
    Row(
        ErrorClass.RATE_LIMIT,
        "requests per minute",
        regex(r"(?:maximum|limit|number|quota|exceed).{0,200}requests per minute"),
    ),
    Row(ErrorClass.RATE_LIMIT, "quota", regex(rf"(?:exceed|exhaust).{{0,300}}{_BY_TIME}")),
    Row(ErrorClass.RATE_LIMIT, "quota", regex(rf"{_BY_TIME}.{{0,200}}(?:exceed|exhaust)")),
    Row(ErrorClass.RATE_LIMIT, "ratelimitexceeded"),
    Row(ErrorClass.RATE_LIMIT, "rate_limit_exceeded"),
    Row(ErrorClass.RATE_LIMIT, "rate limit", regex(r"rate limit.{0,40}(?:exceed|reach|hit)")),
    Row(ErrorClass.RATE_LIMIT, "rate limit", regex(r"(?:exceed|reach|hit).{0,60}rate limit")),
    Row(ErrorClass.RATE_LIMIT, "too many requests"),
    Row(ErrorClass.RATE_LIMIT, "reduce the query rate"),
    Row(ErrorClass.RATE_LIMIT, "request rate", regex(r"request rate.{0,40}(?:too high|exceed)")),
    Row(ErrorClass.RATE_LIMIT, "rate exceeded"),
    Row(ErrorClass.QUOTA, "quota", regex(r"quota[^\n]{0,240}?(?:exceeded|exhausted|used up)")),
    Row(
        ErrorClass.QUOTA,
        "quota",
        regex(
            r"(?:exceed\w*|exhaust\w*|insufficient|not enough|no|lack of|out of)\b.{0,60}\bquota"
        ),
    ),
    Row(ErrorClass.QUOTA, "quotaexceeded"),
    Row(ErrorClass.QUOTA, "quotafailure"),
    Row(ErrorClass.QUOTA, "check quota"),
    Row(
        ErrorClass.QUOTA,
        "queued resource",
        regex(
            r"(?:maximum|limit).{0,60}queued resources?.{0,60}(?:reach|exceed)|(?:reach|exceed)"
            r".{0,60}(?:maximum|limit).{0,60}queued resources?"
        ),
    ),
    Row(ErrorClass.STOCKOUT, "no more capacity"),
    Row(ErrorClass.STOCKOUT, "resource_pool_exhausted"),
    Row(ErrorClass.STOCKOUT, "resource pool exhausted"),
    Row(
        ErrorClass.STOCKOUT,
        "enough resources",
        regex(r"(?:not have enough|not enough) resources (?:are )?available"),
    ),
    Row(ErrorClass.STOCKOUT, "insufficient capacity"),
    Row(ErrorClass.STOCKOUT, "insufficient resources"),
    Row(ErrorClass.STOCKOUT, "out of capacity"),
    Row(ErrorClass.STOCKOUT, "stockout"),
    Row(ErrorClass.STOCKOUT, "stock-out"),
    Row(
        ErrorClass.STOCKOUT, "out of resources", regex(r"\b(?:gce|zone|region)\b.{0,60}out of res")
    ),
    Row(
        ErrorClass.STOCKOUT,
        "capacity",
        regex(
            r"\bno (?:available |free |spare |tpu )*capacity\b|capacity (?:is |was )?(?:not|un)"
            r" ?available|lack of (?:available )?capacity|(?:not|n't) (?:have )?enough capacity"
        ),
    ),
    Row(
        ErrorClass.STOCKOUT,
        "currently unavailable in the",
        regex(r"currently unavailable in the [\w-]+ (?:zone|region)"),
    ),
)
