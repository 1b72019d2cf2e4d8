"""Examples that are taken by number: the embedded digits, synthetic images, TFRecord files."""

from __future__ import annotations

import gzip
import mmap
import shutil
import struct
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from trainer.data.digest import digest_of_arrays, digest_of_files
from trainer.data.embedded import held_out_mask, read_embedded
from trainer.data.evaluation import HeldOutArrays, padded
from trainer.data.example import decode
from trainer.data.framing import DAMAGED_HINT, frames, masked_crc
from trainer.data.places import local_files, named_once
from trainer.faults import no_input
from trainer.joblock import is_remote
from trainer.model_specs import ModelSpec, model_spec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainer.config import Config
    from trainer.data.evaluation import EvaluationData, Padded
    from trainer.jax_recipe.storage import Storage

_SYNTHETIC_HELD_OUT = 1024
_COARSE = 8
_SPREAD = 2_654_435_761
"""A large prime, so that neighbours have unrelated classes."""
_CRC = struct.Struct("<I")
_UNPACKED_AT_ONCE = 2**20


class Examples(Protocol):
    """Labelled images."""

    @property
    def count(self) -> int:
        """How many there are."""
        ...

    @property
    def digest(self) -> str:
        """Short digest that other data is known by; empty for what the settings alone tell."""
        ...

    def take(self, numbers: Any) -> tuple[Any, Any]:
        """Return uint8 images and int32 labels of some numbers. Raises `TrainerError`."""
        ...


class ArrayExamples:
    """Examples in memory."""

    def __init__(self, images: Any, labels: Any) -> None:
        self._images = images
        self._labels = labels
        self.count = len(labels)
        self.digest = digest_of_arrays(images, labels)

    def take(self, numbers: Any) -> tuple[Any, Any]:
        """Return uint8 images and int32 labels."""
        return self._images[numbers], self._labels[numbers]


