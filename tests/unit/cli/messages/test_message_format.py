"""Output formats of messages keep all bytes."""

import json

from confluent_kafka import Message

from tailrace.cli.messages.message_format import json_line, text_line


def message(
    value: bytes | None, key: bytes | None, headers: list[tuple[str, str | bytes | None]] | None = None
) -> Message:
    return Message(topic="t", partition=0, offset=7, timestamp=(1, 1234), value=value, key=key, headers=headers)


def test_text_is_the_value_and_a_newline() -> None:
    assert text_line(message(value=b"\xff\x00", key=b"k"), None) == b"\xff\x00\n"
    assert text_line(message(value=b"v", key=b"k"), " -> ") == b"k -> v\n"
    assert text_line(message(value=None, key=None), ":") == b":\n"


def test_json_distinguishes_null_from_empty_and_text_from_bytes() -> None:
    whole = message(b"\xff", b"", [("h", "é".encode()), ("h", b"\xfe"), ("none", None)])
    assert json.loads(json_line(whole)) == {
        "topic": "t",
        "partition": 0,
        "offset": 7,
        "timestamp": 1234,
        "timestamp_type": "create",
        "key": "",
        "value_base64": "/w==",
        "headers": [
            {"name": "h", "value": "é"},
            {"name": "h", "value_base64": "/g=="},
            {"name": "none", "value": None},
        ],
    }
    assert json.loads(json_line(message(value=None, key=None)))["value"] is None
