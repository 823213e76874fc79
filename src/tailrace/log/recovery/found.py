"""What is known of a log when it is opened: how far it was safe, and what was found in its folder."""

from dataclasses import dataclass, field

from tailrace.log.segment import Segment
from tailrace.log.state.aborted_index import AbortedIndexes
from tailrace.log.state.epochs import EpochCache
from tailrace.log.state.producers import ProducerStates
from tailrace.model.frozen import frozen
from tailrace.records.control import VoterIds

VoterSets = list[tuple[int, VoterIds]]  # by the offsets of the batches that named them, which rise


@frozen
class RecoveryPoint:
    """Everything below `offset` was durable, indexed, its producers and epochs written down; `start` was the first."""

    offset: int
    start: int = 0


@frozen
class Damage:
    """Bytes that were safe and are not what they were."""

    file: str
    position: int
    offset: int  # the first that cannot be read
    reason: str

    def __str__(self) -> str:
        return f"{self.file} at byte {self.position}, offset {self.offset}: {self.reason}"


@dataclass(slots=True, kw_only=True)
class Recovered:
    """A log as it was found, and put right."""

    segments: list[Segment] = field(default_factory=list)
    start: int = 0
    end: int = 0
    epochs: EpochCache = field(default_factory=EpochCache)
    producers: ProducerStates
    aborted: AbortedIndexes = field(default_factory=AbortedIndexes)
    voter_sets: VoterSets = field(default_factory=list)
    damage: Damage | None = None
    held_to: RecoveryPoint | None = None  # past damage that was found above the point: it must not be cut later on
    saved: bool = False  # whether the files for the recovery point hold all that belongs to it
    cut_at: int | None = None  # where it was truncated, while a recorded point may lie above
