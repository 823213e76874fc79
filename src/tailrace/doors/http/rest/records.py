"""The JSON form of records, and back.

The bytes of a key, a value or the value of a header are written in one of these forms:

    "two coffees"                 text: its UTF-8 bytes
    {"base64": "AP8="}            any bytes
    {"json": {"cups": 2}}         a JSON value: its bytes in UTF-8 without needless spaces
    null                          no key, no value (a tombstone), no value of a header

Read records have the form that was asked for: `auto` is text where the bytes are UTF-8 and base64 where they are not,
so what is read can be written again and is the same, byte for byte. `json` is the JSON value where the bytes are one,
and else as `auto`. `base64` is always base64.

    {"partition": 0, "offset": 7, "timestamp": 1763486400000, "key": "table 4", "value": "two coffees",
     "headers": [{"name": "trace", "value": "7f3a"}]}
"""

import base64
import binascii
import json
from collections.abc import Sequence
from math import isinf
from typing import Any, Final, NamedTuple

from tailrace.client.consumer import Received
from tailrace.client.shares.message import Message
from tailrace.doors.http.rest.bodies import check_depth, write_value
from tailrace.doors.http.rest.schema import (
    INT32_MAX,
    Anything,
    Either,
    Invalid,
    Many,
    Null,
    Object,
    Shape,
    Text,
    Whole,
    encodable,
    kind,
    shown,
)
from tailrace.model.limits import REST_HEADERS_MAX, REST_RECORDS_MAX
from tailrace.records.record import Headers
from tailrace.records.record import NewRecord as Appended

TEXT: Final = "text"
JSON: Final = "json"
BASE64: Final = "base64"
AUTO: Final = "auto"
FORMS: Final = (AUTO, BASE64, JSON)
DATUM_WANTS: Final = 'null, a string, {"json": any value} or {"base64": "…"}'
RECORD_FIELDS: Final = ("key", "value", "headers", "partition", "timestamp")
HEADER_FIELDS: Final = ("name", "value")
TIMESTAMP_MAX_MS: Final = 253_402_300_799_999  # the end of the year 9999

DATUM: Final = Either(
    name="Datum",
    help="Bytes: null, text, a JSON value, or any bytes as base64.",
    wants=DATUM_WANTS,
    of=(
        Null(),
        Text(help="Text, as its UTF-8 bytes.", max_chars=2**31 - 1),
        Object(fields={JSON: Anything(help="A JSON value, as UTF-8 without needless spaces.")}),
        Object(fields={BASE64: Text(help="Any bytes.", max_chars=2**31 - 1)}),
    ),
)
HEADER: Final = Object(fields={"name": Text(), "value": DATUM}, optional=("value",), name="RecordHeader")
NEW_RECORD: Final = Object(
    name="NewRecord",
    help="A record to append. Without a partition, the hash of its key decides, as with Kafka's own clients.",
    fields={
        "key": DATUM,
        "value": DATUM,
        "headers": Many(of=HEADER, most=REST_HEADERS_MAX, help="In this order; a name may come more than once."),
        "partition": Whole(most=INT32_MAX, nullable=True),
        "timestamp": Whole(help="In ms since 1970; now if not given.", most=TIMESTAMP_MAX_MS, nullable=True),
    },
    optional=RECORD_FIELDS,
)
NEW_RECORDS: Final = Object(name="NewRecords", fields={"records": Many(of=NEW_RECORD, least=1, most=REST_RECORDS_MAX)})
_RECORD_FIELDS: Final[dict[str, Shape]] = {
    "partition": Whole(most=INT32_MAX),
    "offset": Whole(),
    "timestamp": Whole(help="In ms since 1970; -1: none.", least=-(2**63)),
    "key": DATUM,
    "value": DATUM,
    "headers": Many(of=HEADER, most=1_000_000),
}
RECORD: Final = Object(name="Record", help="A record as it is in the log.", fields=_RECORD_FIELDS)
LOCKED_MESSAGE: Final = Object(
    name="LockedMessage",
    help="A message of a queue, locked for the client that took it.",
    fields={
        "lock": Text(help="Names the lock, to accept, release or reject the message, or to extend the lock."),
        "lock_ms": Whole(help="How much longer the lock lasts."),
        "delivery": Whole(help="How often the message was delivered, this time included.", least=1),
        **_RECORD_FIELDS,
    },
)


class NewRecord(NamedTuple):
    value: bytes | None
    key: bytes | None
    headers: Headers
    partition: int | None
    timestamp_ms: int | None


# From requests: by hand, as it is the hot path. A test compares it with the shapes above.


