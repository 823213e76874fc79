"""What can go wrong with an HTTP request, as one value: a status, a reason, and whether trying again may help.

A `Problem` is what an API writes in its own form: the queue API as `{"status": "failure", …}`, the REST API as RFC 9457
asks for. It comes from a handler (`HttpError`), from a fault of the model, or from the client that the door uses.
Every fault has a Kafka error code (`wire/faults.py` ends with `assert_never`: a new fault is a type error until it has
one), and every code has a status. What may succeed later, unchanged, is 503 with Retry-After; nothing that is not
durable is ever answered as a success.
"""

from typing import Final

from tailrace.client.faults import (
    AssignmentLost,
    ClientError,
    OutcomeUnknown,
    Refused,
    Unsupported,
)
from tailrace.model.faults import Fault
from tailrace.model.frozen import frozen
from tailrace.wire.errors import Error
from tailrace.wire.faults import error_of

RETRY_AFTER_S: Final = 1  # in answers to requests that may succeed later

REASONS: Final = {
    100: "Continue",
    200: "OK",
    201: "Created",
    202: "Accepted",
    204: "No Content",
    307: "Temporary Redirect",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    408: "Request Timeout",
    409: "Conflict",
    410: "Gone",
    412: "Precondition Failed",
    413: "Content Too Large",
    414: "URI Too Long",
    415: "Unsupported Media Type",
    416: "Range Not Satisfiable",
    417: "Expectation Failed",
    421: "Misdirected Request",
    422: "Unprocessable Content",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}


@frozen
class Problem:
    """A request that failed, and why."""

    status: int
    detail: str  # for people: what happened, which value, what to do
    kind: str = ""  # a short name that programs can compare, such as `unknown_topic_or_partition`
    retry_after_s: int | None = None  # the same request may succeed after this time
    allow: str = ""  # with 405: the methods that there are

    @property
    def reason(self) -> str:
        return REASONS[self.status]


class HttpError(Exception):
    """A handler refuses its request."""

    def __init__(self, status: int, detail: str, kind: str = "", *, retry_after_s: int | None = None) -> None:
        super().__init__(detail)
        self.problem = Problem(status=status, detail=detail, kind=kind, retry_after_s=retry_after_s)


def problem_of(error: HttpError | Fault | ClientError) -> Problem:
    """The problem that an expected error is; any other exception is a bug, and answered by 500."""
    if isinstance(error, HttpError):
        return error.problem
    if isinstance(error, Fault):
        return _problem(error_of(error), str(error))
    if isinstance(error, Refused):
        return _problem(error.error, str(error))
    return _client_problem(error)


def _client_problem(error: ClientError) -> Problem:
    """Faults of the client, without a broker's code: nearly all are about brokers that do not answer in time."""
    if isinstance(error, Unsupported):
        return Problem(status=501, detail=str(error), kind="unsupported_by_broker")
    if isinstance(error, AssignmentLost):
        return Problem(status=409, detail=str(error), kind="assignment_lost")
    is_unknown = isinstance(error, OutcomeUnknown) or may_be_written(error)
    kind = "outcome_unknown" if is_unknown else "unavailable"
    return Problem(status=503, detail=str(error), kind=kind, retry_after_s=RETRY_AFTER_S)


def may_be_written(error: BaseException) -> bool:
    """Whether a message may be in the log although it was not acknowledged."""
    return bool(getattr(error, "may_be_written", False))


def _problem(error: Error, detail: str) -> Problem:
    status = status_of(error)
    retry_after_s = RETRY_AFTER_S if status == 503 else None
    return Problem(status=status, detail=detail, kind=error.name.lower(), retry_after_s=retry_after_s)


