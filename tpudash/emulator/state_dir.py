"""The state folder: made ready, and held by one emulator at a time."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING, Self

from tpudash.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from tpudash.emulator.settings import EmulatorSettings


class StateDirLock:
    """Holds the state folder until closed; the system lets go of it when the process dies."""

    def __init__(self, settings: EmulatorSettings) -> None:
        """Create the folder and take hold of it.

        Raises:
            ConfigurationError: It cannot be written to, or another emulator holds it.
        """
        folder = settings.state_dir
        try:
            folder.mkdir(parents=True, exist_ok=True)
            settings.bucket.mkdir(exist_ok=True)
            self._file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ConfigurationError(
                f"the state directory {folder} cannot be written to",
                detail=error.strerror or str(error),
                hint="choose another with --state-dir",
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._file, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(self._file)
            raise ConfigurationError(
                f"another emulator uses the state directory {folder}",
                detail=f"process {holder}",
                hint="stop it, or choose another folder with --state-dir",
            ) from error
        os.ftruncate(self._file, 0)
        os.write(self._file, f"{os.getpid()}\n".encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self._file)


def write_atomically(path: Path, text: str) -> None:
    """Replace a file so that a reader sees the old or the new content and nothing between."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
