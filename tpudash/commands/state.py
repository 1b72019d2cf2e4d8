"""What every command knows: the flags that were given, the settings and the paths.

The global options may stand before or after the command's name, as with gcloud.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.config.paths import Paths
    from tpudash.config.settings import LoadedSettings, Settings

CommandT = TypeVar("CommandT", bound="Callable[..., Any]")


@dataclass
class CliState:
    """The flags of one command line, and what follows from them.

    Attributes:
        flags: Values of flags that set a setting, by the setting's name.
        debug: Whether to show tracebacks.
        config: A settings file named by the user.
    """

    flags: dict[str, Any] = field(default_factory=dict)
    debug: bool = False
    config: Path | None = None

    @cached_property
    def paths(self) -> Paths:
        """Where tpudash keeps its files."""
        from tpudash.config.paths import find_paths

        return find_paths()

    @cached_property
    def loaded(self) -> LoadedSettings:
        """The settings with their origins.

        Raises:
            ConfigurationError: The settings file or a variable is wrong.
        """
        from tpudash.config.load import load_settings

        file = self.config or self.paths.config_file
        return load_settings(file, must_exist=self.config is not None, flags=self.flags)

    @property
    def settings(self) -> Settings:
        """The settings."""
        return self.loaded.settings


pass_state = click.make_pass_decorator(CliState, ensure=True)


def _remember_flag(ctx: click.Context, param: click.Parameter, value: object) -> None:
    if value is not None and value != ():
        ctx.ensure_object(CliState).flags[str(param.name)] = value


def _remember_projects(ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]) -> None:
    if value:
        ctx.ensure_object(CliState).flags["project"] = ",".join(value)


def _remember_debug(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(CliState).debug = True


def _remember_config(ctx: click.Context, _param: click.Parameter, value: Path | None) -> None:
    if value is not None:
        ctx.ensure_object(CliState).config = value


def connection_options(command: CommandT) -> CommandT:
    """Add the options that say where to look: project, endpoint, settings file, debug."""
    options = (
        click.option(
            "--project",
            metavar="ID",
            multiple=True,
            expose_value=False,
            callback=_remember_projects,
            help="Google Cloud project; more of them to look at only [TPUDASH_PROJECT].",
        ),
        click.option(
            "--endpoint",
            metavar="HOST:PORT",
            expose_value=False,
            callback=_remember_flag,
            help="Local endpoint for every API, in plaintext [TPUDASH_ENDPOINT].",
        ),
        click.option(
            "--impersonate",
            metavar="ACCOUNT",
            expose_value=False,
            callback=_remember_flag,
            help="Service account to act as [TPUDASH_IMPERSONATE].",
        ),
        click.option(
            "--quota-project",
            metavar="ID",
            expose_value=False,
            callback=_remember_flag,
            help="Project whose quota the calls use [TPUDASH_QUOTA_PROJECT].",
        ),
        click.option(
            "--config",
            metavar="FILE",
            type=click.Path(path_type=Path, dir_okay=False),
            envvar="TPUDASH_CONFIG",
            expose_value=False,
            callback=_remember_config,
            help="Settings file instead of the usual one [TPUDASH_CONFIG].",
        ),
        click.option(
            "--debug",
            is_flag=True,
            expose_value=False,
            callback=_remember_debug,
            help="Show tracebacks, and log more.",
        ),
    )
    return _with_options(command, options)


def screen_options(command: CommandT) -> CommandT:
    """Add the options of the commands that open a screen."""
    options = (
        click.option(
            "--theme",
            metavar="NAME",
            expose_value=False,
            callback=_remember_flag,
            help="Theme; see: tpudash themes [TPUDASH_THEME].",
        ),
        click.option(
            "--ascii/--no-ascii",
            "ascii",
            default=None,
            expose_value=False,
            callback=_remember_flag,
            help="Draw with ASCII only.",
        ),
        click.option(
            "--mouse/--no-mouse",
            default=None,
            expose_value=False,
            callback=_remember_flag,
            help="Use the mouse; off over SSH unless asked for.",
        ),
    )
    return _with_options(command, options)


def json_option(command: CommandT) -> CommandT:
    """Add `--json`, which prints one envelope instead of a table."""
    return _with_options(
        command, (click.option("--json", "as_json", is_flag=True, help="Print JSON."),)
    )


def _with_options(
    command: CommandT, options: tuple[Callable[[CommandT], CommandT], ...]
) -> CommandT:
    for option in reversed(options):
        command = option(command)
    return command
