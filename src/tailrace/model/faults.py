"""Faults: everything that can go wrong with a request, as one closed list.

A `Fault` is caused by the caller or the environment, never by a bug: bugs raise other exceptions and crash the broker.
`retry` says whether the same request may succeed later, unchanged. Each door maps every fault to an answer of its
protocol: it matches on `AnyFault` and ends with `assert_never`, so a new fault is a type error until all doors map it.
"""

from typing import ClassVar, NamedTuple

from tailrace.model.ids import NO_BROKER, NO_EPOCH, BrokerId, Epoch
from tailrace.model.limits import FAULT_TEXT_MAX_CHARS


class Fault(Exception):
    """The base of all faults. `str(fault)` is a message for the user."""

    retry: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        if len(self.message) > FAULT_TEXT_MAX_CHARS:
            return self.message[:FAULT_TEXT_MAX_CHARS] + "…"
        return self.message


# Topics, settings and requests


class UnknownTopic(Fault):
    retry: ClassVar[bool] = True


class UnknownTopicId(Fault):
    retry: ClassVar[bool] = True


class TopicExists(Fault): ...


class InvalidTopicName(Fault): ...


class InvalidPartitions(Fault): ...


class InvalidReplicationFactor(Fault): ...


class InvalidReplicaAssignment(Fault): ...


class TopicDeletionDisabled(Fault):
    """`delete.topic.enable` is false."""


class InvalidSetting(Fault):
    """The name or value of a setting is unknown, not allowed, or not supported."""


class InvalidRequest(Fault): ...


class InvalidAcks(Fault): ...


class UnsupportedVersion(Fault): ...


class InvalidUpdateVersion(Fault):
    """A feature level that cannot be set: unknown, lower than now, or not supported by every broker."""


class PolicyViolation(Fault): ...


# Record batches


class CorruptBatch(Fault):
    """The bytes are not a record batch, or do not match its checksum."""


class RejectedRecord(NamedTuple):
    """A record because of which its whole batch is rejected."""

    position: int  # in the batch, from 0
    reason: str


class InvalidBatch(Fault):
    """An intact batch whose content is not allowed: wrong counts, unknown attributes, control bits, missing keys.

    `records` are the offending ones if single records are the reason; only the first ones of very many are named."""

    def __init__(self, message: str, records: tuple[RejectedRecord, ...] = ()) -> None:
        super().__init__(message)
        self.records = records


class UnsupportedFormat(Fault):
    """The batch has message format 0 or 1."""


class InvalidTimestamp(Fault):
    """A timestamp that the topic's settings do not allow. `records` are the offending ones, as of `InvalidBatch`."""

    def __init__(self, message: str, records: tuple[RejectedRecord, ...] = ()) -> None:
        super().__init__(message)
        self.records = records


class BatchTooLarge(Fault): ...


# Reading and idempotent producers


class OffsetOutOfRange(Fault): ...


class OutOfOrderSequence(Fault): ...


class StaleProducerEpoch(Fault):
    """The producer's epoch is older than one the partition has seen."""


# Transactions


class CoordinatorFenced(Fault):
    """A transaction marker came from a coordinator with an older epoch than that of the last marker."""


class InvalidTransactionState(Fault):
    """The request is not allowed in the current state of the transaction."""


class Unverified(Fault):
    """A batch could not be verified as part of an ongoing transaction (KIP-890); nothing was appended."""

    retry: ClassVar[bool] = True


class ProducerFenced(Fault):
    """Another producer uses the transactional id, with a higher epoch."""


class UnknownProducerId(Fault):
    """The transactional id is unknown, or belongs to another producer id."""


class ConcurrentTransactions(Fault):
    """The previous transaction is still being completed."""

    retry: ClassVar[bool] = True


class InvalidTransactionTimeout(Fault): ...


class TransactionNotFound(Fault): ...


class NotInTransaction(Fault):
    """A partition is not part of the transaction, which can only be aborted."""


