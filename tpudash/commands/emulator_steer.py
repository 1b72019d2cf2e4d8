"""What the commands that steer a running emulator share."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tpudash.commands.durations import parse_duration
from tpudash.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tpudash.commands.state import CliState
    from tpudash.gateways.emulator_control import EmulatorControl

AnswerT = TypeVar("AnswerT")


class DurationType(click.ParamType):  # type: ignore[type-arg]
    """A duration such as 10s or 2m, as seconds."""

    name = "duration"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Return seconds."""
        if isinstance(value, int | float):
            return float(value)
        try:
            return parse_duration(value).total_seconds()
        except UsageError as error:
            self.fail(f"{error.title}; {error.hint}", param, ctx)


DURATION = DurationType()


def steer(state: CliState, act: Callable[[EmulatorControl], Awaitable[AnswerT]]) -> AnswerT:
    """Connect to the emulator at the endpoint and act on it."""
    from tpudash.gateways.emulator_control import EmulatorControl

    endpoint = state.settings.endpoint
    if not endpoint:
        raise ConfigurationError(
            "no emulator is named",
            hint="set TPUDASH_ENDPOINT or --endpoint to the HOST:PORT of its ready file",
        )

    async def connected() -> AnswerT:
        async with EmulatorControl(endpoint) as control:
            return await act(control)

    return asyncio.run(connected())


def tell(answer: dict[str, Any], text: str, *, as_json: bool) -> None:
    """Print an answer, as JSON or in words."""
    click.echo(json.dumps(answer) if as_json else text)
