"""Run by Python with `tailrace` of 0.1.0: `old_program.py declared`, or `old_program.py read`.

`declared` prints, as JSON, the newest version of every record and peer message that 0.1.0 can read, and of every
request that it forwards. `read` takes lines `record HEX` and `NAME HEX` and prints what 0.1.0 reads there, a line each.
It imports nothing of this checkout: names are those of 0.1.0.
"""

# mypy: ignore-errors
import json
import sys
from dataclasses import fields, is_dataclass

from tailrace.cluster.records import record_kinds
from tailrace.doors.kafka.registry import apis
from tailrace.groups.records import kinds
from tailrace.transactions.records import TransactionLogValue
from tailrace.wire.compile import decode_whole
from tailrace.wire.messages.peers import peer_messages
from tailrace.wire.schema import declaration
from tailrace.wire.stored import decode_record


def newest(*classes):
    return {cls.__name__: declaration(cls).versions.last for cls in classes}


def declared():
    values = [value for _, value in kinds.values()]
    return {
        "records": newest(*record_kinds.values(), *values, TransactionLogValue),
        "messages": newest(*(pair.request for pair in peer_messages.values())),
        "forwarded": {api.key: api.versions.last for api in apis.values() if api.by_controller},
    }


def plain(value):
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, bytes):
        return value.hex()
    return [plain(one) for one in value] if isinstance(value, tuple) else value


def read(line):
    name, _, data = line.strip().partition(" ")
    if name == "record":
        return plain(decode_record(record_kinds, bytes.fromhex(data)))
    classes = {cls.__name__: cls for pair in peer_messages.values() for cls in (pair.request, pair.response)}
    return plain(decode_whole(classes[name], 0, bytes.fromhex(data)))


if sys.argv[1] == "declared":
    json.dump(declared(), sys.stdout)
else:
    for one in sys.stdin:
        json.dump(read(one), sys.stdout)
        sys.stdout.write("\n")
