"""Output formats of a message: its raw value, or a JSON object.

Keys, values and headers are bytes. In JSON they are text if they are UTF-8, otherwise base64 under a name that ends
with `_base64`.
"""

import base64
import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from confluent_kafka import Message

TIME_KINDS: Final = {0: None, 1: "create", 2: "append"}


def text_line(message: "Message", key_separator: str | None) -> bytes:
    """The value, preceded by the key and the separator if a separator is given."""
    value = message.value() or b""
    if key_separator is None:
        return _bytes(value) + b"\n"
    return _bytes(message.key() or b"") + key_separator.encode() + _bytes(value) + b"\n"


def json_line(message: "Message") -> bytes:
    kind, timestamp = message.timestamp()
    shown: dict[str, object] = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": timestamp if kind else None,
        "timestamp_type": TIME_KINDS.get(kind),
        **named_bytes("key", message.key()),
        **named_bytes("value", message.value()),
        "headers": [{"name": name, **named_bytes("value", value)} for name, value in _headers(message)],
    }
    return json.dumps(shown, ensure_ascii=False).encode() + b"\n"


def _headers(message: "Message") -> list[tuple[str, str | bytes | None]]:
    headers = message.headers() or []
    return list(headers.items()) if isinstance(headers, dict) else headers


def named_bytes(name: str, data: str | bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: _bytes(data).decode()}
    except UnicodeDecodeError:
        return {name + "_base64": base64.b64encode(_bytes(data)).decode()}


def _bytes(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data
