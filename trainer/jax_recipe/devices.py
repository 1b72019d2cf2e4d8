"""The devices of all workers as one mesh, and what lies where on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from trainer.faults import ExitCode, TrainerError, classify, one_line

if TYPE_CHECKING:
    from trainer.config import Config
    from trainer.jax_recipe.workers import Workers

_CONNECT_S = 60
_AXIS = "data"


@dataclass(frozen=True)
class Devices:
    """What the job runs on: data parallel over every device of every worker.

    Attributes:
        kind: TPU or CPU.
        count: number of devices.
        batch: placement of a global batch, split over the devices.
        everywhere: placement of what each device holds whole.
        here: placement of what the devices of this process hold whole.
        batch_here: placement of a batch split over the devices of this process.
    """

    kind: str
    count: int
    batch: NamedSharding
    everywhere: NamedSharding
    here: NamedSharding
    batch_here: NamedSharding

    @property
    def local(self) -> int:
        """Number of devices of this process."""
        return int(self.here.mesh.devices.size)


def configure(config: Config, *, tpu: bool, workers: Workers) -> None:
    """Set what JAX reads before its first use."""
    if tpu:
        jax.config.update("jax_platforms", "tpu")
        return
    jax.config.update("jax_platforms", "cpu")
    if jax.config.jax_num_cpu_devices != config.cpu_replicas:
        jax.config.update("jax_num_cpu_devices", config.cpu_replicas)
    if workers.count > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")


def connect(workers: Workers, coordinator: str) -> None:
    """Join the processes of all workers.

    Raises:
        TrainerError: they did not find each other.
    """
    try:
        jax.distributed.initialize(
            coordinator, workers.count, workers.index, initialization_timeout=_CONNECT_S
        )
    except Exception as error:
        raise _unusable("the workers cannot be joined", error) from error


def find(kind: str) -> Devices:
    """Return the mesh of all devices.

    Raises:
        TrainerError: there are none, or they cannot be used.
    """
    try:
        everything, own = jax.devices(), jax.local_devices()
    except Exception as error:
        raise _unusable(f"the {kind} cannot be used", error) from error
    whole, here = (Mesh(np.array(each), (_AXIS,)) for each in (everything, own))
    split, copied = PartitionSpec(_AXIS), PartitionSpec()
    return Devices(
        kind,
        len(everything),
        NamedSharding(whole, split),
        NamedSharding(whole, copied),
        NamedSharding(here, copied),
        NamedSharding(here, split),
    )


def _unusable(what: str, error: Exception) -> TrainerError:
    known = classify(str(error))
    return TrainerError(
        ExitCode.NO_DEVICE,
        known.error_class if known else "CONNECT",
        f"{what}: {one_line(str(error))}",
        known.hint if known else "check that the node is READY, and that no other process runs",
    )


def on_all(devices: Devices, tree: Any) -> Any:
    """Place arrays, equal in every process, whole on each device."""
    place = devices.everywhere
    return jax.tree.map(
        lambda leaf: jax.make_array_from_process_local_data(place, np.asarray(leaf)), tree
    )


def from_here(tree: Any) -> Any:
    """Return NumPy arrays of what each device holds whole."""
    return jax.tree.map(lambda leaf: np.asarray(leaf.addressable_data(0)), tree)
