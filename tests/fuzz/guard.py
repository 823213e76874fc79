"""What is not sent, however the dice fall: requests that a broker would rightly grant and that would bury the run.

A mutated frame may be a perfectly good order for ten thousand partitions, or for the end of the topics that the other
frames need. So each frame is read the way the broker reads it, and such orders are dropped. A Fetch that may wait for
days is marked instead: its sender hangs up at once, and the broker has to notice.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from tailrace.doors.kafka.registry import APIS, FLEXIBLE_SINCE
from tailrace.model.ids import Id
from tailrace.wire.compile import decode
from tailrace.wire.headers import read_request_header
from tailrace.wire.hot_fetch import FetchHead, read_fetch
from tailrace.wire.messages import MESSAGES
from tailrace.wire.messages.create_partitions import CreatePartitionsRequest
from tailrace.wire.messages.create_topics import CreateTopicsRequest
from tailrace.wire.messages.delete_records import DeleteRecordsRequest
from tailrace.wire.messages.delete_topics import DeleteTopicsRequest
from tailrace.wire.messages.join_group import JoinGroupRequest
from tailrace.wire.messages.metadata import MetadataRequest
from tailrace.wire.primitives import WireError

PARTITIONS_ASKED_MAX: Final = 8
STRANGE_TOPICS_MAX: Final = 100
WAITS_MAX_MS: Final = 20
SESSION_MAX_MS: Final = 6000
REBALANCE_MAX_MS: Final = 50
TOPIC_RESOURCE: Final = 2
FETCH_KEY: Final = 1


class Verdict(Enum):
    SEND = "send"
    HANG_UP = "send, and hang up: the answer may take days"
    DROP = "drop"


@dataclass(slots=True, kw_only=True)
class Guard:
    lasting: Sequence[str]
    lasting_ids: Sequence[Id]
    fleeting: Sequence[str]
    _strange: dict[str, None] = field(default_factory=dict)  # names that mutations came up with

    def judge(self, frame: bytes) -> Verdict:
        request = understood(frame)
        match request:
            case FetchHead():
                return Verdict.SEND if request.max_wait_ms <= WAITS_MAX_MS else Verdict.HANG_UP
            case CreateTopicsRequest():
                sizes = [max(topic.num_partitions, len(topic.assignments)) for topic in request.topics]
                fine = self._few(sizes) and self._familiar(topic.name for topic in request.topics)
            case CreatePartitionsRequest():
                fine = self._few([topic.count for topic in request.topics])
            case MetadataRequest():
                fine = self._familiar(topic.name for topic in request.topics or () if topic.name is not None)
            case DeleteTopicsRequest():
                named = [*request.topic_names, *(topic.name for topic in request.topics)]
                ids = [topic.topic_id for topic in request.topics]
                fine = not any(name in self.lasting for name in named) and not any(i in self.lasting_ids for i in ids)
            case JoinGroupRequest():  # for a member that may take long others have to wait
                fine = request.session_timeout_ms <= SESSION_MAX_MS and request.rebalance_timeout_ms <= REBALANCE_MAX_MS
            case DeleteRecordsRequest():
                fine = not any(topic.name in self.lasting for topic in request.topics)
            case _:
                fine = not _alters_more_than(request, self.fleeting)
        return Verdict.SEND if fine else Verdict.DROP

    def _few(self, partitions: Iterable[int]) -> bool:
        return all(one <= PARTITIONS_ASKED_MAX for one in partitions)

    def _familiar(self, names: Iterable[str]) -> bool:
        strange = {name: None for name in names if name not in self.lasting and name not in self.fleeting}
        if len({**self._strange, **strange}) > STRANGE_TOPICS_MAX:
            return False
        self._strange.update(strange)
        return True


def understood(frame: bytes) -> Any:
    """The request that the broker will see in a frame; None when it will see none."""
    try:
        key, version, _, _, at = read_request_header(frame, 0, FLEXIBLE_SINCE)
        if key not in APIS or version not in APIS[key].versions:
            return None
        if key == FETCH_KEY:
            return read_fetch(memoryview(frame), at, version)
        return decode(MESSAGES[key].request, version, frame, at)[0]  # what stands behind it is passed over
    except WireError:
        return None


def _alters_more_than(request: Any, topics: Sequence[str]) -> bool:
    if type(request).__name__ not in ("AlterConfigsRequest", "IncrementalAlterConfigsRequest"):
        return False
    return any(one.resource_type != TOPIC_RESOURCE or one.resource_name not in topics for one in request.resources)
