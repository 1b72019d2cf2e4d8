"""Which device the job runs on: set-up of a TPU, or the CPU."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.faults import ExitCode, TrainerError, classify, one_line
from trainer.versions import cpu_has_bfloat16, tpu_chips_present

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from trainer.config import Config

_LIBTPU_OF_IMAGES = "/lib/libtpu.so"


@dataclass(frozen=True)
class Device:
    """What the job runs on.

    Attributes:
        kind: TPU or CPU.
        count: number of replicas.
        strategy: the `tf.distribute.Strategy`.
        hosts: number of machines whose input pipelines feed the replicas.
    """

    kind: str
    count: int
    strategy: Any
    hosts: int = 1


def tpu_name(config: Config, environment: MutableMapping[str, str]) -> str | None:
    """Return the name for `TPUClusterResolver`, or None to run on the CPU.

    On a slice of several hosts one program on worker 0 drives all of them through the node's name;
    on a single host the chips are local.
    """
    if config.tpu == "none":
        return None
    if config.tpu != "auto":
        return config.tpu
    if environment.get("TPU_NAME"):
        return environment["TPU_NAME"]
    if not tpu_chips_present():
        return None
    several = environment.get("TPUDASH_WORKERS", "1") != "1"
    return environment.get("TPUDASH_NODE", "local") if several else "local"


def prepare_environment(name: str | None, environment: MutableMapping[str, str]) -> None:
    """Set what TensorFlow reads at import; values that the user set are kept.

    Sources: the set-up of Google's public TPU tests (PJRT plug-in variables), and measurements
    (libtpu searches for chips for minutes on a machine without).
    """
    environment.setdefault("TF_CPP_MIN_LOG_LEVEL", "1" if name else "2")
    environment.setdefault("KERAS_BACKEND", "tensorflow")
    environment.pop("TF_USE_LEGACY_KERAS", None)
    if name is None:
        environment.setdefault("TPU_LOAD_LIBRARY", "0")
    elif name != "local":
        environment.setdefault("TPU_LOAD_LIBRARY", "0")
        environment.setdefault("TPU_NAME", name)
    elif Path(_LIBTPU_OF_IMAGES).exists():
        environment.setdefault("NEXT_PLUGGABLE_DEVICE_USE_C_API", "true")
        environment.setdefault("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", _LIBTPU_OF_IMAGES)


def set_up(config: Config, name: str | None) -> Device:
    """Connect the device; must be the first use of TensorFlow in the process.

    Raises:
        TrainerError: the TPU cannot be reached or initialised.
    """
    import tensorflow as tf

    if name is None:
        return _cpu(config, tf)
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        strategy = tf.distribute.TPUStrategy(resolver)
        hosts = int(resolver.get_tpu_system_metadata().num_hosts)
    except Exception as error:
        known = classify(str(error))
        raise TrainerError(
            ExitCode.NO_DEVICE,
            known.error_class if known else "CONNECT",
            f"the TPU {name} cannot be used: {one_line(str(error))}",
            known.hint if known else "check that the node is READY and the versions fit",
        ) from error
    return Device("TPU", strategy.num_replicas_in_sync, strategy, hosts)


def _cpu(config: Config, tf: Any) -> Device:
    if config.cpu_replicas == 1:
        return Device("CPU", 1, tf.distribute.get_strategy())
    cpu = tf.config.list_physical_devices("CPU")[0]
    logical = [tf.config.LogicalDeviceConfiguration() for _ in range(config.cpu_replicas)]
    tf.config.set_logical_device_configuration(cpu, logical)
    names = [device.name for device in tf.config.list_logical_devices("CPU")]
    strategy = tf.distribute.MirroredStrategy(
        names, cross_device_ops=tf.distribute.ReductionToOneDevice()
    )
    return Device("CPU", strategy.num_replicas_in_sync, strategy)


def compute_type(config: Config, device: Device) -> str:
    """Return float32 or bfloat16; `auto` takes bfloat16 only where it is faster."""
    if config.precision != "auto":
        return config.precision
    if device.kind == "TPU" or cpu_has_bfloat16():
        return "bfloat16"
    return "float32"
