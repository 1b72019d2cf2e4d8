"""`tpudash replay`: plays a recording in the full read-only screen, without any connection."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tpudash.commands.durations import parse_duration
from tpudash.commands.state import CliState, connection_options, pass_state, screen_options
from tpudash.errors import UsageError

if TYPE_CHECKING:
    from tpudash.store.recording_reader import Recording


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--speed",
    type=click.FloatRange(0.01, 10_000),
    default=1.0,
    show_default=True,
    help="Seconds of the recording for each second.",
)
@click.option(
    "--from",
    "begin",
    metavar="TIME",
    help="Begin there: a time, 12:30:00 of its first day, or so long after its beginning (5m).",
)
@click.option("--paused", is_flag=True, help="Show that moment and stand still.")
@connection_options
@screen_options
@pass_state
def replay(state: CliState, file: Path, speed: float, begin: str | None, paused: bool) -> int:
    """Play a recording made with `tpudash record FILE`.

    The screen is that of watch mode, at the recording's own time; it connects to nothing. `p`
    pauses, `<` and `>` go back and on by 30 seconds, `;` goes to the next change of a node.
    """
    from tpudash.clock import SystemClock
    from tpudash.commands.screen import begin_screen
    from tpudash.store.recording_player import Player, ReplayClock
    from tpudash.store.recording_reader import Recording

    begin_screen(state)
    recording = Recording(file)
    try:
        if not len(recording):
            raise UsageError(f"{file} holds nothing to play", detail=recording.problem)
        clock = ReplayClock(SystemClock(), recording.started, recording.ended, speed)
        player = Player(recording, clock, state.paths.cache_dir)
        player.seek(moment_in(recording, begin) if begin else recording.started)
        clock.pause(on=paused)
        return _show(state, player, recording)
    finally:
        recording.close()


def moment_in(recording: Recording, text: str) -> datetime:
    """Return the moment that `--from` means.

    Raises:
        UsageError: It is none, or it lies outside the recording.
    """
    moment = _moment(recording, text)
    if not recording.started <= moment <= recording.ended:
        raise UsageError(
            f"{text!r} lies outside the recording",
            detail=f"it goes from {recording.started:%Y-%m-%dT%H:%M:%SZ} "
            f"to {recording.ended:%Y-%m-%dT%H:%M:%SZ}",
        )
    return moment


def _moment(recording: Recording, text: str) -> datetime:
    try:
        clock_time = datetime.strptime(text.strip(), "%H:%M:%S").replace(tzinfo=UTC)
        return datetime.combine(recording.started.date(), clock_time.timetz())
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return recording.started + parse_duration(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _show(state: CliState, player: object, recording: Recording) -> int:
    from dataclasses import replace

    from tpudash.commands.screen import console_settings
    from tpudash.commands.session import known_prices
    from tpudash.tui.terminal import prepare_environment, run_console

    prepare_environment()
    from tpudash.tui.replay import ReplayApp

    settings = console_settings(state, is_watch=True, is_replay=True)
    notices = list(settings.notices)
    if recording.problem:
        notices.append(f"The recording is not whole: {recording.problem}.")
    settings = replace(settings, notices=tuple(notices), rotate_s=0.0, project="")
    app = ReplayApp(player, prices=known_prices(state), settings=settings)  # type: ignore[arg-type]
    return run_console(app, mouse=settings.mouse)
