"""The checks of a node before anything is created, in the order in which Google refuses."""

from __future__ import annotations

import importlib.util
import re
import sys
from typing import TYPE_CHECKING

from tpudash.emulator.catalogue import Accelerator, Catalogue, needs_tensorflow
from tpudash.emulator.errors import Refusals, failed_precondition, invalid_field

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.emulator.messages import Message

DEFAULT_TYPE = "v2-8"
_NODE_ID = re.compile(r"[A-Za-z0-9_.~+%-]+")
_LABEL_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
_MAX_LABELS = 64
_MAX_DESCRIPTION = 512
_MAX_METADATA_VALUE_BYTES = 256 * 1024
_MAX_METADATA_BYTES = 512 * 1024


def tensorflow_installed() -> bool:
    """Return whether this interpreter, which stands in for the TPU VM's image, has TensorFlow."""
    return importlib.util.find_spec("tensorflow") is not None


class NodeValidator:
    """Refuses what cannot become a node."""

    def __init__(
        self,
        catalogue: Catalogue,
        refusals: Refusals,
        has_tensorflow: Callable[[], bool] = tensorflow_installed,
    ) -> None:
        self._catalogue = catalogue
        self._refusals = refusals
        self._has_tensorflow = has_tensorflow

    def check(self, zone: str, node_id: str, node: Message) -> Accelerator:
        """Check a node that is to be created and return its accelerator type.

        Raises:
            ApiError: INVALID_ARGUMENT or FAILED_PRECONDITION, in Google's words where known.
        """
        self.check_id("node_id", node_id)
        self.check_zone(zone)
        accelerator = self._accelerator(zone, node)
        self._check_runtime(zone, node.runtime_version)
        self.check_texts(node)
        self._check_scheduling(node)
        if node.network_config.ByteSize() and node.network_configs:
            raise invalid_field("network_configs", "exclusive with network_config")
        return accelerator

    @staticmethod
    def check_id(field: str, value: str) -> None:
        """Check the id of a node or queued resource against the documented characters."""
        if not _NODE_ID.fullmatch(value):
            raise invalid_field(field, f'"{value}" must consist of letters, digits and _.~+%-')

    def check_zone(self, zone: str) -> None:
        """Check that Cloud TPU serves a zone."""
        if zone not in self._catalogue.zones:
            raise self._refusals.zone_unsupported(zone)

    @staticmethod
    def check_texts(node: Message) -> None:
        """Check description, labels and metadata against their limits."""
        if len(node.description) > _MAX_DESCRIPTION:
            raise invalid_field("node.description", f"longer than {_MAX_DESCRIPTION} characters")
        if len(node.labels) > _MAX_LABELS:
            raise invalid_field("node.labels", f"more than {_MAX_LABELS} labels")
        for key, value in node.labels.items():
            if not _LABEL_KEY.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
                raise invalid_field(
                    "node.labels",
                    f'"{key}={value}" must be lower-case letters, digits, - and _, 63 at most',
                )
        sizes = [len(value.encode()) for value in node.metadata.values()]
        if max(sizes, default=0) > _MAX_METADATA_VALUE_BYTES or sum(sizes) > _MAX_METADATA_BYTES:
            raise invalid_field("node.metadata", "a value exceeds 256 KiB or their sum 512 KiB")

    def _accelerator(self, zone: str, node: Message) -> Accelerator:
        config = node.accelerator_config
        if config.type_ or config.topology:
            if node.accelerator_type:
                raise invalid_field("node", "accelerator_type and accelerator_config are exclusive")
            found = self._catalogue.find_by_topology(config.type_, config.topology, zone)
            if found is None:
                raise self._refusals.type_not_in_zone(config.topology, zone)
            return found
        name = node.accelerator_type or DEFAULT_TYPE
        accelerator = self._catalogue.accelerators.get(name)
        if accelerator is None or zone not in accelerator.zones:
            raise self._refusals.type_not_in_zone(name, zone)
        return accelerator

    def _check_runtime(self, zone: str, runtime: str) -> None:
        if not runtime:
            raise invalid_field("node.runtime_version", "required")
        if runtime not in self._catalogue.runtimes[zone]:
            raise self._refusals.bad_field("runtime_version", runtime)
        if needs_tensorflow(runtime) and not self._has_tensorflow():
            raise failed_precondition(
                f"The image {runtime} cannot be provided: TensorFlow is not installed for "
                f"{sys.executable}, which runs the emulator and its nodes. "
                "Run: pip install 'tpudash[trainer]'"
            )

    @staticmethod
    def _check_scheduling(node: Message) -> None:
        config = node.scheduling_config
        if sum((config.preemptible, config.reserved, config.spot)) > 1:
            raise invalid_field(
                "node.scheduling_config", "preemptible, reserved and spot exclude one another"
            )
