"""The command line's frame: exit codes, the shape of errors, help, and near misses."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest

from tpudash import cli
from tpudash.errors import (
    CapacityError,
    ConfigurationError,
    NotAllowedError,
    NotFoundError,
    OperationFailedError,
    OutcomeUnknownError,
    UnreachableError,
    UsageError,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tuple(os.environ):
        if name.startswith("TPUDASH_") or name == "GOOGLE_CLOUD_PROJECT":
            monkeypatch.delenv(name)
    monkeypatch.setenv("TPUDASH_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("TPUDASH_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """A command `paths` that raises what the test puts in the list."""
    errors: list[BaseException] = []

    @click.command()
    def paths() -> None:
        raise errors.pop()

    monkeypatch.setattr("tpudash.commands.paths.paths", paths)
    return errors


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OperationFailedError("it failed"), 1),
        (UnreachableError("it failed"), 1),
        (UsageError("it failed"), 2),
        (ConfigurationError("it failed"), 2),
        (NotAllowedError("it failed"), 3),
        (NotFoundError("it failed"), 4),
        (CapacityError("it failed"), 5),
        (OutcomeUnknownError("it failed"), 6),
    ],
)
def test_each_kind_of_error_has_its_exit_code(
    failing: list[BaseException],
    error: BaseException,
    code: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    failing.append(error)
    assert cli.run(["paths"]) == code
    assert capsys.readouterr().err == "error: it failed\n"


def test_an_error_is_title_detail_and_hint_a_line_each_and_harmless(
    failing: list[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    failing.append(UsageError("no\x1b[31m", detail="line one\nline two\t!", hint="try this"))
    assert cli.run(["paths"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "error: no\ndetail: line one line two !\nhint: try this\n"


def test_interruption_is_130_and_no_traceback(
    failing: list[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    failing.append(KeyboardInterrupt())
    assert cli.run(["paths"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_a_defect_of_ours_shows_its_traceback_only_in_the_log(
    failing: list[BaseException], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failing.append(ZeroDivisionError("oh"))
    assert cli.run(["paths"]) == 1
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert "ZeroDivisionError: oh" in err
    assert "Traceback" in (tmp_path / "state" / "tpudash.log").read_text("utf-8")


def test_debug_shows_the_traceback(failing: list[BaseException]) -> None:
    failing.append(UsageError("it failed"))
    with pytest.raises(UsageError):
        cli.run(["--debug", "paths"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nodez"], "did you mean 'nodes'?"),
        (["--projct", "x"], "--project"),
        (["nodes", "--jsn"], "--json"),
        (["launch"], "missing argument 'NAME'"),
        (["launch", "demo", "--steps", "many"], "--steps"),
        (["launch", "demo", "stray"], "unexpected extra argument"),
        (["config", "shwo"], "shwo"),
        (["metrics"], "missing argument"),
        (["qqqqqq"], "there is no command 'qqqqqq'"),
    ],
)
def test_wrong_usage_is_2_and_one_line_and_a_hint(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(arguments) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("error: ")
    assert lines[1].startswith("hint: ")
    assert says.lower() in " ".join(lines).lower()


def test_the_help_names_every_command_without_importing_them() -> None:
    code = (
        "import sys; from tpudash import cli; cli.run(['--help']);"
        "print(sorted(m for m in sys.modules if m.startswith('tpudash.commands.')))"
    )
    done = python(code)
    for name in cli.COMMANDS:
        assert f"  {name} " in done.stdout
    assert "['tpudash.commands.state']" in done.stdout


def test_every_command_of_the_table_can_be_imported_and_explains_itself() -> None:
    context = click.Context(cli.root)
    for name in cli.COMMANDS:
        command = cli.root.get_command(context, name)
        assert isinstance(command, click.Command), name
        assert command.help, name


def test_sections_and_table_agree() -> None:
    assert sorted(name for names in cli.SECTIONS.values() for name in names) == sorted(cli.COMMANDS)


def test_a_reader_who_leaves_is_no_error() -> None:
    shell = f"{sys.executable} -m tpudash themes --json | head -c 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--version"], ("textual", "google", "grpc", "asyncio", "tensorflow")),
        (["--help"], ("textual", "google", "grpc", "tensorflow")),
        (["config", "show", "--json"], ("textual", "google", "grpc", "tensorflow")),
        (["paths", "--json"], ("textual", "google", "grpc", "tensorflow")),
        (["themes", "--json"], ("textual", "google", "grpc", "tensorflow")),
    ],
)
def test_a_command_imports_only_what_it_needs(
    arguments: list[str], absent: tuple[str, ...]
) -> None:
    code = (
        f"import sys; from tpudash import cli; code = cli.run({arguments!r});"
        f"found = [name for name in {absent!r} if name in sys.modules];"
        "sys.exit(f'{code} {found}' if code or found else 0)"
    )
    done = python(code)
    assert done.returncode == 0, done.stderr


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )


def test_watch_mode_never_imports_operations_nor_the_emulator() -> None:
    code = (
        "import sys;"
        "import tpudash.commands.watch, tpudash.commands.screen, tpudash.commands.sources;"
        "import tpudash.commands.session, tpudash.gateways.connection, tpudash.tui.app;"
        "bad = [n for n in sys.modules"
        " if n.startswith(('tpudash.operations', 'tpudash.emulator', 'tensorflow'))];"
        "sys.exit(str(bad) if bad else 0)"
    )
    done = python(code)
    assert done.returncode == 0, done.stderr


def test_the_screen_is_built_without_google() -> None:
    code = (
        "import sys; import tpudash.commands.console, tpudash.commands.screen, tpudash.tui.app;"
        "import tpudash.commands.lazy_operations;"
        "bad = [n for n in ('google', 'grpc', 'tpudash.operations') if n in sys.modules];"
        "sys.exit(str(bad) if bad else 0)"
    )
    done = python(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('projekt = "p"\n', "project"),
        ('theme = "drak"\n', "dark"),
        ('[keys]\nlunch = "L"\n', "launch"),
    ],
)
def test_config_check_names_what_is_wrong_and_what_was_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "config.toml").write_text(text, "utf-8")
    assert cli.run(["config", "check"]) == 2
    assert says in capsys.readouterr().err


def test_config_check_says_that_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["config", "check"]) == 0
    assert capsys.readouterr().out.startswith("settings are fine")


def test_config_check_refuses_an_endpoint_that_is_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TPUDASH_ENDPOINT", "example.com:443")
    assert cli.run(["config", "check"]) == 2
    assert "the endpoint is not on this machine" in capsys.readouterr().err


@pytest.mark.parametrize("amount", ["inf", "nan", "1e400", "0", "-1"])
@pytest.mark.parametrize("command", ["launch", "resume", "supervise"])
def test_a_cap_that_caps_nothing_is_wrong_usage(
    command: str, amount: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([command, "demo", f"--max-cost={amount}", "--dry-run"]) == 2
    assert "--max-cost" in capsys.readouterr().err


def test_the_code_of_the_console_is_the_code_of_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    console = click.Command("console", callback=lambda: 143)
    monkeypatch.setattr(cli.LazyGroup, "get_command", lambda *_: console)
    assert cli.run([]) == 143
