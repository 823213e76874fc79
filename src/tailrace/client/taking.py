"""Taking single messages from queues for many callers, for doors whose protocol takes one message a request.

    takers = Takers(cluster)
    taker = takers.of("mailers", "mails")
    message = await taker.take()
    if message is not None:
        await taker.accept(message)
        ... only now send the message to the client

A taker asks the leaders of all partitions itself, whatever the group's assignor says, so takers in different processes
share all partitions. By default a group gives out one message of a partition at a time, begins with the first message
that is there, sees committed messages only, and delivers a message as often as it takes (`group_preparation`). So each
partition is in order: a message is followed by the next one when it was accepted. A broker that is no Tailrace has
bounds of its own; there, messages that several takers have at the same time may be finished in another order.

`take` returns None only if every leader was asked and has nothing. If the next messages are locked by other takers, it
waits for those; a lock lasts two round trips.

Takers of a process share connections, a few to each broker. A taker that nobody uses closes its share sessions after a
while, or when others need the room.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum, auto
from functools import partial
from math import inf
from typing import Final, Literal

from tailrace.client.cluster import Cluster, Retry
from tailrace.client.cluster_map import UNKNOWN
from tailrace.client.consumer import Received
from tailrace.client.faults import Busy, ClientError, NoSuchPartition, NotAcknowledged, Refused, Unavailable, check
from tailrace.client.group_preparation import GroupPreparation, Prepared
from tailrace.client.shares.message import Message, Outcome
from tailrace.client.taking_gate import Gate, Turn
from tailrace.client.taking_session import TakingSession, Wanted
from tailrace.client.unfinished import Unfinished
from tailrace.model.addresses import Address
from tailrace.model.frozen import frozen
from tailrace.model.ids import PartitionName, TopicPartition
from tailrace.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint

LOCKED_WAIT_MS: Final = 50  # how long a broker holds a request, and its connection, until another taker is done
CALLERS_MAX: Final = 1_000  # of one taker that ask at a time, where several messages of a partition may be locked


@frozen
class TakingLimits:
    takers: int = 500  # with share sessions at a time; each has at most one with each broker
    connections: int = 8  # to each broker
    idle_s: float = 60.0  # after which an idle taker is closed
    retry_s: float = 10.0  # how long leaders that cannot be asked are asked again
    locked_s: float = 5.0  # how long messages that others have locked are waited for
    warming_s: float = 8.0  # the same, where a partition may have several locks: Apache Kafka begins a group within 5 s
    topic_max_age_s: float = 5.0  # after which it is looked whether a topic has more partitions
    pause_min_s: float = 0.005
    pause_max_s: float = 0.25


class TooManyTakers(ClientError):
    """All takers that there may be are in use."""


class _Seen(Enum):
    EMPTY = auto()  # every partition was asked
    OURS = auto()  # there may be messages, behind those that other callers of this taker have


class _Call:
    """One call of `take`."""

    def __init__(self, came_at: float, gives_up_at: float, locked_until: float) -> None:
        self.came_at = came_at
        self.gives_up_at = gives_up_at  # if there is nothing
        self.locked_until = locked_until  # if others have locked what there is
        self.failing_since: float | None = None
        self.asked_at = -inf  # for the first time

    @property
    def has_asked(self) -> bool:
        return self.asked_at > -inf

    def failed(self, failure: Retry | Refused, now: float, retry_s: float, unknown_s: float) -> None:
        """Raise the failure if it lasts."""
        if isinstance(failure, Refused) and not failure.retriable:
            raise failure
        self.failing_since = now if self.failing_since is None else self.failing_since
        is_unknown = isinstance(failure, Refused) and failure.error in UNKNOWN
        if now - self.failing_since >= (unknown_s if is_unknown else retry_s):
            raise failure if is_unknown else Unavailable(f"cannot take a message: {failure}")


class Takers:
    def __init__(self, cluster: Cluster, limits: TakingLimits = TakingLimits()) -> None:  # noqa: B008
        """The caller closes the cluster, after the takers."""
        self.cluster = cluster
        self.limits = limits
        self.preparation = GroupPreparation(cluster)
        self.unfinished = Unfinished(cluster)
        self._lanes = [cluster.with_own_connections(cluster.limits) for _ in range(limits.connections)]
        self._lane = 0
        self._takers: dict[tuple[str, str, bool], Taker] = {}  # the one that was used last at the end
        self._closing: dict[asyncio.Task[None], None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._takers)

    def of(self, group: str, topic: str, *, sets_up: bool = True) -> "Taker":
        """`sets_up=False`: leave the group's settings as they are, for queues that have some of their own. Then what
        others have locked is not waited for."""
        key = (group, topic, sets_up)
        return self._takers.get(key) or Taker(self, group, topic, sets_up=sets_up)

    async def close(self) -> None:
        """Release what is locked, and close all connections."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for taker in list(self._takers.values()):
            self._close(taker)
        await asyncio.gather(*self._closing, return_exceptions=True)
        self.preparation.close()
        self.unfinished.close()
        for cluster in self._lanes:
            cluster.close()

    # What takers need

    def used(self, taker: "Taker") -> None:
        """Keep a taker open that is used now. TooManyTakers if there is no room for it."""
        key = (taker.group, taker.topic, taker.sets_up)
        if self._takers.get(key) is taker:
            del self._takers[key]
        elif len(self._takers) >= self.limits.takers:
            idle = next((one for one in self._takers.values() if one.is_idle), None)
            if idle is None:
                raise TooManyTakers(f"{len(self._takers)} takers are in use; there is no room for another")
            self._close(idle)
        self._takers[key] = taker
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.limits.idle_s, self._close_idle)

    def next_lane(self) -> Cluster:
        self._lane = (self._lane + 1) % len(self._lanes)
        return self._lanes[self._lane]

    def _close(self, taker: "Taker") -> None:
        del self._takers[taker.group, taker.topic, taker.sets_up]
        task = asyncio.get_running_loop().create_task(taker.close_sessions())
        self._closing[task] = None
        task.add_done_callback(self._closing.pop)

    def _close_idle(self) -> None:
        self._timer = None
        now = self.cluster.driver.now()
        for taker in list(self._takers.values()):
            taker.drop_expired(now)
            if taker.is_idle and taker.used_at <= now - self.limits.idle_s:
                self._close(taker)
        if self._takers:
            self._timer = asyncio.get_running_loop().call_later(self.limits.idle_s, self._close_idle)


