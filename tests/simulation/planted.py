"""Bugs to plant in replication and the log: each breaks one rule that keeps acknowledged records safe.

`mutants.py` shows that the simulator finds every one of them. `planted_coordination` has the bugs of coordinators,
`planted_shares` those of share groups, `planted_compaction` those of compaction, `planted_horizon` those of its
tombstone horizon, and of scrub and repair.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.partitions.transaction_guards import Guard
from tailrace.broker.replication.quorums import Quorums
from tailrace.broker.replication.vote_journal import VoteJournal
from tailrace.log.log import Appended, Log, Read
from tailrace.log.recovery import recovery, truncation
from tailrace.log.segment_walk import walk_in_turns
from tailrace.log.state.producers import ProducerStates
from tailrace.log.syncing import Syncer
from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.model.settings import Settings
from tailrace.ports import Ports
from tailrace.raft import following, leading
from tailrace.raft.effects import EffectsBuilder, Vote
from tailrace.raft.messages import FetchAnswer, Fetched, Message, VoteRefusal, VoteRequest
from tailrace.raft.state import State
from tailrace.raft.tracking import Leadership
from tailrace.raft.votes import VoterState
from tests.simulation import planted_compaction, planted_coordination, planted_horizon, planted_shares
from tests.simulation.planting import Mutant, replaced


def commit_by_counting_an_old_epoch() -> AbstractContextManager[None]:
    """Raft §5.4.2, figure 8."""

    def commit(state: State) -> bool:
        assert state.leadership is not None
        return state.commit(min(state.leadership.committed(state.durable), state.log_end))

    return replaced(leading, "commit", commit)


def vote_not_persisted() -> AbstractContextManager[None]:
    async def store(journal: VoteJournal, votes: Sequence[tuple[TopicPartition, Vote]]) -> None:
        journal._votes.update(votes)

    return replaced(VoteJournal, "store", store)


def follower_counted_before_its_fsync() -> AbstractContextManager[None]:
    right = Leadership.fetched

    def fetched(leadership: Leadership, fetch: Fetched, log_end: int, now: float) -> None:
        right(leadership, replace(fetch, durable=fetch.end), log_end, now)

    return replaced(Leadership, "fetched", fetched)


def leader_counted_before_its_fsync() -> AbstractContextManager[None]:
    def commit(state: State) -> bool:
        assert state.leadership is not None
        durable = state.leadership.committed(state.log_end)
        return durable > state.leadership.epoch_start and state.commit(durable)

    return replaced(leading, "commit", commit)


def durable_offset_read_when_the_fsync_ends() -> AbstractContextManager[None]:
    right = Syncer._finish

    def finish(syncer: Syncer) -> None:
        syncer._captured = syncer._end()
        right(syncer)

    return replaced(Syncer, "_finish", finish)


def duplicate_acknowledged_before_its_original() -> AbstractContextManager[None]:
    right = Partition.append

    def append(partition: Partition, batch: memoryview, acks: int, guard: Guard | None = None) -> Appended:
        appended = right(partition, batch, acks)
        return appended._replace(last_offset=-1) if appended.duplicate else appended

    return replaced(Partition, "append", append)


def producer_state_not_rolled_back() -> AbstractContextManager[None]:
    async def producers_at(log: Log, end: int) -> ProducerStates:
        return log.producers

    return replaced(truncation, "producers_at", producers_at)


def high_watermark_from_a_deposed_leader() -> AbstractContextManager[None]:
    """A follower takes the high watermark from any fetch response, whatever its epoch, before the logs agree."""
    right = following.fetch_answered

    def answered(state: State, answer: FetchAnswer, turn: EffectsBuilder) -> None:
        if answer.served and state.commit(min(answer.high_watermark, state.log_end)):
            turn.committed = state.high_watermark
        right(state, answer, turn)

    return replaced(following, "fetch_answered", answered)


def vote_for_a_shorter_log() -> AbstractContextManager[None]:
    return replaced(VoterState, "is_up_to_date", lambda voter, request: True)


def two_votes_in_one_epoch() -> AbstractContextManager[None]:
    def refusal(voter: VoterState, request: VoteRequest) -> VoteRefusal | None:
        return None if voter.leader is None else VoteRefusal.KNOWS_LEADER

    return replaced(VoterState, "_vote_refusal", refusal)


def epoch_cache_not_truncated() -> AbstractContextManager[None]:
    right = truncation._truncate

    def truncate(log: Log, number: int, end: int, position: int) -> None:
        epochs, starts = list(log.epochs._epochs), list(log.epochs._starts)
        right(log, number, end, position)
        log.epochs._epochs, log.epochs._starts = epochs, starts

    return replaced(truncation, "_truncate", truncate)


@contextmanager
def controller_without_quorum_answers() -> Iterator[None]:
    """A leader goes on as the leader without a quorum, until another replica's message deposes it."""
    with (
        replaced(leading, "has_quorum", lambda state, now: state.leadership is not None),
        replaced(Partition, "hears_quorum", lambda partition: True),
    ):
        yield


