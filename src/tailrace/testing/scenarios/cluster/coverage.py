"""What a run came across, so that an empty one cannot pass for a good one."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Final

SEEDS_PER_BLOCK: Final = 100
# what every such block of seeds must have met at least
REQUIRED_PER_BLOCK: Final[Mapping[str, int]] = MappingProxyType(
    {
        "leader_changes": 200,
        "truncations": 50,
        "torn_tails": 50,
        "acknowledged": 10_000,
        "voter_changes": 20,
        "generations": 100,
        "commits": 500,
        "transactions_committed": 200,
        "transactions_aborted": 100,
    }
)


@dataclass(slots=True)
class Coverage:
    leader_changes: int = 0
    truncations: int = 0  # of a log that its leader does not agree with
    torn_tails: int = 0  # that a start found and cut away
    acknowledged: int = 0  # writes, with acks=all
    voter_changes: int = 0
    kills: int = 0
    power_losses: int = 0
    blackouts: int = 0  # of all machines at once
    clean_stops: int = 0
    refused_starts: int = 0
    joins: int = 0
    pauses: int = 0
    cuts: int = 0  # of the network, between two or around one
    one_way_cuts: int = 0
    resets: int = 0
    clock_jumps: int = 0
    full_disks: int = 0
    slow_syncs: int = 0
    flipped_bits: int = 0
    transfers: int = 0
    topics_made: int = 0
    topics_recreated: int = 0
    refused: int = 0  # writes that were told to come again
    hurried: int = 0  # writes acknowledged with acks=1, which promise little
    batches_read: int = 0
    read_from_followers: int = 0  # of those
    looks_at_metadata: int = 0
    generations: int = 0  # of a consumer group, in which somebody worked
    commits: int = 0  # of its offsets, acknowledged
    transactions_committed: int = 0
    transactions_aborted: int = 0
    committed: int = 0  # batches, of all partitions
    seconds: float = 0.0  # virtual

    def add(self, other: "Coverage") -> None:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    def shortfalls(self, seeds: int) -> list[str]:
        """What so many seeds should have met and did not; fewer than a hundred may meet anything."""
        found = (
            (name, getattr(self, name), least * (seeds // SEEDS_PER_BLOCK))
            for name, least in REQUIRED_PER_BLOCK.items()
        )
        return [
            f"too few {name.replace('_', ' ')}: {value} in {seeds} seeds, {least} are demanded"
            for name, value, least in found
            if value < least
        ]

    def __str__(self) -> str:
        shown = ((one.name.replace("_", " "), getattr(self, one.name)) for one in fields(self))
        return ", ".join(f"{value:.0f} {name}" for name, value in shown)