class UnstableOffset(Fault):
    """An ongoing transaction has committed an offset that is still pending."""

    retry: ClassVar[bool] = True


class NotAttempted(Fault):
    """Nothing was done for this partition, because another one of the request was refused."""


class TopicNotAllowed(Fault):
    """Clients may not write to this topic."""


# Leaders and replicas


class NotLeader(Fault):
    """This broker is not the leader of the partition; `leader` and `epoch` are hints, -1 if unknown."""

    retry: ClassVar[bool] = True

    def __init__(self, message: str, leader: BrokerId = NO_BROKER, epoch: Epoch = NO_EPOCH) -> None:
        super().__init__(message)
        self.leader = leader
        self.epoch = epoch


class FencedLeaderEpoch(Fault):
    retry: ClassVar[bool] = True


class UnknownLeaderEpoch(Fault):
    retry: ClassVar[bool] = True


class NotEnoughReplicas(Fault):
    """The ISR is smaller than `min.insync.replicas`; nothing was appended."""

    retry: ClassVar[bool] = True


class NotEnoughReplicasAfterAppend(Fault):
    """The batch was appended, but the ISR is smaller than `min.insync.replicas` now; it may still be committed."""

    retry: ClassVar[bool] = True


class OffsetNotAvailable(Fault):
    """The offset is in the log, but not yet known to be committed."""

    retry: ClassVar[bool] = True


class PreferredLeaderNotAvailable(Fault):
    retry: ClassVar[bool] = True


class EligibleLeadersNotAvailable(Fault):
    retry: ClassVar[bool] = True


class ElectionNotNeeded(Fault):
    """The preferred replica is the leader already."""


# Other brokers


class NotController(Fault):
    """This broker is not the controller; `controller` is a hint, -1 if unknown."""

    retry: ClassVar[bool] = True

    def __init__(self, message: str, controller: BrokerId = NO_BROKER) -> None:
        super().__init__(message)
        self.controller = controller


class RefusedElsewhere(Fault):
    """Another broker refused the request; `code` is its Kafka error code, -1 if it gave none."""

    def __init__(self, message: str, code: int = -1) -> None:
        super().__init__(message)
        self.code = code


class RefusedElsewhereForNow(RefusedElsewhere):
    """As `RefusedElsewhere`, by an error that clients may retry."""

    retry: ClassVar[bool] = True


class BrokerNotAvailable(Fault):
    """The broker that has to handle the request is unknown, fenced or unreachable."""

    retry: ClassVar[bool] = True


class DuplicateBroker(Fault):
    """Another live broker is registered with this broker id."""


class InconsistentCluster(Fault):
    """The request is for another cluster id."""


class TimedOut(Fault):
    retry: ClassVar[bool] = True


# Coordinators and groups


class CoordinatorUnavailable(Fault):
    retry: ClassVar[bool] = True


class CoordinatorLoading(Fault):
    """The coordinator is still loading its log."""

    retry: ClassVar[bool] = True


class NotCoordinator(Fault):
    """This broker is not the coordinator of the group or transactional id."""

    retry: ClassVar[bool] = True


class InvalidGroupId(Fault): ...


class GroupNotFound(Fault): ...


class NonEmptyGroup(Fault): ...


class GroupFull(Fault): ...


class UnknownMember(Fault): ...


class MemberIdRequired(Fault):
    """A new member must join again with this member id (KIP-394). If it never does, it was never in the group."""

    def __init__(self, message: str, member_id: str = "") -> None:
        super().__init__(message)
        self.member_id = member_id


class FencedInstance(Fault):
    """Another client has joined as the same static member."""


class IllegalGeneration(Fault): ...


class FencedMemberEpoch(Fault):
    """The member's epoch was fenced: it must give up its partitions and join again (KIP-848)."""


class StaleMemberEpoch(Fault):
    """The member has a newer epoch, which its next heartbeat response brings (KIP-848)."""


