"""A consumer of a share group (KIP-932): each message goes to one member at a time, which acknowledges it by itself.

    async with ShareConsumer(cluster, "mailers", ["mails"], ShareOptions(acknowledges="explicit")) as consumer:
        for message in await consumer.poll(10):
            consumer.acknowledge(message, Outcome.ACCEPT)

A message is locked for the member that it was delivered to. Until the lock ends, the member accepts it, releases it to
be delivered again, rejects it, or renews the lock. With implicit acknowledgement, a poll accepts all that the last one
returned. Delivery is at least once: what is not acknowledged in time is delivered again.

Records are fetched only while a poll waits, and up to `prefetch` more, so no message is locked before it is wanted.
Several polls may wait at once. Each broker that leads assigned partitions has a task of its own (`share_fetching`).
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from typing import Final, Literal, Self

from tailrace.client.cluster import Cluster, Retry
from tailrace.client.faults import ClientError, NotAcknowledged
from tailrace.client.group_membership import Membership
from tailrace.client.groups.member import GroupMember, MemberOptions, Partitions
from tailrace.client.groups.share_member import ShareMember
from tailrace.client.share_fetching import ShareFetching
from tailrace.client.shares.message import Message, Outcome
from tailrace.client.shares.session import AcquireMode, FetchLimits, ShareSession
from tailrace.model.addresses import Address
from tailrace.model.frozen import frozen
from tailrace.model.ids import NO_ID, PartitionName, TopicPartition, show_id
from tailrace.model.limits import MiB
from tailrace.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint

PAUSE_S: Final = 0.1  # before a partition is fetched again after an error, or metadata is asked for again
REFUSED_SHOWN_MAX: Final = 3  # acknowledgements that an error message names


@frozen
class ShareOptions:
    acknowledges: Literal["implicit", "explicit"] = "implicit"
    # "record_limit": a poll gets at most as many records as it asks for; else up to the end of a batch.
    acquire_mode: AcquireMode = "batch_optimized"
    prefetch: int = 0  # messages to hold beyond those that polls wait for
    renews_locks: bool = False  # of messages in hand, when a third of a lock's time is over
    max_wait_ms: int = 500  # how long a broker holds a fetch when there is nothing to deliver
    short_wait_ms: int = 100  # the same, while this member has messages in hand
    response_max_bytes: int = 16 * MiB
    topics_max_age_s: float = 300.0


class ShareConsumer:
    def __init__(
        self,
        cluster: Cluster,
        group: str,
        topics: Sequence[str],
        options: ShareOptions = ShareOptions(),  # noqa: B008
    ) -> None:
        self.member_id = show_id(cluster.driver.new_id())
        self._cluster = cluster
        self._driver = cluster.driver
        self._group = group
        self._options = options
        self._coordination = cluster.with_own_connections(cluster.limits)
        self._fetching = cluster.with_own_connections(cluster.limits)
        self._member_options = MemberOptions(group=group, topics=tuple(sorted(dict.fromkeys(topics))))
        self._membership = Membership(
            self._coordination,
            self._member_options,
            self._new_member,
            topics_max_age_s=options.topics_max_age_s,
            on_lost=lambda _: self._reassigned(),
            on_event=self._reassigned,
        )
        self._staying = ExitStack()
        self._assigned: Partitions = ()
        self._names: dict[TopicPartition, PartitionName] = {}  # of all partitions that were ever fetched
        self._brokers: dict[Address, ShareFetching] = {}
        self._ready: deque[Message] = deque()  # delivered, and not returned by a poll yet
        self._returned: list[Message] = []  # by the last poll, with implicit acknowledgement
        self._demand = 0  # records that polls wait for
        self._changed = asyncio.Event()  # messages came, an acknowledgement was answered, or something failed
        self._retry_at: dict[PartitionName, float] = {}  # after an error of a partition
        self._router: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()  # the assignment or a leader changed
        self._failure: ClientError | None = None
        self._refused: list[str] = []  # the first acknowledgements that failed since the last commit
        self._refused_count = 0
        self._is_closing = False

    def _new_member(self) -> GroupMember:
        return ShareMember(self._member_options, self.member_id, self._driver.now())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def assignment(self) -> Partitions:
        return self._assigned

    # What the application does

    async def join(self, timeout_s: float | None = None) -> bool:
        """Wait until the group has assigned partitions to this member; False if it does not in time."""
        self._start()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not self._assigned:
                    self._check()
                    self._changed.clear()
                    await self._changed.wait()
        return bool(self._assigned)

    async def poll(self, max_records: int = 500, timeout_s: float | None = 1.0) -> list[Message]:
        """The next messages, at most so many; empty if none come in this time. Raises what no retry can mend."""
        self._start()
        returned, self._returned = self._returned, []
        for message in returned:
            if message in self._broker(message).held:
                self.acknowledge(message)
        deadline = None if timeout_s is None else self._driver.now() + timeout_s
        self._want(max_records)
        try:
            taken = await self._taken(max_records, deadline)
        finally:
            self._want(-max_records)
        if self._options.acknowledges == "implicit":
            self._returned = list(taken)
        return taken

    async def _taken(self, max_records: int, deadline: float | None) -> list[Message]:
        while True:
            self._check()
            taken = self._take(max_records)
            left_s = None if deadline is None else deadline - self._driver.now()
            if taken or (left_s is not None and left_s <= 0):
                return taken
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._changed.wait()

    def acknowledge(self, message: Message, outcome: Outcome = Outcome.ACCEPT) -> None:
        """Decide what becomes of a message, without waiting for the broker; `commit` raises if that fails."""
        self._broker(message).decide(message, outcome)

    async def settle(self, message: Message, outcome: Outcome = Outcome.ACCEPT) -> None:
        """As `acknowledge`, and wait for the broker. NotAcknowledged if it refuses, or does not answer."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._broker(message).decide(message, outcome, done)
        await done

    async def renew(self, messages: Iterable[Message]) -> None:
        """Lock messages for longer; NotAcknowledged if the lock of one has ended. Unsupported before Kafka 4.2."""
        waiting: list[asyncio.Future[None]] = []
        for message in messages:
            broker = self._broker(message)
            await broker.check_renewable()
            waiting.append(asyncio.get_running_loop().create_future())
            broker.decide(message, Outcome.RENEW, waiting[-1])
        for one in await asyncio.gather(*waiting, return_exceptions=True):
            if one is not None:
                raise one

    async def commit(self) -> None:
        """Wait until all acknowledgements are answered. NotAcknowledged if any failed since the last call."""
        while not all(one.is_settled for one in self._brokers.values()):
            self._check()
            self._changed.clear()
            await self._changed.wait()
        (refused, self._refused), (count, self._refused_count) = (self._refused, []), (self._refused_count, 0)
        if count:
            more = f"; and {count - len(refused)} more" if count > len(refused) else ""
            raise NotAcknowledged("; ".join(refused) + more)

    async def close(self) -> None:
        """Send what was decided, let the brokers release the rest, and leave the group."""
        if self._is_closing:
            return
        self._is_closing = True
        if self._router is not None:
            self._router.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._cluster.limits.request_s):
                await asyncio.gather(*(one.close() for one in self._brokers.values()))
        self._fetching.close()
        await self._membership.leave()
        self._staying.close()
        self._coordination.close()

    def _start(self) -> None:
        if self._is_closing:
            raise ClientError("the consumer is closed")
        if self._router is None:
            # However long the application is busy, it stays a member: locks end by themselves.
            self._staying.enter_context(self._membership.polling())
            self._router = asyncio.get_running_loop().create_task(self._route())

    def _check(self) -> None:
        self._membership.check()
        if self._router is not None and self._router.done():
            self._router.result()
        for broker in self._brokers.values():
            broker.check()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    # Messages

    def _broker(self, message: Message) -> ShareFetching:
        return self._brokers[message.broker]

    def _want(self, records: int) -> None:
        self._demand += records
        self._wake_brokers()

    def _take(self, max_records: int) -> list[Message]:
        taken: list[Message] = []
        now = self._driver.now()
        while self._ready and len(taken) < max_records:
            message = self._ready.popleft()
            if message.is_lost or message.locked_until <= now:
                self._broker(message).lose(message)
            else:
                taken.append(message)
        return taken

    # Partitions and their leaders

    def _reassigned(self) -> None:
        self._membership.events.clear()
        self._assigned = self._membership.assignment
        self._moved.set()
        self.changed()

    async def _route(self) -> None:
        """Find the leaders of the assigned partitions, and have a task for each of them."""
        known = self._cluster.map
        while True:
            self._moved.clear()
            unknown = [one for one in self._assigned if known.leader(one) is None]
            if unknown:
                with suppress(Retry):
                    await self._cluster.refresh({one.topic: None for one in unknown})
            for address in dict.fromkeys(map(known.leader, self._assigned)):
                if address is not None and address not in self._brokers:
                    self._brokers[address] = ShareFetching(
                        self._fetching,
                        address,
                        ShareSession(self._group, self.member_id),
                        self,
                        renews_locks=self._options.renews_locks,
                    )
            self._wake_brokers()
            is_complete = not self._retry_at and None not in map(known.leader, self._assigned)
            with suppress(TimeoutError):
                async with asyncio.timeout(None if is_complete else PAUSE_S):
                    await self._moved.wait()
            now = self._driver.now()
            self._retry_at = {one: at for one, at in self._retry_at.items() if at > now}

    def _wake_brokers(self) -> None:
        for broker in self._brokers.values():
            broker.wake()

    # What the tasks of brokers ask and report (`share_fetching.Consuming`)

    def wanted(self, broker: Address, now: float) -> list[TopicPartition]:
        found = []
        for one in self._assigned:
            topic_id = self._cluster.map.topic_id(one.topic)
            is_led = self._cluster.map.leader(one) == broker and topic_id != NO_ID
            if is_led and self._retry_at.get(one, now) <= now:
                partition = TopicPartition(topic_id, one.partition)
                self._names[partition] = one
                found.append(partition)
        return found

    def fetch_limits(self, fetching: ShareFetching) -> FetchLimits | None:
        options, is_hard = self._options, self._options.acquire_mode == "record_limit"
        asked = sum(one.asked for one in self._brokers.values()) if is_hard else 0
        prefetch = self._prefetch()
        free = self._demand + prefetch - len(self._ready) - asked
        is_short = self._demand > len(self._ready) or 2 * len(self._ready) <= prefetch
        if free <= 0 or not (is_short or not fetching.is_settled):
            return None
        if is_hard:  # the brokers that were asked longest ago first
            now = self._driver.now()
            idle = [one for one in self._brokers.values() if one.may_fetch(now) and self.wanted(one.address, now)]
            idle.sort(key=lambda one: one.fetched_at)
            room, left = divmod(free, len(idle))
            room += idle.index(fetching) < left
            if not room:
                return None
        else:
            room = free
        if fetching.is_awaited:
            wait_ms = 0
        elif fetching.held or self._ready or (is_hard and free < len(self._brokers)):
            wait_ms = options.short_wait_ms
        else:
            wait_ms = options.max_wait_ms
        return FetchLimits(
            max_wait_ms=wait_ms, max_records=room, mode=options.acquire_mode, max_bytes=options.response_max_bytes
        )

    def _prefetch(self) -> int:
        """How many messages to fetch ahead: none while one is in hand that was delivered before. It may have killed
        its worker, and would use up deliveries of all that are locked with it."""
        if any(message.delivery_count > 1 for broker in self._brokers.values() for message in broker.held):
            return 0
        return self._options.prefetch

    def name(self, partition: TopicPartition) -> PartitionName | None:
        return self._names.get(partition)

    def is_unwanted(self, message: Message) -> bool:
        return not self._options.prefetch and message in self._ready

    def delivered(self, messages: Iterable[Message]) -> None:
        self._ready.extend(messages)

    def moved(self, partition: PartitionName, leader: LeaderIdAndEpoch, endpoints: Sequence[NodeEndpoint]) -> None:
        if not self._cluster.map.hint(partition, leader, endpoints):
            self._cluster.map.forget_leader(partition)
            self._retry_at[partition] = self._driver.now() + self._driver.jitter(0.5, 1.0) * PAUSE_S
        self._moved.set()

    def unanswered(self, broker: Address, partitions: Sequence[TopicPartition]) -> None:
        for message in self._ready:
            if message.broker == broker:
                self._broker(message).lose(message)
        for one in partitions:
            self._cluster.map.forget_leader(self._names[one])
        self._moved.set()

    def refused(self, why: str) -> None:
        self._refused_count += 1
        if len(self._refused) < REFUSED_SHOWN_MAX:
            self._refused.append(why)

    def failed(self, failure: ClientError) -> None:
        self._failure = failure
        self.changed()

    def changed(self) -> None:
        self._changed.set()
        self._wake_brokers()
