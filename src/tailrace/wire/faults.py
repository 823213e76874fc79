"""The Kafka error code of every fault, for the Kafka door and for requests between brokers.

The `match` over all faults is split into five functions; each passes the faults that it does not list to the next.
`assert_never` at the end makes a fault without an error code a type error.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, assert_never, cast

from tailrace.model import faults
from tailrace.wire.errors import Error

# Faults of group coordinators and of groups.
GroupFault = (
    faults.CoordinatorUnavailable
    | faults.CoordinatorLoading
    | faults.NotCoordinator
    | faults.InvalidGroupId
    | faults.GroupNotFound
    | faults.NonEmptyGroup
    | faults.GroupFull
    | faults.UnknownMember
    | faults.MemberIdRequired
    | faults.FencedInstance
    | faults.IllegalGeneration
    | faults.FencedMemberEpoch
    | faults.StaleMemberEpoch
    | faults.UnreleasedInstance
    | faults.UnsupportedAssignor
    | faults.InvalidExpression
    | faults.RebalanceInProgress
    | faults.InconsistentProtocol
    | faults.InvalidSessionTimeout
    | faults.OffsetMetadataTooLarge
    | faults.SubscribedToTopic
)

# Faults of producers and transactions.
TransactionFault = (
    faults.StaleProducerEpoch
    | faults.CoordinatorFenced
    | faults.InvalidTransactionState
    | faults.Unverified
    | faults.ProducerFenced
    | faults.UnknownProducerId
    | faults.ConcurrentTransactions
    | faults.InvalidTransactionTimeout
    | faults.TransactionNotFound
    | faults.NotInTransaction
    | faults.UnstableOffset
    | faults.NotAttempted
    | faults.TopicNotAllowed
)

# Faults of share groups.
ShareFault = (
    faults.InvalidRecordState
    | faults.ShareSessionNotFound
    | faults.InvalidShareSessionEpoch
    | faults.ShareSessionLimitReached
    | faults.FencedStateEpoch
)

# Faults of leadership, replication and cluster membership, and those that `_cluster_error` passes on.
ClusterFault = (
    faults.NotLeader
    | faults.FencedLeaderEpoch
    | faults.UnknownLeaderEpoch
    | faults.NotEnoughReplicas
    | faults.NotEnoughReplicasAfterAppend
    | faults.OffsetNotAvailable
    | faults.PreferredLeaderNotAvailable
    | faults.EligibleLeadersNotAvailable
    | faults.ElectionNotNeeded
    | faults.NotController
    | faults.BrokerNotAvailable
    | faults.DuplicateBroker
    | faults.InconsistentCluster
    | faults.InvalidUpdateVersion
    | GroupFault
    | TransactionFault
    | ShareFault
)


def error_of(fault: faults.Fault) -> Error:
    """Kafka's error code for a fault."""
    one = cast(faults.AnyFault, fault)
    match one:
        case faults.UnknownTopic():
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        case faults.UnknownTopicId():
            return Error.UNKNOWN_TOPIC_ID
        case faults.TopicExists():
            return Error.TOPIC_ALREADY_EXISTS
        case faults.InvalidTopicName():
            return Error.INVALID_TOPIC_EXCEPTION
        case faults.InvalidPartitions():
            return Error.INVALID_PARTITIONS
        case faults.InvalidReplicationFactor():
            return Error.INVALID_REPLICATION_FACTOR
        case faults.InvalidReplicaAssignment():
            return Error.INVALID_REPLICA_ASSIGNMENT
        case faults.TopicDeletionDisabled():
            return Error.TOPIC_DELETION_DISABLED
        case faults.InvalidSetting():
            return Error.INVALID_CONFIG
        case faults.InvalidAcks():
            return Error.INVALID_REQUIRED_ACKS
        case faults.InvalidRequest():
            return Error.INVALID_REQUEST
        case faults.UnsupportedVersion():
            return Error.UNSUPPORTED_VERSION
        case faults.PolicyViolation():
            return Error.POLICY_VIOLATION
        case faults.CorruptBatch():
            return Error.CORRUPT_MESSAGE
        case faults.InvalidBatch() | faults.UnsupportedFormat():
            return Error.INVALID_RECORD
        case faults.InvalidTimestamp():
            return Error.INVALID_TIMESTAMP
        case faults.BatchTooLarge():
            return Error.MESSAGE_TOO_LARGE
        case faults.OffsetOutOfRange():
            return Error.OFFSET_OUT_OF_RANGE
        case faults.OutOfOrderSequence():
            return Error.OUT_OF_ORDER_SEQUENCE_NUMBER
        case faults.TimedOut():
            return Error.REQUEST_TIMED_OUT
        case faults.StorageFailed():
            return Error.KAFKA_STORAGE_ERROR
        case faults.RefusedElsewhere():
            return Error(one.code)
        case faults.FetchSessionUnknown():
            return Error.FETCH_SESSION_ID_NOT_FOUND
        case faults.FetchSessionEpochWrong():
            return Error.INVALID_FETCH_SESSION_EPOCH
        case faults.FetchSessionNamesMixed():
            return Error.FETCH_SESSION_TOPIC_ID_ERROR
        case _:
            return _cluster_error(one)