def new_records(body: Any) -> list[NewRecord]:
    """The records of a JSON body; raises `Invalid`."""
    if not isinstance(body, dict):
        raise Invalid("", f'must be an object such as {{"records": [{{"value": "…"}}]}}, not {kind(body)}')
    for name in body:
        if name != "records":
            raise Invalid(f"/{shown(name)[1:-1]}", "unknown field; known is records")
    records = body.get("records")
    if not isinstance(records, list):
        raise Invalid("/records", "is missing" if records is None else f"must be an array, not {kind(records)}")
    if not 1 <= len(records) <= REST_RECORDS_MAX:
        raise Invalid("/records", f"has {len(records)} elements; allowed are 1 to {REST_RECORDS_MAX}")
    return [_new_record(one, f"/records/{number}") for number, one in enumerate(records)]


def _new_record(one: Any, where: str) -> NewRecord:
    if not isinstance(one, dict):
        raise Invalid(where, f"must be an object, not {kind(one)}")
    for name in one:
        if name not in RECORD_FIELDS:
            raise Invalid(f"{where}/{shown(name)[1:-1]}", f"unknown field; known are {', '.join(RECORD_FIELDS)}")
    partition, timestamp = one.get("partition"), one.get("timestamp")
    if partition is not None:
        NEW_RECORD.fields["partition"].check(partition, f"{where}/partition")
    if timestamp is not None:
        NEW_RECORD.fields["timestamp"].check(timestamp, f"{where}/timestamp")
    headers = one.get("headers")
    return NewRecord(
        datum_bytes(one.get("value"), f"{where}/value"),
        datum_bytes(one.get("key"), f"{where}/key"),
        () if headers is None and "headers" not in one else _new_headers(headers, f"{where}/headers"),
        partition,
        timestamp,
    )


def _new_headers(headers: Any, where: str) -> Headers:
    if not isinstance(headers, list):
        raise Invalid(where, f"must be an array, not {kind(headers)}")
    if len(headers) > REST_HEADERS_MAX:
        raise Invalid(where, f"has {len(headers)} elements; allowed are {REST_HEADERS_MAX}")
    found = []
    for number, one in enumerate(headers):
        if not isinstance(one, dict):
            raise Invalid(f"{where}/{number}", f"must be an object, not {kind(one)}")
        for name in one:
            if name not in HEADER_FIELDS:
                raise Invalid(f"{where}/{number}/{shown(name)[1:-1]}", "unknown field; known are name, value")
        if "name" not in one:
            raise Invalid(f"{where}/{number}/name", "is missing")
        name = HEADER.fields["name"].check(one["name"], f"{where}/{number}/name")
        found.append((name, datum_bytes(one.get("value"), f"{where}/{number}/value")))
    return tuple(found)


def datum_bytes(value: Any, where: str) -> bytes | None:
    """The bytes that a value of JSON stands for."""
    if value is None:
        return None
    if isinstance(value, str):
        return encodable(value, where).encode()
    if isinstance(value, dict) and len(value) == 1:
        if JSON in value:
            return write_value(value[JSON], where)
        if BASE64 in value:
            return _from_base64(value[BASE64], f"{where}/{BASE64}")
    raise Invalid(where, f"must be {DATUM_WANTS}, not {kind(value)}")


def _from_base64(text: Any, where: str) -> bytes:
    if not isinstance(text, str):
        raise Invalid(where, f"must be a string, not {kind(text)}")
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise Invalid(where, "is not base64 (RFC 4648, section 4, with padding)") from None


def stamped(some: Sequence[NewRecord], now_ms: int) -> list[tuple[int | None, Appended]]:
    """Records as producers take them, each with its partition or None."""
    return [
        (
            one.partition,
            Appended(one.value, one.key, one.headers, now_ms if one.timestamp_ms is None else one.timestamp_ms),
        )
        for one in some
    ]


# To answers


def datum(data: bytes | None, form: str) -> Any:
    """The JSON form of some bytes."""
    if data is None:
        return None
    if form == BASE64:
        return {BASE64: base64.b64encode(data).decode()}
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {BASE64: base64.b64encode(data).decode()}
    if form != JSON:
        return text
    try:
        value = json.loads(text, parse_constant=_refused, parse_float=_finite)
        check_depth(value, "")
        return {JSON: value}
    except (ValueError, RecursionError, Invalid):
        return text


def record(one: Received | Message, form: str) -> dict[str, Any]:
    partition = one.partition.partition
    return {
        "partition": partition,
        "offset": one.offset,
        "timestamp": one.timestamp_ms,
        "key": datum(one.key, AUTO if form == JSON else form),
        "value": datum(one.value, form),
        "headers": [
            {"name": _shown_name(name), "value": datum(value, AUTO if form == JSON else form)}
            for name, value in one.headers
        ],
    }


def records(some: Sequence[Received], form: str) -> list[dict[str, Any]]:
    return [record(one, form) for one in some]


def _shown_name(name: str) -> str:
    """A header's name; bytes of it that are not UTF-8, which JSON cannot carry, are replaced."""
    return name if name.isascii() else name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _refused(name: str) -> None:
    raise ValueError(name)


def _finite(text: str) -> float:
    value = float(text)
    if isinf(value):
        raise ValueError(text)
    return value
