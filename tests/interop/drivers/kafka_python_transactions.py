"""kafka-python and transactions."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, closing

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from tests.interop.client import DEADLINE_S, Client
from tests.interop.drivers.kafka_python_refusals import surfaced
from tests.interop.shapes import TransactionShape
from tests.interop.transactor import Transactor

NO_EPOCH = -1


class KafkaPythonTransactor:
    def __init__(self, bootstrap: str, name: str, timeout_ms: int) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=name, transaction_timeout_ms=timeout_ms, retry_backoff_ms=10
        )
        with surfaced():
            self._producer.init_transactions()

    def begin(self) -> None:
        with surfaced():
            self._producer.begin_transaction()

    def write(self, topic: str, *values: bytes, partition: int = 0) -> None:
        with surfaced():
            sent = [self._producer.send(topic, value, partition=partition) for value in values]
            for one in sent:
                one.get(DEADLINE_S)

    def commit_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        wanted = {TopicPartition(topic, one): OffsetAndMetadata(at, "", NO_EPOCH) for one, at in offsets.items()}
        with surfaced():
            self._producer.send_offsets_to_transaction(wanted, group)

    def commit(self) -> None:
        with surfaced():
            self._producer.commit_transaction()

    def abort(self) -> None:
        with surfaced():
            self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(0)


class KafkaPythonTransactions(Client):
    _admin: KafkaAdminClient

    def list_transactions(self) -> dict[str, str]:
        by_broker = self._admin.list_transactions()
        return {one.transactional_id: one.state for found in by_broker.values() for one in found}

    def describe_transaction(self, name: str) -> TransactionShape:
        with surfaced():
            found = self._admin.describe_transactions([name])[name]
        return TransactionShape(
            state=found.state,
            producer_id=found.producer_id,
            producer_epoch=found.producer_epoch,
            timeout_ms=found.transaction_timeout_ms,
            partitions=tuple(sorted((one.topic, one.partition) for one in found.topic_partitions)),
        )

    def transactor(self, name: str, timeout_ms: int = 60_000) -> AbstractContextManager[Transactor]:
        return closing(KafkaPythonTransactor(self.bootstrap, name, timeout_ms))
