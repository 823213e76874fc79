"""Observations, log entries and votes made by hand, for the tests of the cluster's invariants."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from crc32c import crc32c

from tailrace.broker.replication.vote_journal import ENTRY_LAYOUT
from tailrace.model.ids import BrokerId, Id, TopicPartition
from tailrace.raft.voters import Voter
from tailrace.testing.scenarios.cluster.invariants.committed_history import CommittedHistories
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.scenarios.cluster.invariants.log_entries import Entry
from tailrace.testing.scenarios.cluster.invariants.observation import ReplicaObservation

KEY = TopicPartition(Id(b"t" * 16), 0)
RECREATED = TopicPartition(Id(b"u" * 16), 0)  # the same name, another topic id
VOTERS = tuple(Voter(BrokerId(number), Id(bytes([number]) * 16)) for number in (1, 2, 3))


def observation(
    broker: int = 1,
    *,
    opening: int = 1,
    key: TopicPartition = KEY,
    epoch: int = 1,
    stored: bool = True,
    leads: bool = False,
    high_watermark: int = 0,
    committed_epoch: int = 1,
    start: int = 0,
    end: int = 10,
    damaged: bool = False,
    sole_voter: bool = False,
) -> ReplicaObservation:
    me = VOTERS[broker - 1]
    return ReplicaObservation(
        server=f"b{broker}",
        opening=opening,
        key=key,
        voter=me,
        voters=(me,) if sole_voter else VOTERS,
        epoch=epoch,
        stored=stored,
        leads=leads,
        high_watermark=high_watermark,
        committed_epoch=committed_epoch,
        start=start,
        end=end,
        damaged=damaged,
    )


def entry(base: int, count: int = 1, *, epoch: int = 1, crc: int = 7, producer: int = -1, sequence: int = -1) -> Entry:
    return Entry(base, base + count - 1, epoch, crc, crc * 31 + epoch, producer, 0, sequence)


def vote(epoch: int, voter: Voter, key: TopicPartition = KEY) -> bytes:
    """An entry of a vote journal."""
    row = ENTRY_LAYOUT.pack(key.topic_id, key.partition, epoch, voter.broker, voter.directory)
    return row + crc32c(row).to_bytes(4, "big")


def history(*entries: Entry) -> CommittedHistories:
    """Histories in which these entries are committed."""
    histories = CommittedHistories()
    histories.of(KEY).add(observation(high_watermark=10), entries)
    return histories


@contextmanager
def violates(invariant: Invariant) -> Iterator[None]:
    with pytest.raises(InvariantViolated) as caught:
        yield
    assert caught.value.invariant is invariant
    assert str(caught.value).startswith(invariant.value)
