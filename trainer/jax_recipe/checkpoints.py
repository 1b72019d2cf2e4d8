"""Checkpoints by Orbax: complete or set aside, newest good one first; never silently step 0.

`checkpoints/ckpt-<step>/` is an Orbax checkpoint; `checkpoints/ckpt-<step>.json`, written last,
makes it complete: it describes the job and holds the size and SHA-256 of each file. The first
worker writes and reads; what it read goes to the others.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orbax.checkpoint as ocp

from trainer.faults import ExitCode, TrainerError, access_error, one_line
from trainer.jax_recipe.model import named
from trainer.npz import UNREADABLE
from trainer.resuming import KEPT, Restored, Saved, check_model, differences, other_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.jax_recipe.storage import Storage

FOLDER = "checkpoints"
FRAMEWORK = "jax"
_QUARANTINE = "quarantine"
_NAME = re.compile(r"ckpt-(\d+)(\.json)?")
_OF_TENSORFLOW = re.compile(r"ckpt-\d+\.index")
_STAGING = ".staging-"
_BEST = "best.npz"


class OrbaxFiles:
    """Trees of NumPy arrays as Orbax checkpoints in the run's folder."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        only_first = ocp.options.MultiprocessingOptions(primary_host=0, active_processes={0})
        self._orbax = ocp.Checkpointer(
            ocp.PyTreeCheckpointHandler(multiprocessing_options=only_first),
            multiprocessing_options=only_first,
        )

    def stage(self) -> Path:
        """Return an empty folder from which a checkpoint can be moved into place."""
        if self._storage.remote:
            return Path(tempfile.mkdtemp(prefix="tpudash-"))
        return Path(tempfile.mkdtemp(prefix=_STAGING, dir=self._storage.path(FOLDER)))

    def write(self, step: int, tree: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Write `ckpt-<step>`, still incomplete. Returns size and SHA-256 of each file."""
        stage = self.stage()
        try:
            made = stage / f"ckpt-{step}"
            self._orbax.save(made, tree)
            files = {
                str(path.relative_to(made)): digest(path.read_bytes())
                for path in sorted(made.rglob("*"))
                if path.is_file()
            }
            self._storage.publish(made, f"{FOLDER}/ckpt-{step}")
        finally:
            shutil.rmtree(stage, ignore_errors=True)
        return files

    def read(self, step: int, files: dict[str, dict[str, Any]]) -> dict[str, Any] | str:
        """Return the arrays of a checkpoint by their path, or what is wrong with it.

        Raises:
            TrainerError: the storage cannot be reached, which says nothing about the checkpoint.
        """
        stage = self.stage()
        try:
            for name, expected in files.items():
                content = self._storage.read(f"{FOLDER}/ckpt-{step}/{name}")
                if content is None:
                    return f"{name} is missing"
                if digest(content) != expected:
                    return f"{name} has {len(content)} bytes, and not those that were written"
                target = stage / f"ckpt-{step}" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
            return named(self._orbax.restore(stage / f"ckpt-{step}"))
        except (ValueError, KeyError, OSError, RuntimeError) as error:
            return one_line(f"{type(error).__name__}: {error}", 200)
        finally:
            shutil.rmtree(stage, ignore_errors=True)


def digest(content: bytes) -> dict[str, Any]:
    """Return what tells a file from a damaged one."""
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


class Checkpoints:
    """The checkpoints of one training state.

    Args:
        storage: the run's folder.
        description: metadata of this job: model, precision and so on.
        warn: told what is worth knowing but no failure.
    """

    def __init__(
        self, storage: Storage, description: dict[str, Any], warn: Callable[[str], None]
    ) -> None:
        self._storage = storage
        self._files = OrbaxFiles(storage)
        self._description = description
        self._warn = warn
        self.last_saved: int | None = None

    def restore(self, template: Any) -> tuple[Restored, Any]:
        """Return the newest good checkpoint; what is damaged goes to the quarantine.

        Args:
            template: a tree with the names, shapes and types of what is restored.

        Returns:
            What was found, and a tree like the template, or the template itself from scratch.

        Raises:
            TrainerError: checkpoints exist but none is good, or they belong to another model.
        """
        names = self._storage.names(FOLDER)
        self._refuse_tensorflow(names)
        self._sweep(names)
        described, folders = _by_step(names)
        damaged: dict[int, str] = {
            step: f"ckpt-{step}: it was never completed" for step in folders - described
        }
        for step in sorted(described, reverse=True):
            found = self._take(step, template)
            if not isinstance(found, str):
                description, tree = found
                return self._restored(step, description, damaged), tree
            damaged[step] = f"ckpt-{step}: {found}"
        if described:
            self._refuse(damaged)
        return self._restored(0, {}, damaged), template

    @staticmethod
    def _refuse_tensorflow(names: list[str]) -> None:
        if any(_OF_TENSORFLOW.fullmatch(name) for name in names):
            raise TrainerError(
                ExitCode.DEFECT,
                "VERSION",
                "the checkpoints of this run were saved by the TensorFlow recipe",
                "resume with python -m trainer, or start a new run",
            )

    def _sweep(self, names: list[str]) -> None:
        """Remove what a killed save left behind; remote folders never hold any."""
        for name in names:
            if name.startswith(_STAGING) or name.endswith(".tmp"):
                self._storage.remove(f"{FOLDER}/{name}")

    def _take(self, step: int, template: Any) -> tuple[dict[str, Any], Any] | str:
        """Return description and tree of a checkpoint, or what is wrong with it."""
        content = self._storage.read(f"{FOLDER}/ckpt-{step}.json")
        try:
            description = json.loads(content or b"")
            files = dict(description["files"])
        except (ValueError, TypeError, KeyError) as error:
            return f"its description cannot be read: {error!r}"
        if description.get("framework") == FRAMEWORK:
            check_model(step, description, self._description)
        arrays = self._files.read(step, files)
        if isinstance(arrays, str):
            return arrays
        return description, _like(step, template, arrays)

    @staticmethod
    def _refuse(damaged: dict[int, str]) -> None:
        """Refuse since there once was a complete checkpoint; leave the evidence where it lies."""
        raise TrainerError(
            ExitCode.DEFECT,
            "CKPT_INCOMPLETE",
            f"no good checkpoint is left: {one_line('; '.join(damaged.values()), 300)}",
            "bring the files back from a copy, or empty the folder yourself to begin at step 0",
        )

    def _restored(
        self, step: int, description: dict[str, Any], damaged: dict[int, str]
    ) -> Restored:
        for bad in damaged:
            self._quarantine(bad)
        if step:
            self.last_saved = step
            for warning in differences(step, description, self._description):
                self._warn(warning)
        extra = description.get("extra")
        return Restored(
            step,
            self._storage.path(f"{FOLDER}/ckpt-{step}") if step else None,
            tuple(f"ckpt-{bad}" for bad in damaged),
            tuple(damaged.values()),
            extra if isinstance(extra, dict) else {},
        )

    def _quarantine(self, step: int) -> None:
        """Move all of a checkpoint to the quarantine, deleting nothing."""
        target, count = f"{_QUARANTINE}/ckpt-{step}", 1
        while self._storage.exists(target):
            count += 1
            target = f"{_QUARANTINE}/ckpt-{step}.{count}"
        for name in (f"ckpt-{step}.json", f"ckpt-{step}"):
            if self._storage.exists(f"{FOLDER}/{name}"):
                self._storage.move(f"{FOLDER}/{name}", f"{target}/{name}")

    def save(self, step: int, tree: Any, extra: dict[str, Any]) -> Saved | None:
        """Save the state after `step` steps, unless that is the newest checkpoint already.

        Raises:
            TrainerError: it could not be written; earlier checkpoints are unharmed.
        """
        if step == self.last_saved:
            return None
        began = time.monotonic()
        try:
            files = self._files.write(step, named(tree))
            content = {
                "step": step,
                "framework": FRAMEWORK,
                "extra": extra,
                **self._description,
                "files": files,
            }
            self._storage.write(
                f"{FOLDER}/ckpt-{step}.json", (json.dumps(content, indent=1) + "\n").encode()
            )
            self._forget_old()
        except TrainerError as fault:
            fault.detail = f"the checkpoint of step {step} was not saved: {fault.detail}"
            raise
        except Exception as error:
            raise access_error(error, f"the checkpoint of step {step} was not saved") from error
        self.last_saved = step
        size = sum(int(each["bytes"]) for each in files.values())
        path = self._storage.path(f"{FOLDER}/ckpt-{step}")
        seconds = time.monotonic() - began
        return Saved(step, path, seconds, size, seconds)

    def save_best(self, step: int, weights: Any) -> None:
        """Keep weights as the best so far, replaced as a whole. Raises `TrainerError`."""
        buffer = io.BytesIO()
        np.savez(buffer, step=np.int64(step), **named(weights))
        self._storage.write(_BEST, buffer.getvalue())

    def read_best(self, step: int, template: Any) -> Any:
        """Return the best weights if they are those of this step, else None."""
        content = self._storage.read(_BEST)
        try:
            with np.load(io.BytesIO(content or b"")) as found:
                if int(found["step"]) == step:
                    return _like(step, template, dict(found))
        except (*UNREADABLE, TrainerError):
            pass
        return None

    def _forget_old(self) -> None:
        described, _ = _by_step(self._storage.names(FOLDER))
        for step in sorted(described, reverse=True)[KEPT:]:
            # Its description first: a folder without one is only what was never completed.
            self._storage.remove(f"{FOLDER}/ckpt-{step}.json")
            self._storage.remove(f"{FOLDER}/ckpt-{step}")


def _by_step(names: list[str]) -> tuple[set[int], set[int]]:
    """Return the steps of which there is a description, and those of which there is a folder."""
    described: set[int] = set()
    folders: set[int] = set()
    for name in names:
        match = _NAME.fullmatch(name)
        if match:
            (described if match[2] else folders).add(int(match[1]))
    return described, folders


def _like(step: int, template: Any, arrays: dict[str, Any]) -> Any:
    """Return a tree like the template with the values of `arrays`.

    Raises:
        TrainerError: names or shapes differ.
    """
    import jax

    wanted = named(template)
    for name, leaf in wanted.items():
        found = arrays.get(name)
        if found is None or np.shape(found) != np.shape(leaf):
            raise other_model(step, f"{name} is missing or of another shape")
    leaves, structure = jax.tree_util.tree_flatten_with_path(template)
    order = {id(leaf): name for name, leaf in wanted.items()}
    values = [np.asarray(arrays[order[id(leaf)]], np.asarray(leaf).dtype) for _, leaf in leaves]
    return jax.tree_util.tree_unflatten(structure, values)
