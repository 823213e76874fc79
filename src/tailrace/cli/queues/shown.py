"""A message on standard output, and in the environment of a command."""

import json
from enum import StrEnum

from tailrace.cli.messages.message_format import named_bytes
from tailrace.client.consumer import Received
from tailrace.client.shares.message import Message


class Format(StrEnum):
    text = "text"
    json = "json"


def line(message: Message | Received, format: Format) -> bytes:
    """The value, or one JSON object; JSON has bytes that are not UTF-8 in base64."""
    if format is Format.text:
        return (message.value or b"") + b"\n"
    shown: dict[str, object] = {
        "topic": message.partition.topic,
        "partition": message.partition.partition,
        "offset": message.offset,
        **({"delivery_count": message.delivery_count} if isinstance(message, Message) else {}),
        "timestamp": message.timestamp_ms,
        **named_bytes("key", message.key),
        **named_bytes("value", message.value),
        "headers": _headers(message),
    }
    return json.dumps(shown, ensure_ascii=False).encode() + b"\n"


def environment(message: Message) -> dict[str, str]:
    """What a command that handles a message finds in its environment; the value is its standard input."""
    found = {
        "MESSAGE_TOPIC": message.topic,
        "MESSAGE_PARTITION": str(message.partition.partition),
        "MESSAGE_OFFSET": str(message.offset),
        "MESSAGE_DELIVERY_COUNT": str(message.delivery_count),
        "MESSAGE_TIMESTAMP": str(message.timestamp_ms),
        "MESSAGE_HEADERS": json.dumps(_headers(message), ensure_ascii=False),
        **{f"TAILRACE_{name.upper()}": value for name, value in named_bytes("key", message.key).items() if value},
    }
    return {name: value for name, value in found.items() if "\0" not in value}  # which no environment can hold


def _headers(message: Message | Received) -> list[dict[str, str | None]]:
    return [{"name": name, **named_bytes("value", value)} for name, value in message.headers]
