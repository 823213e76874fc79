"""Records and positions between protobuf's messages and the client's values."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tailrace.client.consumer import Received
from tailrace.client.shares.message import Message
from tailrace.doors.grpc.statuses import BadField
from tailrace.model.ids import PartitionName
from tailrace.model.limits import GRPC_NAMES_PER_REQUEST_MAX, GRPC_RESPONSE_RECORDS_MAX_BYTES
from tailrace.records.record import Headers, NewRecord

TIMESTAMP_MAX = 2**62  # milliseconds; later ones are no times


def new_records(records: Sequence[Any], now_ms: int) -> list[tuple[int | None, NewRecord]]:
    """The records of a request, each with the partition that it names. `BadField` for one that cannot be."""
    if not records:
        raise BadField("records", "there are none")
    found: list[tuple[int | None, NewRecord]] = []
    for one in records:  # a field that is not empty is there: few need be asked for
        partition = one.partition or (0 if one.HasField("partition") else None)
        stamp = one.timestamp_ms or (0 if one.HasField("timestamp_ms") else now_ms)
        if partition is not None and partition < 0:
            raise BadField(f"records[{len(found)}].partition", f"{partition} is less than 0")
        if not 0 <= stamp <= TIMESTAMP_MAX:
            raise BadField(f"records[{len(found)}].timestamp_ms", f"{stamp} is not a time in milliseconds since 1970")
        value = one.value or (b"" if one.HasField("value") else None)
        key = one.key or (b"" if one.HasField("key") else None)
        headers: Headers = ()
        if one.headers:
            headers = tuple((each.name, each.value if each.HasField("value") else None) for each in one.headers)
        found.append((partition, tuple.__new__(NewRecord, (value, key, headers, stamp))))  # no call
    return found


def encoded_record(types: Any, one: Received | Message) -> Any:
    """A name of a header that is no text, which only a Kafka client can have sent, is shown with U+FFFD in it."""
    record = types.Record(
        topic=one.partition.topic,
        partition=one.partition.partition,
        offset=one.offset,
        timestamp_ms=one.timestamp_ms,
        key=one.key,
        value=one.value,
    )
    for name, value in one.headers:
        shown = name.encode(errors="surrogateescape").decode(errors="replace")
        record.headers.add(name=shown, value=value)
    return record


def size_of(one: Received | Message) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in one.headers)
    return len(one.key or b"") + len(one.value or b"") + headers


def portions(records: Sequence[Received]) -> Iterator[list[Received]]:
    """The records in portions of bounded size; a record that is larger is one of its own."""
    portion: list[Received] = []
    size = 0
    for one in records:
        more = size_of(one)
        if portion and size + more > GRPC_RESPONSE_RECORDS_MAX_BYTES:
            yield portion
            portion, size = [], 0
        portion.append(one)
        size += more
    if portion:
        yield portion


def offsets_of(positions: Iterable[Any], field: str) -> dict[PartitionName, int]:
    """Positions of a request. `BadField` for one that cannot be."""
    found: dict[PartitionName, int] = {}
    for number, one in enumerate(positions):
        if number >= GRPC_NAMES_PER_REQUEST_MAX:
            raise BadField(field, f"there are more than {GRPC_NAMES_PER_REQUEST_MAX}")
        where = f"{field}[{number}]"
        partition = PartitionName(checked_name(one.topic, f"{where}.topic"), one.partition)
        if one.partition < 0:
            raise BadField(f"{where}.partition", f"{one.partition} is less than 0")
        if one.offset < 0:
            raise BadField(f"{where}.offset", f"{one.offset} is less than 0")
        if partition in found:
            raise BadField(where, f"partition {one.partition} of {one.topic} is named twice")
        found[partition] = one.offset
    return found


def checked_name(name: str, field: str) -> str:
    if not name:
        raise BadField(field, "it is empty")
    return name


def checked_names(names: Sequence[str], field: str) -> list[str]:
    if not names:
        raise BadField(field, "there are none")
    if len(names) > GRPC_NAMES_PER_REQUEST_MAX:
        raise BadField(field, f"there are {len(names)}, more than {GRPC_NAMES_PER_REQUEST_MAX}")
    return [checked_name(name, f"{field}[{number}]") for number, name in enumerate(names)]


def checked_count(value: int, field: str, most: int, default: int) -> int:
    """A number that may be 0 for the default, and is cut at what the server allows."""
    if value < 0:
        raise BadField(field, f"{value} is less than 0")
    return min(value, most) or default
