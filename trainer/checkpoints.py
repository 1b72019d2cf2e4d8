"""Saving and resuming: the newest good checkpoint, verified, or an error; never silently step 0."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from trainer.background import Background
from trainer.faults import ExitCode, TrainerError, access_error, one_line
from trainer.resuming import KEPT, Restored, Saved, check_model, differences, other_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.checkpoint_files import CheckpointFolder, Scan


class Checkpoints:
    """The checkpoints of one training state.

    A save copies the variables, which takes a few milliseconds, and writes the copy from a thread
    while the training goes on; on gs:// the writing takes seconds.

    Args:
        folder: where they lie.
        variables: what they hold besides the step: the variables of model and optimizer.
        step: the variable that counts steps done, int64.
        description: metadata of this job: keras_flavour, model, precision and so on.
        warn: told what is worth knowing but no failure.
    """

    def __init__(
        self,
        folder: CheckpointFolder,
        *,
        variables: dict[str, list[Any]],
        step: Any,
        description: dict[str, Any],
        warn: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._step = step
        self._variables = variables
        self._checkpoint = tf.train.Checkpoint(step=step, **variables)
        self._copy = _copy_of(step, variables)
        self._writing: Background[Saved] = Background("checkpoint")
        self._newest: int | None = None
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
            self.last_saved = self._newest = good[0]
        self._manager = tf.train.CheckpointManager(self._copy, self._folder.path, max_to_keep=KEPT)
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

    def save(
        self, step: int, extra: dict[str, Any] | None = None, *, wait: bool = True
    ) -> list[Saved]:
        """Save the state after `step` steps, unless that is the newest checkpoint already.

        Args:
            step: steps done.
            extra: further state as JSON values; `restore` gives it back.
            wait: until it is written.

        Returns:
            What was written completely since the last call of this method or of `saved`.

        Raises:
            TrainerError: one could not be written; earlier checkpoints are unharmed.
        """
        began = time.monotonic()
        self._writing.wait()
        done = self._writing.collect()
        if step != self._newest:
            self._step.assign(step)
            self._take_copy()
            held_s = time.monotonic() - began
            self._writing.start(partial(self._write, step, extra or {}, began, held_s))
            self._newest = step
        if wait:
            self._writing.wait()
        return [*done, *self._writing.collect()]

    def saved(self) -> list[Saved]:
        """Return what was written completely since the last call of this method or of `save`.

        Raises:
            TrainerError: one could not be written; earlier checkpoints are unharmed.
        """
        return self._writing.collect()

    def _take_copy(self) -> None:
        self._copy.step.assign(self._step)
        for name, variables in self._variables.items():
            for copy, variable in zip(getattr(self._copy, name), variables, strict=True):
                copy.assign(variable)

    def _write(self, step: int, extra: dict[str, Any], began: float, held_s: float) -> Saved:
        try:
            path = str(self._manager.save(checkpoint_number=step))
            self._folder.describe(step, {"step": step, "extra": extra, **self._description})
            size = self._folder.size(step)
            kept = {int(name.rsplit("-", 1)[1]) for name in self._manager.checkpoints}
            self._folder.forget_descriptions(kept)
        except (tf.errors.OpError, OSError) as error:
            raise access_error(error, f"the checkpoint of step {step} was not saved") from error
        self.last_saved = step
        return Saved(step, path, time.monotonic() - began, size, held_s)


def _copy_of(step: Any, variables: dict[str, list[Any]]) -> Any:
    """Return a checkpoint of variables of the same names, in the host's memory."""
    with tf.device("CPU:0"):
        copies = {
            name: [tf.Variable(tf.zeros(each.shape, each.dtype), trainable=False) for each in group]
            for name, group in variables.items()
        }
        return tf.train.Checkpoint(step=tf.Variable(tf.zeros_like(step)), **copies)
