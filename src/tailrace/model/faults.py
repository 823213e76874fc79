"""What can go wrong with a request, in one closed list. Every door answers all of them in its own words.

A `Fault` is the caller's or the world's, never a bug of ours: bugs raise what they raise and crash loudly.
`retry` says whether the same request may succeed later without anybody changing it.
Doors match on `AnyFault` and end with `assert_never`, so a new fault is a type error until every door knows it.
"""

from typing import ClassVar

from tailrace.model.fault import Fault as Fault
from tailrace.model.ids import NO_EPOCH, NOBODY, BrokerId, Epoch
from tailrace.model.transaction_faults import AnyTransactionFault


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
    """A setting's name or value that is not there, not allowed, or would not be honoured."""


class InvalidRequest(Fault): ...


class InvalidAcks(Fault): ...


class UnsupportedVersion(Fault): ...


class InvalidUpdateVersion(Fault):
    """A feature level that cannot be set: unknown, lower than now, or not supported by every broker."""


class PolicyViolation(Fault): ...


class CorruptBatch(Fault):
    """Bytes that are no record batch, or whose checksum disagrees."""


class InvalidBatch(Fault):
    """A whole batch that says what it may not: counts that disagree, unknown attributes, control bits, missing keys."""


class UnsupportedFormat(Fault):
    """Message formats 0 and 1."""


class InvalidTimestamp(Fault): ...


class BatchTooLarge(Fault): ...


class OffsetOutOfRange(Fault): ...


class OutOfOrderSequence(Fault): ...


class StaleProducerEpoch(Fault):
    """The producer's epoch is older than one the partition has seen."""


class CoordinatorFenced(Fault):
    """A marker from a coordinator after which another has written one."""


class InvalidTransactionState(Fault):
    """What is asked for does not fit the state that the transaction is in."""


class Unverified(Fault):
    """Whether a batch is part of a transaction could not be found out, or is not so any more; nothing was appended."""

    retry: ClassVar[bool] = True


class NotLeader(Fault):
    """Another broker leads, or nobody knows yet who; `leader` and `epoch` are a hint, -1 when there is none."""

    retry: ClassVar[bool] = True

    def __init__(self, message: str, leader: BrokerId = NOBODY, epoch: Epoch = NO_EPOCH) -> None:
        super().__init__(message)
        self.leader = leader
        self.epoch = epoch


class FencedLeaderEpoch(Fault):
    retry: ClassVar[bool] = True


class UnknownLeaderEpoch(Fault):
    retry: ClassVar[bool] = True


class NotEnoughReplicas(Fault):
    """Too few replicas are in sync; nothing was appended."""

    retry: ClassVar[bool] = True


class NotEnoughReplicasAfterAppend(Fault):
    """The batch is in the leader's log, but too few replicas are in sync by now; it may still be committed."""

    retry: ClassVar[bool] = True


class OffsetNotAvailable(Fault):
    """The offset is in the log, and not known to be committed yet."""

    retry: ClassVar[bool] = True


class PreferredLeaderNotAvailable(Fault):
    retry: ClassVar[bool] = True


class EligibleLeadersNotAvailable(Fault):
    retry: ClassVar[bool] = True


class ElectionNotNeeded(Fault):
    """Who should lead does so already."""


class NotController(Fault):
    """Another broker is the controller, or nobody knows yet who; `controller` is a hint, -1 when there is none."""

    retry: ClassVar[bool] = True

    def __init__(self, message: str, controller: BrokerId = NOBODY) -> None:
        super().__init__(message)
        self.controller = controller


class RefusedElsewhere(Fault):
    """Another broker decided, and refused: `code` is the error that it gave, in Kafka's numbers; -1: it knew none."""

    def __init__(self, message: str, code: int = -1) -> None:
        super().__init__(message)
        self.code = code


class BrokerNotAvailable(Fault):
    """The broker that would have to act is not there, or cannot be reached."""

    retry: ClassVar[bool] = True


class DuplicateBroker(Fault):
    """Another broker has this number, and is alive."""


class InconsistentCluster(Fault):
    """Somebody means another cluster than this."""


class TimedOut(Fault):
    retry: ClassVar[bool] = True


class CoordinatorUnavailable(Fault):
    retry: ClassVar[bool] = True


class CoordinatorLoading(Fault):
    """The coordinator is being built from its log."""

    retry: ClassVar[bool] = True


class NotCoordinator(Fault):
    """Another broker coordinates this, or none does yet."""

    retry: ClassVar[bool] = True


class InvalidGroupId(Fault): ...


class GroupNotFound(Fault): ...


class NonEmptyGroup(Fault): ...


class GroupFull(Fault): ...


class UnknownMember(Fault): ...


class MemberIdRequired(Fault):
    """A new member shall come back with the id that it is given here: one that is gone by then was never in."""

    def __init__(self, message: str, member_id: str = "") -> None:
        super().__init__(message)
        self.member_id = member_id


class FencedInstance(Fault):
    """Another client has come as the same static member."""


class IllegalGeneration(Fault): ...


class FencedMemberEpoch(Fault):
    """A member that is not where it should be: it gives up all it has, and joins anew (KIP-848)."""


class StaleMemberEpoch(Fault):
    """A member has a newer epoch by now, and hears of it in its next heartbeat (KIP-848)."""


class UnreleasedInstance(Fault):
    """A static member is there still."""


class UnsupportedAssignor(Fault): ...


class InvalidExpression(Fault):
    """A subscription that is no regular expression."""


class RebalanceInProgress(Fault): ...


class InconsistentProtocol(Fault):
    """A member that cannot share work with the others."""


class InvalidSessionTimeout(Fault): ...


class OffsetMetadataTooLarge(Fault): ...


class SubscribedToTopic(Fault):
    """The group reads the topic whose offsets shall be forgotten."""


class StorageFailed(Fault):
    """The disk is full, a sync failed, or the bytes asked for are damaged."""

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
    | AnyTransactionFault
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
    | StorageFailed
    | FetchSessionUnknown
    | FetchSessionEpochWrong
    | FetchSessionNamesMixed
)
