"""Producer ids and transactions.

A transactional id is served by the broker that leads its partition of `__transaction_state`; elsewhere a call raises
`NotCoordinator`. Producers of transactions v2 (KIP-890) have partitions added by their leaders; others add them here.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
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
from tailrace.groups.offsets import Committed
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

CLIENT_VERSION: Final = 1  # of transactions: clients of v2 do not add partitions themselves


@frozen
class TransactionFilter:
    states: Collection[State] | None  # None: any
    producer_ids: Collection[int]  # none: any
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
    places: Sequence[PartitionName]  # its partitions; while it is being ended, those that have no marker yet


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
        """A producer id for idempotence; ids never repeat."""
        return Producer(await self._producer_ids.take(), 0)

    async def init_producer(
        self, who: Caller, transactional_id: str, timeout_ms: int, expected: Producer | None
    ) -> Producer:
        """Give a transactional id to a producer, in an epoch that fences the one before."""
        _require_name(transactional_id)
        return await self._coordinator.init(transactional_id, timeout_ms, expected)

    # The course of a transaction; `link` numbers the client's connection: a later one has a higher number

    async def add_partitions(
        self, who: Caller, transactional_id: str, producer: Producer, places: Sequence[PartitionName], link: int
    ) -> list[Fault | None]:
        """Make partitions part of a transaction, all or none; for each its fault, or None."""
        coordinator = self._local(transactional_id)
        refused = {place: fault for place in places if (fault := self._refusal(place)) is not None}
        if refused:
            return [
                refused.get(place, NotAttempted("another partition of the request was refused")) for place in places
            ]
        await self._add(coordinator, transactional_id, producer, places, link)
        return [None] * len(places)

    async def verify_partitions(
        self, who: Caller, transactional_id: str, producer: Producer, places: Sequence[PartitionName]
    ) -> list[Fault | None]:
        """Which partitions are not part of a transaction."""
        missing = await self._local(transactional_id).ask(
            lambda machine: machine.missing(transactional_id, producer, places)
        )
        return [NotInTransaction("") if place in missing else None for place in places]

    async def add_offsets(
        self, who: Caller, transactional_id: str, producer: Producer, group_id: str, link: int
    ) -> None:
        """Make the partition that keeps a group's offsets part of a transaction."""
        coordinator = self._local(transactional_id)
        topic = await self._groups.kept_in()
        place = PartitionName(OFFSETS_TOPIC, partition_of(group_id, len(topic.partitions)))
        await self._add(coordinator, transactional_id, producer, [place], link)

    async def _add(
        self,
        coordinator: TransactionPartitionCoordinator,
        transactional_id: str,
        producer: Producer,
        places: Sequence[PartitionName],
        link: int,
    ) -> None:
        await coordinator.when_free(
            transactional_id,
            lambda: coordinator.act(
                lambda machine, turn: machine.add(transactional_id, producer, places, CLIENT_VERSION, turn, link)
            ),
        )

    def _refusal(self, place: PartitionName) -> Fault | None:
        """Whether a client may write there; offsets have a request of their own."""
        if place.topic in INTERNAL_TOPICS:
            return TopicNotAllowed(f"{place.topic} is written by brokers only")
        topic = self._hosted.image.topics.get(place.topic)
        if topic is None or not 0 <= place.partition < len(topic.partitions):
            return UnknownTopic(f"there is no partition {place.partition} of a topic {place.topic}")
        return None

    async def commit_offsets(
        self, who: Caller, commit: TransactionalCommit, offsets: Sequence[OffsetToCommit]
    ) -> list[Fault | None]:
        """Commit a group's offsets with the transaction; for each offset its fault, or None."""

        async def write(committable: Mapping[PartitionName, Committed]) -> None:
            if not commit.group_id:
                raise InvalidGroupId("a transaction commits offsets of a group with a name")
            await self.offset_commits.commit(commit, committable)

        return await self._offset_service.commit_each(offsets, write)

    async def end(
        self, who: Caller, transactional_id: str, producer: Producer, version: int, *, committed: bool, link: int
    ) -> Producer:
        """Commit or abort a transaction; who its producer is from now on."""
        _require_name(transactional_id)
        return await self._coordinator.end(transactional_id, producer, version, committed=committed, link=link)

    async def write_marker(self, who: Caller, topic: str, partition: int, marker: MarkerToWrite) -> Fault | None:
        """End a transaction on a partition led here whose coordinator knows nothing of it any more."""
        return await self._markers.write(topic, partition, marker, MARKER_TIMEOUT_S)

    # Looking at transactions

    async def describe(self, who: Caller, transactional_id: str) -> TransactionView:
        return await self._local(transactional_id).ask(partial(_view, transactional_id))

    async def list(self, who: Caller, wanted: TransactionFilter, time_slice: TimeSlice) -> list[ListedTransaction]:
        """The transactions that this broker coordinates."""
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
        raise InvalidRequest("a transactional id cannot be empty")


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
    """Those whose ids match; that may take long, so it is done in time slices."""
    found = []
    time_slice.begin()
    for one in listed:
        if matches(one.transactional_id) is not None:
            found.append(one)
        if time_slice.is_over:
            await time_slice.next()
    return found
