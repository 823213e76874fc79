"""Consuming: records of a partition from an offset, one record or its bytes, and server-sent events.

A read begins at an offset, so the door keeps nothing between two requests: `next_offset` of an answer is the `offset`
of the next request. Only committed records are shown, without those of aborted transactions.

A live tail is a stream of events (`text/event-stream`), each with a record and, as its id, the offsets that come
next: a browser that reconnects sends the last id back (`Last-Event-ID`), and goes on where it was.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import nullcontext
from math import ceil
from typing import Any, Final

from tailrace.client.admin import describe_topic
from tailrace.client.cluster import Cluster
from tailrace.client.consumer import Consumer, ConsumerOptions, Received
from tailrace.client.faults import Refused
from tailrace.client.offsets import EARLIEST, LATEST, offsets_at
from tailrace.doors.http.rest import bodies, names
from tailrace.doors.http.rest.kinds import NO_RECORD, NO_TOPIC, OUT_OF_RANGE
from tailrace.doors.http.rest.operation import BYTES, EVENTS, Answer, Call, Events, Operation, Parameter, Reply
from tailrace.doors.http.rest.problems import Problem, problem_of
from tailrace.doors.http.rest.records import RECORD, record, records
from tailrace.doors.http.rest.schema import Invalid, Many, Object, Text, Whole
from tailrace.doors.http.rest.service import Service
from tailrace.model.ids import PartitionName
from tailrace.model.limits import REST_READ_MAX_BYTES, REST_RECORDS_MAX, REST_TAIL_PARTITIONS_MAX, MiB
from tailrace.wire.errors import Error

LEAST_WAIT_S: Final = 2.0  # for a leader that is just being elected, even if the client does not want to wait
BROKER_WAIT_MS: Final = 5_000  # how long a broker holds one fetch
KEEP_ALIVE_S: Final = 15.0  # after which a stream without records sends a comment, so that nobody closes it
BEGUN: Final = b""
KEEP_ALIVE: Final = b": keep-alive\n\n"
FAREWELL: Final = b'event: end\ndata: {"reason":"the server stops"}\n\n'
LAST_ID: Final = "last-event-id"
IDS_MAX_PARTITIONS: Final = 16  # with more, not every event has an id: it names all of them

READ: Final = Object(
    name="Records",
    fields={
        "records": Many(of=RECORD, most=REST_RECORDS_MAX),
        "next_offset": Whole(help="The `offset` of the next request."),
    },
)
FROM: Final = Parameter(
    name="from",
    shape=names.PLACE,
    default="latest",
    help="Where to begin: earliest, latest, or an offset (then `partition` must be given).",
)
ONE_PARTITION: Final = Parameter(name="partition", shape=names.PARTITION, help="Only this partition.")
LAST_EVENT_ID: Final = Parameter(
    name=LAST_ID,
    place="header",
    shape=Text(
        max_chars=32_000, pattern=r"([0-9]{1,10}:[0-9]{1,19})(,[0-9]{1,10}:[0-9]{1,19})*", wants="an event's id"
    ),
    help="The id of the last event that was received: the stream goes on after it, whatever `from` says.",
)


async def read(service: Service, call: Call) -> Reply:
    place = PartitionName(call.path["topic"], call.path["partition"])
    query = call.query
    begin = await start_of(service.cluster, place, query["offset"], query["timestamp"])
    found, after = await fetch(
        service, {place: begin}, query["limit"], query["wait_ms"] / 1000, max_bytes=query["max_bytes"]
    )
    return Reply(body={"records": records(found, query["form"]), "next_offset": after[place]})


async def start_of(cluster: Cluster, place: PartitionName, offset: int | str, timestamp_ms: int | None) -> int:
    """The offset to begin at."""
    if timestamp_ms is not None:
        found = (await offsets_at(cluster, {place: timestamp_ms}, committed=True))[place]
        return found if found >= 0 else (await offsets_at(cluster, {place: LATEST}, committed=True))[place]
    if isinstance(offset, int):
        return offset
    where = EARLIEST if offset == "earliest" else LATEST
    return (await offsets_at(cluster, {place: where}, committed=True))[place]


async def fetch(
    service: Service,
    starts: Mapping[PartitionName, int],
    limit: int,
    wait_s: float,
    *,
    max_bytes: int = MiB,
) -> tuple[list[Received], dict[PartitionName, int]]:
    """At most so many records from these offsets on, and the offsets that come next."""
    wait_ms = min(ceil(wait_s * 1000), BROKER_WAIT_MS)
    options = ConsumerOptions(
        max_wait_ms=wait_ms, partition_max_bytes=max_bytes, response_max_bytes=REST_READ_MAX_BYTES
    )
    ends = await offsets_at(service.cluster, dict.fromkeys(starts, LATEST), committed=True)
    beyond = {one: offset for one, offset in starts.items() if offset > ends[one]}
    if beyond:  # open transactions may be there
        written = await offsets_at(service.cluster, dict.fromkeys(beyond, LATEST))
        if any(offset > written[one] for one, offset in beyond.items()):
            raise await _out_of_range(service.cluster, starts)
    if not wait_s and all(ends[one] <= offset for one, offset in starts.items()):
        return [], dict(starts)
    is_expected = any(ends[one] > offset for one, offset in starts.items())
    waiting = nullcontext() if is_expected else service.lasting()
    with waiting:
        return await _poll(
            service.cluster, starts, limit, options, max(wait_s, LEAST_WAIT_S) if is_expected else wait_s
        )


async def _poll(
    cluster: Cluster, starts: Mapping[PartitionName, int], limit: int, options: ConsumerOptions, wait_s: float
) -> tuple[list[Received], dict[PartitionName, int]]:
    async with Consumer(cluster, options) as consumer:
        consumer.assign(starts)
        try:
            found = await consumer.poll(limit, wait_s)
        except Refused as refused:
            if refused.error is Error.OFFSET_OUT_OF_RANGE:
                raise await _out_of_range(cluster, starts) from None
            raise
        return found, consumer.positions


async def _out_of_range(cluster: Cluster, starts: Mapping[PartitionName, int]) -> Problem:
    first = await offsets_at(cluster, dict.fromkeys(starts, EARLIEST))
    end = await offsets_at(cluster, dict.fromkeys(starts, LATEST))
    wrong = next((one for one in starts if not first[one] <= starts[one] <= end[one]), next(iter(starts)))
    why = f"{wrong.topic}-{wrong.partition} has offsets {first[wrong]} to {end[wrong]}, not {starts[wrong]}"
    return Problem(OUT_OF_RANGE, why, earliest=first[wrong], latest=end[wrong])


async def read_one(service: Service, call: Call) -> Reply:
    return Reply(body=record(await _one(service, call), call.query["form"]))


async def read_value(service: Service, call: Call) -> Reply:
    found = await _one(service, call)
    if found.value is None:
        return Reply(status=204)
    headers = {"x-content-type-options": "nosniff", "content-disposition": "attachment"}
    return Reply(raw=found.value, content_type=BYTES, headers=headers)


async def _one(service: Service, call: Call) -> Received:
    place, offset = PartitionName(call.path["topic"], call.path["partition"]), call.path["offset"]
    found, _ = await fetch(service, {place: offset}, 1, 0.0)
    if not found or found[0].offset != offset:
        raise Problem(NO_RECORD, f"{place.topic}-{place.partition} has no record at offset {offset}")
    return found[0]


# Streams


async def tail(service: Service, call: Call) -> Events:
    starts = await _starts(service.cluster, call)
    return Events(chunks=await begun(_tailed(service, starts, call.query["form"])), farewell=FAREWELL)


async def begun(chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes]:
    """A stream that has run up to its first `yield`, so that what keeps it from beginning is answered as a problem."""
    await anext(chunks)
    return chunks


async def _starts(cluster: Cluster, call: Call) -> dict[PartitionName, int]:
    """The offsets at which a tail begins."""
    topic, begin, only = call.path["topic"], call.query["from"], call.query["partition"]
    described = await describe_topic(cluster, topic)
    partitions = sorted(PartitionName(topic, one.partition) for one in described.partitions)
    if only is not None:
        if PartitionName(topic, only) not in partitions:
            raise Problem(NO_TOPIC, f"{topic} has {len(partitions)} partitions, so no partition {only}")
        partitions = [PartitionName(topic, only)]
    if len(partitions) > REST_TAIL_PARTITIONS_MAX:
        raise Invalid("partition", f"{topic} has {len(partitions)} partitions: choose one of them")
    if isinstance(begin, int):
        if only is None:
            raise Invalid("from", "an offset needs a partition: give the parameter `partition`, too")
        starts = {partitions[0]: begin}
    else:
        where = EARLIEST if begin == "earliest" else LATEST
        starts = await offsets_at(cluster, dict.fromkeys(partitions, where), committed=True)
    last = call.headers.get(LAST_ID)
    if last is not None:
        known = {PartitionName(topic, number): offset for number, offset in _read_id(last)}
        starts |= {one: known[one] for one in partitions if one in known}
    return starts


def _read_id(text: str) -> list[tuple[int, int]]:
    found = []
    for one in text.split(","):
        number, _, offset = one.partition(":")
        found.append((int(number), min(int(offset), 2**63 - 1)))
    return found


def event_id(positions: Mapping[PartitionName, int]) -> str:
    return ",".join(f"{one.partition}:{positions[one]}" for one in sorted(positions))


def event(body: Mapping[str, Any], id: str = "", name: str = "") -> bytes:
    """JSON has no line ends outside of strings, and none inside: one line of data is always enough."""
    lines = b"id: " + id.encode() + b"\n" if id else b""
    lines += b"event: " + name.encode() + b"\n" if name else b""
    return lines + b"data: " + bodies.write(body) + b"\n\n"


async def _tailed(service: Service, starts: Mapping[PartitionName, int], form: str) -> AsyncGenerator[bytes, None]:
    positions = dict(starts)
    with service.lasting():
        yield BEGUN
        yield b"retry: 1000\n\n"
        async with Consumer(service.cluster, ConsumerOptions(reset="earliest", max_wait_ms=BROKER_WAIT_MS)) as consumer:
            consumer.assign(starts)
            while True:
                try:
                    found = await consumer.poll(REST_RECORDS_MAX, KEEP_ALIVE_S)
                except Exception as error:
                    problem = problem_of(error)
                    if problem is None:
                        raise
                    yield event(problem.document(), name="error")
                    return
                yield events(found, positions, form) if found else KEEP_ALIVE


def events(found: Sequence[Received], positions: dict[PartitionName, int], form: str) -> bytes:
    """An event for each record. Where an id is long, only the last event has one."""
    lines = []
    for number, one in enumerate(found, start=1):
        positions[one.partition] = one.offset + 1
        has_id = len(positions) <= IDS_MAX_PARTITIONS or number == len(found)
        lines.append(event(record(one, form), event_id(positions) if has_id else ""))
    return b"".join(lines)


OPERATIONS: Final = (
    Operation(
        id="readRecords",
        method="GET",
        path="/v1/topics/{topic}/partitions/{partition}/records",
        tag="records",
        help="Read records of a partition, from an offset on.",
        handler=read,
        parameters=(
            names.TOPIC,
            names.PARTITION_OF_PATH,
            Parameter(
                name="offset",
                shape=names.PLACE,
                default="earliest",
                help="Where to begin: earliest, latest or an offset.",
            ),
            Parameter(
                name="timestamp", shape=Whole(), help="Begin at the first record since then, in ms since 1970, instead."
            ),
            names.LIMIT,
            names.WAIT,
            Parameter(
                name="max_bytes",
                shape=Whole(least=1, most=REST_READ_MAX_BYTES),
                default=MiB,
                help="The most bytes to read; the first batch is read anyway.",
            ),
            names.FORM,
        ),
        answers={200: Answer(help="The records, perhaps none.", shape=READ)},
        problems=("no-such-topic", "offset-out-of-range", "too-many-requests"),
    ),
    Operation(
        id="readRecord",
        method="GET",
        path="/v1/topics/{topic}/partitions/{partition}/records/{offset}",
        tag="records",
        help="Read one record.",
        handler=read_one,
        parameters=(
            names.TOPIC,
            names.PARTITION_OF_PATH,
            Parameter(name="offset", place="path", required=True, shape=Whole(), help="Its offset."),
            names.FORM,
        ),
        answers={200: Answer(help="The record.", shape=RECORD)},
        problems=("no-such-topic", "no-such-record", "offset-out-of-range"),
    ),
    Operation(
        id="readValue",
        method="GET",
        path="/v1/topics/{topic}/partitions/{partition}/records/{offset}/value",
        tag="records",
        help="Read the value of one record, byte for byte.",
        handler=read_value,
        parameters=(
            names.TOPIC,
            names.PARTITION_OF_PATH,
            Parameter(name="offset", place="path", required=True, shape=Whole(), help="Its offset."),
        ),
        answers={
            200: Answer(help="The value.", content_type=BYTES),
            204: Answer(help="The record has no value: a tombstone."),
        },
        problems=("no-such-topic", "no-such-record", "offset-out-of-range"),
    ),
    Operation(
        id="tailTopic",
        method="GET",
        path="/v1/topics/{topic}/stream",
        tag="records",
        help="Follow a topic: its records as server-sent events.",
        handler=tail,
        parameters=(names.TOPIC, FROM, ONE_PARTITION, names.FORM, LAST_EVENT_ID),
        answers={200: Answer(help="Events: each `data` is a record.", content_type=EVENTS, shape=RECORD)},
        problems=("no-such-topic", "too-many-requests"),
    ),
)
