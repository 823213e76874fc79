"""Ids: offsets, epochs, brokers, topics, partitions.

The ids of topics, directories and clusters are 16 random bytes, shown as in Kafka: in URL-safe base64 without padding.
Sixteen zero bytes mean "no id".
"""

import base64
from typing import Final, NamedTuple, NewType

Offset = NewType("Offset", int)
Epoch = NewType("Epoch", int)
BrokerId = NewType("BrokerId", int)
Id = NewType("Id", bytes)  # always 16 bytes

NO_ID: Final = Id(bytes(16))
NO_BROKER: Final = BrokerId(-1)
NO_EPOCH: Final = Epoch(-1)


class TopicPartition(NamedTuple):
    """A partition by its topic's id, so that it differs from one of a recreated topic with the same name."""

    topic_id: Id
    partition: int

    def __str__(self) -> str:
        return f"{show_id(self.topic_id)}-{self.partition}"


class PartitionName(NamedTuple):
    """A partition by its topic's name: as in requests of clients, committed offsets and transactions."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def show_id(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def parse_id(text: str) -> Id:
    """The id whose text `show_id` returns; ValueError if the text is not an id."""
    try:
        raw = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except ValueError as error:  # from binascii, or for text that is not ASCII
        raise ValueError(f"{text!r} is not an id: {error}") from error
    if len(raw) != 16:
        raise ValueError(f"{text!r} is not an id: it has {len(raw)} bytes, an id has 16")
    if show_id(raw) != text:  # an id has one text form: no padding, no other alphabet, no stray low bits
        raise ValueError(f"{text!r} is not an id; did you mean {show_id(raw)!r}?")
    return Id(raw)
