"""The gRPC status of everything that can go wrong: a code, a text, and details for programs.

Every fault of Tailrace has an error of Kafka (`wire/faults`, where `assert_never` makes one without a type error), and
what a broker refuses comes as one. So one table over all of Kafka's errors is enough; it is asserted to have them all.

Codes that a client may retry on, without knowing more, are UNAVAILABLE and RESOURCE_EXHAUSTED: for them the details say
when. Where a record may have been written all the same, they say so: repeating the request may then write it twice.
"""

from enum import IntEnum
from typing import Final

from tailrace.client.cluster import Retry
from tailrace.client.faults import (
    AssignmentLost,
    ClientError,
    ConnectionLost,
    NotAcknowledged,
    Refused,
    Unavailable,
    Unsupported,
)
from tailrace.client.producer import NotWritten
from tailrace.client.producers import TooManyProducers
from tailrace.model.faults import Fault, InvalidRequest
from tailrace.model.frozen import frozen
from tailrace.model.limits import FAULT_TEXT_MAX_CHARS
from tailrace.wire.errors import Error
from tailrace.wire.faults import error_of

RETRY_S: Final = 0.1


class Code(IntEnum):
    """The codes of gRPC."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


RETRIED: Final = (Code.UNAVAILABLE, Code.RESOURCE_EXHAUSTED)


class BadField(InvalidRequest):
    """A field of a request cannot be what it is; `field` is its path, as in `records[3].partition`."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}")
        self.field = field
        self.why = why


@frozen
class Status:
    code: Code
    text: str
    reason: str  # for programs, in capitals: the name of Kafka's error where there is one
    may_be_written: bool = False
    field: str = ""  # of the request that is wrong
    field_text: str = ""

    @property
    def retry_s(self) -> float | None:
        """After which time the request may be made again; None if that would not help."""
        return RETRY_S if self.code in RETRIED else None


def status_of(problem: ClientError | Fault | Retry) -> Status:
    text = shortened(str(problem))
    if isinstance(problem, BadField):
        return Status(
            code=Code.INVALID_ARGUMENT, text=text, reason="INVALID_REQUEST", field=problem.field, field_text=problem.why
        )
    if isinstance(problem, Fault):
        error = error_of(problem)
        return Status(code=code_of(error), text=text, reason=error.name)
    if isinstance(problem, Refused):
        return Status(code=code_of(problem.error), text=text, reason=problem.error.name)
    if isinstance(problem, NotWritten):
        refused = problem.error
        code = Code.UNAVAILABLE if refused is None or problem.may_be_written else code_of(refused)
        reason = "NOT_WRITTEN" if refused is None else refused.name
        return Status(code=code, text=text, reason=reason, may_be_written=problem.may_be_written)
    code, reason = _of_client(problem)
    return Status(code=code, text=text, reason=reason)


def _of_client(problem: ClientError | Retry) -> tuple[Code, str]:
    match problem:
        case TooManyProducers():
            return Code.RESOURCE_EXHAUSTED, "TOO_MANY_PRODUCERS"
        case Unavailable() | ConnectionLost() | Retry():
            return Code.UNAVAILABLE, "UNAVAILABLE"
        case AssignmentLost():
            return Code.ABORTED, "ASSIGNMENT_LOST"
        case NotAcknowledged():
            return Code.ABORTED, "NOT_ACKNOWLEDGED"
        case Unsupported():
            return Code.UNIMPLEMENTED, "UNSUPPORTED"
        case _:  # the way to the brokers is not as it should be, which no caller can mend
            return Code.INTERNAL, "UPSTREAM_FAILED"


def shortened(text: str) -> str:
    """A text of an error, which may repeat what the client sent, as long as a trailer may carry."""
    return text if len(text) <= FAULT_TEXT_MAX_CHARS else text[:FAULT_TEXT_MAX_CHARS] + "…"