class SyntheticExamples:
    """A coarse pattern of each class under noise; example i follows from the seed and from i."""

    digest = ""

    def __init__(self, spec: ModelSpec, count: int, seed: int) -> None:
        height, width, channels = spec.image_shape
        random = np.random.default_rng(seed)
        self.count = count
        self._spec = spec
        self._seed = seed
        patterns = random.integers(0, 160, (spec.classes, _COARSE, _COARSE, channels), np.uint8)
        rows, columns = (np.arange(size) * _COARSE // size for size in (height, width))
        self._patterns = patterns[:, rows][:, :, columns]
        self._noises = random.integers(0, 96, (13, *spec.image_shape), np.uint8)

    def take(self, numbers: Any) -> tuple[Any, Any]:
        """Return uint8 images and int32 labels."""
        numbers = np.asarray(numbers, np.int64)
        labels = ((numbers * _SPREAD + self._seed) % 2**31 % self._spec.classes).astype(np.int32)
        return self._patterns[labels] + self._noises[(numbers + self._seed) % 13], labels


class RecordExamples:
    """Records of local TFRecord files, found by their place and decoded when they are taken."""

    def __init__(self, files: Sequence[str], spec: ModelSpec) -> None:
        self._spec = spec
        self._names = list(files)
        self._views = [_mapped(Path(name)) for name in files]
        places = [
            (number, begin, length)
            for number, view in enumerate(self._views)
            for begin, length in frames(files[number], view)
        ]
        self._places = np.array(places, np.int64).reshape(-1, 3)
        self.count = len(self._places)
        in_files = np.bincount(self._places[:, 0], minlength=len(files))
        self.digest = digest_of_files(zip(files, in_files.tolist(), strict=True))

    def take(self, numbers: Any) -> tuple[Any, Any]:
        """Return uint8 images and int32 labels.

        Raises:
            TrainerError: a record is damaged or does not fit the model; it is named.
        """
        images = np.empty((len(numbers), *self._spec.image_shape), np.uint8)
        labels = np.empty(len(numbers), np.int32)
        for row, number in enumerate(numbers):
            images[row], labels[row] = self._decoded(int(number))
        return images, labels

    def _decoded(self, number: int) -> tuple[Any, int]:
        file, begin, length = (int(each) for each in self._places[number])
        data = self._views[file][begin : begin + length]
        where = f"{self._names[file]}: the record at byte {begin - 12}"
        (stored,) = _CRC.unpack_from(self._views[file], begin + length)
        if stored != _checksum(data):
            raise no_input(f"{where} is a corrupted record", DAMAGED_HINT)
        return decode(where, data, self._spec)

    def all(self) -> tuple[Any, Any]:
        """Return everything, in the order of the files. Raises `TrainerError`."""
        return self.take(np.arange(self.count))


def _checksum(data: bytes) -> int:
    try:
        import google_crc32c
    except ImportError:
        return masked_crc(data)
    crc = int(google_crc32c.value(data))
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _mapped(path: Path) -> Any:
    if path.stat().st_size == 0:
        return b""
    if path.suffix == ".gz":
        return _unpacked(path)
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _unpacked(path: Path) -> Any:
    """Return the content of a GZIP file, kept in a nameless file so that any record is in reach."""
    with tempfile.TemporaryFile() as kept:
        try:
            with gzip.open(path) as packed:
                shutil.copyfileobj(packed, kept, _UNPACKED_AT_ONCE)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise no_input(f"{path}: no readable GZIP file: {error}", DAMAGED_HINT) from error
        if not kept.tell():
            return b""
        kept.flush()
        return mmap.mmap(kept.fileno(), 0, access=mmap.ACCESS_READ)


class OwnPart:
    """The held-out batches of one worker: each of them takes every n-th."""

    def __init__(self, whole: EvaluationData, index: int, count: int) -> None:
        self._whole = whole
        self._index = index
        self._count = count
        self.examples = whole.examples

    def batches(self, batch_size: int) -> Iterator[Padded]:
        """Yield this worker's batches."""
        for number, batch in enumerate(self._whole.batches(batch_size)):
            if number % self._count == self._index:
                yield batch


class _HeldOutRecords:
    def __init__(self, records: RecordExamples) -> None:
        self._records = records
        self.examples = records.count

    def batches(self, batch_size: int) -> Iterator[Padded]:
        starts = range(0, self.examples, batch_size)
        pieces = (np.arange(each, min(each + batch_size, self.examples)) for each in starts)
        return padded((self._records.take(each) for each in pieces), batch_size)


def load(config: Config, storage: Storage) -> tuple[Examples, EvaluationData]:
    """Return the training and evaluation data that the settings name.

    Raises:
        TrainerError: a file is missing, damaged, or holds no images that fit the model.
    """
    spec = model_spec(config.model, config.image_size, config.classes)
    if config.synthetic:
        held_out = min(_SYNTHETIC_HELD_OUT, max(1, config.synthetic // 4))
        synthetic = SyntheticExamples(spec, config.synthetic, config.seed)
        numbers = np.arange(config.synthetic, config.synthetic + held_out)
        return synthetic, HeldOutArrays(*synthetic.take(numbers))
    if config.embedded:
        images, labels = read_embedded()
        mask = held_out_mask(labels)
        training = ArrayExamples(images[~mask], labels[~mask])
        return training, HeldOutArrays(images[mask], labels[mask])
    return _from_records(config, spec, storage)


def _from_records(
    config: Config, spec: ModelSpec, storage: Storage
) -> tuple[Examples, EvaluationData]:
    limit = config.memory_mb * 2**20
    records = RecordExamples(_local_files(config.train_files, "--train_files", storage), spec)
    held_out = RecordExamples(_local_files(config.eval_files, "--eval_files", storage), spec)
    if records.count < config.batch_size:
        raise no_input(
            f"--train_files hold {records.count} examples, less than one batch of "
            f"{config.batch_size}",
            "use a smaller --batch_size or more files",
        )
    if not held_out.count:
        raise no_input("--eval_files hold no records", "write or copy them again")
    fits = records.count * spec.image_bytes <= limit
    training: Examples = ArrayExamples(*records.all()) if fits else records
    if held_out.count * spec.image_bytes <= limit:
        return training, HeldOutArrays(*held_out.all())
    return training, _HeldOutRecords(held_out)


def _local_files(patterns: Sequence[str], flag: str, storage: Storage) -> list[str]:
    """Return the files that patterns match; those of a bucket are copied to this machine first."""
    files: list[str] = []
    for pattern in patterns:
        if is_remote(pattern):
            found = storage.copies(pattern, Path(tempfile.gettempdir()) / "tpudash-data")
        else:
            found = local_files(pattern, flag)
        if not found:
            raise no_input(f"{flag} {pattern}: no such file", "check the path")
        files += found
    return named_once(files)