def _cluster_error(one: ClusterFault) -> Error:
    match one:
        case faults.NotLeader():
            return Error.NOT_LEADER_OR_FOLLOWER
        case faults.FencedLeaderEpoch():
            return Error.FENCED_LEADER_EPOCH
        case faults.UnknownLeaderEpoch():
            return Error.UNKNOWN_LEADER_EPOCH
        case faults.NotEnoughReplicas():
            return Error.NOT_ENOUGH_REPLICAS
        case faults.NotEnoughReplicasAfterAppend():
            return Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        case faults.OffsetNotAvailable():
            return Error.OFFSET_NOT_AVAILABLE
        case faults.PreferredLeaderNotAvailable():
            return Error.PREFERRED_LEADER_NOT_AVAILABLE
        case faults.EligibleLeadersNotAvailable():
            return Error.ELIGIBLE_LEADERS_NOT_AVAILABLE
        case faults.ElectionNotNeeded():
            return Error.ELECTION_NOT_NEEDED
        case faults.NotController():
            return Error.NOT_CONTROLLER
        case faults.BrokerNotAvailable():
            return Error.BROKER_NOT_AVAILABLE
        case faults.DuplicateBroker():
            return Error.DUPLICATE_BROKER_REGISTRATION
        case faults.InconsistentCluster():
            return Error.INCONSISTENT_CLUSTER_ID
        case faults.InvalidUpdateVersion():
            return Error.INVALID_UPDATE_VERSION
        case _:
            return _group_error(one)


def _group_error(one: GroupFault | TransactionFault | ShareFault) -> Error:
    match one:
        case faults.CoordinatorUnavailable():
            return Error.COORDINATOR_NOT_AVAILABLE
        case faults.CoordinatorLoading():
            return Error.COORDINATOR_LOAD_IN_PROGRESS
        case faults.NotCoordinator():
            return Error.NOT_COORDINATOR
        case faults.InvalidGroupId():
            return Error.INVALID_GROUP_ID
        case faults.GroupNotFound():
            return Error.GROUP_ID_NOT_FOUND
        case faults.NonEmptyGroup():
            return Error.NON_EMPTY_GROUP
        case faults.GroupFull():
            return Error.GROUP_MAX_SIZE_REACHED
        case faults.UnknownMember():
            return Error.UNKNOWN_MEMBER_ID
        case faults.MemberIdRequired():
            return Error.MEMBER_ID_REQUIRED
        case faults.FencedInstance():
            return Error.FENCED_INSTANCE_ID
        case faults.IllegalGeneration():
            return Error.ILLEGAL_GENERATION
        case faults.FencedMemberEpoch():
            return Error.FENCED_MEMBER_EPOCH
        case faults.StaleMemberEpoch():
            return Error.STALE_MEMBER_EPOCH
        case faults.UnreleasedInstance():
            return Error.UNRELEASED_INSTANCE_ID
        case faults.UnsupportedAssignor():
            return Error.UNSUPPORTED_ASSIGNOR
        case faults.InvalidExpression():
            return Error.INVALID_REGULAR_EXPRESSION
        case faults.RebalanceInProgress():
            return Error.REBALANCE_IN_PROGRESS
        case faults.InconsistentProtocol():
            return Error.INCONSISTENT_GROUP_PROTOCOL
        case faults.InvalidSessionTimeout():
            return Error.INVALID_SESSION_TIMEOUT
        case faults.OffsetMetadataTooLarge():
            return Error.OFFSET_METADATA_TOO_LARGE
        case faults.SubscribedToTopic():
            return Error.GROUP_SUBSCRIBED_TO_TOPIC
        case _:
            return _transaction_error(one)


