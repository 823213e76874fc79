"""confluent-kafka and transactions."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, closing, suppress

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.interop.client import DEADLINE_S, Client, Refused
from tests.interop.drivers.confluent_refusals import surfaced
from tests.interop.transactor import Transactor


class ConfluentTransactor:
    def __init__(self, bootstrap: str, name: str, timeout_ms: int) -> None:
        self._bootstrap = bootstrap
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": name,
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": timeout_ms,
                "linger.ms": 0,
                "log_level": 0,
            }
        )
        with surfaced():
            self._producer.init_transactions(DEADLINE_S)

    def begin(self) -> None:
        with surfaced():
            self._producer.begin_transaction()

    def write(self, topic: str, *values: bytes, partition: int = 0) -> None:
        with surfaced():
            for value in values:
                self._producer.produce(topic, value, partition=partition)
            left = self._producer.flush(DEADLINE_S)
        if left:
            raise Refused(-1, f"{left} were not taken")

    def commit_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group})
        places = [TopicPartition(topic, number, offset) for number, offset in offsets.items()]
        try:
            with surfaced():
                self._producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), DEADLINE_S)
        finally:
            consumer.close()

    def commit(self) -> None:
        with surfaced():
            self._producer.commit_transaction(DEADLINE_S)

    def abort(self) -> None:
        with surfaced():
            self._producer.abort_transaction(DEADLINE_S)

    def close(self) -> None:
        self._producer.purge()
        with suppress(KafkaException):  # one that was fenced says so here, too
            self._producer.flush(DEADLINE_S)


class ConfluentTransactions(Client):
    def transactor(self, name: str, timeout_ms: int = 60_000) -> AbstractContextManager[Transactor]:
        return closing(ConfluentTransactor(self.bootstrap, name, timeout_ms))
