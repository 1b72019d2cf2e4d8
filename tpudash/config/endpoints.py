"""Reads the Prometheus endpoints of the settings."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlsplit

from tpudash.domain.serving import ServingEndpoint

MAX_ENDPOINTS: Final = 50
_LONGEST_NAME: Final = 40
_LONGEST_URL: Final = 2_000
_METRIC: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_KEYS: Final = ("name", "url", "latency", "errors")


def read_endpoints(value: Any) -> tuple[ServingEndpoint, ...]:
    """Return the endpoints of a list of tables.

    Raises:
        ValueError: One is not what it should be; the text says what the list must be.
    """
    if not isinstance(value, list | tuple) or not all(isinstance(one, dict) for one in value):
        raise ValueError('a list of tables, such as [{name = "api", url = "http://HOST/metrics"}]')
    if len(value) > MAX_ENDPOINTS:
        msg = f"a list of at most {MAX_ENDPOINTS} tables"
        raise ValueError(msg)
    found = tuple(_endpoint(one) for one in value)
    if len({one.name for one in found}) < len(found):
        raise ValueError("a list of tables, each with a name of its own")
    return found


def _endpoint(table: dict[str, Any]) -> ServingEndpoint:
    strange = next((key for key in table if key not in _KEYS), None)
    if strange is not None:
        msg = f"tables with {', '.join(_KEYS)}, without {strange!r}"
        raise ValueError(msg)
    if not all(isinstance(value, str) for value in table.values()):
        raise ValueError("tables of texts in quotes")
    name, url = table.get("name", "").strip(), table.get("url", "").strip()
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        msg = f"tables with a name of 1 to {_LONGEST_NAME} characters"
        raise ValueError(msg)
    _check_url(url)
    names = {key: table[key] for key in ("latency", "errors") if key in table}
    if not all(map(_METRIC.fullmatch, names.values())):
        raise ValueError("tables whose latency and errors are names of metrics")
    return ServingEndpoint(name, url, **names)


def _check_url(url: str) -> None:
    words = "tables with a url that begins with http:// or https:// and a host"
    if len(url) > _LONGEST_URL or not url.isprintable() or " " in url:
        raise ValueError(words)
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in {"http", "https"} and bool(parts.hostname)
        has_port = parts.port is None or parts.port > 0
    except ValueError as error:
        raise ValueError(words) from error
    if not is_good or not has_port:
        raise ValueError(words)
    if parts.username or parts.password:
        # It would stand in the settings that are shown and in logs of proxies.
        raise ValueError("tables with a url that holds no user and no password")
