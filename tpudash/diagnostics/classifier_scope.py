"""Where a failure holds: place, project, worker, bucket and quota, as the text names them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.failure import ErrorClass, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_REGION: Final = r"[a-z]{2,20}-[a-z]{4,20}\d{1,2}"
_ZONE: Final = re.compile(rf"(?<![\w-])({_REGION}-[a-z])(?![\w-])")
_REGION_NAMED: Final = re.compile(
    rf"(?:regions?|locations?)['\"]?[\s:=/]+['\"]?({_REGION})(?![\w-])", re.IGNORECASE
)
_PROJECTS: Final = (
    re.compile(r"\bprojects/([a-z0-9][a-z0-9-]{0,40})(?![\w.-])"),
    re.compile(r"[?&]project=([a-z0-9][a-z0-9-]{0,40})"),
    re.compile(r"\bproject(?:_number)?['\"]?[\s:=#]+['\"]?(\d{4,20})\b", re.IGNORECASE),
    re.compile(r"\bproject ['\"]([a-z][a-z0-9-]{3,40})['\"]", re.IGNORECASE),
    re.compile(r"\bprojects? (?:instance )?\[([a-z0-9][a-z0-9-]{0,40})(?::\w{1,40})?\]"),
    re.compile(r"\bproject ([a-z][a-z0-9]*(?:-[a-z0-9]+)+)\b"),
)
_WORKERS: Final = (
    re.compile(r"\bworkers?[ _#-]?(?:id)?[ :=#'\"]{0,3}(\d{1,5})\b", re.IGNORECASE),
    re.compile(r"-w-(\d{1,5})\b"),
    re.compile(r"/task:(\d{1,5})\b"),
)
_BUCKETS: Final = (
    re.compile(r"gs://([a-z0-9][a-z0-9._-]{1,200})"),
    re.compile(r"\b(?:buckets|b)/([a-z0-9][a-z0-9._-]{2,200})"),
    re.compile(r"storage\.(?:objects|buckets)\.\w+ access to (?!the )([a-z0-9][a-z0-9._-]{2,200})"),
    re.compile(r"\bbucket(?: named| name)?[\s:=]+['\"]([a-z0-9][a-z0-9._-]{2,200})['\"]"),
)
_QUOTA: Final = re.compile(
    r"quota(?: limit| metric)?\s+['\"]([\w./ -]{2,120})['\"]"
    r"(?:[^\n]{0,160}?\blimit:?\s+(\d[\d,]*(?:\.\d+)?)(?![\w-]))?"
    rf"(?:[^\n]{{0,20}}?\bin\s+(zone|region)\s+['\"]?({_REGION}(?:-[a-z])?)(?![\w-]))?",
    re.IGNORECASE,
)
_LIMIT: Final = re.compile(r"\blimit(?: is|:)?\s+(\d[\d,]*(?:\.\d+)?)(?![\w-])", re.IGNORECASE)
_LIMIT_FIRST: Final = re.compile(r"\W{0,8}limit\b", re.IGNORECASE)
_NAMED_QUOTA: Final = re.compile(r"['\"]([\w./-]{2,120})['\"] quota\b", re.IGNORECASE)
_LONE_NAME: Final = re.compile(r"\b(TPU\w{0,80}(?:PerProject|PerRegion|PerZone)\w{0,60})\b")
_NAMES: Final = {
    "permission": re.compile(r"\b([a-z][a-zA-Z]*\.[a-zA-Z]+\.[a-zA-Z]+)\b(?!\.)"),
    "service": re.compile(r"\b([a-z]+\.googleapis\.com)\b"),
    "account": re.compile(r"\b([\w.+-]{1,80}@[\w-]{1,80}(?:\.[\w-]{1,80}){1,6})"),
}
_NAMED_ONLY_IN: Final = {
    "permission": {ErrorClass.PERMISSION, ErrorClass.BUCKET_ACCESS},
    "service": {ErrorClass.API_OFF},
    "account": {ErrorClass.BUCKET_ACCESS},
}
_NOT_A_PERMISSION: Final = ("googleapis", "google", "www", "gserviceaccount", "console")


def scopes_of(
    error_class: ErrorClass, text: str, at: int, said: str, near: str = ""
) -> tuple[Scope, ...]:
    """Return where a failure holds; several scopes where a text names several quotas.

    Args:
        error_class: What it is, which says what names to look for.
        text: The statement.
        at: Where in the text the failure was recognised; names after it are preferred.
        said: Further text that belongs to it, such as descriptions in the error's details.
        near: What stands beside it and may name its place, or may be a statement of its own.
    """
    own = f"{text}\n{said}" if said else text
    whole = f"{own}\n{near}" if near else own
    if error_class in {ErrorClass.QUOTA, ErrorClass.RATE_LIMIT}:
        if _LIMIT_FIRST.match(near.partition("\n")[0]) and not _LIMIT.search(own):
            # The sentence with the limit was torn off.
            own = f"{own} {near}"
        scopes = tuple(_quota_scopes(own)) or tuple(_quota_scopes(whole))
        if scopes:
            return scopes if error_class is ErrorClass.QUOTA else scopes[:1]
    after = whole[at:]
    zone = _first(_ZONE, after) or _first(_ZONE, whole)
    needs_bucket = error_class is ErrorClass.BUCKET_ACCESS
    return (
        Scope(
            project=_project_of(whole),
            region=None if zone else _first(_REGION_NAMED, after) or _first(_REGION_NAMED, whole),
            zone=zone,
            worker=_any_of(_WORKERS, whole),
            bucket=_any_of(_BUCKETS, whole) if needs_bucket else None,
            quota=_any_of((_NAMED_QUOTA, _LONE_NAME), whole)
            if error_class is ErrorClass.QUOTA
            else None,
            limit=_limit_of(whole) if error_class is ErrorClass.QUOTA else None,
        ),
    )


def names_of(error_class: ErrorClass, text: str) -> dict[str, str]:
    """Return further names that an advice may want: permission, service, account."""
    found = {}
    for name, pattern in _NAMES.items():
        if error_class not in _NAMED_ONLY_IN[name]:
            continue
        for match in pattern.finditer(text):
            if name == "permission" and any(part in match[1] for part in _NOT_A_PERMISSION):
                continue
            found[name] = match[1]
            break
    return found


def scope_of_metadata(metadata: Mapping[str, Any]) -> Scope:
    """Return what an ErrorInfo's metadata says of a quota and its place."""
    place = str(metadata.get("quota_location") or metadata.get("location") or "")
    place = place.rpartition("/")[2]
    zone = place if _ZONE.fullmatch(place) else None
    region = place if not zone and re.fullmatch(_REGION, place) else None
    consumer = str(metadata.get("consumer") or metadata.get("containerInfo") or "")
    limit = str(metadata.get("quota_limit_value") or metadata.get("effectiveLimit") or "")
    return Scope(
        project=consumer.rpartition("/")[2] or None,
        region=region,
        zone=zone,
        quota=str(metadata.get("quota_limit") or metadata.get("quota_metric") or "") or None,
        limit=_number(limit),
    )


