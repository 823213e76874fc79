"""What a broker registers, as a record of the level in force, and what the metadata makes of it."""

from dataclasses import replace

import pytest

from tailrace.cluster.brokers import record_of, registered
from tailrace.cluster.features import FEATURES_OF_0_1_0, FIRST_LEVEL, NAMED_ENDPOINTS_LEVEL, record_version
from tailrace.cluster.records import RECORD_KINDS, BrokerRegistered
from tailrace.model.addresses import Address
from tailrace.wire.primitives import WireError
from tailrace.wire.stored import decode_record, encode_record
from tests.unit.cluster.cluster import disk_of, numbered, registration

KAFKA, HTTP = Address("h7", 9007), Address("web7", 8080)
broker = replace(registration(7, rack="r"), endpoints={"kafka": KAFKA, "http": HTTP})
joined = registration(7, port=0)


def stored(record: BrokerRegistered, level: int) -> bytes:
    return encode_record(record, record_version(level, "BrokerRegistered"))


def read_back(data: bytes) -> BrokerRegistered:
    record = decode_record(RECORD_KINDS, data)
    assert isinstance(record, BrokerRegistered)
    return record


def test_below_the_level_only_the_kafka_endpoint_is_registered() -> None:
    for level in range(FIRST_LEVEL, NAMED_ENDPOINTS_LEVEL):
        found = registered(read_back(stored(record_of(broker, level), level)))
        assert found == replace(broker, endpoints={"kafka": KAFKA})


def test_from_the_level_on_every_endpoint_is_registered_by_its_name() -> None:
    found = registered(read_back(stored(record_of(broker, NAMED_ENDPOINTS_LEVEL), NAMED_ENDPOINTS_LEVEL)))
    assert found == broker
    assert found.endpoints["http"] == HTTP
    assert (found.host, found.kafka_port) == KAFKA


@pytest.mark.parametrize("level", [FIRST_LEVEL, NAMED_ENDPOINTS_LEVEL])
def test_a_broker_that_has_joined_has_no_endpoints_and_is_fenced(level: int) -> None:
    found = registered(read_back(stored(record_of(joined, level), level)))
    assert found == joined
    assert (found.fenced, found.host, found.kafka_port) == (True, "p7", 0)


def test_a_record_of_0_1_0_is_a_broker_with_one_endpoint_named_kafka() -> None:
    head = b"\1\x08\0" + b"\0\0\0\7" + disk_of(7) + numbered(1)
    found = registered(read_back(head + b"\3h7" + b"\0\0\x23\x2f" + b"\3p7" + b"\0\0\x1b\x5f" + b"\0" + b"\0"))
    assert found == replace(registration(7), features=FEATURES_OF_0_1_0)


def test_what_a_level_cannot_say_is_never_written_by_halves() -> None:
    with pytest.raises(WireError, match=r"BrokerRegistered\.endpoints is not part of version 0"):
        stored(record_of(broker, NAMED_ENDPOINTS_LEVEL), FIRST_LEVEL)
    with pytest.raises(WireError, match=r"BrokerRegistered\.host is not part of version 1"):
        stored(record_of(broker, FIRST_LEVEL), NAMED_ENDPOINTS_LEVEL)
