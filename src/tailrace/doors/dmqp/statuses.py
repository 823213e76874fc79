"""The DMQP status of every failure of the log's client.

EAGAIN stands for all that may pass: no leader, no quorum, a broker that stops, an answer that was lost. So a PUSH that
got EAGAIN may have been stored, and a POP that got EAGAIN may have taken a message away: it is never given twice.
"""

import logging
from typing import Final

from tailrace.client.cluster import Retry
from tailrace.client.faults import ClientError, Refused
from tailrace.client.producer import NotWritten
from tailrace.doors.dmqp.codec import Status
from tailrace.wire.errors import Error

logger: Final = logging.getLogger(__name__)

TOO_LARGE: Final = (Error.MESSAGE_TOO_LARGE, Error.RECORD_LIST_TOO_LARGE)


class TooLargeToSend(Exception):
    """A message that came through another door is larger than DMQP allows."""


class NotAwaited(Exception):
    """The client is gone or got EAGAIN already: its message stays in the queue."""


def status_of(error: BaseException) -> Status:
    if isinstance(error, TooLargeToSend):
        return Status.EMSGSIZE
    if isinstance(error, NotWritten) and not error.may_be_written and error.error is not None:
        return _of_refusal(error.error)
    if isinstance(error, Refused):
        return _of_refusal(error.error)
    if isinstance(error, ClientError | Retry | OSError | TimeoutError | NotAwaited):
        return Status.EAGAIN
    logger.error("a DMQP request failed unexpectedly", exc_info=error)
    return Status.EIO


def _of_refusal(error: Error) -> Status:
    if error in TOO_LARGE:
        return Status.EMSGSIZE
    return Status.EAGAIN if error.retriable else Status.EIO
