"""Healthy histories, each made by a seed: of several partitions and days, with all that leaves gaps for a good reason.

Producers that number their records, transactions that commit and abort, retention that eats the log's beginning before
and after it was archived, and files that were merged since. Made without Spark, so that many can be.
"""

import random
from pathlib import Path

from tailrace.pipeline.histories.committing import commit_batch, open_or_create
from tailrace.pipeline.histories.delta_log import read_log
from tailrace.pipeline.histories.writing import archive_range
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.fetching import OffsetRange
from tailrace.pipeline.kafka.offsets import Offsets, end_offsets, start_offsets
from tailrace.pipeline.kafka.transactions import end_transaction, init_producer_id, init_transactions
from tailrace.pipeline.upkeep.compact import _commit as commit_merged
from tailrace.pipeline.upkeep.merging import merged
from tailrace.records.build import build_batch
from tailrace.records.compress import COMPRESSIONS
from tests.pipeline.test_histories import two_days
from tests.pipeline.test_sink import write_one
from tests.pipeline.topics import make_topic, shorten, write, write_bytes


def healthy_history(cluster: Cluster, topic: str, folder: Path, dice: random.Random) -> None:
    partitions = [TopicPartition(topic, number) for number in range(dice.randint(1, 2))]
    make_topic(cluster, topic, len(partitions))
    open_or_create(folder)
    for batch in range(dice.randint(3, 5)):
        for one in partitions:
            _write_some(cluster, one, dice)
        if not batch and dice.random() < 0.5:
            shorten(cluster, topic, dice.randint(1, 4))
        _archive(cluster, partitions, folder, dice)
    if dice.random() < 0.5:
        _merge_some(folder, partitions[0], dice)
    if dice.random() < 0.5:
        shorten(cluster, topic, dice.randint(5, 10))


def _write_some(cluster: Cluster, of: TopicPartition, dice: random.Random) -> None:
    by, compression = init_producer_id(cluster), dice.choice(COMPRESSIONS)
    batch = build_batch(
        two_days(10), compression=compression, producer_id=by.id, producer_epoch=by.epoch, base_sequence=0
    )
    write_bytes(cluster, of.topic, bytes(batch), partition=of.partition)
    for _ in range(dice.randint(0, 3)):
        transaction = init_transactions(cluster, f"{of}-{dice.randint(0, 1)}", 60_000)
        write_one(cluster, transaction, of.topic, b"in a transaction", of.partition)
        end_transaction(cluster, transaction, commit=dice.random() < 0.5)
    write(cluster, of.topic, two_days(dice.randint(2, 6), 10), partition=of.partition)


def _archive(cluster: Cluster, partitions: list[TopicPartition], folder: Path, dice: random.Random) -> None:
    """All that is new, or a part of it."""
    starts: Offsets = start_offsets(cluster, partitions) | read_log(folder).ends()
    ends = end_offsets(cluster, partitions, committed=True)
    wanted = [
        OffsetRange(partition=one, start=starts[one], end=ends[one] - dice.randint(0, 1))
        for one in partitions
        if starts[one] < ends[one] - 1
    ]
    commit_batch(folder, [archive_range(cluster, one, folder) for one in wanted])


def _merge_some(folder: Path, of: TopicPartition, dice: random.Random) -> None:
    ranges = sorted((one for one in read_log(folder).ranges if one.of == of), key=lambda one: one.start)
    some = ranges[: dice.randint(2, len(ranges))]
    commit_merged(folder, [(some, merged(some, folder))])
