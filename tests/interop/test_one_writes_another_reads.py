"""Every client reads what every client wrote, in every compression."""

import random

import pytest

from tests.interop.client import Client
from tests.interop.drivers import DRIVERS
from tests.interop.feature import feature, named
from tests.interop.messages import COMPRESSIONS, Headers, Message, Sending


@pytest.mark.parametrize("other", [one for one in DRIVERS if not one.toolchain], ids=named, indirect=True)
@feature("read what {other} wrote, all compressions in one topic", "reader")
def test_matrix(client: Client, other: Client, topic: str) -> None:
    written = write(other, topic)
    received = client.consume(topic, len(written))
    assert [one.offset for one in received] == list(range(len(written)))
    assert [one.content for one in received] == [(m.key, m.value, m.headers) for m in written]


@feature("what it wrote is read by confluent-kafka, all compressions in one topic", "produce", "toolchain")
def test_read_by_another(client: Client, bench: Client, topic: str) -> None:
    written = write(client, topic)
    assert [one.content for one in bench.consume(topic, len(written))] == [(m.key, m.value, m.headers) for m in written]


def write(other: Client, topic: str) -> list[Message]:
    dice = random.Random(17)
    headers: Headers = (("writer", other.name.encode()),)
    if other.offers("null headers"):
        headers += (("nothing", None),)
    written: list[Message] = []
    for compression in COMPRESSIONS:
        messages = [
            Message(key=dice.randbytes(9), value=dice.randbytes(dice.randrange(1, 400)) * 3, headers=headers)
            for _ in range(30)
        ]
        messages[3:5] = [Message(key=None, value=b"no key", headers=headers)] * 2
        messages[7] = Message(key=b"gone", value=None, headers=headers)
        other.produce(topic, messages, Sending(compression=compression))
        written += messages
    return written
