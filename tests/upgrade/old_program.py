"""Run by Python with `tailrace` of 0.1.0: `old_program.py declared`, or `read`, or `marks FOLDER`.

`declared` prints, as JSON, the newest version of every record and peer message that 0.1.0 can read, and of every
request that it forwards. `read` takes lines `record HEX` and `NAME HEX` and prints what 0.1.0 reads there, a line each.
`marks` writes files that a broker writes only in trouble.
It imports nothing of this checkout: names are those of 0.1.0.
"""

# mypy: ignore-errors
# ruff: noqa: I001 some of these modules are not there any more
import asyncio
import json
import sys
from dataclasses import fields, is_dataclass

from tailrace.broker.unfit import Unfit
from tailrace.cluster.records import record_kinds
from tailrace.doors.kafka.registry import apis
from tailrace.groups.records import kinds
from tailrace.log import damage_mark, refill
from tailrace.log.cut_mark import store_cut
from tailrace.log.gaps import write_gap
from tailrace.log.voters import write_voters
from tailrace.model.ids import TopicPartition
from tailrace.ports import system_ports
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


async def write_marks(folder):
    disk, voters = system_ports().disk, ((1, b"a" * 16), (2, b"b" * 16))
    write_gap(disk, folder, 5, 9).close()
    write_voters(disk, folder, 3, voters).close()
    await store_cut(disk, folder, 7)
    await damage_mark.mark(disk, folder, 8)
    await refill._mark(disk, folder, "filling", voters)
    unfit = Unfit(disk, folder)
    unfit.add(TopicPartition(b"t" * 16, 4))
    await unfit.store()


if sys.argv[1] == "declared":
    json.dump(declared(), sys.stdout)
elif sys.argv[1] == "marks":
    asyncio.run(write_marks(sys.argv[2]))
else:
    for one in sys.stdin:
        json.dump(read(one), sys.stdout)
        sys.stdout.write("\n")
