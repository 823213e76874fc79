"""Counts of what a run exercised: runs in which little happened prove little."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Final

SEEDS_PER_BLOCK: Final = 100
# the least that every block of seeds must have exercised
REQUIRED_PER_BLOCK: Final[Mapping[str, int]] = MappingProxyType(
    {
        "leader_changes": 200,
        "truncations": 50,
        "torn_tails": 50,
        "acknowledged": 10_000,
        "voter_changes": 20,
        "generations": 100,
        "offset_commits": 500,
        "transactions_committed": 200,
        "transactions_aborted": 100,
        "acknowledged_to_client": 2_000,
        "share_records_finished": 1_000,
        "swaps": 40,
        "tombstones_removed": 4,
    }
)


@dataclass(slots=True)
class Coverage:
    leader_changes: int = 0
    truncations: int = 0  # by a follower whose log diverged from its leader's
    torn_tails: int = 0  # that recovery found and cut off
    acknowledged: int = 0  # batches with acks=all
    voter_changes: int = 0
    kills: int = 0
    power_losses: int = 0
    blackouts: int = 0  # power losses of all machines at once
    clean_stops: int = 0
    refused_starts: int = 0
    joins: int = 0
    pauses: int = 0
    cuts: int = 0  # of the network, between two brokers or around one
    one_way_cuts: int = 0
    resets: int = 0
    clock_jumps: int = 0
    full_disks: int = 0
    slow_syncs: int = 0
    flipped_bits: int = 0
    scrubbed: int = 0  # of the flipped bits: found by the scrub, and repaired
    transfers: int = 0  # of leadership
    topics_created: int = 0
    topics_recreated: int = 0
    refused: int = 0  # batches that got a retriable error
    acknowledged_acks_1: int = 0  # batches
    acknowledged_to_client: int = 0  # records of our own client
    batches_read: int = 0
    read_from_followers: int = 0  # of the batches read
    metadata_responses: int = 0
    generations: int = 0  # of consumer groups, with at least one assignment
    offset_commits: int = 0  # acknowledged
    transactions_committed: int = 0
    transactions_aborted: int = 0
    share_deliveries: int = 0  # records
    share_records_finished: int = 0  # accepted or rejected, and told so
    share_crashes: int = 0  # of members
    share_tenures: int = 0  # share partitions loaded by a leader
    swaps: int = 0  # of segments by compacted ones
    begun_anew: int = 0  # replicas too far behind a compacted log, which fetched all of it again
    tombstones_removed: int = 0  # that were the last records of their keys
    committed_batches: int = 0  # in all partitions
    seconds: float = 0.0  # virtual

    def add(self, other: "Coverage") -> None:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    def shortfalls(self, seeds: int) -> list[str]:
        """What this many seeds should have exercised more often; nothing is required of less than a full block."""
        counts = (
            (name, getattr(self, name), least * (seeds // SEEDS_PER_BLOCK))
            for name, least in REQUIRED_PER_BLOCK.items()
        )
        return [
            f"too few {name.replace('_', ' ')}: {count} in {seeds} seeds, {least} are required"
            for name, count, least in counts
            if count < least
        ]

    def __str__(self) -> str:
        counts = ((one.name.replace("_", " "), getattr(self, one.name)) for one in fields(self))
        return ", ".join(f"{count:.0f} {name}" for name, count in counts)
