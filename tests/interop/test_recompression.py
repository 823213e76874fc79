"""Topics store batches in the codec that `compression.type` names, whichever one a producer uses."""

import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from tailrace.records.compress import COMPRESSIONS
from tailrace.records.opened import batches, open_batch
from tailrace.testing import Broker
from tests.interop.client import DEADLINE_S, Code, Refused
from tests.interop.conftest import eventually
from tests.interop.drivers.confluent import Confluent
from tests.interop.shapes import TopicPlan

STORED: Final = {"uncompressed": "none", "gzip": "gzip", "lz4": "lz4", "zstd": "zstd"}
MESSAGES: Final = 50


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    if "TAILRACE_INTEROP_BOOTSTRAP" in os.environ:
        pytest.skip("these tests read the files of a broker of their own")
    with Broker() as broker:
        yield broker


def codecs_in(folder: Path, topic: str) -> list[str]:
    """The codec of each of the topic's batches with data, from the files."""
    found: list[str] = []
    for file in sorted(folder.rglob("*.log")):
        for batch, header in batches(file.read_bytes()):
            if header.is_control or not header.records:
                continue
            if any((name, value) == ("topic", topic.encode()) for name, value in open_batch(batch)[0].headers):
                found.append(COMPRESSIONS[header.compression])
    return found


def write(bootstrap: str, topic: str, codec: str) -> list[bytes]:
    from confluent_kafka import Producer

    producer = Producer(
        {"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True, "linger.ms": 5}
    )
    values = [b"%s to %s %d " % (codec.encode(), topic.encode(), number) * 20 for number in range(MESSAGES)]
    failed: list[object] = []
    for value in values:
        producer.produce(
            topic,
            value,
            b"key",
            headers={"topic": topic.encode()},
            on_delivery=lambda error, _: failed.append(error) if error is not None else None,
        )
    assert producer.flush(DEADLINE_S) == 0
    assert failed == []
    return values


@pytest.mark.foreign
def test_every_codec_of_producers_to_topics_with_another(broker: Broker) -> None:
    admin = Confluent(broker.bootstrap)
    written: dict[str, list[bytes]] = {}
    for setting, codec in product(STORED, COMPRESSIONS):
        topic = f"stored-{setting}"
        if topic not in written:
            admin.create_topic(topic, TopicPlan(settings={"compression.type": setting}))
            written[topic] = []
        written[topic] += write(broker.bootstrap, topic, codec)
    for setting, stored in STORED.items():
        topic = f"stored-{setting}"
        read = admin.consume(topic, len(written[topic]))
        assert [one.value for one in read] == written[topic]
        assert [one.offset for one in read] == list(range(len(read)))
        found = codecs_in(broker.data_dir, topic)
        assert len(found) >= len(COMPRESSIONS)
        assert set(found) == {stored}


@pytest.mark.foreign
def test_the_settings_are_created_changed_and_described(broker: Broker) -> None:
    admin = Confluent(broker.bootstrap)
    chosen = {"compression.type": "zstd", "compression.zstd.level": "7", "compression.lz4.level": "12"}
    admin.create_topic("described", TopicPlan(settings=chosen))
    eventually(lambda: "described" in admin.list_topics())
    shown = admin.topic_settings("described")
    assert {name: shown[name].value for name in chosen} == chosen
    assert (shown["compression.gzip.level"].value, shown["compression.gzip.level"].own) == ("-1", False)
    write(broker.bootstrap, "described", "gzip")
    admin.change_settings("described", {"compression.type": "gzip", "compression.gzip.level": "9"})
    eventually(lambda: admin.topic_settings("described")["compression.type"].value == "gzip")
    write(broker.bootstrap, "described", "zstd")
    assert dict.fromkeys(codecs_in(broker.data_dir, "described")) == dict.fromkeys(["zstd", "gzip"])
    for name, wrong in (("type", "brotli"), ("gzip.level", "0"), ("zstd.level", "23"), ("lz4.level", "18")):
        with pytest.raises(Refused) as refused:
            admin.change_settings("described", {f"compression.{name}": wrong})
        assert refused.value.code == Code.INVALID_CONFIG
