"""A plain HTTP server on loopback with one function that answers everything."""

from __future__ import annotations

from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tpudash.emulator.ports import LOOPBACK, probe_port

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.clock import Clock

_STOP_S = 0.2


class WebSite:
    """One listening port.

    Args:
        handler: Answers a request.
        clock: Time of the `Date` header.
        port_option: The option of `tpudash emulator serve` that chooses the port.
    """

    def __init__(
        self, handler: Callable[[web.BaseRequest], Any], clock: Clock, port_option: str
    ) -> None:
        self._handler = handler
        self._clock = clock
        self._port_option = port_option
        self._runner: web.ServerRunner | None = None

    @property
    def protocol_factory(self) -> Callable[[], Any]:
        """Makes the protocol of a connection that was accepted elsewhere; needs `start`."""
        if self._runner is None or self._runner.server is None:
            raise RuntimeError("not started")
        return self._runner.server

    async def start(self, port: int) -> int:
        """Serve on 127.0.0.1 and return the port.

        Raises:
            ConfigurationError: The port is taken or may not be used.
        """
        probe_port(port, self._port_option)
        server = web.Server(self._dated, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=_STOP_S)
        await self._runner.setup()
        await web.TCPSite(self._runner, LOOPBACK, port).start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop serving; open connections are closed."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _dated(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        response: web.StreamResponse = await self._handler(request)
        if not response.prepared:
            response.headers["Date"] = format_datetime(self._clock.now(), usegmt=True)
        return response
