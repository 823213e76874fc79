"""Queues: taking records as a member of a share group, and acknowledging them, on partitions that this broker leads.

`take` is complete as soon as it has acquired something or a partition failed. Otherwise it waits until records arrive
or come back, a leader changes, or the time is up.
"""

import asyncio
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from tailrace.broker.queues.led_share import LedShare, Taken, TakeOptions
from tailrace.broker.queues.share_partitions import SharePartitions
from tailrace.broker.queues.state_coordinator import ShareCoordinator
from tailrace.model.caller import Caller
from tailrace.model.faults import Fault, InvalidRecordState, InvalidRequest
from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.model.limits import FETCH_WAIT_MAX_MS
from tailrace.ports import Clock
from tailrace.queues.share_partition import Acknowledge, Acknowledgement, Acquired
from tailrace.queues.state import ShareKey

__all__ = ["Acknowledge", "Acknowledgement", "Acquired", "Queues", "ShareMember", "TakeLimits", "Taken"]


class ShareMember(NamedTuple):
    group: str
    id: str


class TakeLimits(NamedTuple):
    records: int
    max_bytes: int
    max_wait_ms: int
    exact: bool  # not more than `records`; otherwise up to the end of a batch


class Queues:
    def __init__(self, coordinator: ShareCoordinator, shares: SharePartitions, clock: Clock) -> None:
        self._coordinator = coordinator
        self._shares = shares
        self._clock = clock

    def require_enabled(self, who: Caller) -> None:
        """Raises a fault if the cluster's level does not have share groups yet."""
        self._coordinator.require_level()

    async def find_coordinator(self, who: Caller, key: str) -> BrokerId:
        """The broker with the state of a share partition, which is named `group:topic id:partition`."""
        try:
            share = ShareKey.parse(key)
        except ValueError:
            raise InvalidRequest(f"Invalid share partition {key!r}, expected group:topicId:partition.") from None
        broker, _ = await self._coordinator.place(share)
        return broker

    def lock_ms(self, who: Caller, group: str) -> int:
        """How long records are locked for the member that acquired them."""
        return self._shares.settings_of(group).record_lock_duration_ms

    async def take(
        self,
        who: Caller,
        member: ShareMember,
        places: Sequence[TopicPartition],
        limits: TakeLimits,
        unwanted: "asyncio.Future[None]",
    ) -> Mapping[TopicPartition, Taken | Fault]:
        """Acquire records of these partitions, the first ones first. When `unwanted` is done, stop waiting."""
        if limits.max_wait_ms <= 0:
            return await self._take_now(member, places, await self._open_all(member.group, places), limits, unwanted)
        deadline = self._clock.monotonic() + min(limits.max_wait_ms, FETCH_WAIT_MAX_MS) / 1000
        while True:
            shares = await self._open_all(member.group, places)
            changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            # watched from before the first is looked at: it may change while another is read from disk
            with _watching([one for one in shares if not isinstance(one, Fault)], unwanted, changed):
                results = await self._take_now(member, places, shares, limits, unwanted)
                left_s = deadline - self._clock.monotonic()
                if results or left_s <= 0 or unwanted.done():
                    return results
                await _wait(changed, left_s)

    async def _take_now(
        self,
        member: ShareMember,
        places: Sequence[TopicPartition],
        shares: Sequence[LedShare | Fault],
        limits: TakeLimits,
        unwanted: "asyncio.Future[None]",
    ) -> dict[TopicPartition, Taken | Fault]:
        results: dict[TopicPartition, Taken | Fault] = {}
        records, size = limits.records, limits.max_bytes
        for place, share in zip(places, shares, strict=True):
            if isinstance(share, Fault):
                results[place] = share
                continue
            if records <= 0 or size <= 0 or unwanted.done():
                continue
            try:
                taken = await share.take(member.id, TakeOptions(records, size, limits.exact))
            except Fault as fault:
                results[place] = fault.with_traceback(None)
                continue
            if taken.acquired:
                results[place] = taken
                records -= taken.total
                size -= taken.bytes
                if unwanted.done():  # the member left while this was read from disk
                    share.not_delivered(member.id, taken)
        return results

    async def _open_all(self, group: str, places: Sequence[TopicPartition]) -> list[LedShare | Fault]:
        keys = [ShareKey(group, *place) for place in places]
        loaded = [self._shares.loaded(key) for key in keys]
        if None not in loaded:
            return [share for share in loaded if share is not None]
        return list(await asyncio.gather(*map(self._open, keys)))

    async def _open(self, key: ShareKey) -> LedShare | Fault:
        try:
            return await self._shares.open(key)
        except Fault as fault:
            return fault.with_traceback(None)

    def acknowledge(
        self, who: Caller, member: ShareMember, place: TopicPartition, acknowledged: Sequence[Acknowledgement]
    ) -> Awaitable[None]:
        """Accept, release or reject records that the member holds now, or renew their locks; returns when that is
        durable. After a fault none of the acknowledgements of this partition counts."""
        renews = any(Acknowledge.RENEW in one.types for one in acknowledged)
        if renews and not self._shares.settings_of(member.group).may_renew:
            raise InvalidRequest(f"share group {member.group} does not let its members renew locks")
        share = self._shares.loaded(ShareKey(member.group, *place))
        if share is None:
            self._shares.require_leader(place)
            raise InvalidRecordState(f"member {member.id} of share group {member.group} has acquired nothing here")
        return share.acknowledge(member.id, acknowledged)

    def leave(self, who: Caller, member: ShareMember, places: Sequence[TopicPartition]) -> None:
        """Release all that a member holds of these partitions."""
        for place in places:
            share = self._shares.loaded(ShareKey(member.group, *place))
            if share is not None:
                share.left(member.id)


@contextmanager
def _watching(
    shares: Sequence[LedShare], unwanted: "asyncio.Future[None]", changed: "asyncio.Future[None]"
) -> Iterator[None]:
    """`changed` is done as soon as there may be more to take, or nothing is wanted any more."""

    def notify(_: object = None) -> None:
        if not changed.done():
            changed.set_result(None)

    for share in shares:
        share.watch(notify)
    unwanted.add_done_callback(notify)
    try:
        yield
    finally:
        unwanted.remove_done_callback(notify)
        for share in shares:
            share.unwatch(notify)


async def _wait(changed: "asyncio.Future[None]", seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await changed
