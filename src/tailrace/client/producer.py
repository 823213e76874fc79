"""A producer: appends records to topics, each once and in order, however often a request has to be repeated.

    async with Producer(cluster) as producer:
        written = await producer.send("orders", b"two coffees", key=b"table 4")
        offset = (await written).offset

`send` waits only while the buffer is full; the future that it returns has the offset, or the reason why the record was
not appended. A failure with `may_be_written` set is the only one after which a record may be in the topic all the same.
What is due in one turn of the loop goes to each leader in one request.

With a transactional id, records are sent within transactions:

    await producer.begin()
    await producer.send("orders", b"two coffees")
    await producer.commit_offsets("baristas", {PartitionName("wishes", 0): 17})
    await producer.commit()

If one of them was not written, `commit` raises, and the transaction must be aborted. A producer whose transactional id
was taken over by another one is `fenced`: nothing that it does succeeds any more.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

from tailrace.client.batching import Batch, BatchLimits, Outbox, size_of
from tailrace.client.cluster import Cluster, Retry
from tailrace.client.cluster_map import UNKNOWN
from tailrace.client.faults import ClientError, Refused, Unavailable, error_of
from tailrace.client.partition_choice import PartitionChoice
from tailrace.client.produce_requests import produce_request
from tailrace.client.transactions import (
    NO_IDENTITY,
    OpenTransaction,
    ProducerIdentity,
    add_partitions,
    begin_epoch,
    commit_offsets_within,
    end_transaction,
)
from tailrace.client.turns import Turns
from tailrace.model.addresses import Address
from tailrace.model.frozen import frozen
from tailrace.model.ids import PartitionName
from tailrace.records.compress import Compression
from tailrace.records.record import Headers, NewRecord
from tailrace.wire.errors import Error
from tailrace.wire.messages.produce import PartitionProduced

# Another producer has taken over the transactional id.
FENCED: Final = (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH)
# The broker does not know this producer, or expects another sequence number: a new epoch is needed.
LOST_SEQUENCE: Final = (Error.OUT_OF_ORDER_SEQUENCE_NUMBER, Error.UNKNOWN_PRODUCER_ID, Error.INVALID_PRODUCER_EPOCH)


@frozen
class ProducerOptions:
    limits: BatchLimits = BatchLimits()
    compression: Compression = "none"
    timeout_ms: int = 30_000  # for the replicas to have a batch
    creates_topics: bool = True  # if the broker does so for a topic that does not exist
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000  # after which the coordinator aborts a transaction


class Written(NamedTuple):
    partition: PartitionName
    offset: int  # -1: it was written by an earlier attempt, and the broker no longer knows at which offset


class Sent(NamedTuple):
    """Records of one partition that are written together, or not at all."""

    partition: PartitionName
    records: int  # how many
    written: "asyncio.Future[Written]"  # the first of them


class NotWritten(ClientError):
    """A record was not appended; with `may_be_written` it may have been, because no broker could say."""

    def __init__(self, why: str, *, may_be_written: bool = False, error: Error | None = None) -> None:
        super().__init__(f"{why}; the record may be written all the same" if may_be_written else why)
        self.may_be_written = may_be_written
        self.error = error  # with which a broker refused it, if one did


class Producer:
    def __init__(self, cluster: Cluster, options: ProducerOptions = ProducerOptions()) -> None:  # noqa: B008
        self._cluster = cluster
        self._options = options
        self._outbox = Outbox(options.limits)
        self._identity: ProducerIdentity | None = None
        self._added: dict[PartitionName, None] | None = None  # to the open transaction; None: there is none
        self._is_known = False  # the coordinator may know the open transaction: something was added to it
        self._failed = ""  # why the open transaction can only be aborted
        self.fenced = ""  # why this producer can do nothing any more
        self._needs_epoch = False  # sequence numbers are lost: begin anew once no batch is uncertain
        self._is_beginning = False  # an epoch is asked for: until it is there, nothing is sent
        self._choice = PartitionChoice(cluster, self._leader, self._spawn)
        self._room = asyncio.Event()  # set when a batch is done
        self._requests: dict[asyncio.Task[None], None] = {}
        self._closed = False
        self._turns = Turns(self._turn, cluster.driver.now)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> "asyncio.Future[Written]":
        """Add a record to the buffer; the future has its offset once it is committed.

        A topic or partition that is not there is refused after `unknown_s`: until then it may have just been added.
        """
        stamp = self._cluster.driver.wall_ms() if timestamp_ms is None else timestamp_ms
        if not isinstance(value, bytes | None) or not isinstance(key, bytes | None):
            raise TypeError("the value and the key of a record are bytes, or None")
        (written,) = await self.send_all(topic, [(partition, NewRecord(value, key, headers, stamp))])
        return written

    async def send_all(
        self, topic: str, records: Sequence[tuple[int | None, NewRecord]]
    ) -> "list[asyncio.Future[Written]]":
        """As `send` for many records, each with its partition or None. They wait for room together; more than fit into
        the buffer wait until it is empty."""
        targets = [
            PartitionName(topic, await self.choose_partition(topic, record.key) if partition is None else partition)
            for partition, record in records
        ]
        sizes = [size_of(record) for _, record in records]
        await self._find_room(sum(sizes))
        loop, now = asyncio.get_running_loop(), self._now()
        found: list[asyncio.Future[Written]] = []
        for target, (_, record), size in zip(targets, records, sizes, strict=True):
            written: asyncio.Future[Written] = loop.create_future()
            self._outbox.add(target, record, written, now, size)
            found.append(written)
        self._turns.wake()
        return found

    async def send_runs(self, runs: Mapping[PartitionName, Sequence[NewRecord]]) -> "list[Sent]":
        """As `send_all`, with one future for records of a partition that stand together: as many as fit into a batch,
        in the order that was given."""
        portions = [(name, some, size) for name, ones in runs.items() for some, size in self._outbox.portions(ones)]
        await self._find_room(sum(size for _, _, size in portions))
        loop, now = asyncio.get_running_loop(), self._now()
        found: list[Sent] = []
        for name, some, size in portions:
            found.append(Sent(name, len(some), loop.create_future()))
            self._outbox.add_run(name, some, found[-1].written, now, size)
        self._turns.wake()
        return found

    async def _find_room(self, size: int) -> None:
        """Wait until so many bytes may be added; then somebody is there to send them."""
        while not self._outbox.has_room(size):
            self._room.clear()
            await self._room.wait()
        if self._closed or self.fenced:
            raise NotWritten(self.fenced or "the producer is closed")
        if self._options.transactional_id is not None:
            self._check_transaction()
        self._turns.start()

    @property
    def unacknowledged_bytes(self) -> int:
        return self._outbox.size

    async def flush(self) -> None:
        """Wait until every record that was sent so far is acknowledged or has failed."""
        sent = self._outbox.tokens()
        self._outbox.flushing = True
        self._turns.wake()
        try:
            while not all(written.done() for written in sent):
                self._room.clear()
                await self._room.wait()
        finally:
            self._outbox.flushing = False

    # Transactions

    def _check_transaction(self) -> None:
        if self._added is None:
            raise NotWritten(f"{self._options.transactional_id} has no open transaction")
        if self._failed:
            raise NotWritten(f"the transaction can only be aborted: {self._failed}")

    @property
    def _transaction(self) -> OpenTransaction:
        assert self._options.transactional_id is not None, "the producer has no transactional id"
        assert self._identity is not None
        return OpenTransaction(self._options.transactional_id, self._identity)

    async def begin(self) -> None:
        """Begin a transaction; the first one fences other producers with this transactional id."""
        assert self._options.transactional_id is not None, "the producer has no transactional id"
        assert self._added is None, "the previous transaction has not ended"
        if self.fenced:
            raise NotWritten(self.fenced)
        if self._identity is None or self._needs_epoch:
            await self._guarded(self._begin_transactional_epoch())
        self._added, self._is_known, self._failed = {}, False, ""

    async def _begin_transactional_epoch(self) -> None:
        before, timeout_ms = self._identity or NO_IDENTITY, self._options.transaction_timeout_ms
        name = self._options.transactional_id
        self._identity = await begin_epoch(self._cluster, name, before, timeout_ms=timeout_ms)
        self._needs_epoch = False
        self._outbox.restart_sequences()

    async def commit_offsets(self, group: str, offsets: Mapping[PartitionName, int], **member: Any) -> None:
        """Commit offsets of a group with the transaction; see `transactions.commit_offsets_within`."""
        assert self._added is not None, "there is no open transaction"
        self._is_known = True
        try:
            await self._guarded(commit_offsets_within(self._cluster, self._transaction, group, offsets, **member))
        except ClientError as error:
            self._failed = self._failed or str(error)
            raise

    async def commit(self) -> None:
        """Commit the transaction. Raises if one of its records was not written: then it must be aborted."""
        assert self._added is not None, "there is no open transaction"
        self._check_transaction()
        await self.flush()
        self._check_transaction()
        await self._end(commit=True)

    async def abort(self) -> None:
        """Abort the transaction: readers of committed records never see what it wrote."""
        assert self._added is not None, "there is no open transaction"
        for batch in self._outbox.abandon_waiting():
            self._fail(batch, "the transaction was aborted")
        await self.flush()
        await self._end(commit=False)

    async def _end(self, *, commit: bool) -> None:
        # An epoch that begins anew aborts the transaction, too: the way out when sequence numbers were lost.
        if self._needs_epoch:
            await self._guarded(self._begin_transactional_epoch())
        elif self._is_known:
            await self._guarded(end_transaction(self._cluster, self._transaction, commit=commit))
        self._added = None

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something with the coordinator, and notice when this producer was fenced."""
        try:
            await work
        except Refused as refused:
            if refused.error in FENCED:
                self.fenced = f"another producer uses {self._options.transactional_id}: {refused}"
            raise

    async def close(self) -> None:
        """Flush, then stop; what cannot be sent within its delivery time fails."""
        self._closed = True
        if self._turns.has_started:
            await self.flush()
            self._turns.stop()
        for request in list(self._requests):
            request.cancel()

    def _now(self) -> float:
        return self._cluster.driver.now()

    async def choose_partition(self, topic: str, key: bytes | None) -> int:
        """The partition of a record that names none. Those without a key share one until a batch of it is sent."""
        return await self._choice.partition(topic, key)

    async def _leader(self, partition: PartitionName) -> Address:
        return await self._cluster.leader(partition, create=self._options.creates_topics)

    # Sending

    def _turn(self) -> float:
        """Send what is due; returns when there will be more to do, if nothing happens before."""
        self._fail_expired()
        if self._needs_identity and not self._is_beginning:
            self._is_beginning = True
            self._spawn(self._begin_epoch())
        if self._is_beginning:
            return self._outbox.next_expiry()
        self._send_due()
        return min(self._outbox.next_due_at(uncertain_only=self._needs_epoch), self._outbox.next_expiry())

    @property
    def _needs_identity(self) -> bool:
        """Whether an epoch must begin now; those of a transactional producer begin before its transactions."""
        if self._options.transactional_id is not None or not len(self._outbox):
            return False
        return self._identity is None or (self._needs_epoch and not self._outbox.has_uncertain)

    async def _begin_epoch(self) -> None:
        """Get a producer id, or the next epoch of the one that there is. Records expire meanwhile, each in its time."""
        before, within_s = self._identity or NO_IDENTITY, self._options.limits.delivery_s / 2
        try:
            self._identity = await begin_epoch(self._cluster, None, before, within_s=within_s)
            self._needs_epoch = False
            self._outbox.restart_sequences()
        except Unavailable as error:  # the next attempt begins at once; records that expire have the reason
            for batch in self._outbox.waiting():
                batch.problem = str(error)
        except Exception as error:
            if self._identity is not None and isinstance(error, Refused):
                self._identity = None  # its epochs have run out, or the broker does not know it: take a new id
            else:  # also after a bug: nobody else would answer for these records
                for batch in self._outbox.abandon():
                    self._fail(batch, str(error) if isinstance(error, ClientError) else f"no producer id: {error!r}")
        finally:
            self._is_beginning = False
            self._turns.wake()

    def _send_due(self) -> None:
        """Send every batch that is due, to each leader in one request."""
        by_leader: dict[Address, list[Batch]] = {}
        to_add: list[Batch] = []  # their partitions are not in the transaction yet
        for batch in list(self._outbox.due(self._now(), uncertain_only=self._needs_epoch)):
            self._choice.forget(batch.partition.topic)  # the next records without a key go elsewhere
            address = self._cluster.map.leader(batch.partition)
            if address is None:
                self._spawn(self._find_leader(batch))
            elif self._added is not None and batch.partition not in self._added:
                to_add.append(batch)
            else:
                by_leader.setdefault(address, []).append(batch)
        if to_add:
            self._spawn(self._add_partitions(to_add))
        for address, batches in by_leader.items():
            self._spawn(self._produce(address, batches))

    async def _add_partitions(self, batches: Sequence[Batch]) -> None:
        """Add the partitions of these batches to the transaction; then they can be sent."""
        partitions = dict.fromkeys(batch.partition for batch in batches)
        self._is_known = True
        try:
            await add_partitions(self._cluster, self._transaction, partitions)
        except ClientError as error:
            for batch in batches:
                self._refuse(batch, error)
            return
        if self._added is not None:
            self._added |= partitions
        for batch in batches:
            self._retry(batch, batch.problem, at_once=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._requests[task] = None
        task.add_done_callback(self._requests.pop)

    async def _find_leader(self, batch: Batch) -> None:
        try:
            await self._leader(batch.partition)
        except Retry as retry:
            self._retry(batch, str(retry))
        except Refused as refused:
            if refused.error in UNKNOWN:
                batch.missing_since = min(batch.missing_since, self._now())
            if self._now() - batch.missing_since >= self._cluster.limits.unknown_s:
                self._refuse(batch, refused)
            elif refused.retriable:
                self._retry(batch, str(refused))
            else:
                self._refuse(batch, refused)
        except ClientError as error:
            self._refuse(batch, error)
        else:
            self._retry(batch, batch.problem, at_once=True)

    async def _produce(self, address: Address, batches: Sequence[Batch]) -> None:
        try:
            assert self._identity is not None
            request = produce_request(
                batches,
                self._identity,
                transactional_id=self._options.transactional_id,
                compression=self._options.compression,
                timeout_ms=self._options.timeout_ms,
            )
            response = await self._cluster.call(address, request)
        except Retry as retry:
            for batch in batches:
                batch.uncertain = True
                self._cluster.map.forget_leader(batch.partition)
                self._retry(batch, str(retry))
            return
        except ClientError as error:
            for batch in batches:
                self._refuse(batch, error)
            return
        except Exception as error:  # a bug: nobody else would answer for these records
            for batch in batches:
                batch.uncertain = True
                self._refuse(batch, ClientError(f"the request failed: {error!r}"))
            return
        answers = {
            PartitionName(topic.name, one.partition): one for topic in response.topics for one in topic.partitions
        }
        for batch in batches:
            answer = answers.get(batch.partition)
            if answer is None:
                batch.uncertain = True
                self._retry(batch, f"{address} does not answer for this partition")
            else:
                self._take_answer(batch, answer, response)

    # Answers

    def _take_answer(self, batch: Batch, answer: PartitionProduced, response: Any) -> None:
        error = error_of(answer.error_code)
        if error in (Error.NONE, Error.DUPLICATE_SEQUENCE_NUMBER):
            self._outbox.finished(batch)
            for first, written in zip(batch.firsts, batch.tokens, strict=True):
                offset = answer.base_offset + first if answer.base_offset >= 0 else -1
                if not written.done():
                    written.set_result(Written(batch.partition, offset))
            self._progressed()
        elif error in LOST_SEQUENCE:
            self._needs_epoch = True
            if batch.uncertain or self._options.transactional_id is not None:
                self._outbox.finished(batch)
                self._fail(batch, f"the broker no longer knows this producer ({error.name})", may_be_written=True)
            else:
                self._retry(batch, error.name)
        elif error.retriable:
            # A leader that was deposed, or whose disk failed, answers with its error after the append, too.
            batch.uncertain = batch.uncertain or error is not Error.NOT_ENOUGH_REPLICAS
            news = self._cluster.map.hint(batch.partition, answer.current_leader, response.node_endpoints)
            if not news:
                self._cluster.map.forget_leader(batch.partition)
            self._retry(batch, error.name, at_once=news)
        else:
            self._refuse(batch, Refused(error, f"write to {batch.partition.topic}", answer.error_message))

    def _retry(self, batch: Batch, problem: str, *, at_once: bool = False) -> None:
        batch.problem = problem
        limits = self._cluster.limits
        pause_s = 0.0 if at_once else min(limits.pause_min_s * 2 ** min(batch.attempts, 10), limits.pause_max_s)
        self._outbox.retry(batch, self._now() + self._cluster.driver.jitter(0.5, 1.0) * pause_s)
        self._turns.wake()

    def _refuse(self, batch: Batch, error: ClientError) -> None:
        """The batch cannot be written, and never will be."""
        if batch.uncertain:
            self._outbox.finished(batch)
            self._needs_epoch = True
        else:
            self._outbox.rejected(batch)
        code = error.error if isinstance(error, Refused) else None
        self._fail(batch, str(error), may_be_written=batch.uncertain, error=code)

    def _fail_expired(self) -> None:
        for batch in self._outbox.expire(self._now()):
            self._needs_epoch = self._needs_epoch or batch.uncertain
            within_s = self._options.limits.delivery_s
            unsent = "there is no producer epoch yet" if self._is_beginning else "it was not sent"
            why = f"cannot write to {batch.partition.topic} within {within_s:g} s: {batch.problem or unsent}"
            self._fail(batch, why, may_be_written=batch.uncertain)

    def _fail(self, batch: Batch, why: str, *, may_be_written: bool = False, error: Error | None = None) -> None:
        self._failed = self._failed or why
        for written in batch.tokens:
            if not written.done():
                written.set_exception(NotWritten(why, may_be_written=may_be_written, error=error))
                if self._options.transactional_id is not None:
                    written.exception()  # commit raises, so the caller need not check each record
        self._progressed()

    def _progressed(self) -> None:
        self._room.set()
        self._turns.wake()
