"""Has the bundled trainer test itself: before it trains, or when it failed without saying why."""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainer.agent.child import Child
from trainer.agent.progress import parse_event, severity_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trainer.agent.shipper import Shipper

WORTH_IT = frozenset({"CONNECT", "STALLED", "UNCLASSIFIED"})
"""Classes that leave open what is wrong; the others name it themselves."""


@dataclass(frozen=True)
class Findings:
    """What the tests found.

    Attributes:
        code: their exit code, or None if they took too long or the node had to go.
        failure: class, detail and hint of the test that failed, or None.
        checks: check, verdict, message and hint of each test.
    """

    code: int | None
    failure: dict[str, Any] | None
    checks: list[dict[str, Any]]


def command_of(command: Sequence[str]) -> list[str] | None:
    """Return the command that tests what a command would do, or None if it is not bundled."""
    if tuple(command[1:3]) != ("-m", "trainer"):
        return None
    kept = [part for part in command[3:] if part != "--stop_on_stdin_eof"]
    return [*command[:3], "validate", *kept]


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    limit_s: float,
    on_line: Callable[[str, str], None],
    cancelled: Callable[[], bool],
) -> int | None:
    """Run the tests and hand on what they print.

    Returns:
        The exit code, or None if they took too long or the node had to go.
    """
    done = threading.Event()
    child = Child(
        command, environment, on_line=on_line, on_exit=done.set, on_trouble=lambda _: None
    )
    deadline = time.monotonic() + limit_s
    while not done.wait(0.2):
        if cancelled() or time.monotonic() > deadline:
            child.signal(signal.SIGKILL)
            done.wait(5.0)
            return None
    child.signal(signal.SIGKILL)
    return child.exit_code


def report(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    limit_s: float,
    shipper: Shipper,
    tell: Callable[..., None],
    cancelled: Callable[[], bool],
) -> Findings:
    """Run the tests, put what they find into the log, and return it."""
    checks: list[dict[str, Any]] = []
    failures: list[dict[str, Any]] = []

    def on_line(stream: str, line: str) -> None:
        event = parse_event(line) if stream == "stdout" else None
        if event is None:
            shipper.submit(stream, text=line)
            return
        if event["event"] in ("check", "validate"):
            shipper.submit("event", severity=severity_of(event), payload=event)
        if event["event"] == "check":
            checks.append(_named(event, "check", "verdict", "message", "hint"))
        if event.get("class"):
            failures.append(_named(event, "class", "detail", "hint"))

    code = run(command, environment, limit_s=limit_s, on_line=on_line, cancelled=cancelled)
    tell("the tests took too long" if code is None else f"the tests ended with code {code}")
    return Findings(code, failures[0] if failures else None, checks)


def _named(event: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: event.get(name) for name in names}
