"""Clients that run through a whole upgrade and take any error for a defect.

Idempotent producers and a reader come from the chaos tests. Here are members of consumer groups, of either protocol,
which commit every batch they have read, and a transactional producer.

No offsets are committed in transactions by librdkafka (2.16): it remembers a group's coordinator, and waits for ever
for one that has left the cluster's metadata meanwhile, whatever timeout it was given.
"""

import threading
from collections.abc import Sequence
from typing import Final, Literal

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

Protocol = Literal["classic", "consumer"]

BATCH_MAX: Final = 200
POLL_S: Final = 0.1
PATIENCE_S: Final = 60.0
COMPLAINTS_MAX: Final = 10
ABORT_EVERY: Final = 5
TRANSACTION_EVERY_S: Final = 0.05
PATIENT: Final = {"reconnect.backoff.max.ms": 200, "metadata.recovery.strategy": "none", "log_level": 0}

REBALANCING: Final = (
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.UNKNOWN_MEMBER_ID,
)

Place = tuple[int, int]  # partition and offset


class Working(threading.Thread):
    """Work in a thread of its own until it is told to stop; what goes wrong with it is a complaint."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.complaints: list[str] = []
        self._stopping = threading.Event()

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                self.work()
        except KafkaException as error:
            self.complain(f"{self.name} cannot go on: {error}")
        finally:
            self.finish()

    def work(self) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        raise NotImplementedError

    def complain(self, complaint: str) -> None:
        if len(self.complaints) < COMPLAINTS_MAX:
            self.complaints.append(complaint)

    def stop(self) -> None:
        self._stopping.set()
        self.join(PATIENCE_S)
        if self.is_alive():
            self.complain(f"{self.name} does not end")

    def good(self, messages: Sequence[Message]) -> list[Message]:
        for one in messages:
            if (error := one.error()) is not None:
                self.complain(f"{self.name} was given an error: {error}")
        return [one for one in messages if one.error() is None]


def consumer(bootstrap: str, group: str, protocol: Protocol) -> Consumer:
    classic = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 500} if protocol == "classic" else {}
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **classic,
            **PATIENT,
        }
    )


class GroupMember(Working):
    """Reads its share of a topic and commits after every batch.

    While members come the group rebalances, and a commit may be refused for that. Once it `is_settled` none may."""

    def __init__(self, name: str, bootstrap: str, topic: str, group: str, protocol: Protocol) -> None:
        super().__init__(name)
        self.read: list[Place] = []
        self.assigned = 0  # partitions
        self.is_settled = False
        self._consumer = consumer(bootstrap, group, protocol)
        self._consumer.subscribe([topic])
        self.start()

    def work(self) -> None:
        got = self.good(self._consumer.consume(BATCH_MAX, POLL_S))
        self.assigned = len(self._consumer.assignment())
        if got:
            self.read += [place_of(one) for one in got]
            self._commit(next_offsets(got))

    def _commit(self, offsets: list[TopicPartition]) -> None:
        must_succeed = self.is_settled
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            if must_succeed or error.args[0].code() not in REBALANCING:
                raise

    def finish(self) -> None:
        self._consumer.close()


class TransactionalWriter(Working):
    """Writes numbered records to every partition of a topic, some in each transaction; every fifth is aborted."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        super().__init__("transactional writer")
        self.committed: list[list[bytes]] = [[] for _ in range(partitions)]  # keys, by partition and in order
        self._topic = topic
        self._number = 0
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": "upgraded", "linger.ms": 0, **PATIENT}
        )
        self._producer.init_transactions(PATIENCE_S)
        self.start()

    def work(self) -> None:
        self._number += 1
        written = [b"%d-%d" % (self._number, partition) for partition in range(len(self.committed))]
        self._producer.begin_transaction()
        for partition, key in enumerate(written):
            self._producer.produce(self._topic, key=key, partition=partition, on_delivery=self._delivered)
        if self._number % ABORT_EVERY == 0:
            self._producer.abort_transaction(PATIENCE_S)
        else:
            self._producer.commit_transaction(PATIENCE_S)
            for keys, key in zip(self.committed, written, strict=True):
                keys.append(key)
        self._stopping.wait(TRANSACTION_EVERY_S)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and error.code() != KafkaError._PURGE_QUEUE:  # it was aborted before it was sent
            self.complain(f"{message.key()!r} was not delivered: {error}")

    def finish(self) -> None:
        self._producer.flush(PATIENCE_S)


def place_of(message: Message) -> Place:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return partition, offset


def next_offsets(messages: Sequence[Message]) -> list[TopicPartition]:
    ends = {(one.topic() or "", place_of(one)[0]): place_of(one)[1] + 1 for one in messages}
    return [TopicPartition(topic, partition, end) for (topic, partition), end in ends.items()]


def keys_of(bootstrap: str, topic: str, partitions: int) -> list[list[bytes]]:
    """The keys of all committed records, by partition and in order."""
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "keys",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            **PATIENT,
        }
    )
    found: list[list[bytes]] = [[] for _ in range(partitions)]
    left = dict.fromkeys(range(partitions))
    reader.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    try:
        while left:
            for one in reader.consume(BATCH_MAX, POLL_S):
                partition, error = one.partition(), one.error()
                assert partition is not None
                if error is None:
                    found[partition].append(one.key() or b"")
                else:  # the end of a partition; anything else has to come again
                    left.pop(partition, None)
    finally:
        reader.close()
    return found


def committed_offsets(bootstrap: str, topic: str, group: str, partitions: int) -> list[int]:
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **PATIENT})
    try:
        asked = [TopicPartition(topic, number) for number in range(partitions)]
        return [one.offset for one in reader.committed(asked, PATIENCE_S)]
    finally:
        reader.close()
