"""The kinds of problems: what programs look at, the status, the title; and the kind of every error code of Kafka.

A test checks that each member of `Error` has exactly one kind.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from tailrace.wire.errors import Error

SOON_S: Final = 1  # Retry-After of what elections and restarts cause


class Kind(NamedTuple):
    slug: str
    status: int
    title: str
    retry_after_s: int | None = None  # the same request may succeed after so long


# The request
INVALID: Final = Kind("invalid-request", 400, "The request is not valid")
NOT_JSON: Final = Kind("not-json", 400, "The body is not JSON")
WRONG_TYPE: Final = Kind("unsupported-media-type", 415, "The content type is not supported")
TOO_LARGE: Final = Kind("too-large", 413, "The message is too large")
KEY_REUSED: Final = Kind("idempotency-key-reused", 422, "The idempotency key was used for another request")
KEY_IN_USE: Final = Kind(
    "idempotency-key-in-use", 409, "Another request with this idempotency key is under way", SOON_S
)
NO_ROUTE: Final = Kind("no-such-resource", 404, "There is no such resource")
NO_METHOD: Final = Kind("method-not-allowed", 405, "The resource does not have this method")
# What is there and what is not
NO_TOPIC: Final = Kind("no-such-topic", 404, "There is no such topic or partition")
NO_RECORD: Final = Kind("no-such-record", 404, "There is no such record")
NO_GROUP: Final = Kind("no-such-group", 404, "There is no such group")
NO_QUEUE: Final = Kind("no-such-queue", 404, "There is no such queue")
NOT_FOUND: Final = Kind("not-found", 404, "There is no such thing")
OUT_OF_RANGE: Final = Kind("offset-out-of-range", 416, "The partition has no such offset")
EXISTS: Final = Kind("already-exists", 409, "It exists already")
CONFLICT: Final = Kind("conflict", 409, "The state of the cluster does not allow it")
GROUP_IN_USE: Final = Kind("group-in-use", 409, "The group has members")
LOCK_ENDED: Final = Kind("lock-ended", 410, "The lock of the message has ended")
# Who may do what
FORBIDDEN: Final = Kind("not-authorized", 403, "Not allowed")
UPSTREAM_LOGIN: Final = Kind("upstream-login-failed", 502, "The door cannot log in to the brokers")
# The cluster
UNAVAILABLE: Final = Kind("unavailable", 503, "No broker can serve the request now", SOON_S)
UNCERTAIN: Final = Kind("outcome-unknown", 503, "The outcome of the request is not known", SOON_S)
BUSY: Final = Kind("too-many-requests", 429, "Too much is under way", SOON_S)
UNSUPPORTED: Final = Kind("not-supported", 501, "The brokers do not support it")
UNEXPECTED: Final = Kind("unexpected-error", 500, "The broker failed in a way it should not")


# UNAVAILABLE has what a client of Kafka's protocol would retry: leaders and coordinators move, disks fill up.
_CODES: Final[Mapping[Kind, tuple[Error, ...]]] = {
    UNAVAILABLE: (
        Error.CORRUPT_MESSAGE,
        Error.LEADER_NOT_AVAILABLE,
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.REQUEST_TIMED_OUT,
        Error.BROKER_NOT_AVAILABLE,
        Error.REPLICA_NOT_AVAILABLE,
        Error.STALE_CONTROLLER_EPOCH,
        Error.NETWORK_EXCEPTION,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_COORDINATOR,
        Error.NOT_ENOUGH_REPLICAS,
        Error.NOT_CONTROLLER,
        Error.KAFKA_STORAGE_ERROR,
        Error.CONCURRENT_TRANSACTIONS,
        Error.TRANSACTION_COORDINATOR_FENCED,
        Error.OPERATION_NOT_ATTEMPTED,
        Error.FETCH_SESSION_ID_NOT_FOUND,
        Error.INVALID_FETCH_SESSION_EPOCH,
        Error.FETCH_SESSION_TOPIC_ID_ERROR,
        Error.LISTENER_NOT_FOUND,
        Error.FENCED_LEADER_EPOCH,
        Error.UNKNOWN_LEADER_EPOCH,
        Error.STALE_BROKER_EPOCH,
        Error.OFFSET_NOT_AVAILABLE,
        Error.PREFERRED_LEADER_NOT_AVAILABLE,
        Error.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        Error.UNSTABLE_OFFSET_COMMIT,
        Error.UNKNOWN_TOPIC_ID,
        Error.INCONSISTENT_TOPIC_ID,
        Error.BROKER_ID_NOT_REGISTERED,
        Error.INELIGIBLE_REPLICA,
        Error.NEW_LEADER_ELECTED,
        Error.UNKNOWN_CONTROLLER_ID,
        Error.TRANSACTION_ABORTABLE,
        Error.SHARE_SESSION_NOT_FOUND,
        Error.INVALID_SHARE_SESSION_EPOCH,
        Error.REBALANCE_IN_PROGRESS,
        Error.REBOOTSTRAP_REQUIRED,
        Error.OFFSET_MOVED_TO_TIERED_STORAGE,
    ),
    UNCERTAIN: (Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,),
    NO_TOPIC: (Error.UNKNOWN_TOPIC_OR_PARTITION,),
    OUT_OF_RANGE: (
        Error.OFFSET_OUT_OF_RANGE,
        Error.POSITION_OUT_OF_RANGE,
    ),
    TOO_LARGE: (
        Error.MESSAGE_TOO_LARGE,
        Error.RECORD_LIST_TOO_LARGE,
        Error.OFFSET_METADATA_TOO_LARGE,
        Error.INVALID_COMMIT_OFFSET_SIZE,
        Error.TELEMETRY_TOO_LARGE,
    ),
    EXISTS: (
        Error.TOPIC_ALREADY_EXISTS,
        Error.DUPLICATE_RESOURCE,
    ),
    NO_GROUP: (Error.GROUP_ID_NOT_FOUND,),
    GROUP_IN_USE: (
        Error.NON_EMPTY_GROUP,
        Error.GROUP_SUBSCRIBED_TO_TOPIC,
        Error.UNKNOWN_MEMBER_ID,
        Error.ILLEGAL_GENERATION,
        Error.FENCED_INSTANCE_ID,
        Error.FENCED_MEMBER_EPOCH,
        Error.STALE_MEMBER_EPOCH,
        Error.UNRELEASED_INSTANCE_ID,
        Error.INCONSISTENT_GROUP_PROTOCOL,
    ),
    LOCK_ENDED: (
        Error.INVALID_RECORD_STATE,
        Error.FENCED_STATE_EPOCH,
    ),
    FORBIDDEN: (
        Error.TOPIC_AUTHORIZATION_FAILED,
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.CLUSTER_AUTHORIZATION_FAILED,
        Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        Error.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        Error.TOPIC_DELETION_DISABLED,
        Error.POLICY_VIOLATION,
        Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        Error.DELEGATION_TOKEN_OWNER_MISMATCH,
    ),
    UPSTREAM_LOGIN: (
        Error.SASL_AUTHENTICATION_FAILED,
        Error.ILLEGAL_SASL_STATE,
        Error.UNSUPPORTED_SASL_MECHANISM,
        Error.SECURITY_DISABLED,
        Error.UNACCEPTABLE_CREDENTIAL,
        Error.PRINCIPAL_DESERIALIZATION_FAILURE,
        Error.DELEGATION_TOKEN_AUTH_DISABLED,
        Error.DELEGATION_TOKEN_NOT_FOUND,
        Error.DELEGATION_TOKEN_EXPIRED,
        Error.INVALID_PRINCIPAL_TYPE,
    ),
    BUSY: (
        Error.THROTTLING_QUOTA_EXCEEDED,
        Error.GROUP_MAX_SIZE_REACHED,
        Error.SHARE_SESSION_LIMIT_REACHED,
    ),
    KEY_IN_USE: (
        Error.PRODUCER_FENCED,
        Error.INVALID_PRODUCER_EPOCH,
    ),
    UNSUPPORTED: (
        Error.UNSUPPORTED_VERSION,
        Error.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        Error.UNSUPPORTED_COMPRESSION_TYPE,
        Error.UNSUPPORTED_ASSIGNOR,
        Error.UNSUPPORTED_ENDPOINT_TYPE,
        Error.MISMATCHED_ENDPOINT_TYPE,
    ),
    CONFLICT: (
        Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
        Error.DUPLICATE_SEQUENCE_NUMBER,
        Error.INVALID_TXN_STATE,
        Error.INVALID_PRODUCER_ID_MAPPING,
        Error.UNKNOWN_PRODUCER_ID,
        Error.TRANSACTIONAL_ID_NOT_FOUND,
        Error.REASSIGNMENT_IN_PROGRESS,
        Error.NO_REASSIGNMENT_IN_PROGRESS,
        Error.ELECTION_NOT_NEEDED,
        Error.FEATURE_UPDATE_FAILED,
        Error.INVALID_UPDATE_VERSION,
        Error.INCONSISTENT_VOTER_SET,
        Error.INCONSISTENT_CLUSTER_ID,
        Error.DUPLICATE_BROKER_REGISTRATION,
        Error.DUPLICATE_VOTER,
        Error.VOTER_NOT_FOUND,
        Error.INVALID_VOTER_KEY,
        Error.MEMBER_ID_REQUIRED,
        Error.INVALID_REGISTRATION,
    ),
    NOT_FOUND: (
        Error.RESOURCE_NOT_FOUND,
        Error.SNAPSHOT_NOT_FOUND,
        Error.UNKNOWN_SUBSCRIPTION_ID,
        Error.LOG_DIR_NOT_FOUND,
    ),
    INVALID: (
        Error.INVALID_TOPIC_EXCEPTION,
        Error.INVALID_PARTITIONS,
        Error.INVALID_REPLICATION_FACTOR,
        Error.INVALID_REPLICA_ASSIGNMENT,
        Error.INVALID_CONFIG,
        Error.INVALID_REQUEST,
        Error.INVALID_GROUP_ID,
        Error.INVALID_TIMESTAMP,
        Error.INVALID_RECORD,
        Error.INVALID_SESSION_TIMEOUT,
        Error.INVALID_TRANSACTION_TIMEOUT,
        Error.INVALID_FETCH_SIZE,
        Error.INVALID_REQUIRED_ACKS,
        Error.INVALID_REGULAR_EXPRESSION,
    ),
    UNEXPECTED: (
        Error.UNKNOWN_SERVER_ERROR,
        Error.NONE,
        Error.STREAMS_INVALID_TOPOLOGY,
        Error.STREAMS_INVALID_TOPOLOGY_EPOCH,
        Error.STREAMS_TOPOLOGY_FENCED,
    ),
}
_KINDS: Final = {code: kind for kind, codes in _CODES.items() for code in codes}


def kind_of_error(error: Error) -> Kind:
    return _KINDS[error]


def all_kinds() -> list[Kind]:
    return [one for one in globals().values() if isinstance(one, Kind)]


# Of errors that the server finds before any operation: what the statuses mean there.
_BY_STATUS: Final = {
    400: INVALID,
    403: FORBIDDEN,
    404: NO_ROUTE,
    405: NO_METHOD,
    413: TOO_LARGE,
    415: WRONG_TYPE,
    429: BUSY,
    501: UNSUPPORTED,
    503: UNAVAILABLE,
}


def kind_of_status(status: int) -> Kind:
    return _BY_STATUS.get(status, INVALID if status < 500 else UNEXPECTED)
