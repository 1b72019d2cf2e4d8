"""Finds exported models in a folder, local or on gs://; each version is a numbered subfolder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from trainer.faults import ExitCode, TrainerError, access_error, one_line

_GRAPH = "saved_model.pb"
"""TensorFlow writes it after the variables, so a folder that has it is complete."""
_EXPORT_IT = "export it as a SavedModel: model.export(DIR) in Keras, tf.saved_model.save otherwise"
_EXPORT_FOLDER = "export"
"""Where the trainer exports to, in a run's folder."""


@dataclass(frozen=True)
class Export:
    """One exported model.

    Attributes:
        version: number of its folder, 1 where the folder has none.
        path: folder or URL.
        stamp: changes when the export is written anew.
    """

    version: int
    path: str
    stamp: tuple[int, int]


def find_exports(folder: str) -> list[Export]:
    """Return the complete exports, the newest first; at least one.

    Args:
        folder: of a SavedModel, of its numbered versions, or of a run.

    Raises:
        TrainerError: there is none, or the folder cannot be read.
    """
    folder = folder.rstrip("/") or "/"
    try:
        alone = _export_at(folder)
        if alone is not None:
            return [alone]
        for parent in (folder, f"{folder}/{_EXPORT_FOLDER}"):
            places = ((f"{parent}/{version}", int(version)) for version in _versions(parent))
            found = [export for place in places if (export := _export_at(*place)) is not None]
            if found:
                return found[::-1]
        detail, hint = _why_none(folder)
    except (tf.errors.OpError, OSError) as error:
        fault = access_error(error, f"{folder} cannot be read")
        fault.exit_code = ExitCode.NO_INPUT
        raise fault from error
    raise no_model(detail, hint)


def no_model(detail: str, hint: str) -> TrainerError:
    """Return the error of a model that cannot be served."""
    return TrainerError(ExitCode.NO_INPUT, "BAD_REQUEST", one_line(detail), hint)


def _names(folder: str) -> list[str]:
    if not tf.io.gfile.isdir(folder):
        return []
    return [str(name).rstrip("/") for name in tf.io.gfile.listdir(folder)]


def _versions(folder: str) -> list[str]:
    names = (name for name in _names(folder) if name.isascii() and name.isdecimal())
    return sorted(names, key=int)


def _export_at(path: str, version: int | None = None) -> Export | None:
    graph = f"{path}/{_GRAPH}"
    if not tf.io.gfile.exists(graph):
        return None
    about: Any = tf.io.gfile.stat(graph)
    if version is None:
        name = path.rsplit("/", 1)[-1]
        version = int(name) if name.isascii() and name.isdecimal() else 1
    return Export(version, path, (int(about.mtime_nsec), int(about.length)))


def _why_none(folder: str) -> tuple[str, str]:
    """Return what is there instead of a SavedModel, and what to do about it."""
    if folder.endswith((".keras", ".h5", ".hdf5")):
        return f"{folder} is a Keras file, which is no SavedModel", _EXPORT_IT
    if not tf.io.gfile.exists(folder):
        return f"there is no {folder}", "check --model; a bucket's name begins with gs://"
    if not tf.io.gfile.isdir(folder):
        return f"{folder} is a file, not the folder of a SavedModel", _EXPORT_IT
    return _what_it_holds(folder)


def _what_it_holds(folder: str) -> tuple[str, str]:
    names = _names(folder)
    if any(name.endswith((".keras", ".h5", ".hdf5")) for name in names):
        return f"{folder} holds a Keras file, but no SavedModel", _EXPORT_IT
    if _versions(folder) or _versions(f"{folder}/{_EXPORT_FOLDER}"):
        return f"none of the exports in {folder} is a SavedModel, as TensorFlow's are", _EXPORT_IT
    if "checkpoints" in names or any(name.endswith(".index") for name in names):
        return (
            f"{folder} holds checkpoints, but no exported model",
            "the trainer exports at the end of the run: let it finish, or resume it",
        )
    return f"there is no exported model in {folder}", _EXPORT_IT