def _transaction_error(one: TransactionFault | ShareFault) -> Error:
    match one:
        case faults.StaleProducerEpoch():
            return Error.INVALID_PRODUCER_EPOCH
        case faults.CoordinatorFenced():
            return Error.TRANSACTION_COORDINATOR_FENCED
        case faults.InvalidTransactionState():
            return Error.INVALID_TXN_STATE
        case faults.ProducerFenced():
            return Error.PRODUCER_FENCED
        case faults.UnknownProducerId():
            return Error.INVALID_PRODUCER_ID_MAPPING
        case faults.ConcurrentTransactions():
            return Error.CONCURRENT_TRANSACTIONS
        case faults.InvalidTransactionTimeout():
            return Error.INVALID_TRANSACTION_TIMEOUT
        case faults.TransactionNotFound():
            return Error.TRANSACTIONAL_ID_NOT_FOUND
        case faults.NotInTransaction():
            return Error.TRANSACTION_ABORTABLE
        case faults.UnstableOffset():
            return Error.UNSTABLE_OFFSET_COMMIT
        case faults.NotAttempted():
            return Error.OPERATION_NOT_ATTEMPTED
        case faults.TopicNotAllowed():
            return Error.TOPIC_AUTHORIZATION_FAILED
        case faults.Unverified():
            return Error.NOT_ENOUGH_REPLICAS  # the code on which every client retries the same batch
        case _:
            return _share_error(one)


def _share_error(one: ShareFault) -> Error:
    match one:
        case faults.InvalidRecordState():
            return Error.INVALID_RECORD_STATE
        case faults.ShareSessionNotFound():
            return Error.SHARE_SESSION_NOT_FOUND
        case faults.InvalidShareSessionEpoch():
            return Error.INVALID_SHARE_SESSION_EPOCH
        case faults.ShareSessionLimitReached():
            return Error.SHARE_SESSION_LIMIT_REACHED
        case faults.FencedStateEpoch():
            return Error.FENCED_STATE_EPOCH
        case _:
            assert_never(one)


# Faults that another broker's answer can stand for, where a broker reacts to which one it is.
FAULTS_BY_ERROR: Final[Mapping[Error, type[faults.Fault]]] = MappingProxyType(
    {
        Error.NOT_CONTROLLER: faults.NotController,
        Error.NOT_LEADER_OR_FOLLOWER: faults.NotLeader,
        Error.REQUEST_TIMED_OUT: faults.TimedOut,
        Error.BROKER_NOT_AVAILABLE: faults.BrokerNotAvailable,
        Error.DUPLICATE_BROKER_REGISTRATION: faults.DuplicateBroker,
        Error.UNSUPPORTED_VERSION: faults.UnsupportedVersion,
        Error.TOPIC_ALREADY_EXISTS: faults.TopicExists,
        Error.CONCURRENT_TRANSACTIONS: faults.ConcurrentTransactions,
        Error.PRODUCER_FENCED: faults.ProducerFenced,
        Error.INVALID_PRODUCER_EPOCH: faults.StaleProducerEpoch,
        Error.TRANSACTION_ABORTABLE: faults.NotInTransaction,
        Error.TRANSACTION_COORDINATOR_FENCED: faults.CoordinatorFenced,
        Error.INVALID_REQUEST: faults.InvalidRequest,
        Error.UNKNOWN_TOPIC_ID: faults.UnknownTopicId,
        Error.FENCED_LEADER_EPOCH: faults.FencedLeaderEpoch,
        Error.FENCED_STATE_EPOCH: faults.FencedStateEpoch,
    }
)


def fault_of(code: int, message: str = "") -> faults.Fault | None:
    """The fault that an error code of another broker's answer stands for; None: there is no error."""
    if code == Error.NONE:
        return None
    known = code in tuple(Error)
    text = message or (f"the other broker answered {Error(code).name}" if known else f"unknown error {code}")
    if known and (kind := FAULTS_BY_ERROR.get(Error(code))) is not None:
        return kind(text)
    retriable = known and Error(code).retriable
    return faults.RefusedElsewhereForNow(text, code) if retriable else faults.RefusedElsewhere(text, code)
