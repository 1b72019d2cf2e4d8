"""The container files: what they copy exists, what they run works, and they give nothing away."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from trainer.health import STALLED_S, problem_of

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / ".containers"
FILES = sorted(FOLDER.glob("*.Dockerfile"))
EACH = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


@dataclass(frozen=True)
class Instruction:
    """One instruction of a Dockerfile, continuation lines joined."""

    word: str
    rest: str

    @property
    def arguments(self) -> list[str]:
        """The words of a list in JSON form, which starts no shell."""
        words = json.loads(self.rest[self.rest.index("[") :])
        assert all(isinstance(word, str) for word in words)
        return list(words)


def read(path: Path) -> list[Instruction]:
    """Return the instructions of a Dockerfile."""
    text = re.sub(r"\\\n", " ", path.read_text())
    lines = [line.strip() for line in text.splitlines()]
    pairs = [line.split(None, 1) for line in lines if line and not line.startswith("#")]
    return [Instruction(word.upper(), rest) for word, rest in pairs]


def of(path: Path, word: str) -> list[Instruction]:
    """Return the instructions of one kind."""
    return [each for each in read(path) if each.word == word]


def sources(path: Path) -> list[str]:
    """Return what is copied out of the project."""
    copies = [each.rest.split() for each in of(path, "COPY")]
    return [word for words in copies if "--from=build" not in words for word in words[:-1]]


def test_there_is_one_for_the_trainer_and_one_for_the_screen() -> None:
    assert [path.stem for path in FILES] == ["trainer", "watch"]


@EACH
def test_what_is_copied_exists_and_is_not_ignored(path: Path) -> None:
    lines = path.with_name(f"{path.name}.dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert patterns[0] == "*", "nothing gets in but what is named"
    let_in = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    assert sorted(sources(path)) == sorted(let_in)
    for source in sources(path):
        assert (REPOSITORY / source).exists(), source
    kept_out = [pattern for pattern in patterns[1:] if not pattern.startswith("!")]
    assert any(fnmatch.fnmatch("tpudash/__pycache__", pattern) for pattern in kept_out)


@EACH
def test_image_is_slim_without_root_and_without_a_shell_in_between(path: Path) -> None:
    bases = [each.rest for each in of(path, "FROM")]
    assert all(re.fullmatch(r"python:\$\{PYTHON\}-slim( AS build)?", base) for base in bases)
    after_last_base = read(path)[
        max(at for at, each in enumerate(read(path)) if each.word == "FROM") :
    ]
    users = [each.rest for each in after_last_base if each.word == "USER"]
    assert users
    assert users[-1].isdecimal()
    assert int(users[-1]) > 0
    for word in ("ENTRYPOINT", "CMD", "HEALTHCHECK"):
        assert of(path, word)[0].arguments
    assert of(path, "STOPSIGNAL")[0].rest == "SIGTERM"


@EACH
def test_nothing_secret_and_nothing_from_elsewhere_gets_in(path: Path) -> None:
    assert not of(path, "ADD")
    for each in (*of(path, "ENV"), *of(path, "ARG")):
        assert not re.search(r"token|secret|passw|credential|key", each.rest, re.IGNORECASE)
    assert not any("://" in each.rest for each in read(path))


@EACH
def test_extras_that_are_installed_exist(path: Path) -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    named = [each.rest.partition("=")[2] for each in of(path, "ARG") if "EXTRAS" in each.rest]
    named += re.findall(r"EXTRAS=(\S+)", path.read_text())
    for names in named:
        assert set(names.split(",")) <= set(extras["optional-dependencies"])


def commands(path: Path) -> list[list[str]]:
    """Return the image's own command and health check, the former only asked for help."""
    start = of(path, "ENTRYPOINT")[0].arguments + of(path, "CMD")[0].arguments
    if "--help" not in start:
        start.append("--help")
    return [start, of(path, "HEALTHCHECK")[0].arguments]


def run(words: list[str], programs: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of an image with another environment's programs."""
    return subprocess.run(
        [str(programs / words[0]), *words[1:]],
        cwd=home,
        env={"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@EACH
def test_commands_of_the_image_work(path: Path, tmp_path: Path) -> None:
    for words in commands(path):
        done = run(words, Path(sys.executable).parent, tmp_path)
        assert done.returncode == 0, (words, done.stderr)


@pytest.mark.slow
@pytest.mark.timeout(600)
@EACH
def test_it_installs_and_runs_from_what_is_copied_alone(path: Path, tmp_path: Path) -> None:
    """Each RUN of the build stage in a clean environment; without a framework, which takes long."""
    context = tmp_path / "src"
    context.mkdir()
    for source in sources(path):
        place = REPOSITORY / source
        ignore = shutil.ignore_patterns("__pycache__")
        if place.is_dir():
            shutil.copytree(place, context / source, ignore=ignore)
        else:
            shutil.copy(place, context)
    for each in of(path, "RUN")[:2]:
        line = each.rest.replace("/opt/tpudash", str(tmp_path / "opt")).replace("[${EXTRAS}]", "")
        subprocess.run(["sh", "-ec", line], cwd=context, check=True, timeout=500)
    for words in commands(path):
        done = run(words, tmp_path / "opt/bin", tmp_path)
        assert done.returncode == 0, (words, done.stderr)


def docker_answers() -> bool:
    """Whether an engine runs here."""
    asked = ["docker", "info", "--format", "{{.ServerVersion}}"]
    if shutil.which("docker") is None:
        return False
    return subprocess.run(asked, capture_output=True, timeout=20, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
@EACH
def test_docker_builds_and_runs_it(path: Path) -> None:
    if not docker_answers():
        pytest.skip("no container engine runs here")
    name = f"tpudash-test-{path.stem}"
    build = ["docker", "build", "-q", "-f", str(path), "-t", name, str(REPOSITORY)]
    subprocess.run(build, check=True, timeout=1700)
    done = subprocess.run(
        [
            "docker",
            "run",
            "--rm",
            name,
            *commands(path)[0][len(of(path, "ENTRYPOINT")[0].arguments) :],
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_health_is_told_by_the_age_of_the_last_event(tmp_path: Path) -> None:
    events, line = tmp_path / "run/events.jsonl", tmp_path / "cmdline"
    words = [
        "python",
        "-m",
        "trainer.jax_recipe",
        "--model_dir",
        str(tmp_path / "run"),
        "--steps=5",
    ]
    line.write_text("\0".join(words) + "\0")
    assert problem_of(line, 0.0) is None, "it has only just begun"
    events.parent.mkdir()
    events.write_text("{}\n")
    written = events.stat().st_mtime
    assert problem_of(line, written + STALLED_S - 1) is None
    assert "no event" in (problem_of(line, written + STALLED_S + 1) or "")


@pytest.mark.parametrize(
    "words", ["", "sh", "python -m trainer.serve --model x", "python -m", "x -m trainer -"]
)
def test_health_of_what_writes_no_events_is_that_it_runs(tmp_path: Path, words: str) -> None:
    line = tmp_path / "cmdline"
    line.write_text("\0".join(words.split()))
    assert problem_of(line, 1e12) is None
    line.unlink()
    assert "no trainer" in (problem_of(line, 1e12) or "")
