"""Clients that report an error for each record show which records of a batch were rejected, and why (KIP-467)."""

from typing import Any

import pytest

from tests.interop.client import DEADLINE_S, Client
from tests.interop.conftest import eventually
from tests.interop.shapes import TopicPlan

KEYS = (b"k", None, b"l", None)
NO_KEY = "Compacted topic cannot accept message without key"
INVALID_RECORD = 87
LINGER_MS = 10_000  # longer than a busy machine takes to fill the batch


@pytest.fixture
def compacted(name: str, bench: Client) -> str:
    bench.create_topic(name, TopicPlan(settings={"cleanup.policy": "compact"}))
    eventually(lambda: name in bench.list_topics())
    return name


@pytest.mark.foreign
def test_confluent_kafka_reports_each_record(bootstrap: str, compacted: str) -> None:
    from confluent_kafka import KafkaError, Producer

    codes: dict[bytes | None, list[int]] = {}

    def delivered(error: Any, message: Any) -> None:
        codes.setdefault(message.key(), []).append(0 if error is None else error.code())

    # One batch, sent when it is full; flush() would not wait for that.
    full = {"linger.ms": LINGER_MS, "batch.num.messages": len(KEYS), "enable.idempotence": False}
    producer = Producer({"bootstrap.servers": bootstrap, **full})
    for key in KEYS:
        producer.produce(compacted, b"v", key, on_delivery=delivered)
    eventually(lambda: producer.poll(0.01) >= 0 and sum(map(len, codes.values())) == len(KEYS))
    other = KafkaError._INVALID_DIFFERENT_RECORD  # the batch was rejected because of other records
    assert codes == {None: [INVALID_RECORD] * 2, b"k": [other], b"l": [other]}


@pytest.mark.foreign
def test_kafka_python_reports_each_record(bootstrap: str, compacted: str) -> None:
    from kafka import KafkaProducer
    from kafka.errors import KafkaError

    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=LINGER_MS, enable_idempotence=False)
    try:
        sent = [producer.send(compacted, b"v", key=key, partition=0) for key in KEYS]
        producer.flush(DEADLINE_S)
        for key, future in zip(KEYS, sent, strict=True):
            with pytest.raises(KafkaError) as refused:
                future.get(DEADLINE_S)
            assert (NO_KEY in str(refused.value)) == (key is None)
    finally:
        producer.close()