def merged(first: Scope, second: Scope) -> Scope:
    """Return the first scope with its gaps filled from the second."""
    return Scope(
        *(
            getattr(first, name) if getattr(first, name) is not None else getattr(second, name)
            for name in Scope.__slots__
        )
    )


def compatible(first: Scope, second: Scope) -> bool:
    """Whether two scopes may be about the same thing: nothing that both name differs."""
    pairs = ((getattr(first, name), getattr(second, name)) for name in Scope.__slots__)
    return all(one is None or two is None or one == two for one, two in pairs)


def _quota_scopes(text: str) -> Iterator[Scope]:
    project = _project_of(text)
    seen = set()
    for match in _QUOTA.finditer(text):
        name, limit, kind, place = match.groups()
        if name in seen:
            continue
        seen.add(name)
        is_zone = (kind or "").lower() == "zone"
        rest = text[match.start() :]
        yield Scope(
            project=project,
            zone=place if is_zone else None if place else _first(_ZONE, rest),
            region=place if place and not is_zone else None,
            quota=name,
            limit=_number(limit) if limit else _limit_of(rest),
        )


def _limit_of(text: str) -> float | None:
    match = _LIMIT.search(text)
    return _number(match[1]) if match else None


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def _project_of(text: str) -> str | None:
    return _any_of(_PROJECTS, text)


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return match[1] if match else None


def _any_of(patterns: tuple[re.Pattern[str], ...], text: str) -> str | None:
    return next((found for pattern in patterns if (found := _first(pattern, text))), None)
