"""One partition of a leader session: the follower's position, what it was last sent, and what to send next."""

from typing import TYPE_CHECKING

from tailrace.broker.partitions.member import QuorumMember
from tailrace.log.log import Read
from tailrace.model.faults import Fault, OffsetOutOfRange, StorageFailed
from tailrace.model.ids import NO_BROKER, Epoch
from tailrace.raft.messages import FetchAnswer
from tailrace.raft.replica import Role, Voter
from tailrace.raft.tombstones import Serving, serving
from tailrace.records.header import read_header
from tailrace.wire.errors import Error
from tailrace.wire.hot_fetch import PartitionFetched, PartitionWanted

if TYPE_CHECKING:
    from tailrace.broker.replication.leader_session import LeaderSession


class SessionPartition:
    """Also the follower's liveness clock (`pulse`) while it is in the session."""

    __slots__ = ("_left_at", "_session", "answer", "broker", "last_answered", "member", "sent", "wanted")

    def __init__(self, session: "LeaderSession", member: QuorumMember, wanted: PartitionWanted) -> None:
        self._session: LeaderSession | None = session
        self.broker = session.broker
        self._left_at = 0.0
        self.member = member
        self.wanted = wanted
        self.answer: FetchAnswer | None = None  # the state machine's, to the last fetch
        # epoch, high watermark and tombstone horizon of the last answer
        self.last_answered: tuple[Epoch, int, int] | None = None
        self.sent = False  # records were sent, and the follower has not fetched this partition since

    @property
    def at(self) -> float:
        return self._left_at if self._session is None else self._session.heard_at

    def leave(self) -> None:
        self._left_at, self._session = self.at, None

    def requested(self, wanted: PartitionWanted) -> None:
        """The follower fetches from a new position; the state machine will answer that."""
        if wanted.leader_epoch != self.wanted.leader_epoch or wanted.offset < self.wanted.offset:
            self.last_answered = None  # the follower has not processed answers to its previous log
        self.wanted = wanted
        self.sent = False
        self.answer = None

    @property
    def has_news(self) -> bool:
        """Whether there is something to send at once."""
        answer, member = self.answer, self.member
        if member.offline is not None:
            return True
        if answer is None:
            return False
        return (
            not answer.served
            or answer.diverging is not None
            or self.last_answered is None
            or self.last_answered[0] != member.replica.epoch
            or self.wanted.offset < member.log.end
            or self.wanted.durable < 0
        )

    @property
    def has_new_high_watermark(self) -> bool:
        answered, member = self.last_answered, self.member
        return (
            self.answer is not None
            and answered is not None
            and answered[1:] != (member.replica.high_watermark, member.log.horizon)
        )

    # Answers

    def next_answer(self, room: int) -> PartitionFetched | None:
        """Everything there is to send, within the limits; None: a disk read is needed."""
        if not self.serves:
            return self.refused()
        answer, log = self.answer, self.member.log
        if answer is not None and answer.diverging is not None:
            return self._fetched(b"", diverging=(answer.diverging.epoch, answer.diverging.end))
        if (instead := self._below_horizon()) is not None:
            return instead
        if self.wanted.offset >= log.end:
            return self._fetched(b"")
        try:
            read = log.read(self._readable_from, min(self.wanted.max_bytes, room), log.end)
        except Fault as fault:
            return self._cannot_read(fault)
        return None if read is None else self._with_records(read)

    async def next_answer_cold(self, max_bytes: int) -> PartitionFetched:
        """As `next_answer`, with a read from the disk."""
        log = self.member.log
        try:
            read = await log.read_cold(self._readable_from, max_bytes, log.end)
        except Fault as fault:
            return self._cannot_read(fault)
        if not self.serves:
            return self.refused()
        return self._below_horizon() or self._with_records(read)

    def _below_horizon(self) -> PartitionFetched | None:
        """What a replica below the tombstone horizon is sent instead of records (ADR 0025); None: send it records.

        H may have risen since the replica fetched, and since the records were read: so this is asked last."""
        member, offset = self.member, self.wanted.offset
        log, leadership = member.log, member.replica.leadership
        if offset >= log.horizon or offset < log.start or leadership is None:
            return None
        gets = serving(leadership, self.peer, offset, log.horizon, member.replica.durable)
        if gets is Serving.BEGIN_ANEW:
            self.sent = True  # and nothing else, until it fetches from an empty log
            return PartitionFetched(self.wanted.partition, 0, begin_anew=True)
        if gets is Serving.WAIT or log.swapping:  # the pass that swaps segments may not have known of a grant
            return PartitionFetched(self.wanted.partition, Error.OFFSET_NOT_AVAILABLE)  # so it fetches again soon
        return None

    @property
    def peer(self) -> Voter:
        """The replica that fetches."""
        return Voter(broker=self.broker, directory=self.wanted.directory)

    @property
    def serves(self) -> bool:
        member, answer = self.member, self.answer
        return (
            member.offline is None
            and member.replica.role is Role.LEADER
            and member.replica.epoch == self.wanted.leader_epoch
            and (answer is None or answer.served)
        )

    def refused(self) -> PartitionFetched:
        """The answer of a broker that is not the leader: leader and epoch as known here."""
        member = self.member
        leader = None if member.offline is not None else member.leader
        self.last_answered = None
        return PartitionFetched(
            self.wanted.partition,
            Error.NOT_LEADER_OR_FOLLOWER,
            leader=NO_BROKER if leader is None else leader,
            # An epoch is not sent before it is durable.
            leader_epoch=member.replica.epoch if member.replica.stored else -1,
        )

    @property
    def _readable_from(self) -> int:
        return max(self.wanted.offset, self.member.log.start)

    def _with_records(self, read: Read) -> PartitionFetched:
        """The log start may lie within a batch: a replica that ends further below begins with that whole batch."""
        if self.wanted.offset < self.member.log.start:
            begins = read_header(read.data).base_offset if read.data else self.member.log.start
            if self.wanted.offset < begins:
                return self._out_of_range(begins)
        self.sent = bool(read.data)
        return self._fetched(read.data)

    def _fetched(
        self, records: bytes | bytearray | memoryview, diverging: tuple[int, int] | None = None
    ) -> PartitionFetched:
        member = self.member
        horizon, high_watermark = member.log.horizon, member.replica.high_watermark
        self.last_answered = (member.replica.epoch, high_watermark, horizon) if diverging is None else None
        return PartitionFetched(
            self.wanted.partition,
            0,
            high_watermark,
            high_watermark,
            member.log.start,
            records,
            diverging=diverging,
            log_end=member.log.end if self.wanted.durable < 0 else -1,
            horizon=horizon if horizon > 0 and diverging is None else -1,
        )

    def _out_of_range(self, begins: int) -> PartitionFetched:
        """The replica shall start its log anew at this offset."""
        return PartitionFetched(self.wanted.partition, Error.OFFSET_OUT_OF_RANGE, log_start=begins, leader_epoch=-1)

    def _cannot_read(self, fault: Fault) -> PartitionFetched:
        if isinstance(fault, OffsetOutOfRange):
            return self._out_of_range(self.member.log.start)
        if isinstance(fault, StorageFailed) and self.member.log.damage is None:
            self.member.go_offline(fault)
        return self.refused()