@contextmanager
def vote_to_a_recreated_topic() -> Iterator[None]:
    """Messages between brokers name a partition by its topic's name instead of its topic id."""
    hosted_with: dict[Quorums, HostedPartitions] = {}
    right_init, right = HostedPartitions.__init__, Quorums.raft_messages

    def init(
        hosted: HostedPartitions, ports: Ports, settings: Settings, folder: str, votes: VoteJournal, quorums: Quorums
    ) -> None:
        hosted_with[quorums] = hosted
        right_init(hosted, ports, settings, folder, votes, quorums)

    def raft_messages(quorums: Quorums, sender: BrokerId, messages: Sequence[tuple[TopicPartition, Message]]) -> None:
        image = hosted_with[quorums].image
        named = []
        for key, message in messages:
            name = image.removed.get(key.topic_id)
            recreated = None if name is None else image.topics.get(name)
            named.append((key if recreated is None else TopicPartition(recreated.id, key.partition), message))
        right(quorums, sender, named)

    with replaced(HostedPartitions, "__init__", init), replaced(Quorums, "raft_messages", raft_messages):
        yield


def torn_tail_kept() -> AbstractContextManager[None]:
    """Recovery accepts a torn batch if its header is complete, without checking its checksum."""

    def unchecked(file: Any, position: int, stop: int, *, check: bool) -> Any:
        return walk_in_turns(file, position, stop, check=False)

    return replaced(recovery, "walk_in_turns", unchecked)


def readers_see_past_the_high_watermark() -> AbstractContextManager[None]:
    def read(partition: Partition, offset: int, max_bytes: int, *, committed: bool = False) -> Read | None:
        return partition.log.read(offset, max_bytes, partition.log.end)

    return replaced(Partition, "read", read)


def acknowledged_at_the_append() -> AbstractContextManager[None]:
    return replaced(Partition, "acknowledged", property(lambda partition: partition.log.end))


MUTANTS: tuple[Mutant, ...] = (
    commit_by_counting_an_old_epoch,
    vote_not_persisted,
    follower_counted_before_its_fsync,
    leader_counted_before_its_fsync,
    durable_offset_read_when_the_fsync_ends,
    duplicate_acknowledged_before_its_original,
    producer_state_not_rolled_back,
    high_watermark_from_a_deposed_leader,
    vote_for_a_shorter_log,
    two_votes_in_one_epoch,
    epoch_cache_not_truncated,
    controller_without_quorum_answers,
    vote_to_a_recreated_topic,
    torn_tail_kept,
    readers_see_past_the_high_watermark,
    acknowledged_at_the_append,
    *planted_coordination.MUTANTS,
    *planted_shares.MUTANTS,
    *planted_compaction.MUTANTS,
    *planted_horizon.MUTANTS,
)
