"""The command line's entry point: lazy subcommands, and one place where errors become exit codes.

A command's module is imported only when the command is used, so that `tpudash --version` costs
no more than click does.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final, NoReturn

import click

from tpudash import __version__
from tpudash.commands.state import CliState, connection_options, screen_options
from tpudash.errors import ExitCode, TpudashError

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM: Final = "tpudash"
SECTIONS: Final[dict[str, tuple[str, ...]]] = {
    "Screens": ("console", "watch", "demo", "replay"),
    "Read": ("nodes", "requests", "runs", "metrics", "logs", "cost", "doctor", "explain", "record"),
    "Act": ("launch", "resume", "delete", "supervise", "clean", "budget"),
    "Set up": ("config", "paths", "themes", "emulator"),
}
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "console": ("console:console", "The operator console, as without a command."),
    "watch": ("watch:watch", "The read-only screen."),
    "demo": ("demo:demo", "A local emulator, one launched run, and the console."),
    "replay": ("replay:replay", "Play a recording in the read-only screen."),
    "nodes": ("nodes:nodes", "List TPU nodes of all zones."),
    "requests": ("requests:requests", "List queued resources of all zones."),
    "runs": ("runs:runs", "List training runs with their attempts."),
    "metrics": ("metrics:metrics", "Show the utilization of a run's or a node's workers."),
    "logs": ("logs:logs", "Show or follow the log of a run or a node."),
    "cost": ("cost:cost", "Estimate what nodes cost per hour and have cost."),
    "doctor": ("doctor:doctor", "Run the troubleshooting checklist."),
    "explain": ("explain:explain", "Explain an error text from a file or from standard input."),
    "record": ("record:record", "Record what happens, without a screen."),
    "launch": ("launch:launch", "Launch a training run on a new node."),
    "resume": ("resume:resume", "Continue a run on a new node from its last checkpoint."),
    "delete": ("delete:delete", "Delete the nodes and requests of a run, or a node."),
    "supervise": ("supervise:supervise", "Resume a run by itself until it is finished."),
    "clean": ("clean:clean", "List what is dead, leaked or idle, and delete what is marked."),
    "budget": ("budget:budget", "List, create and change budget alerts."),
    "config": ("config:config", "Show or check the settings."),
    "paths": ("paths:paths", "Show where tpudash keeps its files."),
    "themes": ("themes:themes", "List the themes."),
    "emulator": ("emulator:emulator", "Serve and steer a local emulator of Google Cloud."),
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports each only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names in the order of the help text."""
        return [name for names in SECTIONS.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command, or return None when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(f"tpudash.commands.{module}"), attribute)
        if not isinstance(command, click.Command):
            msg = f"{module}:{attribute} is not a command"
            raise TypeError(msg)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the nearest one."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
            meant = f"did you mean {near[0]!r}? " if near else ""
            error = click.UsageError(f"there is no command {name!r}", ctx)
            error.add_note(f"{meant}see: {PROGRAM} --help")
            raise error
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands by section, from the table, so that none has to be imported."""
        for section, names in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, COMMANDS[name][1]) for name in names])


@click.command(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")
@connection_options
@screen_options
@click.pass_context
def root(ctx: click.Context) -> int | None:
    """Watch and operate Google Cloud TPU nodes and the training runs on them.

    Without a command, this opens the operator console.
    """
    if ctx.invoked_subcommand is not None:
        return None
    code: int = ctx.invoke(LazyGroup.get_command(root, ctx, "console"))  # type: ignore[arg-type]
    return code


def main() -> NoReturn:
    """Run the command line and end the process with its exit code.

    The process ends without taking its modules apart: with Google's clients that takes 0.2 s, and
    a thread inside a call that is never answered would hold it up for minutes.
    """
    code = run()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and turn whatever it raises into lines on stderr and an exit code."""
    state = CliState()
    try:
        result = root.main(
            args=list(arguments) if arguments is not None else None,
            prog_name=PROGRAM,
            standalone_mode=False,
            obj=state,
        )
    except TpudashError as error:
        if state.debug:
            raise
        complain(error.title, error.detail, error.hint)
        return int(error.exit_code)
    except click.ClickException as error:
        return _usage_error(error)
    except (KeyboardInterrupt, click.Abort):
        complain("interrupted")
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        _point_stdout_at_nothing()
        return int(ExitCode.DONE)
    except Exception as error:
        if state.debug:
            raise
        return _defect(error, state)
    return int(result) if isinstance(result, int) else int(ExitCode.DONE)


def complain(title: str, detail: str = "", hint: str = "") -> None:
    """Write an error to stderr: title, detail and hint, a line each and only what there is."""
    from tpudash.wording.text import safe_text

    rows = (("error", title), ("detail", detail), ("hint", hint))
    lines = [f"{name}: {safe_text(' '.join(text.split()))}" for name, text in rows if text]
    with contextlib.suppress(OSError):
        click.echo("\n".join(lines), err=True)


def _usage_error(error: click.ClickException) -> int:
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else PROGRAM
    hint = next(iter(getattr(error, "__notes__", ())), f"see: {path} --help")
    message = error.format_message().rstrip(".")
    complain(message[:1].lower() + message[1:] if message[1:2].islower() else message, hint=hint)
    return int(ExitCode.USAGE)


def _defect(error: Exception, state: CliState) -> int:
    import logging

    from tpudash.commands.own_log import start_own_log

    with contextlib.suppress(TpudashError):
        start_own_log(state.paths.log_file, "INFO")
        logging.getLogger(__name__).error("defect", exc_info=error)
    complain(
        "tpudash itself failed; this is a defect",
        f"{type(error).__name__}: {error}",
        "run it again with --debug for the traceback",
    )
    return int(ExitCode.FAILED)


def _point_stdout_at_nothing() -> None:
    """Whoever read us has gone; what is still buffered goes nowhere, without a complaint."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
