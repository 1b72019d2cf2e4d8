"""The checkpoint folder as files: scan, verify, quarantine, sweep. Knows nothing of the model.

TensorFlow's own `checkpoint` text file is not trusted: a garbled one reads as "no checkpoint",
which would silently start the training again at step 0.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tensorflow as tf

from trainer.faults import ExitCode, access_error, one_line
from trainer.joblock import is_remote

_NAME = re.compile(r"ckpt-(\d+)(?:\.(index|json)|\.(data)-\d{5}-of-\d{5}|(_temp).*)/?")
_STATE_FILE = "checkpoint"
_STATE_LINE = re.compile(r'^model_checkpoint_path: "(.+)"', re.MULTILINE)
_DAMAGE = (tf.errors.OpError, IndexError, ValueError, OSError, RuntimeError)
_NOT_DAMAGE = (
    tf.errors.UnavailableError,
    tf.errors.DeadlineExceededError,
    tf.errors.PermissionDeniedError,
    tf.errors.UnauthenticatedError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
)


@dataclass
class Scan:
    """What lies in the folder, by step number."""

    indices: list[int] = field(default_factory=list)
    orphans: list[int] = field(default_factory=list)
    described: set[int] = field(default_factory=set)
    temporary: list[str] = field(default_factory=list)
    state: str | None = None
    state_path: str | None = None


class CheckpointFolder:
    """`<model_dir>/checkpoints` and `<model_dir>/quarantine`."""

    def __init__(self, model_dir: str) -> None:
        self.path = f"{model_dir.rstrip('/')}/checkpoints"
        self.quarantine_path = f"{model_dir.rstrip('/')}/quarantine"
        self._remote = is_remote(model_dir)

    def prepare(self) -> None:
        """Make the folder and see that it can be written.

        Raises:
            TrainerError: it cannot.
        """
        probe = f"{self.path}/.probe"
        try:
            tf.io.gfile.makedirs(self.path)
            if not self._remote:
                with tf.io.gfile.GFile(probe, "w") as file:
                    file.write("probe")
                tf.io.gfile.remove(probe)
        except (tf.errors.OpError, OSError) as error:
            fault = access_error(error, f"cannot write to {self.path}")
            if not self._remote:
                fault.exit_code = ExitCode.BAD_ARGUMENTS
            raise fault from error

    def scan(self) -> Scan:
        """Return what lies in the folder; steps are sorted newest first."""
        scan = Scan()
        data: set[int] = set()
        for name in self._names():
            if name == _STATE_FILE:
                self._read_state(scan)
            match = _NAME.fullmatch(name)
            if match is None:
                continue
            step = int(match.group(1))
            if match.group(4):
                scan.temporary.append(name.rstrip("/"))
            elif match.group(3):
                data.add(step)
            elif match.group(2) == "json":
                scan.described.add(step)
            else:
                scan.indices.append(step)
        scan.indices.sort(reverse=True)
        scan.orphans = sorted(data - set(scan.indices), reverse=True)
        return scan

    def _names(self) -> list[str]:
        try:
            if not tf.io.gfile.isdir(self.path):
                return []
            if not self._remote:
                # TensorFlow's own fails at a name that is no UTF-8.
                return [each.name for each in Path(self.path).iterdir()]
            return list(tf.io.gfile.listdir(self.path))
        except (tf.errors.OpError, OSError) as error:
            raise access_error(error, f"cannot list {self.path}") from error

    def _read_state(self, scan: Scan) -> None:
        scan.state_path = f"{self.path}/{_STATE_FILE}"
        try:
            with tf.io.gfile.GFile(scan.state_path, "rb") as file:
                text = file.read().decode("utf-8", "replace")
        except tf.errors.OpError:
            return
        match = _STATE_LINE.search(text)
        scan.state = match.group(1) if match else None

    def prefix(self, step: int) -> str:
        """Return TensorFlow's name of a checkpoint: the path without extensions."""
        return f"{self.path}/ckpt-{step}"

    def damage(self, step: int) -> str | None:
        """Read every tensor of a checkpoint. Returns what is wrong with it, or None.

        Raises:
            TrainerError: the storage cannot be reached, which says nothing about the checkpoint.
        """
        try:
            reader = tf.train.load_checkpoint(self.prefix(step))
            for key in reader.get_variable_to_shape_map():
                reader.get_tensor(key)
        except _NOT_DAMAGE as error:
            raise access_error(error, f"cannot read {self.prefix(step)}") from error
        except _DAMAGE as error:
            return one_line(f"{type(error).__name__}: {error}", 200)
        return None

    def description(self, step: int) -> dict[str, Any] | None:
        """Return the metadata saved beside a checkpoint, or None if there is none to be read."""
        try:
            with tf.io.gfile.GFile(f"{self.prefix(step)}.json", "r") as file:
                loaded = json.loads(file.read())
        except (tf.errors.OpError, ValueError):
            return None
        return loaded if isinstance(loaded, dict) else None

    def describe(self, step: int, description: dict[str, Any]) -> None:
        """Write the metadata of a checkpoint."""
        final = f"{self.prefix(step)}.json"
        with tf.io.gfile.GFile(f"{final}.tmp", "w") as file:
            file.write(json.dumps(description, indent=1) + "\n")
        tf.io.gfile.rename(f"{final}.tmp", final, overwrite=True)

    def forget_descriptions(self, kept: set[int]) -> None:
        """Remove the metadata of checkpoints that are gone because newer ones replaced them."""
        for step in self.scan().described - kept:
            if step < max(kept, default=0):
                tf.io.gfile.remove(f"{self.prefix(step)}.json")

    def quarantine(self, step: int) -> str:
        """Move all files of a checkpoint to the quarantine, deleting nothing; returns its name."""
        name = f"ckpt-{step}"
        target = self._free_folder(name)
        for file in self._names():
            match = _NAME.fullmatch(file)
            if match and int(match.group(1)) == step and not match.group(4):
                self._move(file, target)
        return name

    def quarantine_file(self, name: str) -> str:
        """Move one file of the folder to the quarantine. Returns its name."""
        self._move(name, self._free_folder(name))
        return name

    def _free_folder(self, name: str) -> str:
        target, count = f"{self.quarantine_path}/{name}", 1
        while tf.io.gfile.exists(target):
            count += 1
            target = f"{self.quarantine_path}/{name}.{count}"
        return target

    def _move(self, file: str, target: str) -> None:
        try:
            tf.io.gfile.makedirs(target)
            tf.io.gfile.rename(f"{self.path}/{file}", f"{target}/{file}")
        except tf.errors.OpError as error:
            raise access_error(error, f"cannot set aside {self.path}/{file}") from error

    def write_state(self, steps_newest_first: list[int]) -> None:
        """Write TensorFlow's `checkpoint` file anew, naming exactly the good checkpoints."""
        names = [self.prefix(step) for step in reversed(steps_newest_first)]
        # Without times `CheckpointManager` forgets these names and never removes the files;
        # whole paths, because TensorFlow garbles relative ones in a gs:// folder.
        tf.compat.v1.train.update_checkpoint_state(
            self.path,
            model_checkpoint_path=names[-1],
            all_model_checkpoint_paths=names,
            all_model_checkpoint_timestamps=[time.time()] * len(names),
        )

    def sweep(self, scan: Scan) -> int:
        """Remove what a killed save left behind; only while holding the job lock.

        Returns:
            The number of bytes freed. Remote folders are left alone, they have no lock.
        """
        if self._remote:
            return 0
        freed = 0
        for name in scan.temporary:
            path = f"{self.path}/{name}"
            for folder, _, files in tf.io.gfile.walk(path):
                freed += sum(int(tf.io.gfile.stat(f"{folder}/{file}").length) for file in files)
            if tf.io.gfile.isdir(path):
                tf.io.gfile.rmtree(path)
            else:
                tf.io.gfile.remove(path)
        return freed

    def size(self, step: int) -> int:
        """Return the bytes of a checkpoint."""
        files = tf.io.gfile.glob(f"{self.prefix(step)}.*")
        return sum(int(tf.io.gfile.stat(file).length) for file in files)
