"""Where tpudash keeps its files, by the platform's own conventions.

`TPUDASH_CONFIG_DIR`, `TPUDASH_STATE_DIR` and `TPUDASH_CACHE_DIR` name other places.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tpudash.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

CONFIG_DIR_VARIABLE = "TPUDASH_CONFIG_DIR"
STATE_DIR_VARIABLE = "TPUDASH_STATE_DIR"
CACHE_DIR_VARIABLE = "TPUDASH_CACHE_DIR"


@dataclass(frozen=True, slots=True)
class Paths:
    """The three folders of tpudash. None of them has to exist.

    Attributes:
        config_dir: What the user writes: `config.toml` and `themes/`.
        state_dir: What must survive: the journal, our own log, the demo's world.
        cache_dir: What may be deleted at any time.
    """

    config_dir: Path
    state_dir: Path
    cache_dir: Path

    @property
    def config_file(self) -> Path:
        """The settings file that is read when no other is named."""
        return self.config_dir / "config.toml"

    @property
    def themes_dir(self) -> Path:
        """The user's own themes."""
        return self.config_dir / "themes"

    def journal_file(self, *, is_local: bool) -> Path:
        """Return the file of what was begun here: in Google's cloud, or at a local endpoint.

        They are apart, so that nothing is gone on with in the cloud that was begun in an emulator.
        """
        return self.state_dir / ("operations-local.jsonl" if is_local else "operations.jsonl")

    @property
    def history_file(self) -> Path:
        """When nodes were seen READY on this machine, which costs are reckoned from."""
        return self.state_dir / "history.sqlite3"

    @property
    def memory_file(self) -> Path:
        """What was seen on this machine: states, steps, samples, events, costs over time."""
        return self.state_dir / "seen.sqlite3"

    def prices_file(self, *, is_local: bool) -> Path:
        """Return the file of the prices last read, from Google or from a local endpoint."""
        return self.cache_dir / ("prices-local.json" if is_local else "prices.json")

    @property
    def log_file(self) -> Path:
        """The log of our own process; never the trainer's."""
        return self.state_dir / "tpudash.log"

    @property
    def demo_dir(self) -> Path:
        """The world of `tpudash demo`, made anew each time."""
        return self.state_dir / "demo"


def find_paths(environment: Mapping[str, str] | None = None) -> Paths:
    """Return the folders for this user; a relative one is meant from the working directory."""
    from platformdirs import PlatformDirs

    named = os.environ if environment is None else environment
    usual = PlatformDirs("tpudash", appauthor=False)
    return Paths(
        config_dir=_folder(named, CONFIG_DIR_VARIABLE, usual.user_config_path),
        state_dir=_folder(named, STATE_DIR_VARIABLE, usual.user_state_path),
        cache_dir=_folder(named, CACHE_DIR_VARIABLE, usual.user_cache_path),
    )


def ensure_writable(folder: Path, what: str) -> Path:
    """Make a folder for this user alone, and see that it can be written to.

    `what` names the folder in the error, such as "state directory".

    Raises:
        ConfigurationError: It can't be made or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(13, os.strerror(13), str(folder))
    except OSError as error:
        raise ConfigurationError(
            f"the {what} can't be written to",
            detail=f"{folder}: {error.strerror or error}",
            hint=f"make it writable, or name another one with {STATE_DIR_VARIABLE}",
        ) from error
    return folder


def _folder(named: Mapping[str, str], variable: str, usual: Path) -> Path:
    text = named.get(variable, "")
    if not text:
        return usual
    path = Path(text).expanduser()
    return path if path.is_absolute() else Path.cwd() / path