# The code of each of Kafka's errors.
ERRORS: Final = {
    Code.OK: """
        NONE
    """,
    Code.INVALID_ARGUMENT: """
        INVALID_FETCH_SIZE MESSAGE_TOO_LARGE OFFSET_METADATA_TOO_LARGE INVALID_TOPIC_EXCEPTION
        RECORD_LIST_TOO_LARGE INVALID_REQUIRED_ACKS INVALID_GROUP_ID INVALID_SESSION_TIMEOUT
        INVALID_COMMIT_OFFSET_SIZE INVALID_TIMESTAMP INVALID_PARTITIONS INVALID_REPLICATION_FACTOR
        INVALID_REPLICA_ASSIGNMENT INVALID_CONFIG INVALID_REQUEST INVALID_TRANSACTION_TIMEOUT
        INVALID_PRINCIPAL_TYPE UNSUPPORTED_COMPRESSION_TYPE INVALID_RECORD UNACCEPTABLE_CREDENTIAL
        INVALID_UPDATE_VERSION UNSUPPORTED_ASSIGNOR MISMATCHED_ENDPOINT_TYPE UNSUPPORTED_ENDPOINT_TYPE
        TELEMETRY_TOO_LARGE INVALID_REGISTRATION INVALID_VOTER_KEY INVALID_REGULAR_EXPRESSION
        STREAMS_INVALID_TOPOLOGY
    """,
    Code.NOT_FOUND: """
        UNKNOWN_TOPIC_OR_PARTITION LOG_DIR_NOT_FOUND DELEGATION_TOKEN_NOT_FOUND GROUP_ID_NOT_FOUND
        NO_REASSIGNMENT_IN_PROGRESS RESOURCE_NOT_FOUND SNAPSHOT_NOT_FOUND UNKNOWN_TOPIC_ID
        TRANSACTIONAL_ID_NOT_FOUND UNKNOWN_SUBSCRIPTION_ID VOTER_NOT_FOUND
    """,
    Code.ALREADY_EXISTS: """
        TOPIC_ALREADY_EXISTS DUPLICATE_SEQUENCE_NUMBER DUPLICATE_RESOURCE DUPLICATE_BROKER_REGISTRATION
        DUPLICATE_VOTER
    """,
    Code.PERMISSION_DENIED: """
        TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED DELEGATION_TOKEN_OWNER_MISMATCH
        DELEGATION_TOKEN_AUTHORIZATION_FAILED
    """,
    Code.UNAUTHENTICATED: """
        UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE SASL_AUTHENTICATION_FAILED DELEGATION_TOKEN_EXPIRED
    """,
    Code.RESOURCE_EXHAUSTED: """
        GROUP_MAX_SIZE_REACHED THROTTLING_QUOTA_EXCEEDED SHARE_SESSION_LIMIT_REACHED
    """,
    Code.FAILED_PRECONDITION: """
        INCONSISTENT_GROUP_PROTOCOL UNSUPPORTED_FOR_MESSAGE_FORMAT POLICY_VIOLATION INVALID_TXN_STATE
        SECURITY_DISABLED REASSIGNMENT_IN_PROGRESS DELEGATION_TOKEN_AUTH_DISABLED
        DELEGATION_TOKEN_REQUEST_NOT_ALLOWED NON_EMPTY_GROUP TOPIC_DELETION_DISABLED ELECTION_NOT_NEEDED
        GROUP_SUBSCRIBED_TO_TOPIC INCONSISTENT_VOTER_SET FEATURE_UPDATE_FAILED BROKER_ID_NOT_REGISTERED
        INELIGIBLE_REPLICA OFFSET_MOVED_TO_TIERED_STORAGE UNRELEASED_INSTANCE_ID
    """,
    Code.ABORTED: """
        ILLEGAL_GENERATION UNKNOWN_MEMBER_ID REBALANCE_IN_PROGRESS OUT_OF_ORDER_SEQUENCE_NUMBER
        INVALID_PRODUCER_EPOCH INVALID_PRODUCER_ID_MAPPING TRANSACTION_COORDINATOR_FENCED
        OPERATION_NOT_ATTEMPTED UNKNOWN_PRODUCER_ID MEMBER_ID_REQUIRED FENCED_INSTANCE_ID PRODUCER_FENCED
        FENCED_MEMBER_EPOCH STALE_MEMBER_EPOCH TRANSACTION_ABORTABLE INVALID_RECORD_STATE FENCED_STATE_EPOCH
        STREAMS_INVALID_TOPOLOGY_EPOCH STREAMS_TOPOLOGY_FENCED
    """,
    Code.OUT_OF_RANGE: """
        OFFSET_OUT_OF_RANGE POSITION_OUT_OF_RANGE
    """,
    Code.UNIMPLEMENTED: """
        UNSUPPORTED_VERSION
    """,
    Code.UNAVAILABLE: """
        LEADER_NOT_AVAILABLE NOT_LEADER_OR_FOLLOWER REQUEST_TIMED_OUT BROKER_NOT_AVAILABLE REPLICA_NOT_AVAILABLE
        STALE_CONTROLLER_EPOCH NETWORK_EXCEPTION COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE
        NOT_COORDINATOR NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND NOT_CONTROLLER
        CONCURRENT_TRANSACTIONS KAFKA_STORAGE_ERROR FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH
        LISTENER_NOT_FOUND FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH STALE_BROKER_EPOCH OFFSET_NOT_AVAILABLE
        PREFERRED_LEADER_NOT_AVAILABLE ELIGIBLE_LEADERS_NOT_AVAILABLE UNSTABLE_OFFSET_COMMIT
        INCONSISTENT_TOPIC_ID FETCH_SESSION_TOPIC_ID_ERROR NEW_LEADER_ELECTED UNKNOWN_CONTROLLER_ID
        SHARE_SESSION_NOT_FOUND INVALID_SHARE_SESSION_EPOCH REBOOTSTRAP_REQUIRED
    """,
    Code.DATA_LOSS: """
        CORRUPT_MESSAGE PRINCIPAL_DESERIALIZATION_FAILURE
    """,
    Code.INTERNAL: """
        UNKNOWN_SERVER_ERROR INCONSISTENT_CLUSTER_ID
    """,
}
CODES: Final = {Error[name]: code for code, names in ERRORS.items() for name in names.split()}
assert len(CODES) == len(Error) == sum(len(names.split()) for names in ERRORS.values()), set(Error) - set(CODES)


def code_of(error: Error) -> Code:
    """The code of Kafka's error."""
    return CODES[error]
