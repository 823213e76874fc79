"""What members of consumer groups and of share groups have in common: heartbeats, and a target that names topics by id.

The coordinator answers a heartbeat with the member's epoch and, when it changed, with its whole assignment: the target.
"""

from typing import Any, Final

from tailrace.client.faults import ClientError, error_of
from tailrace.client.groups.member import Events, MemberOptions, Topics, pause_s
from tailrace.groups.consumer.partition_sets import PartitionSet, partition_set
from tailrace.model.ids import Id, TopicPartition
from tailrace.wire.errors import Error
from tailrace.wire.messages.consumer_group_heartbeat import GroupHeartbeatResponse

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
INTERVAL_MIN_S: Final = 0.01  # whatever the coordinator says
FENCED: Final = (Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID)


class HeartbeatingMember:
    def __init__(self, options: MemberOptions, member_id: str, now: float) -> None:
        self._options = options
        self.failure: ClientError | None = None
        self.wake_at = now
        self._failures = 0  # in a row
        self._member_id = member_id
        self._epoch = JOIN_EPOCH
        self._is_over = False
        self._names: dict[Id, str] = {}  # of topics
        self._target: PartitionSet = ()

    @property
    def topics(self) -> tuple[str, ...]:
        return self._options.topics

    @property
    def needs_topics(self) -> bool:
        return any(one.topic_id not in self._names for one in self._target)

    def answered(self, response: Any, now: float) -> Events:
        assert isinstance(response, GroupHeartbeatResponse)
        if self._is_over:
            return ()
        error = error_of(response.error_code)
        if error is not Error.NONE:
            return self._refused(error, response.error_message, now)
        self._failures = 0
        self._epoch = response.member_epoch
        self.wake_at = now + max(response.heartbeat_interval_ms / 1000, INTERVAL_MIN_S)
        if response.assignment is not None:
            self._target = partition_set(
                TopicPartition(Id(topic.topic_id), one)
                for topic in response.assignment.topic_partitions
                for one in topic.partitions
            )
        return self._accepted(response, now)

    def _accepted(self, response: GroupHeartbeatResponse, now: float) -> Events:
        """Act on a heartbeat that was accepted: epoch and target are those of the response."""
        raise NotImplementedError

    def _refused(self, error: Error, message: str | None, now: float) -> Events:
        raise NotImplementedError

    def _failed(self, now: float) -> None:
        self.wake_at = now + pause_s(self._failures)
        self._failures += 1

    def _learn_names(self, topics: Topics) -> None:
        self._names |= {topic.id: name for name, topic in topics.items()}
