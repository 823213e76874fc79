"""Every message in every version against kio: same bytes, same meaning.

kio is generated from Kafka's own specification and has one class per version. It decodes our bytes; the fields and
their names are compared with our value; then it encodes the value again, and the bytes are compared.
"""

import dataclasses
import datetime
import importlib
import io
import re
import uuid
from typing import Any

import pytest
from kio.serial import entity_reader, entity_writer

from tailrace.model.ids import NO_ID
from tailrace.wire.compile import decode_whole, encode
from tailrace.wire.schema import fields_of
from tests.unit.wire.samples import every_message, is_private, name_of, samples

# Fields whose names differ from Kafka's; kio also drops units of time such as `_ms`.
KAFKA_NAMES = {
    "committed": {"transaction_result"},
    "config_names": {"configuration_keys"},
    "forgotten_topics": {"forgotten_topics_data"},
    "is_future": {"is_future_key"},
    "isr": {"isr_nodes"},
    "last_known_eligible_leaders": {"last_known_elr"},
    "message": {"batch_index_error_message"},
    "error_code": {"partition_error_code"},
    "name": {"topic", "topic_name"},
    "partition": {"partition_index", "index", "partition_id"},
    "partitions": {
        "partition_data",
        "partition_indexes",
        "partition_responses",
        "partition_result",
        "results_by_partition",
    },
    "producer_epoch": {"v3_and_below_producer_epoch"},
    "producer_id": {"v3_and_below_producer_id"},
    "replicas": {"replica_nodes"},
    "resources": {"responses"},
    "size_bytes": {"partition_size"},
    "topic": {"topic_name"},
    "topics": {
        "replica_election_results",
        "responses",
        "results_by_topic_v3_and_below",
        "topic_data",
        "topic_partitions",
        "topic_results",
        "v3_and_below_topics",
    },
    "transactional_id": {"v3_and_below_transactional_id"},
    "transactions": {"results_by_transaction"},
}


@pytest.mark.parametrize(("cls", "version"), every_message, ids=name_of)
def test_bytes_and_meaning_equal_kio(cls: type, version: int) -> None:
    reference = reference_class(cls, version)
    read, write = entity_reader(reference), entity_writer(reference)
    for value in samples(cls, version, 6):
        data = encode(value, version)
        theirs, size = read(data, 0)
        assert size == len(data)
        assert_same(value, theirs, version)
        buffer = io.BytesIO()
        write(buffer, theirs)
        assert buffer.getvalue() == data
        assert decode_whole(cls, version, data) == value


def reference_class(cls: type, version: int) -> Any:
    name = cls.__name__
    api, kind = re.fullmatch(r"(\w+)(Request|Response)", name).groups()  # type: ignore[union-attr]
    folder = re.sub(r"(?<!^)(?=[A-Z])", "_", api).lower()
    module = importlib.import_module(f"kio.schema.{folder}.v{version}.{kind.lower()}")
    return getattr(module, name)


def assert_same(ours: Any, theirs: Any, version: int) -> None:
    """Our struct has the fields of kio's, in order, with the same names and values, and possibly private tags."""
    cls: type = type(ours)
    present = [field.name for field in fields_of(cls) if version in field.versions and not is_private(field)]
    for name, reference in zip(present, dataclasses.fields(theirs), strict=True):
        assert reference.name in {name, name.removesuffix("_ms"), *KAFKA_NAMES.get(name, ())}
        same = as_ours(getattr(theirs, reference.name), getattr(ours, name), version)
        assert same == getattr(ours, name), f"{cls.__name__}.{name}"


def as_ours(theirs: Any, ours: Any, version: int) -> Any:
    """kio's value in our types; a nested struct is compared by `assert_same` and returned unchanged."""
    if isinstance(theirs, tuple):
        return tuple(as_ours(one, two, version) for one, two in zip(theirs, ours, strict=True))
    if dataclasses.is_dataclass(theirs):
        assert_same(ours, theirs, version)
        return ours
    if isinstance(theirs, datetime.timedelta):
        return theirs // datetime.timedelta(milliseconds=1)
    if isinstance(theirs, datetime.datetime):
        return (theirs - datetime.datetime.fromtimestamp(0, datetime.UTC)) // datetime.timedelta(milliseconds=1)
    if isinstance(theirs, uuid.UUID):
        return theirs.bytes
    if theirs is None and isinstance(ours, int):
        return -1
    if theirs is None and isinstance(ours, bytes) and ours == NO_ID:
        return NO_ID
    return theirs
