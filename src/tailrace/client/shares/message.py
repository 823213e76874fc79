"""A message that a broker has delivered to this member of a share group and locked for it."""

from enum import IntEnum

from tailrace.model.addresses import Address
from tailrace.model.ids import PartitionName, TopicPartition
from tailrace.records.record import Headers


class Outcome(IntEnum):
    """What becomes of a message: Kafka's types of acknowledgement."""

    GAP = 0  # there is no record at this offset
    ACCEPT = 1  # processed: it is never delivered again
    RELEASE = 2  # deliver it again, to anybody, unless it was delivered too often
    REJECT = 3  # never deliver it again: it cannot be processed
    RENEW = 4  # nothing is decided yet: lock it for longer


class Message:
    """Compares by identity: a message that is delivered again is another one."""

    __slots__ = (
        "broker",
        "delivery_count",
        "headers",
        "is_lost",
        "key",
        "lock_s",
        "locked_until",
        "offset",
        "outcome",
        "partition",
        "source",
        "timestamp_ms",
        "value",
    )

    def __init__(
        self,
        partition: PartitionName,
        offset: int,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        *,
        delivery_count: int,
        locked_until: float,
        lock_s: float,
        source: TopicPartition,
        broker: Address,
    ) -> None:
        self.partition = partition
        self.offset = offset
        self.timestamp_ms = timestamp_ms
        self.key = key
        self.value = value
        self.headers = headers
        self.delivery_count = delivery_count  # 1: delivered for the first time
        self.locked_until = locked_until  # by the driver's clock; the broker's lock ends then or a little later
        self.lock_s = lock_s  # how long a lock lasts
        self.is_lost = False  # the lock ended, so others may process it
        self.outcome: Outcome | None = None  # what was decided: accept, release or reject
        self.source = source
        self.broker = broker  # that has the lock

    @property
    def topic(self) -> str:
        return self.partition.topic

    @property
    def renew_at(self) -> float:
        """When a third of the lock's time is over."""
        return self.locked_until - 2 * self.lock_s / 3

    def header(self, name: str) -> bytes | None:
        """The value of the last header of this name."""
        return next((value for key, value in reversed(self.headers) if key == name), None)

    def __repr__(self) -> str:
        return f"<Message {self.partition} offset {self.offset}, delivery {self.delivery_count}>"
