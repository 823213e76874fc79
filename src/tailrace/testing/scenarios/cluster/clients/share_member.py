"""A member of a share group (KIP-932): it takes records, and accepts, releases, rejects, renews or ignores them.

Each member takes records of all partitions that some member is assigned, so that several contend for them. It has a
share session with each leader. At random it closes or reopens a session, forgets a partition, leaves the group, or
crashes: it closes its connections and returns as a new member. In some groups certain records are poison: whoever gets
one crashes.

Once everything is written the members *drain* the group: they accept all records, until there are none left.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from tailrace.model.ids import Id, TopicPartition
from tailrace.queues.share_partition import Acknowledge
from tailrace.records.opened import batches
from tailrace.testing.scenarios.cluster.clients.coordinator_client import GROUP_TYPE, CoordinatorClient
from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.testing.scenarios.cluster.clients.share_group import ShareGroup
from tailrace.testing.scenarios.cluster.clients.share_tenures import OpenExchange, ShareTenures
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.scenarios.cluster.invariants.share_history import Exchange, RecordPosition, ShareHistory
from tailrace.wire.errors import Error
from tailrace.wire.messages.acknowledgements import AcknowledgementBatch, PartitionToAcknowledge, TopicToAcknowledge
from tailrace.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from tailrace.wire.messages.share_fetch import (
    ForgottenTopic,
    PartitionShareFetched,
    ShareFetchRequest,
    ShareFetchResponse,
)
from tailrace.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

HEARTBEAT_VERSION: Final = 1
SHARE_VERSION: Final = 2
JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
OPENING: Final = 0
CLOSING: Final = -1
HEARTBEAT_SECONDS: Final = 0.4
PAUSE_MAX_SECONDS: Final = 0.3
DRAIN_PAUSE_SECONDS: Final = 0.02
WAITS_MS: Final = (0, 200, 800)
RECORDS: Final = (1, 5, 20, 200)
FETCH_MAX_BYTES: Final = 32 * 1024
# what becomes of a record, by chance
ACCEPT_CHANCE: Final = 0.6
RELEASE_CHANCE: Final = 0.12
REJECT_CHANCE: Final = 0.04
RENEW_CHANCE: Final = 0.04  # and decide again later
# what becomes of a member, after each turn
CRASH_CHANCE: Final = 0.02
LEAVE_CHANCE: Final = 0.01
CLOSE_CHANCE: Final = 0.03
REOPEN_CHANCE: Final = 0.03
FORGET_CHANCE: Final = 0.03
STALL_CHANCE: Final = 0.03  # longer than its locks last
STALL_SECONDS: Final = 1.3


class Held(NamedTuple):
    """A record that the member holds."""

    count: int  # type: ignore[assignment]  # of its deliveries; hides a method of tuples
    since: Exchange  # its delivery, or the last renewal


class Session:
    """A share session with one broker."""

    def __init__(self) -> None:
        self.epoch = OPENING
        self.partitions: dict[TopicPartition, None] = {}
        self.held: dict[RecordPosition, Held] = {}


class ShareGroupMember:
    def __init__(
        self,
        router: Router,
        group: ShareGroup,
        history: ShareHistory,
        tenures: ShareTenures,
        topic: str,
        partitions: int,
        is_open: asyncio.Event,
        drains: Callable[[], bool],
        is_over: Callable[[], bool],
    ) -> None:
        self.name = router.name
        self._router = router
        self._rng = router.rng
        self._group = group
        self._history = history
        self._tenures = tenures
        self._topic = topic
        self._numbers = range(partitions)
        self._is_open = is_open  # the group has its settings
        self._drains = drains  # whether to accept everything from now on
        self._is_over = is_over  # nothing is left to do
        self._coordinator = CoordinatorClient(router, group.name, GROUP_TYPE)
        self._leaders: dict[TopicPartition, str] = {}
        self._member_ids = 0  # used so far
        self.crashes = 0
        self.stopping = False
        self.done = False
        self._become_new_member()

    def _become_new_member(self) -> None:
        self._member_ids += 1
        self.id = f"{self.name}.{self._member_ids}"
        self._epoch = JOIN_EPOCH
        self._heartbeat_at = 0.0
        self._sessions: dict[str, Session] = {}  # by host

    async def run(self) -> None:
        await self._is_open.wait()
        while not (self.stopping and self._is_over()):
            await self._heartbeat()
            await self._find_leaders()
            for host in sorted({self._leaders[place] for place in self._history.assigned if place in self._leaders}):
                await self._take(host)
            if self._drains():
                await asyncio.sleep(DRAIN_PAUSE_SECONDS)
            else:
                await self._change()
                await asyncio.sleep(self._rng.random() * PAUSE_MAX_SECONDS)
        self.done = True

    async def _change(self) -> None:
        """Do something that members do now and then."""
        draw = self._rng.random()
        for chance, change in (
            (CRASH_CHANCE, self._crash),
            (LEAVE_CHANCE, self._leave),
            (CLOSE_CHANCE, self._close_session),
            (REOPEN_CHANCE, self._reopen_session),
            (STALL_CHANCE, self._stall),
        ):
            draw -= chance
            if draw < 0:
                await change()
                return

    # The group

    async def _heartbeat(self) -> None:
        if self._router.ports.clock.monotonic() < self._heartbeat_at:
            return
        self._heartbeat_at = self._router.ports.clock.monotonic() + HEARTBEAT_SECONDS
        response: ShareGroupHeartbeatResponse | None = await self._coordinator.call(
            self._heartbeat_request(self._epoch), HEARTBEAT_VERSION
        )
        if response is None:
            return
        self._coordinator.check_error(response.error_code)
        if response.error_code in (Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID):
            self._epoch = JOIN_EPOCH
        elif response.error_code == 0:
            self._epoch = response.member_epoch
            for topic in response.assignment.topic_partitions if response.assignment is not None else ():
                self._history.assigned.update({TopicPartition(topic.topic_id, one): None for one in topic.partitions})

    def _heartbeat_request(self, epoch: int) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(
            group_id=self._group.name,
            member_id=self.id,
            member_epoch=epoch,
            subscribed_topic_names=(self._topic,) if epoch == JOIN_EPOCH else None,
        )

    async def _leave(self) -> None:
        await self._coordinator.call(self._heartbeat_request(LEAVE_EPOCH), HEARTBEAT_VERSION)
        self._router.disconnect()
        self._become_new_member()

    async def _crash(self) -> None:
        self.crashes += 1
        self._router.disconnect()
        self._become_new_member()

    async def _stall(self) -> None:
        await asyncio.sleep(STALL_SECONDS)

    async def _find_leaders(self) -> None:
        if len(self._leaders) < len(self._numbers):
            for number in self._numbers:
                place = await self._router.find(self._topic, number)
                if place is not None and place.leader is not None:
                    self._leaders[TopicPartition(place.topic_id, number)] = place.leader

    # Taking records

    async def _take(self, host: str) -> None:
        """Acknowledge what is held of one broker, and fetch more."""
        session = self._sessions.setdefault(host, Session())
        if session.epoch != OPENING and session.held and self._rng.random() < 0.6:
            await self._acknowledge(host, session)
            if self._sessions.get(host) is not session:
                return
        decided = {} if session.epoch == OPENING else self._decide(session)
        renews = Acknowledge.RENEW in decided.values()
        request = self._fetch_request(host, session, decided, renews=renews)
        exchange = self._tenures.begin(host, self._group.name, self.id)
        self._history.acknowledging(decided.items())
        response: ShareFetchResponse | None = await self._router.call(host, request, SHARE_VERSION)
        if response is None or response.error_code != 0:
            for place in session.partitions if response is None else ():
                self._history.unanswered[place] = self._history.unanswered.get(place, 0) + 1
            self._lose(host, None if response is None else response.error_code)
            return
        session.epoch += 1
        found = {
            TopicPartition(Id(topic.topic_id), one.partition): one
            for topic in response.topics
            for one in topic.partitions
        }
        self._answered(session, decided, {place: one.acknowledge_error_code for place, one in found.items()}, exchange)
        delivered = [self._delivered(session, place, one, exchange) for place, one in found.items()]
        if any(delivered) and not self._drains():
            await self._crash()

    def _fetch_request(
        self, host: str, session: Session, decided: Mapping[RecordPosition, Acknowledge], *, renews: bool
    ) -> ShareFetchRequest:
        led = [place for place in self._history.assigned if self._leaders.get(place) == host]
        forgotten = [
            place
            for place in session.partitions
            if place not in led or (session.epoch != OPENING and self._rng.random() < FORGET_CHANCE)
        ]
        added = [place for place in led if place not in session.partitions and place not in forgotten]
        for place in forgotten:
            del session.partitions[place]
        session.partitions.update(dict.fromkeys([*added, *(record.place for record in decided)]))
        acknowledged = _batches(decided)
        topics: dict[Id, list[PartitionToAcknowledge]] = {}
        for place in dict.fromkeys([*added, *acknowledged]):
            topics.setdefault(place.topic_id, []).append(
                PartitionToAcknowledge(
                    partition=place.partition, acknowledgement_batches=tuple(acknowledged.get(place, ()))
                )
            )
        return ShareFetchRequest(
            group_id=self._group.name,
            member_id=self.id,
            share_session_epoch=session.epoch,
            max_wait_ms=0 if renews else self._rng.choice(WAITS_MS),
            min_bytes=0 if renews else 1,
            max_bytes=0 if renews else FETCH_MAX_BYTES,
            max_records=0 if renews else self._rng.choice(RECORDS),
            batch_size=100,
            share_acquire_mode=int(self._group.exact),
            is_renew_ack=renews,
            topics=tuple(TopicToAcknowledge(topic_id=topic, partitions=tuple(some)) for topic, some in topics.items()),
            forgotten_topics=tuple(
                ForgottenTopic(topic_id=place.topic_id, partitions=(place.partition,))
                for place in forgotten
                if place not in acknowledged and session.epoch != OPENING
            ),
        )

    def _delivered(
        self, session: Session, place: TopicPartition, found: PartitionShareFetched, open_exchange: OpenExchange
    ) -> bool:
        """Take the records of one partition; returns whether one of them is poison."""
        if found.error_code != 0:
            self._leaders.pop(place, None)
            return False
        offsets: dict[int, int] = {}
        end = -1
        for one in found.acquired_records:
            if one.first_offset <= end or one.last_offset < one.first_offset:
                raise InvariantViolated(
                    Invariant.ONE_STATE, f"{self.id} gets ranges that do not ascend: {found.acquired_records}"
                )
            end = one.last_offset
            offsets.update(dict.fromkeys(range(one.first_offset, one.last_offset + 1), one.delivery_count))
        in_batches = {
            offset
            for _, header in batches(found.records or b"")
            for offset in range(header.base_offset, header.last_offset + 1)
        }
        if not in_batches.issuperset(offsets):
            raise InvariantViolated(
                Invariant.ONE_STATE, f"{self.id} gets {found.acquired_records} without the batches of all"
            )
        exchange = open_exchange.end(place)
        self._history.delivered(place, offsets, exchange)
        session.held.update({RecordPosition(place, offset): Held(count, exchange) for offset, count in offsets.items()})
        every = self._group.poison_every
        return every > 0 and any(offset % every == 0 for offset in offsets)

    def _lose(self, host: str, code: int | None) -> None:
        """The session has ended, or nothing is known of it."""
        self._sessions.pop(host, None)
        if code is None:
            self._leaders = {place: leader for place, leader in self._leaders.items() if leader != host}

    # Acknowledging

    def _decide(self, session: Session) -> dict[RecordPosition, Acknowledge]:
        """What to say now about records that are held; nothing about some of them."""
        decided: dict[RecordPosition, Acknowledge] = {}
        for record in session.held:
            if self._drains():
                decided[record] = Acknowledge.ACCEPT
                continue
            draw = self._rng.random()
            for chance, kind in (
                (ACCEPT_CHANCE, Acknowledge.ACCEPT),
                (RELEASE_CHANCE, Acknowledge.RELEASE),
                (REJECT_CHANCE, Acknowledge.REJECT),
                (RENEW_CHANCE, Acknowledge.RENEW),
            ):
                draw -= chance
                if draw < 0:
                    decided[record] = kind
                    break
        return decided

    async def _acknowledge(self, host: str, session: Session, *, closes: bool = False) -> None:
        decided = self._decide(session)
        if not decided and not closes:
            return
        topics: dict[Id, list[PartitionToAcknowledge]] = {}
        for place, some in _batches(decided).items():
            topics.setdefault(place.topic_id, []).append(
                PartitionToAcknowledge(partition=place.partition, acknowledgement_batches=tuple(some))
            )
        request = ShareAcknowledgeRequest(
            group_id=self._group.name,
            member_id=self.id,
            share_session_epoch=CLOSING if closes else session.epoch,
            is_renew_ack=Acknowledge.RENEW in decided.values(),
            topics=tuple(TopicToAcknowledge(topic_id=topic, partitions=tuple(some)) for topic, some in topics.items()),
        )
        exchange = self._tenures.begin(host, self._group.name, self.id)
        self._history.acknowledging(decided.items())
        response: ShareAcknowledgeResponse | None = await self._router.call(host, request, SHARE_VERSION)
        if response is None or response.error_code != 0:
            self._lose(host, None if response is None else response.error_code)
            return
        session.epoch += 1
        codes = {
            TopicPartition(Id(topic.topic_id), one.partition): one.error_code
            for topic in response.topics
            for one in topic.partitions
        }
        self._answered(session, decided, codes, exchange)

    def _answered(
        self,
        session: Session,
        decided: Mapping[RecordPosition, Acknowledge],
        codes: Mapping[TopicPartition, int],
        open_exchange: OpenExchange,
    ) -> None:
        """The session was alive when the request arrived: what it held then, nobody else may have got."""
        for record, held in session.held.items():
            self._history.held(record, held.count, held.since, open_exchange.sent)
        for record, kind in decided.items():
            held = session.held[record]
            code = codes.get(record.place, 0)
            if code != 0:
                if code in (Error.NOT_LEADER_OR_FOLLOWER, Error.UNKNOWN_TOPIC_OR_PARTITION):
                    self._leaders.pop(record.place, None)
            elif kind is Acknowledge.RENEW:
                exchange = open_exchange.end(record.place)
                # if the lock had ended, and somebody has finished the record, a renewal is answered all the same
                is_certain = self._history.is_locked(held.since, exchange)
                session.held[record] = held._replace(since=exchange if is_certain else replace(held.since, tenure=None))
                continue
            else:
                self._history.acknowledged(record, kind, held.count, held.since, open_exchange.end(record.place))
            del session.held[record]

    async def _close_session(self) -> None:
        for host, session in list(self._sessions.items()):
            if session.epoch != OPENING:
                await self._acknowledge(host, session, closes=True)
                self._sessions.pop(host, None)

    async def _reopen_session(self) -> None:
        """Start over with epoch 0 on the same connection: what the member holds stays locked, and it may go on."""
        for session in self._sessions.values():
            session.epoch = OPENING
            session.partitions = {}
            # if the connection was lost meanwhile, its records were released
            session.held = {
                record: held._replace(since=replace(held.since, tenure=None)) for record, held in session.held.items()
            }


def _batches(decided: Mapping[RecordPosition, Acknowledge]) -> dict[TopicPartition, list[AcknowledgementBatch]]:
    """Neighbouring offsets in one batch, each with its own type."""
    found: dict[TopicPartition, list[list[tuple[int, Acknowledge]]]] = {}
    for record, kind in sorted(decided.items()):
        groups = found.setdefault(record.place, [])
        if groups and groups[-1][-1][0] + 1 == record.offset:
            groups[-1].append((record.offset, kind))
        else:
            groups.append([(record.offset, kind)])
    return {
        place: [
            AcknowledgementBatch(
                first_offset=group[0][0],
                last_offset=group[-1][0],
                acknowledge_types=tuple(kind for _, kind in group),
            )
            for group in groups
        ]
        for place, groups in found.items()
    }
