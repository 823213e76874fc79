"""Values of a recovery: the recovery point that it starts from, and the log, or the damage, that it found."""

from dataclasses import dataclass, field

from tailrace.log.segment import Segment
from tailrace.log.state.aborted_index import AbortedIndexes
from tailrace.log.state.epochs import EpochCache
from tailrace.log.state.producers import ProducerStates
from tailrace.log.state.voters import VoterSets
from tailrace.model.frozen import frozen


@frozen
class RecoveryPoint:
    """Everything below `offset` is durable, with its indexes, producer snapshot and epoch cache."""

    offset: int
    start: int = 0  # the log start


@frozen
class Damage:
    """Bytes that were durable and cannot be read as they were written."""

    file: str
    position: int
    offset: int  # the first that cannot be read
    reason: str

    def __str__(self) -> str:
        return f"{self.file} at byte {self.position}, offset {self.offset}: {self.reason}"


@dataclass(slots=True, kw_only=True)
class Recovered:
    """A log as recovery found it, after repairs."""

    segments: list[Segment] = field(default_factory=list)
    start: int = 0
    end: int = 0
    epochs: EpochCache = field(default_factory=EpochCache)
    producers: ProducerStates
    aborted: AbortedIndexes = field(default_factory=AbortedIndexes)
    voter_sets: VoterSets = field(default_factory=list)
    damage: Damage | None = None
    point_past_damage: RecoveryPoint | None = None  # recorded in place of a point below, so no later start truncates it
    point_saved: bool = False  # whether the state files that belong to the recovery point are complete
    truncated_at: int | None = None  # where the log was truncated, while a recorded point may lie above
