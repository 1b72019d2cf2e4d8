"""Local endpoints: `HOST:PORT` of one plaintext server, which must be on this machine."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from tpudash.errors import ConfigurationError

_HINT = "give HOST:PORT of a server on this machine, such as 127.0.0.1:8470"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A loopback address that every API is spoken to in plaintext."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_endpoint(text: str) -> Endpoint:
    """Return the endpoint that a text names.

    Raises:
        ConfigurationError: Not HOST:PORT, or not a loopback address: without TLS nothing may
            leave this machine.
    """
    host, colon, port = text.strip().rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit()) or "/" in host:
        raise ConfigurationError("not an endpoint", detail=repr(text), hint=_HINT)
    if not 0 < int(port) < 65536:
        raise ConfigurationError("not a port", detail=repr(text), hint=_HINT)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if host.lower() != "localhost" and not _is_loopback(host):
        raise ConfigurationError(
            "the endpoint is not on this machine",
            detail=f"{text}: plaintext is spoken to a loopback address only",
            hint=_HINT,
        )
    return Endpoint(host, int(port))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
