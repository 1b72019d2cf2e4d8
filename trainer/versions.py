"""What is installed, read without importing it: a wrong pair of versions aborts the import."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.faults import ExitCode, TrainerError
from trainer.packages import numbers_of, version_of

if TYPE_CHECKING:
    from collections.abc import Callable

_WHEELS = ("tensorflow-tpu", "tensorflow-cpu", "tensorflow", "tensorflow-macos", "tf-nightly")
_FIRST_LIBTPU_WITHOUT_SYMBOLS = (0, 0, 41)
"""libtpu exports the C symbols that TensorFlow needs up to 0.0.40 (counted in the wheels)."""
_OLDEST, _NEWEST = (2, 18), (2, 21)


@dataclass(frozen=True)
class Installed:
    """The versions that matter, None for what is missing."""

    wheel: str
    tensorflow: str
    keras: str | None
    numpy: str | None
    libtpu: str | None


def preflight(
    *, needs_tpu: bool, version: Callable[[str], str | None] = version_of
) -> tuple[Installed, list[str]]:
    """Check the installed packages before anything imports TensorFlow.

    Args:
        needs_tpu: whether the job will use TPU chips.
        version: returns the version of an installed distribution, or None.

    Returns:
        What is installed, and warnings to show.

    Raises:
        TrainerError: TensorFlow is missing, or its import would abort or could never work.
    """
    found = [(name, found) for name in _WHEELS if (found := version(name)) is not None]
    if not found:
        raise TrainerError(
            ExitCode.NO_DEVICE,
            "VERSION",
            "TensorFlow is not installed in this Python",
            "install it: pip install 'tpudash[trainer]' here, tensorflow-tpu==2.19.1 on a TPU VM",
        )
    wheel, tensorflow = found[0]
    installed = Installed(wheel, tensorflow, version("keras"), version("numpy"), version("libtpu"))
    if needs_tpu:
        _check_tpu(installed)
    warnings = []
    if not _OLDEST <= numbers_of(tensorflow)[:2] <= _NEWEST:
        warnings.append(f"{wheel} {tensorflow} is untested; 2.18 to 2.21 are known to work")
    if len(found) > 1:
        names = ", ".join(f"{name} {number}" for name, number in found)
        warnings.append(f"several TensorFlow wheels are installed over each other: {names}")
    return installed, warnings


def _check_tpu(installed: Installed) -> None:
    if installed.wheel == "tensorflow-cpu":
        raise TrainerError(
            ExitCode.NO_DEVICE,
            "VERSION",
            "tensorflow-cpu is installed, which has no TPU support",
            "pip uninstall tensorflow-cpu; pip install tensorflow-tpu==2.19.1",
        )
    libtpu = installed.libtpu
    if libtpu is not None and _too_new(libtpu):
        raise TrainerError(
            ExitCode.NO_DEVICE,
            "VERSION",
            f"libtpu {libtpu} lacks symbols that TensorFlow {installed.tensorflow} needs; "
            "importing it would abort",
            "pip install tensorflow-tpu==2.19.1, which brings the libtpu that fits",
        )


def _too_new(libtpu: str) -> bool:
    numbers = numbers_of(libtpu)
    return numbers[:2] == (0, 0) and numbers >= _FIRST_LIBTPU_WITHOUT_SYMBOLS


def cpu_has_bfloat16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Say whether this CPU trains faster in bfloat16 than in float32.

    AMX does, and so does AVX512_BF16 of AMD (measured: 1.7 times). Intel's AVX512_BF16 without AMX
    has the instructions but not their speed (measured: 0.8 times), and without either it is slower
    by far.
    """
    try:
        text = cpuinfo.read_text()
    except OSError:
        return False
    lines = [line.partition(":") for line in text.splitlines()]
    fields = {name.strip(): value.strip() for name, _, value in lines}
    flags = fields.get("flags", "").split()
    is_amd = fields.get("vendor_id") == "AuthenticAMD"
    return "amx_bf16" in flags or (is_amd and "avx512_bf16" in flags)


def tpu_chips_present(dev: Path = Path("/dev")) -> bool:
    """Say whether this machine has TPU chips (/dev/accel0, or /dev/vfio/0 on newer types)."""
    if (dev / "accel0").exists():
        return True
    return (dev / "vfio" / "0").exists() and "TPU_ACCELERATOR_TYPE" in os.environ
