"""Names of things: offsets, epochs, brokers, topics, partitions.

Ids of topics, directories and clusters are 16 random bytes; people see them as Kafka shows them, in
URL-safe base64 without padding. Zero bytes mean "no id" and never name anything.
"""

import base64
from typing import Final, NamedTuple, NewType

Offset = NewType("Offset", int)
Epoch = NewType("Epoch", int)
BrokerId = NewType("BrokerId", int)
Id = NewType("Id", bytes)  # always 16 bytes

NO_ID: Final = Id(bytes(16))
NOBODY: Final = BrokerId(-1)
NO_EPOCH: Final = Epoch(-1)


class TopicPartition(NamedTuple):
    """One partition, by its topic's id: a recreated topic of the same name is another one."""

    topic_id: Id
    partition: int

    def __str__(self) -> str:
        return f"{show_id(self.topic_id)}-{self.partition}"


class PartitionName(NamedTuple):
    """One partition, by its topic's name: as clients name it, and as committed offsets and transactions keep it."""

    topic: str
    partition: int


def show_id(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def parse_id(text: str) -> Id:
    """The id that `show_id` wrote; ValueError if it is none."""
    try:
        raw = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except ValueError as error:  # of binascii, or of text that is not ASCII
        raise ValueError(f"{text!r} is no id: {error}") from error
    if len(raw) != 16:
        raise ValueError(f"{text!r} is no id: it has {len(raw)} bytes, an id has 16")
    if show_id(raw) != text:  # an id has one text: other letters, padding or stray low bits would give it a second
        raise ValueError(f"{text!r} is no id; {show_id(raw)!r} would be")
    return Id(raw)
