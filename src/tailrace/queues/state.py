"""What is stored of one share partition: where it starts, and the delivery state of the offsets after that."""

from enum import IntEnum
from typing import Final, NamedTuple

from tailrace.model.frozen import frozen
from tailrace.model.ids import Id, parse_id, show_id

ANY_METADATA: Final = -1  # leaders apply the settings that they know


class DeliveryState(IntEnum):
    """Kafka's numbers. Offsets that no batch mentions are available and were never delivered."""

    AVAILABLE = 0
    ACQUIRED = 1  # never stored
    ACKNOWLEDGED = 2
    ARCHIVING = 3  # a dead letter is being written
    ARCHIVED = 4


class ShareKey(NamedTuple):
    """One topic partition as one share group reads it; shown as Kafka's key of it."""

    group: str
    topic_id: Id
    partition: int

    def __str__(self) -> str:
        return f"{self.group}:{show_id(self.topic_id)}:{self.partition}"

    @classmethod
    def parse(cls, text: str) -> "ShareKey":
        """The key that is shown as `text`; ValueError if there is none. The group's id may contain colons."""
        group, topic_id, partition = text.rsplit(":", 2)
        found = cls(group, parse_id(topic_id), int(partition))
        if not group or found.partition < 0 or str(found) != text:
            raise ValueError(f"{text!r} is not a share partition")
        return found


class StateBatch(NamedTuple):
    """Neighbouring offsets in the same state."""

    first: int
    last: int
    state: DeliveryState
    count: int  # type: ignore[assignment]  # of deliveries; hides a method of tuples
    not_before: int = -1  # ms since the epoch: not delivered again before; -1: at once


@frozen
class ShareState:
    """Everything below `start` is finished. Batches ascend and do not overlap."""

    state_epoch: int  # raised when an administrator resets the offsets
    start: int
    complete_count: int  # finished offsets at or after `start`
    batches: tuple[StateBatch, ...] = ()
    metadata_end: int = ANY_METADATA  # leaders apply the group's settings once they know the metadata log up to here
