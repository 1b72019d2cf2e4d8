"""What is installed, read without importing it: JAX starts its runtime at the first use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

from trainer.faults import ExitCode, TrainerError
from trainer.packages import numbers_of, version_of

if TYPE_CHECKING:
    from collections.abc import Callable

OLDEST, NEWEST = (0, 6), (0, 10)
"""0.6 is the newest for Python 3.10, which the TPU VM images of Ubuntu 22.04 have."""
_TPU_HINT = (
    "pip install 'jax[tpu]>=0.6,<0.11' -f "
    "https://storage.googleapis.com/jax-releases/libtpu_releases.html"
)


@dataclass(frozen=True)
class Installed:
    """The versions that matter, None for what is missing."""

    jax: str
    jaxlib: str
    orbax: str
    numpy: str | None
    libtpu: str | None


def _libtpu_of_jax() -> str | None:
    """Return the libtpu that the installed JAX was built for, such as 0.0.17; None if untold."""
    try:
        wanted = metadata.requires("jax") or []
    except metadata.PackageNotFoundError:
        return None
    found = (re.match(r"libtpu\s*==\s*([\d.]*\d)", each) for each in wanted)
    return next((match.group(1) for match in found if match), None)


def preflight(
    *,
    needs_tpu: bool,
    remote: bool,
    version: Callable[[str], str | None] = version_of,
    libtpu_of_jax: Callable[[], str | None] = _libtpu_of_jax,
) -> tuple[Installed, list[str]]:
    """Check the installed packages before anything imports JAX.

    Args:
        needs_tpu: whether the job will use TPU chips.
        remote: whether the run's folder or data lie on gs://.
        version: returns the version of an installed distribution, or None.
        libtpu_of_jax: returns the libtpu that JAX was built for, or None.

    Returns:
        What is installed, and warnings to show.

    Raises:
        TrainerError: something is missing, or the versions cannot work together.
    """
    installed = _installed(version, remote=remote)
    if needs_tpu and installed.libtpu is None:
        raise _wrong("libtpu is not installed, so JAX would train on the CPU", _TPU_HINT)
    built_for = libtpu_of_jax() if needs_tpu else None
    if built_for and not f"{installed.libtpu}.".startswith(f"{built_for}."):
        raise _wrong(
            f"libtpu {installed.libtpu} is not the {built_for} that jax {installed.jax} needs",
            _TPU_HINT,
        )
    if OLDEST <= numbers_of(installed.jax)[:2] <= NEWEST:
        return installed, []
    return installed, [f"jax {installed.jax} is untested; 0.6 to 0.10 are known to work"]


def _installed(version: Callable[[str], str | None], *, remote: bool) -> Installed:
    """Return what is installed. Raises `TrainerError` if something is missing or misfits."""
    needed = ["jax", "jaxlib", "optax", "orbax-checkpoint", *(["gcsfs"] if remote else [])]
    found = {name: version(name) for name in needed}
    missing = [name for name, number in found.items() if number is None]
    if missing:
        raise _wrong(
            f"{', '.join(missing)} not installed in this Python",
            f"install the recipe: pip install 'tpudash[trainer-jax]' here; on a TPU VM {_TPU_HINT}",
        )
    jax, jaxlib = str(found["jax"]), str(found["jaxlib"])
    if numbers_of(jax)[:2] != numbers_of(jaxlib)[:2]:
        raise _wrong(
            f"jax {jax} and jaxlib {jaxlib} do not belong together", f"pip install -U jax=={jax}"
        )
    orbax = str(found["orbax-checkpoint"])
    return Installed(jax, jaxlib, orbax, version("numpy"), version("libtpu"))


def _wrong(detail: str, hint: str) -> TrainerError:
    return TrainerError(ExitCode.NO_DEVICE, "VERSION", detail, hint)
