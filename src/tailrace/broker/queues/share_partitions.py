"""The share partitions of topic partitions that this broker leads: loaded when first used, dropped with the leadership.

The state of a share partition is at its share coordinator (`state_calls`). A leader reads it once, with its leader
epoch, which fences earlier leaders; from then on it alone writes it.

A leader takes the group's settings from its own metadata, which may lag behind: then it would let a group begin at
`latest` that was told to begin at the first record, or discard what belongs into the dead letter topic. So the state
names the metadata that counts (`ShareState.metadata_end`): all that was committed when the group coordinator had it
initialized. A leader that has not applied so much neither initializes nor delivers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Final

from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.queues.led_share import DeadLetterWriter, LedShare
from tailrace.broker.queues.state_calls import ShareStates
from tailrace.model.faults import Fault, InvalidRequest, NotLeader, UnknownTopic
from tailrace.model.ids import Id, TopicPartition
from tailrace.model.settings import Settings
from tailrace.model.share_settings import ShareSettings
from tailrace.ports import Clock
from tailrace.queues.state import ANY_METADATA, ShareKey

IDLE_MAX_S: Final = 300.0  # after which a share partition that nobody uses is dropped from memory
SWEEP_EVERY_S: Final = 60.0


class SharePartitions:
    def __init__(
        self,
        hosted: HostedPartitions,
        states: ShareStates,
        settings: Settings,
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        dead_letters: DeadLetterWriter,
        metadata_applied: Callable[[int], Awaitable[None]],
    ) -> None:
        """`metadata_applied` waits until this broker has applied the metadata log up to an offset; a fault if not."""
        self._hosted = hosted
        self._states = states
        self._settings = settings
        self._clock = clock
        self._spawn = spawn
        self._dead_letters = dead_letters
        self._metadata_applied = metadata_applied
        self._shares: dict[ShareKey, LedShare] = {}
        self._loading: dict[ShareKey, asyncio.Task[LedShare]] = {}
        self._usual_settings = ShareSettings.of({}, settings)
        self._own_settings: dict[str, tuple[dict[str, str], ShareSettings]] = {}  # of groups that have some
        self._swept_at = clock.monotonic()

    def settings_of(self, group: str) -> ShareSettings:
        own = self._hosted.image.group_settings.get(group)
        if not own:  # nothing is kept of a group that only a request names
            self._own_settings.pop(group, None)
            return self._usual_settings
        known = self._own_settings.get(group)
        if known is None or known[0] != own:
            known = self._own_settings[group] = (dict(own), ShareSettings.of(own, self._settings))
        return known[1]

    @property
    def all(self) -> Iterable[LedShare]:
        """Those in memory; of some of them this broker may no longer lead the partition."""
        return self._shares.values()

    def loaded(self, key: ShareKey) -> LedShare | None:
        """The share partition if it is in use and this broker still leads its partition."""
        share = self._shares.get(key)
        if share is not None and not share.is_current:
            self._drop(share)
            return None
        return share

    async def open(self, key: ShareKey) -> LedShare:
        share = self.loaded(key)
        if share is not None:
            return share
        self._led(key.topic_id, key.partition)
        loading = self._loading.get(key)
        if loading is None:
            loading = self._loading[key] = asyncio.get_running_loop().create_task(self._load(key))
            loading.add_done_callback(lambda _: self._loading.pop(key, None))
        return await asyncio.shield(loading)

    async def _load(self, key: ShareKey) -> LedShare:
        partition = self._led(key.topic_id, key.partition)
        epoch = partition.epoch
        try:
            state = await self._states.read(key, epoch)
        except InvalidRequest as fault:  # the group has not read this partition, or was deleted
            raise UnknownTopic(f"share group {key.group} does not read {partition.name}: {fault}") from None
        await self._metadata_applied(state.metadata_end)
        if partition.epoch != epoch or not partition.leads:
            raise NotLeader(f"{partition.name}: leader epoch {epoch} has ended")
        share = LedShare(
            key,
            partition,
            state,
            self._states,
            lambda: self.settings_of(key.group),
            self._clock,
            self._spawn,
            self._dead_letters,
            self._drop,
        )
        self._shares[key] = share
        self._sweep()
        return share

    async def initialize(
        self, group: str, topic_id: Id, number: int, state_epoch: int, start: int, metadata_end: int = ANY_METADATA
    ) -> None:
        """Let a group begin to read a partition that this broker leads: at `start`, or if that is negative where the
        group's `share.auto.offset.reset` says. It is durable before anything is delivered."""
        await self._metadata_applied(metadata_end)
        partition = self._led(topic_id, number)
        if start < 0:
            start = await self._reset_offset(partition, self.settings_of(group))
        key = ShareKey(group, topic_id, number)
        await self._states.initialize(key, state_epoch, start, metadata_end)
        await self._forget(key)

    async def _forget(self, key: ShareKey) -> None:
        """Drop what was read of a share partition before its state was initialized anew."""
        loading = self._loading.get(key)
        if loading is not None:
            with suppress(Fault):
                await asyncio.shield(loading)
        share = self._shares.get(key)
        if share is not None:
            self._drop(share)

    async def _reset_offset(self, partition: Partition, settings: ShareSettings) -> int:
        end = partition.readable(committed=settings.read_committed)
        match settings.offset_reset.to:
            case "earliest":
                return partition.log.start
            case "latest":
                return end
            case "by_duration":
                since_ms = self._clock.wall_ms() - settings.offset_reset.duration_ms
                found = await partition.log.offset_for_time(since_ms, end)
                return end if found is None else found.offset

    def require_leader(self, place: TopicPartition) -> None:
        """Raises a fault if this broker does not lead the partition."""
        self._led(*place)

    def _led(self, topic_id: Id, number: int) -> Partition:
        partition = self._hosted.find(topic_id, number)
        partition.require_leader()
        return partition

    def _sweep(self) -> None:
        """Drop the share partitions that this broker no longer leads, or that nobody has used for a while."""
        now = self._clock.monotonic()
        if now - self._swept_at < SWEEP_EVERY_S:
            return
        self._swept_at = now
        for share in list(self._shares.values()):
            if not share.is_current or (share.is_idle and now - share.used_at > IDLE_MAX_S):
                self._drop(share)

    def _drop(self, share: LedShare) -> None:
        if self._shares.get(share.key) is share:
            del self._shares[share.key]
        share.close()
