"""Bugs to plant in what keeps deleted records deleted on all replicas (ADR 0025), and in scrub and repair (ADR 0028).

The rules that their docstrings name are those of ADR 0025.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager

from tailrace.broker.lifecycle import scrubbing
from tailrace.broker.partitions import partition as partitions
from tailrace.broker.partitions.member import QuorumMember
from tailrace.log.log import Log
from tailrace.log.state import horizon as horizon_file
from tailrace.raft.messages import Fetched
from tailrace.raft.tracking import Leadership
from tests.simulation.planting import Mutant, replaced


def followers_keep_no_horizon() -> AbstractContextManager[None]:
    """Rule 3: a follower appends what a leader sends that has removed tombstones, and does not note that."""

    def take_horizon(member: QuorumMember, horizon: int) -> bool:
        return True

    return replaced(QuorumMember, "take_horizon", take_horizon)


def horizon_forgotten_by_a_restart() -> AbstractContextManager[None]:
    """Rule 3: the horizon is not durable before records are appended, or removed."""

    async def store(log: Log, offset: int) -> None:
        log.horizon = offset

    return replaced(horizon_file, "store", store)


def everyone_has_a_grant() -> AbstractContextManager[None]:
    """Rule 4: replicas are sent records from below the horizon, whether they began with an empty log or not."""
    right = Leadership.fetched

    def fetched(leadership: Leadership, fetch: Fetched, log_end: int, now: float) -> None:
        right(leadership, fetch, log_end, now)
        leadership.trackers[fetch.peer].granted = True

    return replaced(Leadership, "fetched", fetched)


def grants_hold_nothing_back() -> AbstractContextManager[None]:
    """Rule 5: tombstones are removed while a replica is between the values and them."""

    def removable(leadership: Leadership, horizon: int, now: float, away_s: float) -> int:
        return horizon

    return replaced(partitions, "removable", removable)


def scrub_that_finds_nothing() -> AbstractContextManager[None]:
    async def find_damage(log: Log, moved: Callable[[int], Awaitable[None]]) -> None:
        await moved(log.size_bytes)

    return replaced(scrubbing, "find_damage", find_damage)


def damage_that_is_not_repaired() -> AbstractContextManager[None]:
    async def repair_log(member: QuorumMember, damage: object) -> None:
        pass

    return replaced(QuorumMember, "_repair_log", repair_log)


MUTANTS: tuple[Mutant, ...] = (
    followers_keep_no_horizon,
    horizon_forgotten_by_a_restart,
    everyone_has_a_grant,
    grants_hold_nothing_back,
    scrub_that_finds_nothing,
    damage_that_is_not_repaired,
)
