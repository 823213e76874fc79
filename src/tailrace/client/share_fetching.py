"""The requests of a share consumer to one broker: a task that sends one at a time, in a share session.

Acknowledgements ride on the next ShareFetch; when there is nothing to fetch, or locks are renewed, they go alone. A
ShareFetch that a broker holds holds back the acknowledgements after it, so it is held only shortly while this member
has messages in hand, and not at all when somebody waits for the result of an acknowledgement.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from math import inf
from typing import Any, Final, Protocol

from tailrace.client.cluster import Cluster, Retry
from tailrace.client.faults import ClientError, NotAcknowledged, Refused, Unsupported, error_of
from tailrace.client.shares.acknowledgements import MOVED, Acknowledgements, Decision, Settled
from tailrace.client.shares.acquired import AcquiredRecords
from tailrace.client.shares.message import Message, Outcome
from tailrace.client.shares.session import FetchLimits, ShareSession
from tailrace.model.addresses import Address
from tailrace.model.ids import PartitionName, TopicPartition
from tailrace.wire.errors import Error
from tailrace.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint
from tailrace.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from tailrace.wire.messages.share_fetch import PartitionShareFetched, ShareFetchRequest, ShareFetchResponse

PAUSE_S: Final = 0.1  # before a broker is asked again after an error
SHARE_FETCH: Final = 78
SHARE_ACKNOWLEDGE: Final = 79
FULL_VERSION: Final = 2  # of both: with acquire modes and renewals, as Kafka has since 4.2

Request = ShareFetchRequest | ShareAcknowledgeRequest


class Consuming(Protocol):
    """What the task of a broker needs of its consumer."""

    def wanted(self, broker: Address, now: float) -> Sequence[TopicPartition]:
        """The partitions to fetch from this broker."""
        ...

    def fetch_limits(self, fetching: "ShareFetching") -> FetchLimits | None:
        """How much to fetch from this broker now; None: nothing."""
        ...

    def name(self, partition: TopicPartition) -> PartitionName | None: ...

    def is_unwanted(self, message: Message) -> bool:
        """Whether no poll took this message, and none is expected to: it is to be released."""
        ...

    def delivered(self, messages: Iterable[Message]) -> None: ...

    def moved(self, partition: PartitionName, leader: LeaderIdAndEpoch, endpoints: Sequence[NodeEndpoint]) -> None:
        """The broker does not serve a partition; it may know who does."""
        ...

    def unanswered(self, broker: Address, partitions: Sequence[TopicPartition]) -> None:
        """The broker does not answer: who leads these partitions? What no poll took yet is lost."""
        ...

    def refused(self, why: str) -> None:
        """An acknowledgement failed whose result no caller awaits."""
        ...

    def failed(self, failure: ClientError) -> None: ...

    def changed(self) -> None:
        """A request was answered."""
        ...


class _Token:
    """Whom to tell the result of an acknowledgement."""

    __slots__ = ("done", "message")

    def __init__(self, message: Message, done: "asyncio.Future[None] | None") -> None:
        self.message = message
        self.done = done

    def finish(self, failure: ClientError | None) -> None:
        if self.done is None or self.done.done():
            return
        if failure is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(failure)


class ShareFetching:
    def __init__(
        self, cluster: Cluster, address: Address, session: ShareSession, consuming: Consuming, *, renews_locks: bool
    ) -> None:
        self.address = address
        self.asked = 0  # records, by the fetch under way
        self.fetched_at = -inf
        self.held: dict[Message, None] = {}  # delivered by this broker, and neither decided nor lost
        self._cluster = cluster
        self._driver = cluster.driver
        self._session = session
        self._consuming = consuming
        self._renews_locks = renews_locks
        self._acknowledgements = Acknowledgements()
        self._acquired: dict[TopicPartition, AcquiredRecords] = {}
        self._retry_at = -inf
        self._wake = asyncio.Event()
        self._is_closing = False
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(lambda _: consuming.changed())

    # What the consumer does

    @property
    def is_settled(self) -> bool:
        """Whether all acknowledgements are answered."""
        return not len(self._acknowledgements) and not self._acknowledgements.is_sent

    @property
    def is_awaited(self) -> bool:
        """Whether a caller awaits the result of an acknowledgement that is not sent yet."""
        return any(one.token is not None and one.token.done is not None for one in self._acknowledgements)

    def may_fetch(self, now: float) -> bool:
        """Whether no fetch is under way, and no pause after an error."""
        return not self.asked and self._retry_at <= now

    def check(self) -> None:
        """Raise what ended the task, if anything did."""
        if self._task.done():
            self._task.result()

    def wake(self) -> None:
        self._wake.set()

    def decide(self, message: Message, outcome: Outcome, done: "asyncio.Future[None] | None" = None) -> None:
        if message not in self.held:
            why = "its lock has ended" if message.is_lost else "it was acknowledged before"
            raise NotAcknowledged(f"cannot {outcome.name.lower()} {_show(message)}: {why}")
        if outcome is not Outcome.RENEW:
            message.outcome = outcome
            del self.held[message]
        self._add_decision(
            message.source, Decision(message.offset, outcome, message.locked_until, _Token(message, done))
        )

    def lose(self, message: Message) -> None:
        """The lock has ended, or may have: others may have the message by now."""
        message.is_lost = True
        self.held.pop(message, None)

    async def check_renewable(self) -> None:
        try:
            link = await self._cluster.link(self.address)
        except (OSError, TimeoutError, Retry) as error:
            raise NotAcknowledged(f"cannot renew locks: {self.address} does not answer: {error}") from None
        if link.version(SHARE_ACKNOWLEDGE) < FULL_VERSION:
            raise Unsupported(
                f"{self.address} cannot renew locks: that needs ShareAcknowledge 2, which Kafka has since 4.2"
            )

    async def close(self) -> None:
        """Send what was decided, and end the session: the broker releases the rest."""
        self._is_closing = True
        self.wake()
        await asyncio.gather(self._task, return_exceptions=True)

    # The task

    async def _run(self) -> None:
        while not self._is_closing:
            now = self._driver.now()
            self._keep_locks(now)
            request = self._next_request(now) if self._retry_at <= now else None
            if request is not None:
                await self._send(request)
            else:
                await self._wait(now)
        await self._close_session()

    async def _wait(self, now: float) -> None:
        until = [self._retry_at]
        if self._renews_locks:
            until += [message.renew_at for message in self.held]
        timeout_s = min((at - now for at in until if at > now), default=None)
        self._wake.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._wake.wait()

    def _keep_locks(self, now: float) -> None:
        """Renew locks that are due; release messages that came too late for a poll and that nobody took since."""
        for message in list(self.held):
            if message.locked_until <= now:
                self.lose(message)
            elif self._renews_locks and message.renew_at <= now:
                self.decide(message, Outcome.RELEASE if self._consuming.is_unwanted(message) else Outcome.RENEW)

    def _next_request(self, now: float) -> Request | None:
        wanted = self._consuming.wanted(self.address, now)
        limits = self._consuming.fetch_limits(self) if wanted else None
        if not self._session.is_open:
            if limits is None and not len(self._acknowledgements):
                return None
            if limits is None:  # open a session only to acknowledge
                return self._session.fetch((), FetchLimits(max_wait_ms=0, max_records=0, mode="batch_optimized"), {})
            return self._session.fetch(wanted, limits, {})
        if limits is None or any(one.outcome is Outcome.RENEW for one in self._acknowledgements):
            if not len(self._acknowledgements):
                return None
            batches = self._acknowledgements.take()
            return self._session.acknowledge(batches, renews=self._acknowledgements.renews)
        return self._session.fetch(wanted, limits, self._acknowledgements.take())

    async def _send(self, request: Request) -> None:
        sent_at = self._driver.now()
        within_s = self._cluster.limits.request_s
        if isinstance(request, ShareFetchRequest):
            self.asked, self.fetched_at = request.max_records, sent_at
            within_s += request.max_wait_ms / 1000
        try:
            if isinstance(request, ShareFetchRequest) and request.share_acquire_mode:
                await self._check_record_limit()
            response = await self._cluster.call(self.address, request, within_s)
        except (Retry, OSError, TimeoutError) as error:
            self._unanswered(str(error))
        except ClientError as failure:
            self._unanswered(str(failure))
            self._consuming.failed(failure)
        else:
            self._take(response, sent_at)
        finally:
            self.asked = 0
            self._consuming.changed()

    async def _check_record_limit(self) -> None:
        link = await self._cluster.link(self.address)
        if link.version(SHARE_FETCH) < FULL_VERSION:
            raise Unsupported(
                f"{self.address} cannot limit the number of records: that needs ShareFetch 2, which Kafka has since "
                'version 4.2; use acquire_mode="batch_optimized"'
            )

    async def _close_session(self) -> None:
        rounds = len(self._acknowledgements).bit_length() + 1  # each halves what is refused
        while self._session.is_open and len(self._acknowledgements) and rounds:
            rounds -= 1
            batches = self._acknowledgements.take()
            await self._send(self._session.acknowledge(batches, renews=self._acknowledgements.renews))
        if self._session.is_open:
            with suppress(Retry, ClientError, OSError, TimeoutError):
                await self._cluster.call(self.address, self._session.close())
        self._settle(self._acknowledgements.abandoned(Error.NETWORK_EXCEPTION), why="the consumer was closed")

    # Answers

    def _unanswered(self, why: str) -> None:
        """The connection is gone, and with it the session: the broker releases the messages that it had locked."""
        self._session.reset()
        self._retry_at = self._driver.now() + self._driver.jitter(0.5, 1.0) * PAUSE_S
        self._settle(self._acknowledgements.abandoned(Error.NETWORK_EXCEPTION), why=why)
        self._consuming.unanswered(self.address, self._consuming.wanted(self.address, self._retry_at))

    def _take(self, response: ShareFetchResponse | ShareAcknowledgeResponse, sent_at: float) -> None:
        now = self._driver.now()
        code = error_of(response.error_code)
        if code is not Error.NONE:
            self._session.reset()
            self._settle(self._acknowledgements.refused(code, now))
            self._retry_at = now + self._driver.jitter(0.5, 1.0) * PAUSE_S
            if not code.retriable:
                self._consuming.failed(Refused(code, f"fetch from {self.address}", response.error_message))
            return
        self._session.answered()
        lock_s = response.acquisition_lock_timeout_ms / 1000
        errors: dict[TopicPartition, Error] = {}
        for topic in response.topics:
            answer: Any
            for answer in topic.partitions:
                partition = TopicPartition(topic.topic_id, answer.partition)
                if isinstance(answer, PartitionShareFetched):
                    errors[partition] = error_of(answer.acknowledge_error_code)
                    self._take_records(partition, answer, response.node_endpoints, sent_at, lock_s)
                else:
                    errors[partition] = error_of(answer.error_code)
                if errors[partition] in MOVED:
                    self._take_error(partition, errors[partition], answer, response.node_endpoints)
        self._settle(self._acknowledgements.answered(errors, now), sent_at, lock_s)

    def _take_records(
        self,
        partition: TopicPartition,
        answer: PartitionShareFetched,
        endpoints: Sequence[NodeEndpoint],
        sent_at: float,
        lock_s: float,
    ) -> None:
        name = self._consuming.name(partition)
        if answer.error_code:
            self._take_error(partition, error_of(answer.error_code), answer, endpoints)
        if not answer.acquired_records or name is None:
            return
        try:
            found = self._acquired.setdefault(partition, AcquiredRecords()).of(answer)
        except ClientError as failure:
            self._consuming.failed(failure)
            return
        messages = [
            Message(
                name,
                record.offset,
                record.timestamp,
                record.key,
                record.value,
                record.headers,
                delivery_count=count,
                locked_until=sent_at + lock_s,
                lock_s=lock_s,
                source=partition,
                broker=self.address,
            )
            for record, count in found.records
        ]
        self.held |= dict.fromkeys(messages)
        for offset in found.gaps:
            self._add_decision(partition, Decision(offset, Outcome.GAP, sent_at + lock_s))
        for offset in found.unreadable:
            self._add_decision(partition, Decision(offset, Outcome.RELEASE, sent_at + lock_s))
        self._consuming.delivered(messages)

    def _take_error(
        self, partition: TopicPartition, error: Error, answer: Any, endpoints: Sequence[NodeEndpoint]
    ) -> None:
        name = self._consuming.name(partition)
        if name is None:
            return
        if error in MOVED:
            for message in [one for one in self.held if one.source == partition]:
                self.lose(message)
        if error in MOVED or error.retriable:
            self._consuming.moved(name, answer.current_leader, endpoints)
        else:
            self._consuming.failed(Refused(error, f"fetch {name}", answer.error_message))

    def _add_decision(self, partition: TopicPartition, decision: Decision) -> None:
        replaced = self._acknowledgements.add(partition, decision)
        if replaced is not None and replaced.token is not None:
            replaced.token.finish(None)  # a renewal, which a decision makes needless
        self.wake()

    def _settle(self, settled: Iterable[Settled], sent_at: float = 0.0, lock_s: float = 0.0, why: str = "") -> None:
        for decision, error in settled:
            token: _Token | None = decision.token
            if token is None:
                continue
            message = token.message
            if error is Error.NONE:
                if decision.outcome is Outcome.RENEW:
                    message.lock_s = lock_s or message.lock_s
                    message.locked_until = sent_at + message.lock_s
                token.finish(None)
                continue
            if error is Error.INVALID_RECORD_STATE or error in MOVED:
                self.lose(message)
            what = f"cannot {decision.outcome.name.lower()} {_show(message)}: {why or error.name}"
            token.finish(NotAcknowledged(what))
            if token.done is None and decision.outcome is not Outcome.RENEW:
                self._consuming.refused(what)


def _show(message: Message) -> str:
    return f"offset {message.offset} of {message.partition}"
