"""The README's recipe for SSH, tried with a real sshd: its own lines, and nothing beside them."""

from __future__ import annotations

import getpass
import os
import re
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import clean_environment
from tests.e2e.pty_screen import PtyScreen
from tests.emulator_fixture import EmulatorProcess
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

README = (Path(__file__).parents[2] / "README.md").read_text()
SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")
REFUSED = (1, 255)

pytestmark = pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None, reason="there is no sshd or ssh on this machine"
)


def operator_options(owner: str) -> str:
    """Return what stands before an operator's key in the README."""
    found = re.search(
        rf'^(restrict.*command="[^"]*{owner}[^"]*") ssh-ed25519', README, re.MULTILINE
    )
    assert found, "the README has no line for an operator's key"
    return found[1]


def viewer_rules() -> str:
    """Return the README's rules for a viewer's account, for the user that runs this test."""
    found = re.search(r"^Match User tpu-viewer\n(?: .*\n)+", README, re.MULTILINE)
    assert found, "the README has no rules for viewers"
    return found[0].replace("tpu-viewer", getpass.getuser())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Bastion:
    """An sshd on loopback with one key that it lets in."""

    folder: Path
    port: int

    def ssh(self, *words: str) -> list[str]:
        """Return the command line of a client that asks for a terminal and then for `words`."""
        given = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR")
        options = [part for one in given for part in ("-o", one)]
        key = ["-i", str(self.folder / "key"), "-o", "IdentitiesOnly=yes", "-F", "none"]
        return ["ssh", "-p", str(self.port), *options, *key, "127.0.0.1", *words]

    def screen(self, *words: str) -> PtyScreen:
        """Open a session on a terminal."""
        command = self.ssh(*words)
        command.insert(1, "-tt")
        environment = clean_environment(self.folder) | {"LANG": "C.UTF-8"}
        return PtyScreen(command, environment=environment, folder=self.folder)

    def without_terminal(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a client without a terminal to its end."""
        return subprocess.run(
            self.ssh(*words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatorProcess]:
    served = EmulatorProcess(tmp_path_factory.mktemp("bastion") / "world")
    try:
        yield served
    finally:
        served.close()


def start_sshd(folder: Path, endpoint: str, before_key: str, rules: str) -> subprocess.Popen[bytes]:
    for name in ("key", "host_key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True
        )
    public = (folder / "key.pub").read_text()
    (folder / "authorized_keys").write_text(f"{before_key} {public}".lstrip())
    own_programs = Path(sys.executable).parent
    variables = {
        "PATH": f"{own_programs}:/usr/local/bin:/usr/bin:/bin",
        "TPUDASH_ENDPOINT": endpoint,
        "TPUDASH_PROJECT": "demo",
        "TPUDASH_STATE_DIR": str(folder / "state"),
        "TPUDASH_CONFIG_DIR": str(folder / "config"),
        "LANG": "C.UTF-8",
    }
    words = " ".join(f'"{name}={value}"' for name, value in variables.items())
    (folder / "sshd_config").write_text(
        f"HostKey {folder}/host_key\nPidFile none\nUsePAM no\nStrictModes no\n"
        f"AuthorizedKeysFile {folder}/authorized_keys\nPasswordAuthentication no\n"
        f"Subsystem sftp internal-sftp\nSetEnv {words}\n{rules}"
    )
    if os.geteuid() == 0:
        # What the service's start script makes before it starts sshd.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    port = (folder / "port").read_text()
    command = [str(SSHD), "-D", "-e", "-f", str(folder / "sshd_config"), "-p", port]
    log = (folder / "sshd.log").open("wb")
    return subprocess.Popen([*command, "-o", "ListenAddress=127.0.0.1"], stderr=log)


@pytest.fixture
def bastion(
    request: pytest.FixtureRequest, world: EmulatorProcess, tmp_path: Path
) -> Iterator[Bastion]:
    before_key, rules = request.param
    port = free_port()
    (tmp_path / "port").write_text(str(port))
    server = start_sshd(tmp_path, world.endpoint, before_key, rules)
    try:
        try:
            wait_until(lambda: answers(port), within=5, what="sshd answers")
        except AssertionError:
            pytest.skip(f"sshd does not run here: {(tmp_path / 'sshd.log').read_text()[-300:]}")
        yield Bastion(tmp_path, port)
    finally:
        server.terminate()
        server.wait(5)


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("bastion", [(operator_options("alice"), "")], indirect=True)
def test_an_operators_key_opens_the_console_and_nothing_else(bastion: Bastion) -> None:
    screen = bastion.screen("/bin/sh", "-c", "'echo a-shell'")
    try:
        screen.wait_for("L launch", within=30)
        screen.wait_for("no nodes", within=30)
        assert "a-shell" not in screen.text
        (holder,) = (bastion.folder / "state").rglob("*control*")
        assert holder
        screen.type("q")
        assert screen.wait_for_end(within=5) == 0
    finally:
        screen.close()
    assert b"a-shell" not in screen.output
    assert bastion.without_terminal("-W", f"127.0.0.1:{bastion.port}").returncode in REFUSED


@pytest.mark.parametrize("bastion", [("", viewer_rules())], indirect=True)
def test_a_viewer_gets_the_wall_whatever_is_asked_for(bastion: Bastion) -> None:
    screen = bastion.screen("tpudash", "console")
    try:
        screen.wait_for("WATCH", within=30)
        screen.type("LDRAFT")
        screen.type(":")
        screen.wait_for("Search for commands")
        assert "launch" not in screen.text
        screen.type("\x1b")
        wait_until(
            lambda: "Search for commands" not in screen.text, within=10, what="the palette closes"
        )
        assert "L launch" not in screen.text
        screen.type("q")
        assert screen.wait_for_end(within=5) == 0
    finally:
        screen.close()
    plain = bastion.without_terminal("/bin/sh", "-c", "'echo a-shell'")
    assert "a-shell" not in plain.stdout
    assert "needs a terminal" in plain.stderr
    assert bastion.without_terminal("-s", "sftp").returncode != 0
    assert bastion.without_terminal("-W", f"127.0.0.1:{bastion.port}").returncode in REFUSED
