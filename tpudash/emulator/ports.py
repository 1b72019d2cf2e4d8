"""Ports of 127.0.0.1."""

from __future__ import annotations

import socket

from tpudash.errors import ConfigurationError

LOOPBACK = "127.0.0.1"


def probe_port(port: int, option: str) -> None:
    """Try a port before a library does, whose own complaint would go to stderr.

    Args:
        port: 0 stands for any.
        option: The option of `tpudash emulator serve` that chooses it.

    Raises:
        ConfigurationError: It is taken or may not be used.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            raise port_error(port, option, error.strerror or str(error)) from error


def port_error(port: int, option: str, reason: str) -> ConfigurationError:
    """Return the refusal of a port."""
    return ConfigurationError(
        f"port {port} of {LOOPBACK} cannot be used",
        detail=reason,
        hint=f"choose another with {option}, or {option} 0 for any free one",
    )
