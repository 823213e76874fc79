"""Headers and messages against kafka-python: it decodes ours, encodes the same bytes, and skips private tags."""

import pytest
from kafka.protocol import admin, consumer, metadata, producer, sasl

from tailrace.wire.compile import decode_whole, encode, is_flexible
from tailrace.wire.headers import request_header, response_header
from tailrace.wire.messages.api_versions import ApiVersionsResponse
from tailrace.wire.schema import declaration
from tests.unit.wire.samples import every_message, messages_with_private_tags, name_of, samples

UNKNOWN_TO_KAFKA_PYTHON = (68, 69, 76, 77, 78, 79, 90, 91, 92)  # KIP-848 and KIP-932


@pytest.mark.parametrize(
    ("cls", "version"),
    [one for one in every_message if declaration(one[0]).number not in UNKNOWN_TO_KAFKA_PYTHON],
    ids=name_of,
)
def test_header_and_body_equal_kafka_python(cls: type, version: int) -> None:
    name, api_key, flexible = cls.__name__, declaration(cls).number, is_flexible(cls, version)
    reference = next(getattr(room, name) for room in (admin, consumer, metadata, producer, sasl) if hasattr(room, name))
    for value in samples(cls, version, 3):
        if isinstance(value, ApiVersionsResponse) and value.error_code:
            continue  # kafka-python reads any error as a response of version 0
        if name.endswith("Request"):
            header = request_header(api_key, version, 2**31 - 1, "me", flexible)
        else:
            header = response_header(api_key, -7, flexible)
        data = header + encode(value, version)
        theirs = reference[version].decode(data, header=True)
        theirs._version = version
        assert bytes(theirs.encode(header=True)) == data


@pytest.mark.parametrize(("cls", "version"), messages_with_private_tags, ids=name_of)
def test_private_tags_round_trip_and_are_skipped_by_kafka_python(cls: type, version: int) -> None:
    reference = next(getattr(room, cls.__name__) for room in (admin, consumer, metadata) if hasattr(room, cls.__name__))
    for value in samples(cls, version, 10, private=True):
        data = encode(value, version)
        assert decode_whole(cls, version, data) == value
        reference[version].decode(data)
