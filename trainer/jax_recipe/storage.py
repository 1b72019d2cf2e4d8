"""Files of the run's folder, on this machine or on gs:// through fsspec."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from trainer.faults import ExitCode, TrainerError, access_error
from trainer.joblock import is_remote

if TYPE_CHECKING:
    from collections.abc import Callable

_ResultT = TypeVar("_ResultT")


class Storage:
    """Reads and writes whole files of one run; every failure is told as a `TrainerError`.

    Args:
        root: the run's folder, a path or a gs:// URL.
    """

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/")
        self.remote = is_remote(root)
        self._fs: Any = None

    @property
    def _files(self) -> Any:
        if self._fs is None:
            import fsspec

            # Names that this process has seen are no proof of what other workers have written.
            options = {"use_listings_cache": False} if self.remote else {}
            self._fs = fsspec.filesystem("gs" if self.remote else "file", **options)
        return self._fs

    def _tried(self, what: str, action: Callable[[], _ResultT]) -> _ResultT:
        try:
            return action()
        except Exception as error:
            raise access_error(error, what) from error

    def path(self, name: str) -> str:
        """Return the path or URL of a file of the run."""
        return f"{self.root}/{name}"

    def prepare(self, folder: str) -> None:
        """Make a folder and see that it can be written.

        Raises:
            TrainerError: it cannot.
        """
        if self.remote:
            return
        probe = Path(self.path(folder)) / ".probe"
        try:
            probe.parent.mkdir(parents=True, exist_ok=True)
            probe.write_text("probe")
            probe.unlink()
        except OSError as error:
            fault = access_error(error, f"cannot write to {probe.parent}")
            fault.exit_code = ExitCode.BAD_ARGUMENTS
            raise fault from error

    def names(self, folder: str) -> list[str]:
        """Return the names of what lies directly in a folder, none if there is no such folder."""

        def listed() -> list[str]:
            try:
                found = self._files.ls(self.path(folder), detail=False)
            except FileNotFoundError:
                return []
            return sorted({each.rstrip("/").rsplit("/", 1)[-1] for each in found} - {""})

        return self._tried(f"cannot list {self.path(folder)}", listed)

    def files_below(self, folder: str) -> list[str]:
        """Return the files of a folder and its folders, relative to it; none for a file."""
        whole = self.path(folder)

        def found() -> list[str]:
            begin = whole.removeprefix("gs://") + "/"
            inside = (each.removeprefix("gs://") for each in self._files.find(whole))
            return sorted(each.removeprefix(begin) for each in inside if each.startswith(begin))

        return self._tried(f"cannot list {whole}", found)

    def read(self, name: str) -> bytes | None:
        """Return a file's content, None if there is none."""

        def read() -> bytes | None:
            try:
                return bytes(self._files.cat_file(self.path(name)))
            except FileNotFoundError:
                return None

        return self._tried(f"cannot read {self.path(name)}", read)

    def write(self, name: str, content: bytes) -> None:
        """Replace a file as a whole."""

        def write() -> None:
            if self.remote:
                self._files.pipe_file(self.path(name), content)
                return
            final = Path(self.path(name))
            final.parent.mkdir(parents=True, exist_ok=True)
            temporary = final.with_name(f"{final.name}.tmp")
            temporary.write_bytes(content)
            temporary.replace(final)

        self._tried(f"cannot write {self.path(name)}", write)

    def publish(self, staged: Path, folder: str) -> None:
        """Move a finished folder of this machine into the run's folder."""

        def publish() -> None:
            if self.remote:
                files = [path for path in staged.rglob("*") if path.is_file()]
                places = (self.path(f"{folder}/{path.relative_to(staged)}") for path in files)
                # All at once: each of them takes a tenth of a second of a notice of thirty.
                self._files.pipe(dict(zip(places, map(Path.read_bytes, files), strict=True)))
                shutil.rmtree(staged)
                return
            final = Path(self.path(folder))
            final.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(final, ignore_errors=True)
            staged.rename(final)

        self._tried(f"cannot write {self.path(folder)}", publish)

    def move(self, name: str, target: str) -> None:
        """Move a file or folder to another place within the run's folder."""

        def move() -> None:
            if not self.remote:
                Path(self.path(target)).parent.mkdir(parents=True, exist_ok=True)
                Path(self.path(name)).rename(self.path(target))
                return
            source = self.path(name)
            inside = self.files_below(name)
            for each in inside:
                self._files.copy(f"{source}/{each}", f"{self.path(target)}/{each}")
            if not inside:
                self._files.copy(source, self.path(target))
            self._files.rm(source, recursive=bool(inside))

        self._tried(f"cannot set aside {self.path(name)}", move)

    def remove(self, name: str) -> None:
        """Remove a file or folder that may be gone already."""

        def remove() -> None:
            try:
                self._files.rm(self.path(name), recursive=True)
            except FileNotFoundError:
                return

        self._tried(f"cannot remove {self.path(name)}", remove)

    def exists(self, name: str) -> bool:
        """Say whether there is such a file or folder."""
        return self._tried(
            f"cannot look at {self.path(name)}", lambda: bool(self._files.exists(self.path(name)))
        )

    def copies(self, pattern: str, folder: Path) -> list[str]:
        """Copy the files of a bucket that match a pattern to this machine, unless they are there.

        Returns:
            The paths of the copies, sorted.
        """

        def copy() -> list[str]:
            import fsspec

            bucket = fsspec.filesystem("gs")
            copies = []
            for source in sorted(bucket.glob(pattern)):
                facts = bucket.info(source)
                version = f"{source} {facts['size']} {facts.get('generation') or facts.get('etag')}"
                name = hashlib.sha256(version.encode()).hexdigest()[:16]
                target = folder / name / source.rsplit("/", 1)[-1]
                if not target.exists():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    bucket.get_file(source, f"{target}.part")
                    Path(f"{target}.part").replace(target)
                copies.append(str(target))
            return copies

        try:
            return self._tried(f"cannot read {pattern}", copy)
        except TrainerError as fault:
            fault.exit_code = ExitCode.NO_INPUT
            raise
