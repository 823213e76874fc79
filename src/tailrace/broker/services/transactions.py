"""Producer ids and transactions.

The coordinator of a transactional id is the broker that leads its partition of `__transaction_state`; on other brokers
a call raises `NotCoordinator`. Producers of transactions v1 add partitions to a transaction by a request of their own;
for those of v2 (KIP-890) the partition's leader adds it with the first batch.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final

from tailrace.broker.control.producer_ids import ProducerIds
from tailrace.broker.coordination.coordinator import partition_of
from tailrace.broker.groups.coordinator import GroupCoordinator
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.services.groups import Groups, OffsetToCommit
from tailrace.broker.services.time_slices import TimeSlice
from tailrace.broker.transactions.coordinator import TransactionCoordinator
from tailrace.broker.transactions.marker_writing import MARKER_TIMEOUT_S, MarkerWriting
from tailrace.broker.transactions.offset_commits import OffsetCommits, TransactionalCommit
from tailrace.broker.transactions.partition_coordinator import TransactionPartitionCoordinator
from tailrace.groups.consumer.expressions import compiled
from tailrace.model.caller import Caller
from tailrace.model.faults import (
    Fault,
    InvalidGroupId,
    InvalidRequest,
    NotAttempted,
    NotInTransaction,
    TopicNotAllowed,
    UnknownTopic,
)
from tailrace.model.frozen import frozen
from tailrace.model.ids import BrokerId, PartitionName
from tailrace.model.topics import INTERNAL_TOPICS, OFFSETS_TOPIC
from tailrace.ports import Clock
from tailrace.transactions.states import State
from tailrace.transactions.transaction import NOTHING, Producer, Transaction
from tailrace.transactions.transactions import NO_CONNECTION
from tailrace.transactions.transactions import Transactions as TransactionMachine
from tailrace.wire.messages.write_txn_markers import MarkerToWrite

__all__ = [
    "NO_CONNECTION",
    "ListedTransaction",
    "PartitionName",
    "Producer",
    "TransactionFilter",
    "TransactionView",
    "TransactionalCommit",
    "Transactions",
]

CLIENT_VERSION: Final = 1  # transactions v1: clients of v2 do not add partitions themselves


@frozen
class TransactionFilter:
    states: Collection[State] | None  # None: any
    producer_ids: Collection[int]  # empty: any
    running_longer_than_ms: int  # below 0: any
    id_pattern: str | None  # an RE2 expression


@frozen
class ListedTransaction:
    transactional_id: str
    producer_id: int
    state: str


@frozen
class TransactionView:
    transaction: Transaction
    places: Sequence[PartitionName]  # its partitions; while it is completing, those that have no marker yet


class Transactions:
    def __init__(
        self,
        coordinator: TransactionCoordinator,
        groups: GroupCoordinator,
        offset_service: Groups,
        offset_commits: OffsetCommits,
        markers: MarkerWriting,
        producer_ids: ProducerIds,
        hosted: HostedPartitions,
        clock: Clock,
    ) -> None:
        self._coordinator = coordinator
        self._groups = groups
        self._offset_service = offset_service
        self.offset_commits = offset_commits
        self._markers = markers
        self._producer_ids = producer_ids
        self._hosted = hosted
        self._clock = clock

    async def find_coordinator(self, who: Caller, transactional_id: str) -> BrokerId:
        _require_name(transactional_id)
        return await self._coordinator.find(transactional_id)

    # Producers

    async def new_producer(self, who: Caller) -> Producer:
        """A new id for an idempotent producer; ids never repeat."""
        return Producer(await self._producer_ids.take(), 0)

    async def init_producer(
        self, who: Caller, transactional_id: str, timeout_ms: int, expected: Producer | None
    ) -> Producer:
        """Register a producer under a transactional id, with an epoch that fences the previous producer."""
        _require_name(transactional_id)
        return await self._coordinator.init(transactional_id, timeout_ms, expected)

    # The course of a transaction. Connections are numbered in the order in which they were accepted.

    async def add_partitions(
        self,
        who: Caller,
        transactional_id: str,
        producer: Producer,
        places: Sequence[PartitionName],
        connection_number: int,
    ) -> list[Fault | None]:
        """Add partitions to a transaction, all or none; for each its fault, or None."""
        coordinator = self._local(transactional_id)
        refused = {place: fault for place in places if (fault := self._refusal(place)) is not None}
        if refused:
            return [
                refused.get(place, NotAttempted("Another partition of the request was refused.")) for place in places
            ]
        await self._add(coordinator, transactional_id, producer, places, connection_number)
        return [None] * len(places)

    async def verify_partitions(
        self, who: Caller, transactional_id: str, producer: Producer, places: Sequence[PartitionName]
    ) -> list[Fault | None]:
        """Whether partitions are part of a transaction; for each `NotInTransaction`, or None."""
        missing = await self._local(transactional_id).ask(
            lambda machine: machine.missing(transactional_id, producer, places)
        )
        return [NotInTransaction("") if place in missing else None for place in places]

    async def add_offsets(
        self, who: Caller, transactional_id: str, producer: Producer, group_id: str, connection_number: int
    ) -> None:
        """Add the `__consumer_offsets` partition of a group to a transaction."""
        coordinator = self._local(transactional_id)
        topic = await self._groups.state_topic()
        place = PartitionName(OFFSETS_TOPIC, partition_of(group_id, len(topic.partitions)))
        await self._add(coordinator, transactional_id, producer, [place], connection_number)

    async def _add(
        self,
        coordinator: TransactionPartitionCoordinator,
        transactional_id: str,
        producer: Producer,
        places: Sequence[PartitionName],
        connection_number: int,
    ) -> None:
        await coordinator.when_free(
            transactional_id,
            lambda: coordinator.act(
                lambda machine, turn: machine.add(
                    transactional_id, producer, places, CLIENT_VERSION, turn, connection_number
                )
            ),
        )

    def _refusal(self, place: PartitionName) -> Fault | None:
        """Why a client may not write to a partition; None: it may. Offsets are added by `add_offsets`."""
        if place.topic in INTERNAL_TOPICS:
            return TopicNotAllowed(f"{place.topic} is an internal topic: only brokers write to it")
        topic = self._hosted.image.topics.get(place.topic)
        if topic is None or not 0 <= place.partition < len(topic.partitions):
            return UnknownTopic(f"there is no partition {place.topic}-{place.partition}")
        return None

    async def commit_offsets(
        self, who: Caller, commit: TransactionalCommit, offsets: Sequence[OffsetToCommit]
    ) -> list[Fault | None]:
        """Commit offsets of a group as part of a transaction; for each offset its fault, or None."""
        faults, committable = self._offset_service.committable(offsets)
        if committable:
            try:
                if not commit.group_id:
                    raise InvalidGroupId("GroupId can't be empty.")
                await self.offset_commits.commit(commit, committable)
            except Fault as fault:
                return [one or fault for one in faults]
        return faults

    async def end(
        self,
        who: Caller,
        transactional_id: str,
        producer: Producer,
        version: int,
        *,
        committed: bool,
        connection_number: int,
    ) -> Producer:
        """Commit or abort a transaction; returns the producer id and epoch of the next one."""
        _require_name(transactional_id)
        return await self._coordinator.end(
            transactional_id, producer, version, committed=committed, link=connection_number
        )

    async def write_marker(self, who: Caller, topic: str, partition: int, marker: MarkerToWrite) -> Fault | None:
        """Write a transaction marker to a partition that this broker leads: ends a hanging transaction, one that its
        coordinator no longer knows."""
        return await self._markers.write(topic, partition, marker, MARKER_TIMEOUT_S)

    # Describing and listing transactions

    async def describe(self, who: Caller, transactional_id: str) -> TransactionView:
        return await self._local(transactional_id).ask(partial(_view, transactional_id))

    async def list(self, who: Caller, wanted: TransactionFilter, time_slice: TimeSlice) -> list[ListedTransaction]:
        """The transactions that this broker coordinates and the filter selects."""
        matches = compiled(wanted.id_pattern).fullmatch if wanted.id_pattern else None
        is_wanted = partial(_is_wanted, wanted, self._clock.wall_ms())
        found: list[ListedTransaction] = []
        for coordinator in self._coordinator.local_coordinators:
            some = await coordinator.ask(partial(_listed, is_wanted))
            found += some if matches is None else await _matching(some, matches, time_slice)
        return found

    def _local(self, transactional_id: str) -> TransactionPartitionCoordinator:
        _require_name(transactional_id)
        return self._coordinator.local(transactional_id)


def _require_name(transactional_id: str) -> None:
    if not transactional_id:
        raise InvalidRequest("TransactionalId can't be empty.")


def _view(transactional_id: str, machine: TransactionMachine) -> TransactionView:
    transaction = machine.find(transactional_id)
    unmarked = machine.pending_markers.get(transactional_id)
    return TransactionView(
        transaction=transaction, places=tuple(transaction.places if unmarked is None else unmarked.places)
    )


def _is_wanted(wanted: TransactionFilter, now_ms: int, one: Transaction) -> bool:
    if wanted.states is not None and one.state not in wanted.states:
        return False
    if wanted.producer_ids and one.producer_id not in wanted.producer_ids:
        return False
    is_running = one.started_ms != NOTHING and now_ms - one.started_ms > wanted.running_longer_than_ms
    return wanted.running_longer_than_ms < 0 or is_running


def _listed(is_wanted: Callable[[Transaction], bool], machine: TransactionMachine) -> "list[ListedTransaction]":
    return [
        ListedTransaction(transactional_id=one.transactional_id, producer_id=one.producer_id, state=one.state.value)
        for one in machine.transactions.values()
        if is_wanted(one)
    ]


async def _matching(
    listed: "list[ListedTransaction]", matches: Callable[[str], object], time_slice: TimeSlice
) -> "list[ListedTransaction]":
    """The transactions whose ids match. Matching may take long, so it is done in time slices."""
    found = []
    time_slice.begin()
    for one in listed:
        if matches(one.transactional_id) is not None:
            found.append(one)
        if time_slice.is_over:
            await time_slice.next()
    return found
