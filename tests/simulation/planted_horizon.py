"""Bugs to plant in what keeps deleted records deleted on all replicas (ADR 0025), and in scrub and repair (ADR 0028).

The rules that their docstrings name are those of ADR 0025.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any

from tailrace.broker.lifecycle import compacting, scrubbing
from tailrace.broker.partitions import partition as partitions
from tailrace.broker.partitions.member import QuorumMember
from tailrace.broker.replication import session_partition
from tailrace.log.compaction import compaction
from tailrace.log.log import Log
from tailrace.log.state import horizon as horizon_file
from tailrace.raft.events import Repaired
from tailrace.raft.messages import Fetched
from tailrace.raft.tombstones import Serving
from tailrace.raft.tombstones import serving as right_serving
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


def votes_again_before_it_has_everything() -> AbstractContextManager[None]:
    """Rule 4, and of a repair: a replica that set its log aside helps to elect a leader without what it had."""

    def may_vote(member: QuorumMember) -> None:
        if not member.replica.may_vote and member.fetches:
            member.step(Repaired())

    return replaced(QuorumMember, "_check_caught_up", may_vote)


def nobody_waits_to_begin_anew() -> AbstractContextManager[None]:
    """Rule 4: a majority of the others need not have what a replica gives up when it begins anew."""

    def serving(*arguments: Any) -> Serving:
        gets = right_serving(*arguments)
        return Serving.BEGIN_ANEW if gets is Serving.WAIT else gets

    return replaced(session_partition, "serving", serving)


def grants_hold_nothing_back() -> AbstractContextManager[None]:
    """Rule 5: tombstones are removed while a replica is between the values and them."""

    def removable(leadership: Leadership, horizon: int, now: float, away_s: float) -> int:
        return horizon

    return replaced(partitions, "removable", removable)


def pass_goes_on_when_a_grant_is_given() -> AbstractContextManager[None]:
    """Rule 5: a pass that began before a grant removes tombstones that the replica needs."""
    right: Callable[..., Awaitable[Any]] = compaction.compact

    async def compact(log: Log, choice: Any, session: Any, throttle: Any, removable: Callable[[], int]) -> Any:
        bound = removable()
        return await right(log, choice, session, throttle, lambda: bound)

    return replaced(compacting, "compact", compact)


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
    votes_again_before_it_has_everything,
    nobody_waits_to_begin_anew,
    grants_hold_nothing_back,
    pass_goes_on_when_a_grant_is_given,
    scrub_that_finds_nothing,
    damage_that_is_not_repaired,
)
