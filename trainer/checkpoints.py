"""Saving and resuming: the newest good checkpoint, verified, or an error; never silently step 0."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from trainer.faults import ExitCode, TrainerError, access_error, one_line
from trainer.resuming import KEPT, Restored, Saved, check_model, differences, other_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.checkpoint_files import CheckpointFolder, Scan


class Checkpoints:
    """The checkpoints of one training state.

    Args:
        folder: where they lie.
        objects: what they hold: step, model, optimizer.
        step: the variable that counts steps done, int64.
        description: metadata of this job: keras_flavour, model, precision and so on.
        warn: told what is worth knowing but no failure.
    """

    def __init__(
        self,
        folder: CheckpointFolder,
        *,
        objects: dict[str, Any],
        step: Any,
        description: dict[str, Any],
        warn: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._step = step
        self._checkpoint = tf.train.Checkpoint(step=step, **objects)
        self._description = description
        self._warn = warn
        self._manager: Any = None
        self.last_saved: int | None = None

    def restore(self) -> Restored:
        """Restore the newest good checkpoint; what is damaged goes to the quarantine.

        Raises:
            TrainerError: checkpoints exist but none is good, or they belong to another model.
        """
        scan = self._folder.scan()
        self._refuse_other_framework(scan)
        freed = self._folder.sweep(scan)
        if freed:
            self._warn(f"removed {freed} bytes that an interrupted save had left behind")
        good, damaged = self._sort(scan)
        if not good:
            self._refuse_or_start(scan, damaged)
        quarantined = self._set_aside(scan, damaged)
        if good:
            self._check_description(good[0])
            self._read(good[0])
            self._folder.write_state(good)
            self.last_saved = good[0]
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, self._folder.path, max_to_keep=KEPT
        )
        path = self._folder.prefix(good[0]) if good else None
        extra = (self._folder.description(good[0]) or {}).get("extra") if good else None
        return Restored(
            int(self._step.numpy()),
            path,
            tuple(quarantined),
            tuple(damaged.values()),
            extra if isinstance(extra, dict) else {},
        )

    def _refuse_other_framework(self, scan: Scan) -> None:
        """Refuse checkpoints that another recipe has saved, rather than begin at step 0."""
        if scan.indices or not scan.described:
            return
        framework = (self._folder.description(max(scan.described)) or {}).get("framework")
        if framework == "jax":
            raise TrainerError(
                ExitCode.DEFECT,
                "VERSION",
                f"the checkpoints in {self._folder.path} were saved by the JAX recipe",
                "resume with python -m trainer.jax_recipe, or start a new run",
            )

    def _sort(self, scan: Scan) -> tuple[list[int], dict[int, str]]:
        good: list[int] = []
        damaged: dict[int, str] = {}
        for step in scan.indices:
            problem = self._folder.damage(step)
            if problem is None:
                good.append(step)
            else:
                damaged[step] = f"ckpt-{step}: {problem}"
        for step in scan.orphans:
            damaged[step] = f"ckpt-{step}: its index file is missing"
        return good, damaged

    def _refuse_or_start(self, scan: Scan, damaged: dict[int, str]) -> None:
        """Refuse if there once was a complete checkpoint; leave the evidence where it lies."""
        once_complete = scan.indices or scan.state_path or set(scan.orphans) & scan.described
        if not once_complete:
            return
        what = "; ".join(damaged.values()) or "the files that `checkpoint` names are missing"
        raise TrainerError(
            ExitCode.DEFECT,
            "CKPT_INCOMPLETE",
            f"no good checkpoint is left in {self._folder.path}: {what}",
            "bring the files back from a copy, or empty the folder yourself to begin at step 0",
        )

    def _set_aside(self, scan: Scan, damaged: dict[int, str]) -> list[str]:
        quarantined = [self._folder.quarantine(step) for step in damaged]
        if scan.state_path and scan.state is None:
            quarantined.append(self._folder.quarantine_file("checkpoint"))
        return quarantined

    def _check_description(self, step: int) -> None:
        found = self._folder.description(step)
        if found is None:
            self._warn(f"ckpt-{step} has no readable metadata; taking it for one of this model")
            return
        mine = self._description
        if found.get("keras_flavour") != mine["keras_flavour"]:
            raise TrainerError(
                ExitCode.DEFECT,
                "VERSION",
                f"ckpt-{step} was saved with {found.get('keras_flavour')}, this is "
                f"{mine['keras_flavour']}; their optimizer states are not interchangeable",
                "resume with the Keras it was saved with, or start a new run",
            )
        check_model(step, found, mine)
        for warning in differences(step, found, mine):
            self._warn(warning)

    def reload(self, step: int) -> None:
        """Put a checkpoint's values into the objects again.

        Raises:
            TrainerError: it cannot be read, or belongs to another model.
        """
        self._read(step)

    def _read(self, step: int) -> None:
        try:
            status = self._checkpoint.restore(self._folder.prefix(step))
            status.assert_existing_objects_matched()
        except (AssertionError, ValueError, tf.errors.InvalidArgumentError) as error:
            raise other_model(step, one_line(str(error), 160)) from error
        except tf.errors.OpError as error:
            raise access_error(error, f"cannot restore ckpt-{step}") from error

    def save(self, step: int, extra: dict[str, Any] | None = None) -> Saved | None:
        """Save the state after `step` steps, unless that is the newest checkpoint already.

        Args:
            step: steps done.
            extra: further state as JSON values; `restore` gives it back.

        Raises:
            TrainerError: it could not be written; earlier checkpoints are unharmed.
        """
        if step == self.last_saved:
            return None
        began = time.monotonic()
        self._step.assign(step)
        try:
            path = str(self._manager.save(checkpoint_number=step))
            self._folder.describe(step, {"step": step, "extra": extra or {}, **self._description})
            size = self._folder.size(step)
            kept = {int(name.rsplit("-", 1)[1]) for name in self._manager.checkpoints}
            self._folder.forget_descriptions(kept)
        except (tf.errors.OpError, OSError) as error:
            raise access_error(error, f"the checkpoint of step {step} was not saved") from error
        self.last_saved = step
        return Saved(step, path, time.monotonic() - began, size)
