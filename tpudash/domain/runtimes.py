"""Which runtime version (image of a TPU VM) fits an accelerator type and the bundled trainer.

Source: https://cloud.google.com/tpu/docs/runtimes
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tpudash.domain.accelerator import AcceleratorType

_TENSORFLOW: Final = re.compile(
    r"tpu-vm-tf-(\d+)\.(\d+)\.(\d+)(?P<pod>-pod)?(?:-(?P<kind>pjrt|se))?(?:-(?P<family>v[a-z0-9-]+))?"
)
_FAMILIES: Final = {
    "v4": frozenset({"v4"}),
    "v5p-and-below": frozenset({"v2", "v3", "v4", "v5p"}),
    "v5e-and-v6": frozenset({"v5e", "v6e"}),
}
_MODERN: Final = frozenset({"v5e", "v5p", "v6e"})
_MODERN_SINCE: Final = (2, 15)
TRAINER_VERSIONS: Final = ((2, 18), (2, 20))
"""The first and the last TensorFlow that the trainer supports and that has a wheel for TPUs."""

_MADE_FOR: Final = {
    "v2-alpha-tpuv5-lite": "v5e",
    "v2-alpha-tpuv5": "v5p",
    "v2-alpha-tpuv6e": "v6e",
}


_FOR_ANY: Final = frozenset({"tpu-ubuntu2204-base", "tpu-vm-base"})


@dataclass(frozen=True, slots=True)
class _Image:
    name: str
    version: tuple[int, int, int]
    is_pod: bool
    kind: str
    family: str

    @classmethod
    def parse(cls, name: str) -> _Image | None:
        match = _TENSORFLOW.fullmatch(name)
        if match is None:
            return None
        version = (int(match[1]), int(match[2]), int(match[3]))
        return cls(name, version, bool(match["pod"]), match["kind"] or "", match["family"] or "")


def misfit(runtime_version: str, accelerator: AcceleratorType) -> str | None:
    """Return in a clause why an image can't work on a type, or None when nothing speaks against."""
    generation = accelerator.generation.name
    made_for = _MADE_FOR.get(runtime_version)
    if made_for is not None and made_for != generation:
        return f"it is made for {made_for}, and {accelerator.name} is {generation}"
    image = _Image.parse(runtime_version)
    return None if image is None else _misfit_of_tensorflow(image, accelerator)


def _misfit_of_tensorflow(image: _Image, accelerator: AcceleratorType) -> str | None:
    generation = accelerator.generation.name
    if not accelerator.generation.supports_tensorflow:
        return f"TensorFlow does not run on {generation}"
    if image.is_pod != accelerator.is_slice:
        hosts = f"{accelerator.name} has {accelerator.hosts} host" + (
            "s" if accelerator.hosts > 1 else ""
        )
        needed = "a -pod image is needed" if accelerator.is_slice else "-pod images are for slices"
        return f"{hosts}, and {needed}"
    family = _FAMILIES.get(image.family)
    if family is not None and generation not in family:
        return f"it is made for {image.family}, and {accelerator.name} is {generation}"
    if generation in _MODERN and image.version[:2] < _MODERN_SINCE:
        return f"{generation} needs TensorFlow 2.15 or later"
    return None


def is_known(runtime_version: str) -> bool:
    """Whether enough is known of an image to say that it fits a type."""
    is_listed = runtime_version in _MADE_FOR or runtime_version in _FOR_ANY
    return is_listed or _Image.parse(runtime_version) is not None


def tensorflow_of(runtime_version: str) -> tuple[int, int, int] | None:
    """Return the TensorFlow version of an image that has one, or None."""
    image = _Image.parse(runtime_version)
    return image.version if image else None


def default_runtime(
    accelerator: AcceleratorType, available: Iterable[str], *, wants_tensorflow: bool = True
) -> str | None:
    """Return the image that a bundled trainer wants.

    With TensorFlow that is the newest one that the trainer supports; where a zone lists none, and
    for other frameworks, the plain image, on which the startup script installs what is missing.
    """
    names = tuple(available)
    fitting = [
        image
        for image in map(_Image.parse, names)
        if image is not None and misfit(image.name, accelerator) is None
    ]
    supported = [image for image in fitting if _is_supported(image)]
    if supported and wants_tensorflow:
        return max(supported, key=_preference).name
    plain = [
        name for name, made_for in _MADE_FOR.items() if made_for == accelerator.generation.name
    ]
    for name in (*plain, "tpu-ubuntu2204-base"):
        if name in names:
            return name
    return max(fitting, key=_preference).name if fitting else None


def fitting_runtimes(accelerator: AcceleratorType, available: Sequence[str]) -> tuple[str, ...]:
    """Return those of the zone's images that nothing speaks against."""
    return tuple(name for name in available if misfit(name, accelerator) is None)


def _is_supported(image: _Image) -> bool:
    first, last = TRAINER_VERSIONS
    return first <= image.version[:2] <= last


def _preference(image: _Image) -> tuple[tuple[int, int, int], bool, str]:
    return image.version, image.kind == "pjrt", image.name
