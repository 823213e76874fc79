"""Producing: records of a JSON body, or one record whose value is the body, byte for byte.

The answer comes when the records are committed (acks=all). With an `Idempotency-Key`, a repeated request writes nothing
and gets the answer of the first (`once`).
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from tailrace.client.producer import Producer, Written
from tailrace.doors.http.rest import names
from tailrace.doors.http.rest.kinds import UNCERTAIN
from tailrace.doors.http.rest.once import write_once
from tailrace.doors.http.rest.operation import BYTES, PLAIN, Answer, Body, Call, Operation, Parameter, Reply
from tailrace.doors.http.rest.problems import Problem, problem_of
from tailrace.doors.http.rest.records import NEW_RECORDS, NewRecord, new_records, stamped
from tailrace.doors.http.rest.schema import Many, Object, Text, Whole
from tailrace.doors.http.rest.service import Service
from tailrace.model.limits import REST_IDEMPOTENCY_KEY_MAX_CHARS, REST_PRODUCE_MAX_BYTES, REST_RECORDS_MAX

REPLAYED: Final = "idempotency-replayed"

WRITTEN: Final = Object(
    name="Written",
    fields={
        "written": Many(
            most=REST_RECORDS_MAX,
            help="Where each record is, in the order of the request.",
            of=Object(
                fields={
                    "partition": names.PARTITION,
                    "offset": Whole(nullable=True, help="null: it is written, but its offset is no longer known."),
                }
            ),
        )
    },
)
KEY: Final = Parameter(
    name="key", shape=Text(max_chars=10_000), help="The key, as text, of a record whose value is the body."
)
AT: Final = Parameter(
    name="partition", shape=names.PARTITION, help="The partition of a record whose value is the body."
)
IDEMPOTENCY_KEY: Final = Parameter(
    name="idempotency-key",
    place="header",
    shape=Text(min_chars=1, max_chars=REST_IDEMPOTENCY_KEY_MAX_CHARS),
    help="Makes the request repeatable, at any broker: it is written once, and each answer is that of the first. "
    "Kept as long as the offsets of an idle group (a week by default).",
)
PARAMETERS: Final = (KEY, AT, IDEMPOTENCY_KEY)
BODY: Final = Body(
    shape=NEW_RECORDS,
    is_checked=False,
    raw=(BYTES, PLAIN),
    max_bytes=REST_PRODUCE_MAX_BYTES,
    help="Records as JSON; or, as text/plain or application/octet-stream, the value of one record, byte for byte.",
    example={"records": [{"key": "table 4", "value": "two coffees"}, {"value": {"json": {"cups": 2}}}]},
)


async def produce(service: Service, call: Call) -> Reply:
    return await append(service, call, call.path["topic"])


async def append(service: Service, call: Call, topic: str) -> Reply:
    records = records_of(call)
    key = call.headers.get("idempotency-key")
    if key is not None:
        written, is_replayed = await write_once(service, call.principal, topic, records, key)
        return Reply(body=_shown(written), headers={REPLAYED: "true" if is_replayed else "false"})
    with service.producers.of(call.principal) as producer:
        try:
            async with asyncio.timeout(service.cluster.limits.request_s):
                return Reply(body=_shown(await _write(service, producer, topic, records)))
        except TimeoutError:
            within_s = service.cluster.limits.request_s
            raise Problem(
                UNCERTAIN, f"the records were not acknowledged within {within_s:g} s; they may still be written"
            ) from None


def records_of(call: Call) -> list[NewRecord]:
    if call.raw is not None:
        key = call.query["key"]
        return [NewRecord(call.raw, None if key is None else key.encode(), (), call.query["partition"], None)]
    return new_records(call.body)


async def _write(service: Service, producer: Producer, topic: str, records: Sequence[NewRecord]) -> list[Written]:
    waiting = await producer.send_all(topic, stamped(records, service.cluster.driver.wall_ms()))
    if len(waiting) == 1:
        return [await waiting[0]]
    found = await asyncio.gather(*waiting, return_exceptions=True)
    failures = [one for one in found if isinstance(one, BaseException)]
    if failures:
        raise _partly(failures, found)
    return [one for one in found if isinstance(one, Written)]


def _partly(failures: Sequence[BaseException], found: Sequence[Written | BaseException]) -> BaseException:
    """The first failure; if some records were written, or may be, it says which."""
    first = failures[0]
    problem = problem_of(first) if isinstance(first, Exception) else None
    if problem is None:
        return first
    written = [None if isinstance(one, BaseException) else _place(one) for one in found]
    return Problem(problem.kind, problem.detail, **problem.more, written=written)


def _place(one: Written) -> dict[str, Any]:
    return {"partition": one.partition.partition, "offset": one.offset if one.offset >= 0 else None}


def _shown(written: Sequence[Written]) -> dict[str, Any]:
    return {"written": [_place(one) for one in written]}


OPERATIONS: Final = (
    Operation(
        id="produce",
        method="POST",
        path="/v1/topics/{topic}/records",
        tag="records",
        help="Append records to a topic.",
        more="Answered when a majority of the replicas has them. If some were written and others not, the problem "
        "has `written`, with null for those that were not, or may not be.",
        handler=produce,
        parameters=(names.TOPIC, *PARAMETERS),
        body=BODY,
        answers={200: Answer(help="All are committed.", shape=WRITTEN)},
        problems=("no-such-topic", "too-large", "idempotency-key-reused", "idempotency-key-in-use", "outcome-unknown"),
    ),
)
