"""The share session of one taker with one broker: takes and settles messages for many callers, one request at a time.

What several callers want is one ShareFetch, and what they decide meanwhile is one ShareAcknowledge. A broker holds no
request for long, since others use the connection: a queue that is empty answers at once. The session is opened by the
first ShareFetch, and closed when the taker is idle.

An accept counts when the broker has answered it. A broker that could not store it is asked again, as long as the lock
lasts. Whatever leaves open what became of it is `OutcomeUnknown`: the message may be finished or come again, so the
caller must not pass it on.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from tailrace.client.cluster import Cluster, Retry, Unanswered
from tailrace.client.cluster_map import UNKNOWN
from tailrace.client.faults import ClientError, NotAcknowledged, OutcomeUnknown, Refused, Unsupported, error_of
from tailrace.client.shares.acknowledgements import MOVED
from tailrace.client.shares.acquired import AcquiredRecords
from tailrace.client.shares.message import Message, Outcome
from tailrace.client.shares.session import FetchLimits, ShareSession
from tailrace.model.addresses import Address
from tailrace.model.ids import PartitionName, TopicPartition, show_id
from tailrace.wire.errors import Error
from tailrace.wire.messages.acknowledgements import AcknowledgementBatch
from tailrace.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint
from tailrace.wire.messages.share_fetch import PartitionShareFetched, ShareFetchRequest, ShareFetchResponse

SHARE_FETCH: Final = 78
RECORD_LIMIT_VERSION: Final = 2  # of ShareFetch, which Apache Kafka has since 4.2
SETTLE_RETRY_S: Final = 0.05
SETTLE_MAX_S: Final = 10.0  # how long an accept that the broker could not store is tried again
SESSION_LOST: Final = (Error.SHARE_SESSION_NOT_FOUND, Error.INVALID_SHARE_SESSION_EPOCH)
NOT_DONE: Final = (Error.INVALID_RECORD_STATE, Error.INVALID_REQUEST)

Wanted = tuple[TopicPartition, ...]
# Tells which broker leads a partition now, as another one says.
Moved = Callable[[TopicPartition, LeaderIdAndEpoch, Sequence[NodeEndpoint]], None]


class Ask:
    """A caller that wants a message of one of these partitions."""

    __slots__ = ("result", "wait_ms", "wanted")

    def __init__(self, wanted: Wanted, wait_ms: int) -> None:
        self.wanted = wanted
        self.wait_ms = wait_ms
        self.result: asyncio.Future[Message | None] = asyncio.get_running_loop().create_future()


class Settling:
    """What is decided about a message, or about an offset without one."""

    __slots__ = ("alone", "done", "is_ambiguous", "offset", "outcome", "partition", "until")

    def __init__(self, partition: TopicPartition, offset: int, outcome: Outcome, until: float) -> None:
        self.partition = partition
        self.offset = offset
        self.outcome = outcome
        self.until = until  # when trying again is given up
        self.alone = False  # a broker takes all decisions of a partition, or none: send this one without others
        self.is_ambiguous = False  # a broker has failed to store it, as far as it knows
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def finish(self, failure: ClientError | None = None) -> None:
        if self.done.done():
            return
        if failure is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(failure)
            self.done.exception()  # nobody may be waiting for it

    def fail(self, why: str, *, is_known: bool) -> None:
        what = f"cannot {self.outcome.name.lower()} offset {self.offset} of partition {self.partition.partition}: {why}"
        if is_known and not self.is_ambiguous:
            self.finish(NotAcknowledged(what))
        else:
            self.finish(OutcomeUnknown(what))


class TakingSession:
    def __init__(
        self,
        cluster: Cluster,
        address: Address,
        group: str,
        names: Callable[[TopicPartition], PartitionName],
        moved: Moved,
    ) -> None:
        """`cluster`: with connections that others may share; each request holds one up only as long as it takes."""
        self.address = address
        self.held: dict[Message, None] = {}  # locked here, and not decided about
        self.is_warm = False  # the broker has delivered something in this session, or had the time to
        self._cluster = cluster
        self._driver = cluster.driver
        self._group = group
        self._name_of = names
        self._moved = moved
        self._session = self._new_session()
        self._asks: deque[Ask] = deque()
        self._settling: deque[Settling] = deque()
        self._acquired: dict[TopicPartition, AcquiredRecords] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_closing = False

    def _new_session(self) -> ShareSession:
        return ShareSession(self._group, show_id(self._driver.new_id()))

    @property
    def is_idle(self) -> bool:
        return not self._asks and not self._settling and not self.held

    # What callers do

    async def take(self, wanted: Wanted, wait_ms: int = 0) -> Message | None:
        """A message of one of these partitions; None if the broker has none. `Retry` if a partition failed.

        `wait_ms`: how long the broker may hold the request, and what comes after it on the connection."""
        ask = Ask(wanted, wait_ms)
        self._asks.append(ask)
        self._start()
        try:
            return await ask.result
        except asyncio.CancelledError:
            if ask.result.done() and not ask.result.cancelled() and ask.result.exception() is None:
                message = ask.result.result()
                if message is not None:
                    self.decide(message, Outcome.RELEASE)
            raise

    def decide(self, message: Message, outcome: Outcome) -> "asyncio.Future[None]":
        """Done when the broker has answered. NotAcknowledged: it did not happen; OutcomeUnknown: it may have."""
        self.held.pop(message, None)
        message.outcome = outcome
        until = min(message.locked_until, self._driver.now() + SETTLE_MAX_S)
        settling = Settling(message.source, message.offset, outcome, until)
        if message.is_lost:
            settling.fail("its lock has ended", is_known=True)
        else:
            self._settling.append(settling)
            self._start()
        return settling.done

    async def close(self) -> None:
        """End the session: the broker releases what is locked. Waits for what is under way."""
        self._is_closing = True
        self._start()
        assert self._task is not None
        await self._task

    # The task, which is there while there is something to do

    def _start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._settling or self._asks:
                if self._settling:
                    await self._settle()
                else:
                    await self._fetch()
            if self._is_closing and self._session.is_open:
                self._lose_all()
                with suppress(Retry, ClientError):
                    await self._cluster.call(self.address, self._session.close())
        finally:
            self._task = None
            self._fail_all()

    def _fail_all(self) -> None:
        """After the task was cancelled, or has failed."""
        for settling in self._settling:
            settling.fail("the client was closed", is_known=False)
        for ask in self._asks:
            _fail(ask, Retry("the client was closed"))
        self._settling.clear()
        self._asks.clear()

    # Taking

    async def _fetch(self) -> None:
        wanted, wait_ms = self._asks[0].wanted, self._asks[0].wait_ms
        asks = [one for one in self._asks if (one.wanted, one.wait_ms) == (wanted, wait_ms) and not one.result.done()]
        self._asks = deque(one for one in self._asks if (one.wanted, one.wait_ms) != (wanted, wait_ms))
        if not asks:
            return
        try:
            found, failure = await self._fetch_some(wanted, len(asks), wait_ms)
        except (Retry, ClientError) as error:
            for ask in asks:
                _fail(ask, error)
            return
        self._hand_out(found, asks, failure)

    def _hand_out(self, found: deque[Message], asks: Iterable[Ask], failure: Exception | None) -> None:
        for ask in asks:
            if ask.result.done():  # the caller has given up
                continue
            if found:
                ask.result.set_result(found.popleft())
            elif failure is not None:
                _fail(ask, failure)
            else:
                ask.result.set_result(None)
        for message in found:
            self.decide(message, Outcome.RELEASE)

    async def _fetch_some(self, wanted: Wanted, count: int, wait_ms: int) -> tuple[deque[Message], Exception | None]:
        limits = FetchLimits(max_wait_ms=wait_ms, max_records=count, mode="record_limit")
        while True:
            sent_at = self._driver.now()
            response: ShareFetchResponse = await self._call(self._session.fetch(wanted, limits, {}))
            error = error_of(response.error_code)
            if error in SESSION_LOST and sent_at + self._cluster.limits.request_s > self._driver.now():
                was_open = self._session.is_open
                await self._end_session(error)
                if was_open:
                    continue
            if error is not Error.NONE:
                await self._end_session(error)
                raise _failure(error, f"take from {self.address}", response.error_message)
            self._session.answered()
            found, failure, gaps = self._read(response, sent_at)
            if found or failure is not None or not gaps:
                return found, failure

    def _read(self, response: ShareFetchResponse, sent_at: float) -> tuple[deque[Message], Exception | None, bool]:
        found: deque[Message] = deque()
        failure: Exception | None = None
        had_gaps = False
        lock_s = response.acquisition_lock_timeout_ms / 1000
        for topic in response.topics:
            for answer in topic.partitions:
                place = TopicPartition(topic.topic_id, answer.partition)
                error = error_of(answer.error_code)
                if error is not Error.NONE:
                    self._moved(place, answer.current_leader, response.node_endpoints)
                    failure = _failure(error, f"take from {self._name_of(place)}", answer.error_message)
                elif answer.acquired_records:
                    try:
                        had_gaps |= self._acquire(place, answer, sent_at, lock_s, found)
                    except ClientError as refused:
                        failure = refused
        return found, failure, had_gaps

    def _acquire(
        self, place: TopicPartition, answer: PartitionShareFetched, sent_at: float, lock_s: float, found: deque[Message]
    ) -> bool:
        """Whether there were offsets without a record."""
        acquired = self._acquired.setdefault(place, AcquiredRecords()).of(answer)
        until = sent_at + lock_s
        for record, count in acquired.records:
            message = Message(
                self._name_of(place),
                record.offset,
                record.timestamp,
                record.key,
                record.value,
                record.headers,
                delivery_count=count,
                locked_until=until,
                lock_s=lock_s,
                source=place,
                broker=self.address,
            )
            self.held[message] = None
            found.append(message)
        self._settling += [Settling(place, offset, Outcome.GAP, until) for offset in acquired.gaps]
        self._settling += [Settling(place, offset, Outcome.RELEASE, until) for offset in acquired.unreadable]
        if acquired.unreadable:
            offset = acquired.unreadable[0]
            raise ClientError(f"cannot read the message at offset {offset} of {self._name_of(place)}: it is damaged")
        return bool(acquired.gaps)

    # Settling

    async def _settle(self) -> None:
        if not self._session.is_open:
            for one in self._settling:
                one.fail("its lock has ended with the connection", is_known=True)
            self._settling.clear()
            return
        sent = self._next_to_settle()
        batches = {
            place: tuple(
                AcknowledgementBatch(
                    first_offset=one.offset, last_offset=one.offset, acknowledge_types=(int(one.outcome),)
                )
                for one in sorted(ones, key=lambda one: one.offset)
            )
            for place, ones in sent.items()
        }
        every = [one for ones in sent.values() for one in ones]
        try:
            response = await self._call(self._session.acknowledge(batches))
        except (Retry, ClientError) as failure:
            for one in every:
                one.fail(str(failure), is_known=not isinstance(failure, Unanswered))
            return
        error = error_of(response.error_code)
        if error is not Error.NONE:
            await self._end_session(error)
            for one in every:
                one.fail(response.error_message or error.name, is_known=True)
            return
        self._session.answered()
        answers = {
            TopicPartition(topic.topic_id, one.partition): one for topic in response.topics for one in topic.partitions
        }
        is_retried = False
        for place, ones in sent.items():
            answer = answers.get(place)
            if answer is not None and error_of(answer.error_code) in MOVED:
                self._moved(place, answer.current_leader, response.node_endpoints)
            is_retried |= self._settled(ones, answer)
        if is_retried:
            await self._driver.sleep(SETTLE_RETRY_S)

    def _next_to_settle(self) -> dict[TopicPartition, list[Settling]]:
        """What the next request decides; the rest stays in `_settling`."""
        sent: dict[TopicPartition, list[Settling]] = {}
        later: deque[Settling] = deque()
        for one in self._settling:
            others = sent.setdefault(one.partition, [])
            if others and (one.alone or others[0].alone):
                later.append(one)
            else:
                others.append(one)
        self._settling = later
        return sent

    def _settled(self, ones: list[Settling], answer: Any) -> bool:
        """Whether the broker is to be asked again after a pause."""
        error = Error.REQUEST_TIMED_OUT if answer is None else error_of(answer.error_code)
        why = (answer.error_message if answer is not None else None) or error.name
        if error is Error.NONE:
            for one in ones:
                one.finish()
        elif error in NOT_DONE and len(ones) > 1:
            for one in ones:
                one.alone = True
            self._settling.extendleft(reversed(ones))
        elif error in NOT_DONE:
            ones[0].fail(why, is_known=True)
        elif error.retriable and error not in MOVED:
            now = self._driver.now()
            for one in ones:
                one.is_ambiguous = True
                if now < one.until:
                    self._settling.append(one)
                else:
                    one.fail(why, is_known=False)
            return True
        else:
            for one in ones:
                one.fail(why, is_known=False)
        return False

    # The session

    async def _call(self, request: Any) -> Any:
        try:
            if isinstance(request, ShareFetchRequest):
                await self._check_version()
            return await self._cluster.call(self.address, request)
        except (OSError, TimeoutError) as error:
            self._lose_session()
            raise Retry(f"{self.address} does not answer: {error}") from None
        except (Retry, ClientError):
            self._lose_session()
            raise

    async def _check_version(self) -> None:
        link = await self._cluster.link(self.address)
        if link.version(SHARE_FETCH) < RECORD_LIMIT_VERSION:
            raise Unsupported(
                f"{self.address} cannot limit the number of records: that needs ShareFetch 2, which Apache Kafka has "
                "since 4.2"
            )

    def _lose_session(self) -> None:
        """No answer came. What an unanswered ShareFetch has locked ends with its connection: the next session has a
        member id of its own, so that it does not take over."""
        self._lose_all()
        self._session = self._new_session()

    async def _end_session(self, error: Error) -> None:
        """The broker refused a request: what is locked is released, and the next request opens a session."""
        self._lose_all()
        if self._session.is_open and error is not Error.SHARE_SESSION_NOT_FOUND:
            with suppress(Retry, ClientError, OSError, TimeoutError):
                await self._cluster.call(self.address, self._session.close())
        self._session = self._new_session()

    def _lose_all(self) -> None:
        self.is_warm = False
        for message in self.held:
            message.is_lost = True
        self.held.clear()


def _failure(error: Error, what: str, message: str | None) -> Exception:
    if error not in UNKNOWN and (error.retriable or error in MOVED):
        return Retry(f"cannot {what}: {message or error.name}")
    return Refused(error, what, message)


def _fail(ask: Ask, error: Exception) -> None:
    if not ask.result.done():
        ask.result.set_exception(error)
        ask.result.exception()  # the caller may have given up