class UnreleasedInstance(Fault):
    """The group instance id is still in use by another member."""


class UnsupportedAssignor(Fault): ...


class InvalidExpression(Fault):
    """The subscription is not a valid regular expression."""


class RebalanceInProgress(Fault): ...


class InconsistentProtocol(Fault):
    """The member has no protocol in common with the rest of the group."""


class InvalidSessionTimeout(Fault): ...


class OffsetMetadataTooLarge(Fault): ...


class SubscribedToTopic(Fault):
    """The group is subscribed to the topic whose offsets are to be deleted."""


# Share groups


class InvalidRecordState(Fault):
    """The member has not acquired the records that it acknowledges, or has lost them since."""


class ShareSessionNotFound(Fault):
    retry: ClassVar[bool] = True


class InvalidShareSessionEpoch(Fault):
    retry: ClassVar[bool] = True


class ShareSessionLimitReached(Fault):
    """The broker has as many share sessions as it may."""

    retry: ClassVar[bool] = True


class FencedStateEpoch(Fault):
    """The state of the share partition was initialized again, with a newer state epoch."""


# Storage and fetch sessions


class StorageFailed(Fault):
    """The disk is full, an fsync failed, or the requested records are damaged."""

    retry: ClassVar[bool] = True


class FetchSessionUnknown(Fault):
    retry: ClassVar[bool] = True


class FetchSessionEpochWrong(Fault):
    retry: ClassVar[bool] = True


class FetchSessionNamesMixed(Fault):
    retry: ClassVar[bool] = True


AnyFault = (
    UnknownTopic
    | UnknownTopicId
    | TopicExists
    | InvalidTopicName
    | InvalidPartitions
    | InvalidReplicationFactor
    | InvalidReplicaAssignment
    | TopicDeletionDisabled
    | InvalidSetting
    | InvalidRequest
    | InvalidAcks
    | UnsupportedVersion
    | InvalidUpdateVersion
    | PolicyViolation
    | CorruptBatch
    | InvalidBatch
    | UnsupportedFormat
    | InvalidTimestamp
    | BatchTooLarge
    | OffsetOutOfRange
    | OutOfOrderSequence
    | StaleProducerEpoch
    | CoordinatorFenced
    | InvalidTransactionState
    | Unverified
    | ProducerFenced
    | UnknownProducerId
    | ConcurrentTransactions
    | InvalidTransactionTimeout
    | TransactionNotFound
    | NotInTransaction
    | UnstableOffset
    | NotAttempted
    | TopicNotAllowed
    | NotLeader
    | FencedLeaderEpoch
    | UnknownLeaderEpoch
    | NotEnoughReplicas
    | NotEnoughReplicasAfterAppend
    | OffsetNotAvailable
    | PreferredLeaderNotAvailable
    | EligibleLeadersNotAvailable
    | ElectionNotNeeded
    | NotController
    | RefusedElsewhere
    | BrokerNotAvailable
    | DuplicateBroker
    | InconsistentCluster
    | TimedOut
    | CoordinatorUnavailable
    | CoordinatorLoading
    | NotCoordinator
    | InvalidGroupId
    | GroupNotFound
    | NonEmptyGroup
    | GroupFull
    | UnknownMember
    | MemberIdRequired
    | FencedInstance
    | IllegalGeneration
    | FencedMemberEpoch
    | StaleMemberEpoch
    | UnreleasedInstance
    | UnsupportedAssignor
    | InvalidExpression
    | RebalanceInProgress
    | InconsistentProtocol
    | InvalidSessionTimeout
    | OffsetMetadataTooLarge
    | SubscribedToTopic
    | InvalidRecordState
    | ShareSessionNotFound
    | InvalidShareSessionEpoch
    | ShareSessionLimitReached
    | FencedStateEpoch
    | StorageFailed
    | FetchSessionUnknown
    | FetchSessionEpochWrong
    | FetchSessionNamesMixed
)
