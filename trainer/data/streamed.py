"""Training data larger than memory, streamed from TFRecord files in a seeded order.

An epoch is a seeded order of the files; neighbours in it are read in turns, and the stream is cut
into windows that are permuted as a whole. All of it follows from (seed, host, epoch, window) and
from the number of records of each file, so a resumed job opens just the files of its window: the
time does not depend on how far the epoch had come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from trainer.data.digest import digest_of_files
from trainer.data.memory import as_it_is, finish
from trainer.data.order import epoch_order, window_order
from trainer.data.records import compression
from trainer.data.share import Share
from trainer.faults import no_input

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WINDOW_RECORDS = 16_384
WINDOW_BYTES = 64 * 2**20
FILES_AT_ONCE = 8
"""Files that are read in turns."""
TURN = 16
"""Records that one file gives in its turn."""


class StreamedData:
    """TFRecord files, each read by the one host that it belongs to.

    Args:
        files: paths or gs:// URLs, sorted.
        counts: records of each file.
        decode: turns a vector of raw records into (images, labels).
        batch_size: global batch.
        seed: names the orders.
        record_bytes: mean size of a record; bounds the memory of a window.
        hosts: number of input pipelines.

    Raises:
        TrainerError: there are fewer files than hosts.
    """

    def __init__(
        self,
        files: Sequence[str],
        counts: Sequence[int],
        decode: Callable[[Any], tuple[Any, Any]],
        *,
        batch_size: int,
        seed: int,
        record_bytes: float = 1.0,
        hosts: int = 1,
    ) -> None:
        used = [(name, count) for name, count in zip(files, counts, strict=True) if count]
        if len(used) < hosts:
            raise no_input(
                f"{len(used)} training files cannot be shared by {hosts} hosts",
                f"convert the data with --shards {hosts * FILES_AT_ONCE}",
            )
        self.files = tuple(name for name, _ in used)
        self.digest = digest_of_files(used)
        self._decode = decode
        self._seed = seed
        self._hosts = hosts
        self._each = batch_size // hosts
        self._of_host = [used[host::hosts] for host in range(hosts)]
        self.examples = sum(count for _, count in used)
        smallest = min(sum(count for _, count in each) for each in self._of_host)
        self.steps_per_epoch = smallest // self._each if self._each else 0
        records = min(WINDOW_RECORDS, WINDOW_BYTES / max(1.0, record_bytes))
        self._window_steps = max(1, int(records) // max(1, self._each))

    def batches(self, first_step: int, last_step: int, share: Share | None = None) -> Any:
        """Return a dataset of the pieces of the steps first_step .. last_step - 1.

        Each piece holds the examples of one replica for one step.
        """
        share = share or Share()
        if share.hosts != self._hosts:
            raise ValueError(f"{share.hosts} input pipelines where {self._hosts} were announced")
        per_epoch, each = self.steps_per_epoch, self._each
        first_epoch, step_in_epoch = divmod(first_step, per_epoch)
        first_window, step_in_window = divmod(step_in_epoch, self._window_steps)
        window = self._window_steps * each
        kind = compression(self.files)
        names = tf.constant([name for name, _ in self._of_host[share.host]])
        counts = tf.constant([count for _, count in self._of_host[share.host]], tf.int64)

        @as_it_is
        def one_epoch(epoch: Any) -> Any:
            start = tf.where(tf.equal(epoch, first_epoch), tf.constant(first_window, tf.int64), 0)
            order = epoch_order(self._seed, epoch, len(self._of_host[share.host]))
            stream = _read_in_turns(
                tf.gather(names, order), tf.gather(counts, order), start * window, kind
            )
            windows = stream.rebatch(window).take(-(-per_epoch * each // window) - start)

            @as_it_is
            def permute(number: Any, raw: Any) -> Any:
                left = tf.maximum(per_epoch * each - number * window, 0)
                used = tf.minimum(left, tf.size(raw, tf.int64))
                return tf.gather(raw, window_order(self._seed, share.host, epoch, number, used))

            return windows.enumerate(start).map(permute)

        @as_it_is
        def pieces(raw: Any) -> Any:
            rows = tf.reshape(raw, [-1, each // share.replicas])
            return tf.data.Dataset.from_tensor_slices(rows)

        epochs = tf.data.Dataset.range(first_epoch, last_step // per_epoch + 1)
        # One window is read ahead while another is being used.
        steps = epochs.flat_map(one_epoch).prefetch(1).flat_map(pieces)
        steps = steps.skip(step_in_window * share.replicas)
        return finish(steps.take((last_step - first_step) * share.replicas), self._decode)


def _read_in_turns(names: Any, counts: Any, start: Any, kind: str) -> Any:
    """Return the records of groups of files that are read in turns, from record `start` on.

    They come as vectors of up to one turn, which costs less than one at a time.

    Args:
        names: file names in the order of the epoch.
        counts: their numbers of records, int64.
        start: records to leave out; whole groups and turns are never opened.
        kind: compression of the files.
    """
    group = tf.range(tf.size(counts)) // FILES_AT_ONCE
    ends = tf.cumsum(tf.math.segment_sum(counts, group))
    first = tf.searchsorted(ends, [start], side="right")[0]
    rest = start - tf.where(first > 0, tf.gather(ends, tf.maximum(first - 1, 0)), 0)
    skips, turns, records = turns_before(_of_group(counts, first), rest)
    skips = tf.pad(skips, [[0, FILES_AT_ONCE - tf.size(skips)]])

    @as_it_is
    def read(number: Any) -> Any:
        is_first = tf.equal(number, tf.cast(first, tf.int64))
        files = _of_group(names, number)
        left_out = tf.where(is_first, skips[: tf.size(files)], 0)
        parts = tf.data.Dataset.from_tensor_slices((files, left_out))
        stream = parts.interleave(
            as_it_is(lambda name, skip: tf.data.TFRecordDataset(name, kind).skip(skip).batch(TURN)),
            cycle_length=FILES_AT_ONCE,
            block_length=1,
        )
        done = tf.where(is_first, turns, 0)
        begun = stream.skip(done).take(1)
        rest_of_turn = begun.map(
            as_it_is(lambda turn: tf.gather(turn, _from(turn, is_first, records)))
        )
        return rest_of_turn.concatenate(stream.skip(done + 1))

    groups = tf.data.Dataset.range(tf.cast(first, tf.int64), tf.cast(tf.size(ends), tf.int64))
    return groups.flat_map(read)


def _from(turn: Any, is_first: Any, begin: Any) -> Any:
    return tf.range(tf.where(is_first, begin, 0), tf.size(turn, tf.int64))


def _of_group(values: Any, number: Any) -> Any:
    begin = tf.cast(number, tf.int32) * FILES_AT_ONCE
    return values[begin : begin + FILES_AT_ONCE]


def turns_before(counts: Any, start: Any) -> tuple[Any, Any, Any]:
    """Return where reading in turns stands after `start` records.

    Args:
        counts: records of the files of one group, int64 [files].
        start: records read, fewer than all of them.

    Returns:
        Records to skip in each file after as many rounds as are over, then turns to skip of the
        round that has begun, then records to skip of the turn that has begun.
    """
    rounds = tf.range(tf.reduce_max(counts) // TURN + 2, dtype=tf.int64)
    read = tf.minimum(counts[tf.newaxis], rounds[:, tf.newaxis] * TURN)
    sums = tf.reduce_sum(read, axis=1)
    over = tf.searchsorted(sums, [start], side="right")[0] - 1
    skips, rest = tf.gather(read, over), start - tf.gather(sums, over)
    turns = tf.minimum(counts - skips, TURN)
    ends = tf.cumsum(turns)
    is_over = tf.logical_and(ends <= rest, turns > 0)
    return (
        skips,
        tf.reduce_sum(tf.cast(is_over, tf.int64)),
        rest - tf.reduce_max(tf.where(is_over, ends, 0)),
    )