class Taker:
    """Takes the messages of one topic for one group. `Takers.of` makes them."""

    def __init__(self, takers: Takers, group: str, topic: str, *, sets_up: bool) -> None:
        self.group = group
        self.topic = topic
        self.sets_up = sets_up
        self.used_at = 0.0
        self._takers = takers
        self._cluster = takers.cluster
        self._driver = takers.cluster.driver
        self._sessions: dict[Address, TakingSession] = {}
        self._held: dict[Message, TakingSession] = {}
        self._users = 0
        self._turn = 0  # whose partition is asked first
        self._gates: dict[int | None, Gate] = {}  # by the partition that callers want; None: any
        self._has_one_lock = sets_up  # as far as is known

    @property
    def is_idle(self) -> bool:
        return not self._users and not self._held

    # What callers do

    async def take(self, partition: int | None = None, wait_s: float = 0.0) -> Message | None:
        """Lock one message, of any partition or of this one. None if there is none within the time.

        Unavailable: a leader could not be asked. Busy: others have the next messages. The caller accepts, releases or
        rejects what it gets, before the lock ends."""
        with self._use():
            return await self._take(partition, wait_s)

    async def accept(self, message: Message) -> None:
        """Returns when it is durable that the message is finished. NotAcknowledged: it is not finished; OutcomeUnknown:
        it may be. After either, the message must not be given to the caller."""
        await self._settle(message, Outcome.ACCEPT)

    async def release(self, message: Message) -> None:
        """Let the message be taken again, at once."""
        await self._settle(message, Outcome.RELEASE)

    async def reject(self, message: Message) -> None:
        """Never deliver the message again: it goes to the group's dead letter topic, if there is one."""
        await self._settle(message, Outcome.REJECT)

    async def peek(self, partition: int | None = None) -> Received | None:
        """The first message that the group has not finished, of the partition that is asked next or of this one. It may
        be locked by now. Nothing is locked."""
        with self._use():
            places = await self._partitions(partition)
            return await self._takers.unfinished.first(self.group, places)

    async def unread(self) -> int:
        """How many messages the group has not finished, also those that are locked."""
        with self._use():
            prepared = await self._prepared()
            places = await self._partitions(None)
            return await self._takers.unfinished.count(self.group, places, in_order=prepared.one_lock)

    # Taking

    async def _take(self, number: int | None, wait_s: float) -> Message | None:
        now = self._driver.now()
        call = _Call(now, now + wait_s, now + max(wait_s, self._takers.limits.locked_s))
        while True:
            gate = self._gates.setdefault(number, Gate())
            now = self._driver.now()
            self.drop_expired(now)
            waits_s = (call.gives_up_at if gate.has_been_empty(call.came_at) else call.locked_until) - now
            turn = await gate.enter(self._room(number), call.came_at, call.gives_up_at, waits_s, is_back=call.has_asked)
            if turn is Turn.EMPTY:
                return None
            if turn is Turn.LATE:
                raise self._busy(gate.problem)
            try:
                found = await self._ask(gate, call, number)
            finally:
                gate.leave(self._room(number))
                self._drop_gate(number)
            if found is not _Seen.OURS:
                return found

    async def _ask(self, gate: Gate, call: "_Call", number: int | None) -> "Message | Literal[_Seen.OURS] | None":
        """Ask until there is an answer. OURS: what there is has been taken by other callers of this taker."""
        pause_s = self._takers.limits.pause_min_s
        if not call.has_asked:
            call.asked_at = self._driver.now()
        while True:
            asked_at = self._driver.now()
            try:
                seen = await self._try(number)
                found = await self._wait_for(seen, call) if isinstance(seen, PartitionName) else seen
            except (Retry, Refused) as failure:
                gate.problem = str(failure)
                call.failed(failure, self._driver.now(), self._takers.limits.retry_s, self._cluster.limits.unknown_s)
                left_s = pause_s
            else:
                call.failing_since = gate.problem = None
                if isinstance(found, Message) or found is _Seen.OURS:
                    return found
                if found is None:
                    continue
                now = self._driver.now()
                gate.is_empty(asked_at, now)
                left_s = call.gives_up_at - now
                if left_s <= 0:
                    return None
            await self._driver.sleep(min(pause_s, left_s))
            pause_s = min(2 * pause_s, self._takers.limits.pause_max_s)

    async def _wait_for(self, place: PartitionName, call: "_Call") -> "Message | Literal[_Seen.EMPTY] | None":
        """Let the leader wait shortly until another taker is done: it serves those that wait in order.

        Where several messages of a partition may be locked, those that are left are all locked, or belong to a
        transaction that is open: they are not waited for. But Apache Kafka answers nothing while it loads a group's
        state, so it is given some time."""
        limits = self._takers.limits
        waited_s = limits.locked_s if self._has_one_lock else limits.warming_s
        left_s = max(call.gives_up_at, call.asked_at + waited_s) - self._driver.now()
        if left_s <= 0 and self._has_one_lock:
            raise self._busy(None)
        if left_s <= 0:
            for session in self._sessions.values():
                session.is_warm = True
            return _Seen.EMPTY
        ((address, wanted),) = (await self._by_leader([place])).items()
        return await self._take_from(address, wanted, min(int(1000 * left_s) + 1, LOCKED_WAIT_MS))

    def _busy(self, problem: str | None) -> Busy | Unavailable:
        if problem is not None:
            return Unavailable(f"cannot take a message of {self.topic} for group {self.group}: {problem}")
        return Busy(f"the next messages of {self.topic} for group {self.group} are locked by other takers")

    def _room(self, number: int | None) -> int:
        """How many callers may ask at a time."""
        if not self._has_one_lock:
            return CALLERS_MAX
        held = {message.partition.partition for message in self._held}
        if number is not None:
            return int(number not in held)
        return max(1, self._cluster.map.partition_counts.get(self.topic, 0)) - len(held)

    async def _try(self, number: int | None) -> Message | _Seen | PartitionName:
        """Ask all leaders, one after the other, so that no more than one message is locked. A partition: its next
        message is locked by another taker."""
        prepared = await self._prepared()
        self._has_one_lock = prepared.one_lock
        places = await self._partitions(number)
        self._turn += 1
        failure: Retry | Refused | None = None
        for address, wanted in (await self._by_leader(places)).items():
            try:
                message = await self._take_from(address, wanted)
            except (Retry, Refused) as error:
                if isinstance(error, Refused) and not error.retriable:
                    raise
                failure = failure or error
            else:
                if message is not None:
                    return message
        if failure is not None:
            raise failure
        if prepared.one_lock and any(message.partition in places for message in self._held):
            return _Seen.OURS
        if self.sets_up or not all(one.is_warm for one in self._sessions.values()):
            found = await self._takers.unfinished.first(self.group, places)
            return _Seen.EMPTY if found is None else found.partition
        return _Seen.EMPTY

    async def _take_from(self, address: Address | None, wanted: Wanted, wait_ms: int = 0) -> Message | None:
        if address is None:
            raise Retry(f"partition {wanted[0].partition} of {self.topic} has no leader")
        session = self._session(address)
        try:
            message = await session.take(wanted, wait_ms)
        except Refused as refused:
            if refused.error in UNKNOWN:  # the topic was made again, or the group deleted
                self._takers.preparation.forget(self.group, self.topic)
                self._cluster.map.updated_at.pop(self.topic, None)
            raise
        if message is not None:
            session.is_warm = True
            self._held[message] = session
        return message

    async def _by_leader(self, places: Sequence[PartitionName]) -> dict[Address | None, Wanted]:
        """Whom to ask for what, first the leader of another partition each time; None: those without a leader."""
        known = self._cluster.map
        if None in map(known.leader, places):
            await self._refresh()
        found: dict[Address | None, list[TopicPartition]] = {}
        topic_id = known.topic_id(self.topic)
        for one in places:
            found.setdefault(known.leader(one), []).append(TopicPartition(topic_id, one.partition))
        return {address: tuple(sorted(wanted)) for address, wanted in found.items()}

    # Settling

    async def _settle(self, message: Message, outcome: Outcome) -> None:
        with self._use():
            session = self._held.get(message)
            if session is None:
                why = "its lock has ended" if message.outcome is None else "it was settled before"
                raise NotAcknowledged(f"cannot {outcome.name.lower()} {message}: {why}")
            done = session.decide(message, outcome)
            done.add_done_callback(partial(self._settled, message))
            await asyncio.shield(done)

    def _settled(self, message: Message, _: object) -> None:
        self._held.pop(message, None)
        self._admit()

    def _admit(self) -> None:
        for number, gate in list(self._gates.items()):
            gate.admit(self._room(number))
            self._drop_gate(number)

    def _drop_gate(self, number: int | None) -> None:
        if number in self._gates and self._gates[number].is_idle:
            del self._gates[number]

    def drop_expired(self, now: float) -> None:
        for message, session in list(self._held.items()):
            if message.is_lost or message.locked_until <= now:
                session.held.pop(message, None)
                message.is_lost = True
                del self._held[message]

    # Partitions, leaders, sessions

    @contextmanager
    def _use(self) -> Iterator[None]:
        self._takers.used(self)
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self.used_at = self._driver.now()

    async def _prepared(self) -> Prepared:
        return await self._takers.preparation.ready(self.group, self.topic, sets_up=self.sets_up)

    async def _partitions(self, number: int | None) -> list[PartitionName]:
        """The one that is asked first comes first."""
        known = self._cluster.map
        age_s = self._driver.now() - known.updated_at.get(self.topic, -self._takers.limits.topic_max_age_s)
        if not known.has_topic(self.topic) or age_s >= self._takers.limits.topic_max_age_s:
            await self._refresh()
        places = known.partitions(self.topic)
        if number is not None:
            wanted = PartitionName(self.topic, number)
            if wanted not in places:
                raise NoSuchPartition(wanted, len(places))
            return [wanted]
        first = self._turn % len(places)
        return places[first:] + places[:first]

    async def _refresh(self) -> None:
        response = await self._cluster.refresh([self.topic])
        for topic in response.topics:
            check(topic.error_code, f"find topic {topic.name}")

    def _session(self, address: Address) -> TakingSession:
        session = self._sessions.get(address)
        if session is None:
            session = self._sessions[address] = TakingSession(
                self._takers.next_lane(), address, self.group, self._name, self._moved
            )
        return session

    def _name(self, place: TopicPartition) -> PartitionName:
        return PartitionName(self.topic, place.partition)

    def _moved(self, place: TopicPartition, leader: LeaderIdAndEpoch, endpoints: Sequence[NodeEndpoint]) -> None:
        """A broker does not serve a partition; it may know who does."""
        name = self._name(place)
        if not self._cluster.map.hint(name, leader, endpoints):
            self._cluster.map.forget_leader(name)

    async def close_sessions(self) -> None:
        sessions, self._sessions = self._sessions, {}
        with suppress(TimeoutError):
            async with asyncio.timeout(self._cluster.limits.request_s):
                await asyncio.gather(*(one.close() for one in sessions.values()), return_exceptions=True)
