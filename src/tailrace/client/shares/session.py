"""The share session of one member with one broker: which partitions it fetches, and the epoch of the next request.

A session has one request under way at a time. Its first request, with epoch 0, opens it and acknowledges nothing; each
later one has the next epoch. A broker forgets a session when its connection ends; then it is opened anew.
"""

from collections.abc import Collection, Mapping
from typing import Final, Literal

from tailrace.client.shares.acknowledgements import Batches
from tailrace.groups.consumer.partition_sets import by_topic
from tailrace.model.frozen import frozen
from tailrace.model.ids import TopicPartition
from tailrace.model.limits import MiB
from tailrace.wire.messages.acknowledgements import PartitionToAcknowledge, TopicToAcknowledge
from tailrace.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from tailrace.wire.messages.share_fetch import ForgottenTopic, ShareFetchRequest

OPENING_EPOCH: Final = 0
CLOSING_EPOCH: Final = -1
EPOCH_MAX: Final = 2**31 - 1

AcquireMode = Literal["batch_optimized", "record_limit"]
ACQUIRE_MODES: Final[Mapping[AcquireMode, int]] = {"batch_optimized": 0, "record_limit": 1}


@frozen
class FetchLimits:
    max_wait_ms: int
    max_records: int
    mode: AcquireMode
    max_bytes: int = 16 * MiB
    min_bytes: int = 1


class ShareSession:
    def __init__(self, group: str, member_id: str) -> None:
        self._group = group
        self._member_id = member_id
        self._epoch = OPENING_EPOCH
        self._known: dict[TopicPartition, None] = {}  # the partitions of the session

    @property
    def is_open(self) -> bool:
        return self._epoch != OPENING_EPOCH

    # Requests

    def fetch(
        self, wanted: Collection[TopicPartition], limits: FetchLimits, acknowledged: Batches
    ) -> ShareFetchRequest:
        """Acquire records of these partitions, with these acknowledgements: none if the session is not open."""
        assert self.is_open or not acknowledged
        added = [one for one in wanted if one not in self._known]
        # `topics` of a request is applied before `forgotten_topics`, so a partition can be in both.
        forgotten = [one for one in {**self._known, **acknowledged} if one not in wanted]
        self._known = dict.fromkeys(wanted)
        return ShareFetchRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=self._epoch,
            max_wait_ms=limits.max_wait_ms,
            min_bytes=limits.min_bytes,
            max_bytes=limits.max_bytes,
            max_records=limits.max_records,
            batch_size=limits.max_records,
            share_acquire_mode=ACQUIRE_MODES[limits.mode],
            topics=_topics({**dict.fromkeys(added, ()), **acknowledged}),
            forgotten_topics=tuple(
                ForgottenTopic(topic_id=topic, partitions=numbers) for topic, numbers in by_topic(forgotten).items()
            ),
        )

    def acknowledge(self, acknowledged: Batches, *, renews: bool = False) -> ShareAcknowledgeRequest:
        assert self.is_open
        return self._acknowledge(self._epoch, acknowledged, renews)

    def close(self) -> ShareAcknowledgeRequest:
        """The last request: the broker releases what was not acknowledged."""
        assert self.is_open
        request = self._acknowledge(CLOSING_EPOCH, {}, renews=False)
        self.reset()
        return request

    def _acknowledge(self, epoch: int, acknowledged: Batches, renews: bool) -> ShareAcknowledgeRequest:
        return ShareAcknowledgeRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=epoch,
            is_renew_ack=renews,
            topics=_topics(acknowledged),
        )

    # Responses

    def answered(self) -> None:
        """A request was answered without an error."""
        self._epoch = self._epoch + 1 if self._epoch < EPOCH_MAX else 1

    def reset(self) -> None:
        """Open a new session with the next request: after an error, or when a response was lost."""
        self._epoch, self._known = OPENING_EPOCH, {}


def _topics(batches: Batches) -> tuple[TopicToAcknowledge, ...]:
    return tuple(
        TopicToAcknowledge(
            topic_id=topic,
            partitions=tuple(
                PartitionToAcknowledge(partition=one, acknowledgement_batches=batches[TopicPartition(topic, one)])
                for one in numbers
            ),
        )
        for topic, numbers in by_topic(sorted(batches)).items()
    )
