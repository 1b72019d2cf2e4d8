"""Writes a source as sharded TFRecord files, all or nothing."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from trainer.data.index import DATASET_FILE
from trainer.data.labels import gaps
from trainer.data.pixels import without_alpha
from trainer.data.sources import EVAL, TRAIN, UNSPLIT, Part, Source, ahead, open_source
from trainer.faults import ExitCode, TrainerError, classify, no_input, one_line, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.data.commands import ConvertOptions

_SHARD_BYTES = 128 * 2**20
_FEWEST_SHARDS = 8
_RAW_BYTES = 4096
"""Images up to this size are kept as raw pixels: quicker to read than to decode."""
_TEMPORARY = ".converting"


def convert(options: ConvertOptions) -> dict[str, Any]:
    """Convert and return what `dataset.json` holds, with the flags that train on it.

    Raises:
        TrainerError: the source is malformed, or the files cannot be written; none is left behind.
    """
    out = options.out.rstrip("/")
    source = open_source(options.source, options.channels)
    old = _earlier(out, overwrite=options.overwrite)
    temporary = f"{out}/{_TEMPORARY}-{os.getpid()}"
    try:
        tf.io.gfile.makedirs(temporary)
        content = _write_all(options, source, temporary)
        return _publish(content, temporary, out, old)
    except (tf.errors.OpError, OSError) as error:
        known = classify(str(error))
        raise TrainerError(
            ExitCode.DEFECT,
            known.error_class if known else "BUCKET_ACCESS",
            f"cannot write to {out}: {plain(str(error))}",
            "free space or choose another --out; nothing was left behind",
        ) from error
    finally:
        if tf.io.gfile.isdir(temporary):
            tf.io.gfile.rmtree(temporary)


def _earlier(out: str, *, overwrite: bool) -> list[str]:
    """Return the files of an earlier conversion, which may be replaced."""
    try:
        names = list(tf.io.gfile.listdir(out)) if tf.io.gfile.isdir(out) else []
    except tf.errors.OpError as error:
        raise no_input(f"{out}: {error}", "check the path and its permissions") from error
    found = [name for name in names if ".tfrecord" in name or name == DATASET_FILE]
    if found and not overwrite:
        raise TrainerError(
            ExitCode.BAD_ARGUMENTS,
            "NAME_TAKEN",
            f"{out} holds {found[0]} already",
            "choose another --out, or add --overwrite",
        )
    return found


def _publish(content: dict[str, Any], temporary: str, out: str, old: list[str]) -> dict[str, Any]:
    for name in content["files"]:
        tf.io.gfile.rename(f"{temporary}/{name}", f"{out}/{name}", overwrite=True)
    with tf.io.gfile.GFile(f"{temporary}/{DATASET_FILE}", "w") as file:
        file.write(json.dumps(content, indent=1) + "\n")
    tf.io.gfile.rename(f"{temporary}/{DATASET_FILE}", f"{out}/{DATASET_FILE}", overwrite=True)
    for name in old:
        if name not in content["files"] and name != DATASET_FILE:
            tf.io.gfile.remove(f"{out}/{name}")
    patterns = {f"{split}_files": f"{out}/{split}-*.tfrecord*" for split in content["splits"]}
    return {**content, **patterns}


@dataclass
class _Form:
    """What the images of a data set are stored as; the first one decides for all."""

    options: ConvertOptions
    shape: tuple[int, ...] | None = None
    raw: bool = False

    def encode(self, image: Any, label: int) -> tuple[bytes, int]:
        """Return the bytes that are stored for an image."""
        if isinstance(image, Path):
            return self._of_file(image), label
        pixels = self._changed(image)
        self._hold(pixels.shape, "an image")
        self.raw = self.options.image_format != "png"
        return (pixels.tobytes() if self.raw else tf.io.encode_png(pixels).numpy()), label

    def _of_file(self, path: Path) -> bytes:
        try:
            content = path.read_bytes()
            decoded = tf.io.decode_image(content, expand_animations=False).numpy()
        except (OSError, tf.errors.OpError) as error:
            text = one_line(plain(str(error)), 120)
            raise no_input(f"{path}: no readable picture: {text}", "mend or remove it") from error
        pixels = self._changed(decoded)
        if self.shape is None:
            small = int(np.prod(pixels.shape)) <= _RAW_BYTES
            self.raw = self.options.image_format == "raw" or (
                self.options.image_format == "auto" and small
            )
        if self.raw:
            self._hold(pixels.shape, str(path))
            return bytes(pixels.tobytes())
        self.shape = self.shape or pixels.shape
        keeps = self.options.image_format == "keep"
        if self.options.image_format == "png" or (pixels is not decoded and not keeps):
            return bytes(tf.io.encode_png(pixels).numpy())
        return content

    def _changed(self, pixels: Any) -> Any:
        size, channels = self.options.image_size, self.options.channels
        pixels = without_alpha(pixels)
        if channels == 1 and pixels.shape[-1] == 3:
            pixels = tf.image.rgb_to_grayscale(pixels).numpy()
        if channels == 3 and pixels.shape[-1] == 1:
            pixels = np.repeat(pixels, 3, axis=-1)
        if size and pixels.shape[:2] != (size, size):
            resized = tf.image.resize(pixels, [size, size], antialias=True)
            pixels = tf.cast(tf.round(tf.clip_by_value(resized, 0.0, 255.0)), tf.uint8).numpy()
        return pixels

    def _hold(self, shape: tuple[int, ...], what: str) -> None:
        self.shape = self.shape or shape
        if shape != self.shape:
            raise no_input(
                f"{what} has the shape {list(shape)}, others {list(self.shape)}",
                "give --image_size and --channels to make them equal, or --image_format keep",
            )


class _Shards:
    """The open files of one split."""

    def __init__(self, folder: str, split: str, count: int, compression: str) -> None:
        ending = "tfrecord.gz" if compression == "gzip" else "tfrecord"
        self._folder = folder
        self.names = [f"{split}-{n:05d}-of-{count:05d}.{ending}" for n in range(count)]
        self.records = [0] * count
        kind = "GZIP" if compression == "gzip" else ""
        self._writers = [
            tf.io.TFRecordWriter(f"{folder}/{name}", tf.io.TFRecordOptions(compression_type=kind))
            for name in self.names
        ]

    def write(self, shard: int, image: bytes, label: int) -> None:
        """Append an example to a shard."""
        features = {
            "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
            "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
        }
        example = tf.train.Example(features=tf.train.Features(feature=features))
        self._writers[shard].write(example.SerializeToString())
        self.records[shard] += 1

    def close(self) -> dict[str, dict[str, int]]:
        """Close all files. Returns bytes and records of each."""
        for writer in self._writers:
            writer.close()
        sizes = [int(tf.io.gfile.stat(f"{self._folder}/{name}").length) for name in self.names]
        return {
            name: {"bytes": size, "records": records}
            for name, size, records in zip(self.names, sizes, self.records, strict=True)
        }


def _write_all(options: ConvertOptions, source: Source, folder: str) -> dict[str, Any]:
    form = _Form(options)
    files: dict[str, dict[str, int]] = {}
    splits: dict[str, dict[str, int]] = {}
    seen: Counter[int] = Counter()
    for part in source.parts:
        shards = _open_shards(options, part, folder)
        sizes = {split: len(each.names) for split, each in shards.items()}
        for split, shard, image, label in _placed(options, part, form, sizes):
            shards[split].write(shard, image, label)
            seen[label] += 1
        for split, open_files in shards.items():
            files |= open_files.close()
            splits[split] = {"examples": sum(open_files.records), "files": len(open_files.names)}
    if not splits.get(TRAIN, {}).get("examples"):
        raise no_input(f"{options.source}: no example to train on", "is it empty?")
    return {
        "schema": 1,
        "source": options.source,
        "seed": options.seed,
        "splits": splits,
        "image_shape": list(form.shape or ()),
        "encoding": "raw" if form.raw else "encoded",
        "classes": max(len(source.label_names), max(seen) + 1),
        "label_names": list(source.label_names),
        "notes": [*source.notes, *gaps(seen, source.label_names), *_empty(splits)],
        "compression": options.compression,
        "files": files,
    }


def _empty(splits: dict[str, dict[str, int]]) -> list[str]:
    if splits.get(EVAL, {}).get("examples"):
        return []
    return ["no example is held out, but training needs --eval_files: raise --held_out"]


def _open_shards(options: ConvertOptions, part: Part, folder: str) -> dict[str, _Shards]:
    count = options.shards or max(_FEWEST_SHARDS, -(-part.bytes // _SHARD_BYTES))
    if part.count is not None:
        count = max(1, min(count, part.count))
    if part.name != UNSPLIT:
        few = count if part.name == TRAIN else max(1, count // _FEWEST_SHARDS)
        return {part.name: _Shards(folder, part.name, few, options.compression)}
    shards = {TRAIN: _Shards(folder, TRAIN, count, options.compression)}
    if options.held_out:
        few = max(1, round(count * options.held_out))
        shards[EVAL] = _Shards(folder, EVAL, few, options.compression)
    return shards


def _held_out(count: int, share: float) -> int:
    """Return how many of some examples are held out: one at least, but not all."""
    return min(count - 1, max(1, round(count * share))) if share and count > 1 else 0


def _placed(
    options: ConvertOptions, part: Part, form: _Form, sizes: dict[str, int]
) -> Iterator[tuple[str, int, bytes, int]]:
    """Yield (split, shard, image, label) in a seeded order, or to seeded shards for a stream."""
    random = np.random.Generator(np.random.Philox(options.seed))
    order = None if part.count is None else random.permutation(part.count)
    held = _held_out(part.count or 0, options.held_out)
    for number, (image, label) in enumerate(ahead(form.encode, part.read(order))):
        if part.name != UNSPLIT:
            yield part.name, number % sizes[part.name], image, label
        elif part.count is None:
            split = EVAL if random.random() < options.held_out else TRAIN
            yield split, int(random.integers(sizes[split])), image, label
        else:
            split = EVAL if number < held else TRAIN
            yield split, number % sizes[split], image, label
