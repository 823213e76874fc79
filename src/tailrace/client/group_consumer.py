"""A consumer that shares topics with the other members of its group, and goes on where the group has committed.

    async with GroupConsumer(cluster, "billing", ["orders"]) as consumer:
        while True:
            for record in await consumer.poll():
                ...

What one poll returned counts as processed when the next poll or `commit` is called. With `commits_automatically`, that
is committed from time to time, when partitions are taken away, and on `close`; so each record is processed at least
once. Partitions are only taken away inside `poll`: until then, the records of the last one are the application's.

Heartbeats, joins and commits go over connections of their own, since a broker answers each connection in order and
holds some of these requests, and most fetches, for long.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Literal, Self

from tailrace.client.cluster import Cluster
from tailrace.client.consumer import Consumer, ConsumerOptions, Received
from tailrace.client.faults import AssignmentLost, ClientError, Refused
from tailrace.client.group_membership import Membership
from tailrace.client.groups.classic_member import ClassicMember
from tailrace.client.groups.consumer_member import ConsumerMember
from tailrace.client.groups.member import Event, GroupMember, Identity, MemberOptions, Partitions
from tailrace.client.groups.progress import Progress
from tailrace.client.offsets import EARLIEST, LATEST, commit_offsets, committed_offsets, offsets_at
from tailrace.model.frozen import frozen
from tailrace.model.ids import PartitionName, show_id
from tailrace.wire.errors import Error

# The coordinator does not accept the commits of this member any more.
LOST: Final = (
    Error.ILLEGAL_GENERATION,
    Error.UNKNOWN_MEMBER_ID,
    Error.REBALANCE_IN_PROGRESS,
    Error.FENCED_INSTANCE_ID,
    Error.FENCED_MEMBER_EPOCH,
    Error.STALE_MEMBER_EPOCH,
)


@frozen
class GroupOptions:
    protocol: Literal["classic", "consumer"] = "classic"  # brokers before Kafka 4.0 have only the classic one
    instance_id: str | None = None  # a static member: it may restart without a rebalance
    rebalance_timeout_ms: int = 300_000  # for the application to come back to `poll`
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    assignors: tuple[str, ...] = ("range", "roundrobin")
    server_assignor: str | None = None
    commits_automatically: bool = True
    commit_interval_s: float = 5.0
    topics_max_age_s: float = 300.0  # after which the leader of a classic group looks for new partitions
    # Where nothing is committed, "earliest" skips no record; "error" raises.
    reading: ConsumerOptions = ConsumerOptions(reset="earliest")


class GroupConsumer:
    def __init__(
        self,
        cluster: Cluster,
        group: str,
        topics: Sequence[str],
        options: GroupOptions = GroupOptions(),  # noqa: B008
    ) -> None:
        self._cluster = cluster
        self._driver = cluster.driver
        self._group = group
        self._options = options
        request_s = min(cluster.limits.request_s, options.session_timeout_ms / 3000)
        self._coordination = cluster.with_own_connections(replace(cluster.limits, request_s=request_s))
        self._consumer = Consumer(cluster, options.reading)
        self._progress = Progress()
        self._commit_at = self._driver.now() + options.commit_interval_s
        self._committing: asyncio.Task[None] | None = None  # the automatic commit that is under way
        self._member_options = MemberOptions(
            group=group,
            topics=tuple(sorted(dict.fromkeys(topics))),
            instance_id=options.instance_id,
            rebalance_timeout_ms=options.rebalance_timeout_ms,
            session_timeout_ms=options.session_timeout_ms,
            heartbeat_interval_ms=options.heartbeat_interval_ms,
            assignors=options.assignors,
            server_assignor=options.server_assignor,
        )
        self._membership = Membership(
            self._coordination,
            self._member_options,
            self._new_member,
            topics_max_age_s=options.topics_max_age_s,
            on_lost=self._lost,
            on_event=self._consumer.interrupt,
        )

    def _new_member(self) -> GroupMember:
        now = self._driver.now()
        if self._options.protocol == "classic":
            return ClassicMember(self._member_options, now)
        return ConsumerMember(self._member_options, show_id(self._driver.new_id()), now)

    async def __aenter__(self) -> Self:
        self._membership.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def assignment(self) -> Partitions:
        """The partitions that this member reads now."""
        return tuple(sorted(self._consumer.positions))

    async def poll(self, max_records: int = 500, timeout_s: float = 1.0) -> list[Received]:
        """The next records of the partitions that this member owns; empty if none come in this time.

        It takes longer when partitions come or go and the coordinator does not answer. Raises what no retry can mend.
        """
        deadline = self._driver.now() + timeout_s
        self._progress.came_back()
        with self._membership.polling():
            while True:
                self._membership.check()
                await self._settle()
                self._commit_if_due()
                records = await self._consumer.poll(max_records, max(deadline - self._driver.now(), 0.0))
                self._progress.returned(self._consumer.positions)
                if records or self._driver.now() >= deadline:
                    return records

    async def commit(self) -> None:
        """Commit what polls returned. AssignmentLost if others own some of it by now, and will process it again."""
        self._progress.came_back()
        await self._commit_ended()
        offsets = self._progress.to_commit()
        try:
            await self._commit(offsets)
        except AssignmentLost:
            self._progress.reported_lost(offsets)
            raise
        lost = self._progress.take_lost()
        if lost:
            raise AssignmentLost(f"cannot commit offsets of group {self._group}: this member has lost {_show(lost)}")

    async def commit_offsets(self, offsets: Mapping[PartitionName, int]) -> None:
        """Commit these offsets, whatever polls returned meanwhile; may be called while a poll waits. AssignmentLost if
        this member does not own all of the partitions."""
        missing = [one for one in offsets if one not in self._consumer.positions]
        if missing:
            raise AssignmentLost(
                f"cannot commit offsets of group {self._group}: this member does not own {_show(missing)}"
            )
        await self._commit(offsets)

    def interrupt(self) -> None:
        """Let the `poll` that waits, or else the next one, return at once."""
        self._consumer.interrupt()

    async def close(self) -> None:
        """Commit, if that is automatic, and leave the group. What the last poll returned is not committed."""
        if self._options.commits_automatically:
            await self._try_to_commit()
        self._consumer.close()
        await self._membership.leave()
        self._coordination.close()

    # Partitions come and go

    async def _settle(self) -> None:
        """Take what the membership has to say, in order."""
        events = self._membership.events
        while events:
            event = events[0]
            if event.kind == "assigned":
                await self._begin(event)
            else:
                await self._release(event)

    def _is_next(self, event: Event) -> bool:
        """Whether an event still stands: it does not if partitions were lost while it was handled."""
        events = self._membership.events
        if not events or events[0] is not event:
            return False
        events.popleft()
        return True

    async def _begin(self, event: Event) -> None:
        committed = await committed_offsets(self._coordination, self._group, event.partitions, stable=True)
        starts = committed | await self._without_commit([one for one in event.partitions if one not in committed])
        if self._is_next(event):
            self._consumer.assign({**self._consumer.positions, **starts})
            self._progress.begin(starts, committed)

    async def _without_commit(self, partitions: Sequence[PartitionName]) -> dict[PartitionName, int]:
        reading = self._options.reading
        if partitions and reading.reset == "error":
            raise ClientError(f"group {self._group} has committed no offsets of {_show(partitions)}")
        where = EARLIEST if reading.reset == "earliest" else LATEST
        times = dict.fromkeys(partitions, where)
        return await offsets_at(self._cluster, times, committed=reading.reads_committed)

    async def _release(self, event: Event) -> None:
        """Commit what was processed, stop reading, and only then let others have the partitions."""
        if self._options.commits_automatically:
            await self._try_to_commit()
        if self._is_next(event):
            self._stop_reading(event.partitions)
            self._progress.release(event.partitions)
            self._membership.released(event)

    def _lost(self, partitions: Partitions) -> None:
        self._stop_reading(partitions)
        self._progress.lose(partitions)

    def _stop_reading(self, partitions: Partitions) -> None:
        kept = {one: offset for one, offset in self._consumer.positions.items() if one not in partitions}
        self._consumer.assign(kept)

    # Commits

    async def _commit(self, offsets: Mapping[PartitionName, int]) -> None:
        while offsets:
            identity = self._membership.identity
            if identity is None:
                raise AssignmentLost(f"cannot commit offsets of group {self._group}: this member has to join it again")
            try:
                await commit_offsets(self._coordination, self._group, offsets, **_signed(identity))
            except Refused as refused:
                if refused.error is Error.STALE_MEMBER_EPOCH and await self._epoch_after(identity):
                    offsets = {one: offset for one, offset in offsets.items() if self._progress.owns(one)}
                    continue
                if refused.error in LOST:
                    raise AssignmentLost(f"{refused}: others own partitions of this member by now") from None
                raise
            self._progress.committed(offsets)
            return

    async def _epoch_after(self, identity: Identity) -> bool:
        """The coordinator is an epoch ahead, or behind: the next heartbeat tells which."""
        return await self._membership.identity_after(identity, self._coordination.limits.request_s) is not None

    def _commit_if_due(self) -> None:
        now = self._driver.now()
        if self._options.commits_automatically and now >= self._commit_at and self._committing is None:
            self._commit_at = now + self._options.commit_interval_s
            self._committing = asyncio.get_running_loop().create_task(self._commit_in_task())

    async def _commit_in_task(self) -> None:
        with suppress(ClientError):  # a later commit, or the next owner, begins at the last one that succeeded
            await self._commit(self._progress.to_commit())
        self._committing = None

    async def _commit_ended(self) -> None:
        """Wait for the automatic commit that is under way: its offsets must not come after later ones."""
        if self._committing is not None:
            await asyncio.shield(self._committing)

    async def _try_to_commit(self) -> None:
        """Commit unless the coordinator cannot be reached for a whole session: then the session has ended."""
        with suppress(ClientError, TimeoutError):
            async with asyncio.timeout(self._options.session_timeout_ms / 1000):
                await self._commit_ended()
                await self._commit(self._progress.to_commit())
        if self._committing is not None:
            self._committing.cancel()
            self._committing = None


def _signed(identity: Identity) -> dict[str, Any]:
    """The fields of OffsetCommit that name the member."""
    return {
        "member_id": identity.member_id,
        "generation_id_or_member_epoch": identity.epoch,
        "group_instance_id": identity.instance_id,
    }


def _show(partitions: Sequence[PartitionName]) -> str:
    return ", ".join(f"{one.topic}-{one.partition}" for one in partitions)