# By status, the codes that are neither retriable (503) nor simply a bad request (400).
CODES: Final[dict[int, tuple[Error, ...]]] = {
    401: (
        Error.SASL_AUTHENTICATION_FAILED,
        Error.UNSUPPORTED_SASL_MECHANISM,
        Error.ILLEGAL_SASL_STATE,
        Error.DELEGATION_TOKEN_EXPIRED,
        Error.UNACCEPTABLE_CREDENTIAL,
        Error.PRINCIPAL_DESERIALIZATION_FAILURE,
    ),
    403: (
        Error.TOPIC_AUTHORIZATION_FAILED,
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.CLUSTER_AUTHORIZATION_FAILED,
        Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        Error.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        Error.DELEGATION_TOKEN_OWNER_MISMATCH,
        Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        Error.POLICY_VIOLATION,
        Error.TOPIC_DELETION_DISABLED,
        Error.SECURITY_DISABLED,
        Error.DELEGATION_TOKEN_AUTH_DISABLED,
    ),
    404: (
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
        Error.GROUP_ID_NOT_FOUND,
        Error.TRANSACTIONAL_ID_NOT_FOUND,
        Error.RESOURCE_NOT_FOUND,
        Error.DELEGATION_TOKEN_NOT_FOUND,
        Error.LOG_DIR_NOT_FOUND,
        Error.VOTER_NOT_FOUND,
        Error.SNAPSHOT_NOT_FOUND,
        Error.UNKNOWN_SUBSCRIPTION_ID,
        Error.UNKNOWN_CONTROLLER_ID,
        Error.BROKER_ID_NOT_REGISTERED,
    ),
    409: (
        Error.TOPIC_ALREADY_EXISTS,
        Error.NON_EMPTY_GROUP,
        Error.GROUP_SUBSCRIBED_TO_TOPIC,
        Error.GROUP_MAX_SIZE_REACHED,
        Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
        Error.DUPLICATE_SEQUENCE_NUMBER,
        Error.UNKNOWN_PRODUCER_ID,
        Error.INVALID_PRODUCER_EPOCH,
        Error.INVALID_PRODUCER_ID_MAPPING,
        Error.PRODUCER_FENCED,
        Error.INVALID_TXN_STATE,
        Error.TRANSACTION_COORDINATOR_FENCED,
        Error.TRANSACTION_ABORTABLE,
        Error.OPERATION_NOT_ATTEMPTED,
        Error.INVALID_RECORD_STATE,
        Error.ILLEGAL_GENERATION,
        Error.UNKNOWN_MEMBER_ID,
        Error.MEMBER_ID_REQUIRED,
        Error.FENCED_INSTANCE_ID,
        Error.FENCED_MEMBER_EPOCH,
        Error.STALE_MEMBER_EPOCH,
        Error.UNRELEASED_INSTANCE_ID,
        Error.REBALANCE_IN_PROGRESS,
        Error.INCONSISTENT_GROUP_PROTOCOL,
        Error.FENCED_STATE_EPOCH,
        Error.REASSIGNMENT_IN_PROGRESS,
        Error.NO_REASSIGNMENT_IN_PROGRESS,
        Error.ELECTION_NOT_NEEDED,
        Error.DUPLICATE_RESOURCE,
        Error.DUPLICATE_BROKER_REGISTRATION,
        Error.DUPLICATE_VOTER,
        Error.INCONSISTENT_VOTER_SET,
        Error.INVALID_VOTER_KEY,
        Error.FEATURE_UPDATE_FAILED,
        Error.STREAMS_INVALID_TOPOLOGY_EPOCH,
        Error.STREAMS_TOPOLOGY_FENCED,
    ),
    413: (
        Error.MESSAGE_TOO_LARGE,
        Error.RECORD_LIST_TOO_LARGE,
        Error.OFFSET_METADATA_TOO_LARGE,
        Error.INVALID_COMMIT_OFFSET_SIZE,
        Error.TELEMETRY_TOO_LARGE,
    ),
    416: (
        Error.OFFSET_OUT_OF_RANGE,
        Error.POSITION_OUT_OF_RANGE,
    ),
    500: (Error.UNKNOWN_SERVER_ERROR,),
    501: (
        Error.UNSUPPORTED_VERSION,
        Error.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        Error.UNSUPPORTED_ENDPOINT_TYPE,
    ),
    # Not retriable for a Kafka client, which has to ask another broker or begin anew; the door does that itself.
    503: (
        Error.BROKER_NOT_AVAILABLE,
        Error.STALE_CONTROLLER_EPOCH,
        Error.STALE_BROKER_EPOCH,
        Error.NEW_LEADER_ELECTED,
        Error.REBOOTSTRAP_REQUIRED,
        Error.INELIGIBLE_REPLICA,
        Error.OFFSET_MOVED_TO_TIERED_STORAGE,
    ),
}
STATUSES: Final = {error: status for status, errors in CODES.items() for error in errors}


def status_of(error: Error) -> int:
    """The HTTP status of a Kafka error code."""
    return STATUSES.get(error, 503 if error.retriable else 400)
