"""What can go wrong with a request, in one closed list. Every door answers all of them in its own words.

A `Fault` is the caller's or the world's, never a bug of ours: bugs raise what they raise and crash loudly.
`retry` says whether the same request may succeed later without anybody changing it.
Doors match on `AnyFault` and end with `assert_never`, so a new fault is a type error until every door knows it.
"""

from dataclasses import dataclass
from typing import ClassVar

from tailrace.model.ids import BrokerId, Epoch, no_epoch, nobody
from tailrace.model.limits import fault_text_max_chars


@dataclass(eq=False)
class Fault(Exception):
    """The base of all faults; `str(fault)` is a sentence for the person who meets it."""

    message: str
    retry: ClassVar[bool] = False

    def __str__(self) -> str:
        if len(self.message) > fault_text_max_chars:
            return self.message[:fault_text_max_chars] + "…"
        return self.message


@dataclass(eq=False)
class UnknownTopic(Fault):
    retry: ClassVar[bool] = True


@dataclass(eq=False)
class UnknownTopicId(Fault):
    retry: ClassVar[bool] = True


@dataclass(eq=False)
class InconsistentTopicId(Fault):
    """The id and the name, or the fetch session's idea of the id, disagree."""

    retry: ClassVar[bool] = True


@dataclass(eq=False)
class TopicExists(Fault): ...


@dataclass(eq=False)
class InvalidTopicName(Fault): ...


@dataclass(eq=False)
class InvalidPartitions(Fault): ...


@dataclass(eq=False)
class InvalidReplicationFactor(Fault): ...


@dataclass(eq=False)
class InvalidReplicaAssignment(Fault): ...


@dataclass(eq=False)
class InvalidSetting(Fault):
    """A setting's name or value that is not there, not allowed, or would not be honoured."""


@dataclass(eq=False)
class InvalidRequest(Fault): ...


@dataclass(eq=False)
class UnsupportedVersion(Fault): ...


@dataclass(eq=False)
class PolicyViolation(Fault): ...


@dataclass(eq=False)
class CorruptBatch(Fault):
    """Bytes that are no record batch, or whose checksum disagrees."""


@dataclass(eq=False)
class InvalidBatch(Fault):
    """A whole batch that says something it may not: counts that disagree, unknown attributes, control bits."""


@dataclass(eq=False)
class UnsupportedFormat(Fault):
    """Message formats 0 and 1."""


@dataclass(eq=False)
class InvalidTimestamp(Fault): ...


@dataclass(eq=False)
class BatchTooLarge(Fault): ...


@dataclass(eq=False)
class OffsetOutOfRange(Fault): ...


@dataclass(eq=False)
class OutOfOrderSequence(Fault): ...


@dataclass(eq=False)
class ProducerFenced(Fault):
    """The producer's epoch is older than one the partition has seen."""


@dataclass(eq=False)
class UnknownProducer(Fault): ...


@dataclass(eq=False)
class NotLeader(Fault):
    """Another broker leads, or nobody knows yet who; `leader` and `epoch` are a hint, -1 when there is none."""

    leader: BrokerId = nobody
    epoch: Epoch = no_epoch
    retry: ClassVar[bool] = True


@dataclass(eq=False)
class FencedLeaderEpoch(Fault):
    retry: ClassVar[bool] = True


@dataclass(eq=False)
class UnknownLeaderEpoch(Fault):
    retry: ClassVar[bool] = True


@dataclass(eq=False)
class NotEnoughReplicas(Fault):
    retry: ClassVar[bool] = True


@dataclass(eq=False)
class TimedOut(Fault):
    retry: ClassVar[bool] = True


@dataclass(eq=False)
class CoordinatorUnavailable(Fault):
    retry: ClassVar[bool] = True


@dataclass(eq=False)
class StorageFailed(Fault):
    """The disk is full, a sync failed, or the bytes asked for are damaged."""

    retry: ClassVar[bool] = True


@dataclass(eq=False)
class FetchSessionUnknown(Fault):
    retry: ClassVar[bool] = True


@dataclass(eq=False)
class FetchSessionEpochWrong(Fault):
    retry: ClassVar[bool] = True


AnyFault = (
    UnknownTopic
    | UnknownTopicId
    | InconsistentTopicId
    | TopicExists
    | InvalidTopicName
    | InvalidPartitions
    | InvalidReplicationFactor
    | InvalidReplicaAssignment
    | InvalidSetting
    | InvalidRequest
    | UnsupportedVersion
    | PolicyViolation
    | CorruptBatch
    | InvalidBatch
    | UnsupportedFormat
    | InvalidTimestamp
    | BatchTooLarge
    | OffsetOutOfRange
    | OutOfOrderSequence
    | ProducerFenced
    | UnknownProducer
    | NotLeader
    | FencedLeaderEpoch
    | UnknownLeaderEpoch
    | NotEnoughReplicas
    | TimedOut
    | CoordinatorUnavailable
    | StorageFailed
    | FetchSessionUnknown
    | FetchSessionEpochWrong
)
