"""The service `message_queue.MessageQueue`, without gRPC: its clients ask who leads each partition, and go there.

- **Partitions are served at their leader.** A broker that does not lead a partition says so, and the client asks for
  metadata again. A gateway serves all partitions itself, and its metadata names the gateway.
- **Offsets belong to groups without members.** A request reads from `start_offset`, and what is stored for the group is
  the offset after the last message that it got. A negative start means what is stored.
- **Offsets have holes.** Where brokers or transactions wrote control records there is no message. A start inside a
  hole, or before the first message that is still kept, finds the next message after it.

What goes wrong is a `Failure` with a text, never an error of the call.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from tailrace.client.admin import create_topics
from tailrace.client.cluster import Cluster, Retry
from tailrace.client.consumer import Received
from tailrace.client.faults import ClientError, Refused
from tailrace.client.offsets import EARLIEST, LATEST, commit_offsets, committed_offsets, offsets_at
from tailrace.client.partition_reading import read_partition
from tailrace.client.producer import NotWritten
from tailrace.doors.grpc.outcomes import outcomes_of
from tailrace.doors.grpc.peer_address import is_local
from tailrace.doors.grpc.statuses import shortened
from tailrace.doors.upstream import Upstream
from tailrace.model.addresses import Address
from tailrace.model.caller import Caller
from tailrace.model.ids import BrokerId, PartitionName
from tailrace.model.limits import GRPC_RESPONSE_RECORDS_MAX, GRPC_RESPONSE_RECORDS_MAX_BYTES
from tailrace.model.listeners import GRPC_LISTENER
from tailrace.records.record import NewRecord
from tailrace.wire.errors import Error
from tailrace.wire.messages.create_topics import NewTopic, NewTopicConfig

PARTITIONS: Final = 3
REPLICAS_MAX: Final = 3
RETENTION_MS: Final = 30 * 60 * 1000
UNKNOWN_S: Final = 0.5  # how long a topic or partition may be unknown to this broker that was just made
UNKNOWN: Final = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID)


class Failure(Exception):
    """The failure in a response: a text, and for some requests an address."""

    def __init__(self, text: str, address: str = "") -> None:
        super().__init__(text)
        self.text = shortened(text)
        self.address = address


class PartitionAt(NamedTuple):
    partition: int
    address: Address


class MessageQueue:
    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    @property
    def _cluster(self) -> Cluster:
        return self._upstream.cluster

    # Producing

    @property
    def now_ms(self) -> int:
        """What messages without a timestamp get."""
        return self._cluster.driver.wall_ms()

    async def produce(self, messages: Mapping[PartitionName, Sequence[NewRecord]], caller: Caller) -> None:
        """Append messages, and wait until all are durable. None is appended if this broker may not have one of them."""
        for partition in messages:
            await self._check_ours(partition)
        try:
            with self._upstream.producers.of(caller.principal) as producer:
                sent = await producer.send_runs(messages)
                found = await outcomes_of([one.written for one in sent])
        except ClientError as error:
            raise Failure(str(error)) from None
        problems = [one for one in found if isinstance(one, NotWritten)]
        if problems:
            failed = sum(one.records for one, outcome in zip(sent, found, strict=True) if outcome in problems)
            total = sum(one.records for one in sent)
            raise Failure(f"{failed} of {total} messages were not written: {problems[0]}")

    # Consuming

    async def consume(self, group: str, partition: PartitionName, start: int, max_messages: int) -> list[Received]:
        """The next messages from `start` on; then the group's offset is that after the last of them."""
        if not group:
            raise Failure("The group id is empty.")
        if max_messages < 0:
            raise Failure(f"max_messages is {max_messages}, less than 0.")
        await self._check_ours(partition)
        try:
            if max_messages == 0:
                await self._store(group, partition, await self._begin(group, partition, start))
                return []
            begin = await self._begin(group, partition, start)
            found = await self._read(partition, begin, min(max_messages, GRPC_RESPONSE_RECORDS_MAX))
            if found or start >= 0:
                await self._store(group, partition, found[-1].offset + 1 if found else begin)
        except ClientError as error:
            raise Failure(str(error)) from None
        return found

    async def _begin(self, group: str, partition: PartitionName, start: int) -> int:
        if start >= 0:
            return start
        stored = await committed_offsets(self._cluster, group, [partition])
        return stored.get(partition, 0)

    async def _read(self, partition: PartitionName, start: int, count: int) -> list[Received]:
        try:
            return await self._read_at(partition, start, count)
        except Refused as refused:
            if refused.error is not Error.OFFSET_OUT_OF_RANGE:
                raise
        first = (await offsets_at(self._cluster, {partition: EARLIEST}))[partition]
        end = (await offsets_at(self._cluster, {partition: LATEST}))[partition]
        if start > end:
            raise Failure(f"Offset {start} is beyond the end of partition {partition.partition}, which is {end}.")
        return await self._read_at(partition, max(start, first), count)

    async def _read_at(self, partition: PartitionName, offset: int, count: int) -> list[Received]:
        most = GRPC_RESPONSE_RECORDS_MAX_BYTES
        found = await read_partition(self._cluster, partition, offset, max_records=count, max_bytes=most)
        return found.records

    async def _store(self, group: str, partition: PartitionName, offset: int) -> None:
        await commit_offsets(self._cluster, group, {partition: offset})

    # Topics and brokers

    async def metadata(self, topic: str) -> list[PartitionAt]:
        """Where each partition is served. A topic that does not exist is created."""
        try:
            leaders = await self._cluster.retry(f"find topic {topic}", lambda: self._leaders(topic))
        except ClientError as error:
            raise Failure(str(error)) from None
        addresses = await self._addresses()
        if self._upstream.broker_id is None:
            (gateway,) = addresses.values()
            return [PartitionAt(number, gateway) for number in leaders]
        for number, leader in leaders.items():
            if leader not in addresses:
                raise Failure(f"Partition {number} is led by broker {leader}, which serves no gRPC.")
        return [PartitionAt(number, addresses[leader]) for number, leader in leaders.items()]

    async def _leaders(self, topic: str) -> dict[int, BrokerId]:
        (found,) = (await self._cluster.refresh([topic])).topics
        if found.error_code in UNKNOWN:
            await self._create(topic)
            raise Retry("it was just created")
        if found.error_code:
            raise Refused(found.error_code, f"find topic {topic}")
        leaderless = [one.partition for one in found.partitions if one.leader_id < 0]
        if leaderless:
            raise Retry(f"partition {leaderless[0]} has no leader")
        return {
            one.partition: BrokerId(one.leader_id) for one in sorted(found.partitions, key=lambda one: one.partition)
        }

    async def _create(self, topic: str) -> None:
        replicas = max(1, min(REPLICAS_MAX, len(self._cluster.map.brokers)))
        settings = (NewTopicConfig(name="retention.ms", value=str(RETENTION_MS)),)
        wanted = NewTopic(name=topic, num_partitions=PARTITIONS, replication_factor=replicas, configs=settings)
        refused = (await create_topics(self._cluster, [wanted]))[topic]
        if refused is not None and refused.error is not Error.TOPIC_ALREADY_EXISTS:
            raise refused

    async def broker_address(self, broker: str) -> Address:
        """A gateway stands for all brokers of its upstream."""
        addresses, known = await self._addresses(), self._cluster.map
        if self._upstream.broker_id is None:
            try:
                await self._cluster.retry("find the brokers", self._cluster.refresh)
            except ClientError as error:
                raise Failure(str(error)) from None
            (gateway,) = addresses.values()
            addresses = dict.fromkeys(known.brokers, gateway)
        found = addresses.get(_broker_id(broker))
        if found is None:
            raise Failure(f"Broker {broker} not found in the cluster.")
        return found

    async def shut_down(self, broker: str, caller: Caller) -> None:
        """Stop this broker, once the answer is on its way."""
        stop = self._upstream.request_stop
        if stop is None or self._upstream.broker_id is None:
            raise Failure("This is a gateway: it can stop no broker.")
        if _broker_id(broker) != self._upstream.broker_id:
            address = await self.broker_address(broker)
            raise Failure("Broker ID does not match", str(address))
        if not is_local(caller.host):
            raise Failure("Only a caller on the broker's own machine may stop it, over its loopback address.")
        stop()

    async def _addresses(self) -> dict[BrokerId, Address]:
        return dict(await self._upstream.endpoints(GRPC_LISTENER))

    async def _check_ours(self, partition: PartitionName) -> None:
        """Raise unless this process serves the partition: the broker that leads it, or a gateway."""
        me, known = self._upstream.broker_id, self._cluster.map
        if not partition.partition >= 0 or not partition.topic:
            raise _not_found(partition)
        leader = known.leader(partition)
        if me is not None and leader is not None and leader == known.brokers.get(me):
            return
        what, until = f"find {partition.topic}-{partition.partition}", self._cluster.driver.now() + UNKNOWN_S
        try:
            found = await self._cluster.retry(what, lambda: self._led(partition, until))
        except ClientError as error:
            raise Failure(str(error)) from None
        if me is not None and found != known.brokers.get(me):
            raise Failure(f"Partition {partition.partition} is not assigned to this broker.")

    async def _led(self, partition: PartitionName, until: float) -> Address:
        if self._upstream.broker_id is not None:
            self._cluster.map.forget_leader(partition)  # another broker leads it, as far as is known: ask
        try:
            return await self._cluster.leader(partition)
        except Refused as refused:
            if refused.error in UNKNOWN and self._cluster.driver.now() >= until:
                raise _not_found(partition) from None
            raise


def _not_found(partition: PartitionName) -> Failure:
    return Failure(f"Partition not found for topic {partition.topic} and partition {partition.partition}")


def _broker_id(text: str) -> BrokerId:
    return BrokerId(int(text)) if text.isascii() and text.isdigit() and len(text) < 10 else BrokerId(-1)
