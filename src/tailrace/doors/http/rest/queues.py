"""Queues: a topic and a share group of the same name (or another one). Take messages, and settle each.

A message that is taken is locked until it is accepted (never delivered again), released (delivered again), rejected (it
goes to the dead letters, if the queue has some), or until the lock ends (as released). `locks` says which door has it.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from tailrace.client.admin import (
    change_group_settings,
    create_topics,
    delete_topics,
    group_settings,
    groups_with_settings,
)
from tailrace.client.faults import ClientError, Refused, Unsupported
from tailrace.client.group_admin import delete_groups, list_groups
from tailrace.client.offsets import EARLIEST, LATEST, offsets_at
from tailrace.client.share_admin import describe_share_group, share_group_offsets
from tailrace.client.shares.message import Message, Outcome
from tailrace.client.taking import Taker
from tailrace.doors.http.rest import names
from tailrace.doors.http.rest.clusters import metadata
from tailrace.doors.http.rest.consuming import fetch
from tailrace.doors.http.rest.groups import partitions_of
from tailrace.doors.http.rest.kinds import LOCK_ENDED, NO_QUEUE
from tailrace.doors.http.rest.locks import LOCK_PATTERN, Elsewhere
from tailrace.doors.http.rest.operation import Answer, Body, Call, Operation, Parameter, Reply
from tailrace.doors.http.rest.problems import Problem
from tailrace.doors.http.rest.producing import BODY, PARAMETERS, WRITTEN, append
from tailrace.doors.http.rest.records import LOCKED_MESSAGE, RECORD, record, records
from tailrace.doors.http.rest.schema import INT32_MAX, Many, Mapped, Object, Text, Whole
from tailrace.doors.http.rest.service import Service
from tailrace.doors.http.rest.topics import page
from tailrace.model.limits import PARTITIONS_PER_TOPIC_MAX, REST_RECORDS_MAX, REST_TAKE_MAX, REST_WAIT_MAX_MS
from tailrace.wire.errors import Error
from tailrace.wire.messages.create_topics import NewTopic

TAG: Final = "queues"
HTTP: Final = "http"
SOURCE_GROUP: Final = 8  # the source, in DescribeConfigs, of a setting that is set on the group itself
RESET: Final = "share.auto.offset.reset"
ISOLATION: Final = "share.isolation.level"
LOCK_MS: Final = "share.record.lock.duration.ms"
DELIVERIES: Final = "share.delivery.count.limit"
BACKOFF: Final = "share.retry.backoff.ms"
DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
BY_FIELD: Final = {
    "lock_ms": LOCK_MS,
    "delivery_limit": DELIVERIES,
    "backoff_ms": BACKOFF,
    "dead_letters": DEAD_LETTERS,
}

OF_GROUP: Final = Parameter(
    name="group", shape=names.GROUP_NAME, help="The share group, if it is not called like the queue."
)
LOCK: Final = Parameter(
    name="lock",
    place="path",
    required=True,
    shape=Text(pattern=LOCK_PATTERN, wants="a lock, as `take` gives it"),
    help="The lock of the message.",
)
NEW_QUEUE: Final = Object(
    name="NewQueue",
    fields={
        "partitions": Whole(least=1, most=PARTITIONS_PER_TOPIC_MAX),
        "replication_factor": Whole(least=1, most=100),
        "lock_ms": Whole(help="How long a message is locked for the client that took it.", least=1000, most=3_600_000),
        "delivery_limit": Whole(
            help="How often a message is delivered before it is given up.", least=1, most=INT32_MAX
        ),
        "backoff_ms": Whole(help="How long a message rests before it is delivered again.", most=604_800_000),
        "dead_letters": names.TOPIC_NAME,
    },
    optional=("partitions", "replication_factor", *BY_FIELD),
)
QUEUE: Final = Object(
    name="Queue",
    fields={
        "queue": names.TOPIC_NAME,
        "group": Text(),
        "state": Text(help="Of the group; unused: nothing was taken yet."),
        "workers": Whole(help="Members of the group; clients of this API are none.", most=INT32_MAX),
        "waiting": Whole(help="Messages that are neither accepted nor given up, also those that are locked."),
        "partitions": Many(
            of=Object(
                fields={
                    "partition": names.PARTITION,
                    "start": Whole(nullable=True, help="Everything before is finished; null: nothing was taken yet."),
                    "end": names.OFFSET,
                    "waiting": Whole(),
                }
            )
        ),
        "dead_letters": Object(
            fields={"topic": Text(nullable=True), "messages": Whole(nullable=True, help="null: there is no topic.")}
        ),
        "settings": Mapped(of=Text(), help="Settings of the group that differ from the defaults."),
    },
)
TAKE: Final = Object(
    name="Take",
    fields={
        "limit": Whole(help="The most messages to take.", least=1, most=REST_TAKE_MAX),
        "wait_ms": Whole(help="How long to wait while there is none.", most=REST_WAIT_MAX_MS),
    },
    optional=("limit", "wait_ms"),
    defaults={"limit": 1, "wait_ms": 0},
)
TAKEN: Final = Object(name="Taken", fields={"messages": Many(of=LOCKED_MESSAGE, most=REST_TAKE_MAX)})
OUTCOMES: Final = {"accept": Outcome.ACCEPT, "release": Outcome.RELEASE, "reject": Outcome.REJECT}


async def list_all(service: Service, call: Call) -> Reply:
    cluster = service.cluster
    found = {one.group_id: None for one in await list_groups(cluster) if one.group_type.lower() == "share"}
    try:
        for group in await groups_with_settings(cluster):
            if group not in found and RESET in await _own_settings(service, group):
                found[group] = None
    except Unsupported:  # before Kafka 4.1: only what is in use is listed
        pass
    some, after = page(list(found), call)
    return Reply(body={"queues": some, "next": after})


async def create(service: Service, call: Call) -> Reply:
    """The group before the topic: with settings that are refused, nothing is made."""
    queue, wanted = call.path["queue"], call.body
    settings = {RESET: "earliest", ISOLATION: "read_committed"}
    settings |= {name: str(wanted[field]) for field, name in BY_FIELD.items() if field in wanted}
    await change_group_settings(service.cluster, queue, settings)
    topics = [queue, wanted["dead_letters"]] if "dead_letters" in wanted else [queue]
    new = [
        NewTopic(
            name=name,
            num_partitions=wanted.get("partitions", -1) if name == queue else 1,
            replication_factor=wanted.get("replication_factor", -1),
        )
        for name in dict.fromkeys(topics)
    ]
    is_new = True
    for name, refused in (await create_topics(service.cluster, new)).items():
        if refused is not None and refused.error is not Error.TOPIC_ALREADY_EXISTS:
            raise refused
        is_new = is_new and not (name == queue and refused is not None)
    body = await described(service, queue, queue)
    headers = {"location": f"/v1/queues/{queue}"} if is_new else {}
    return Reply(status=201 if is_new else 200, body=body, headers=headers)


async def describe(service: Service, call: Call) -> Reply:
    return Reply(body=await described(service, *_queue(call)))


async def described(service: Service, queue: str, group: str) -> dict[str, Any]:
    cluster = service.cluster
    partitions = await _partitions(service, queue)
    first = await offsets_at(cluster, dict.fromkeys(partitions, EARLIEST))
    end = await offsets_at(cluster, dict.fromkeys(partitions, LATEST))
    settings = await _own_settings(service, group)
    found = await describe_share_group(cluster, group)
    offsets = await share_group_offsets(cluster, group)
    rows = []
    for one in partitions:
        start, lag = offsets.get(one, (None, None))
        if start is None:
            waiting = end[one] - first[one] if settings.get(RESET) == "earliest" else 0
        else:
            waiting = end[one] - max(start, first[one]) if lag is None else lag
        rows.append({"partition": one.partition, "start": start, "end": end[one], "waiting": waiting})
    letters = settings.get(DEAD_LETTERS) or None
    return {
        "queue": queue,
        "group": group,
        "state": "unused" if found is None else found.state,
        "workers": 0 if found is None else len(found.members),
        "waiting": sum(row["waiting"] for row in rows),
        "partitions": rows,
        "dead_letters": {"topic": letters, "messages": await _count(service, letters)},
        "settings": settings,
    }


async def _count(service: Service, topic: str | None) -> int | None:
    if topic is None:
        return None
    try:
        partitions = await partitions_of(service.cluster, topic)
    except Refused:
        return None
    first = await offsets_at(service.cluster, dict.fromkeys(partitions, EARLIEST))
    end = await offsets_at(service.cluster, dict.fromkeys(partitions, LATEST))
    return sum(end[one] - first[one] for one in partitions)


async def _partitions(service: Service, queue: str) -> Sequence[Any]:
    try:
        return await partitions_of(service.cluster, queue)
    except Refused as refused:
        if refused.error is not Error.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        raise Problem(NO_QUEUE, f"there is no queue {queue}: PUT /v1/queues/{queue} makes it") from None


async def _own_settings(service: Service, group: str) -> dict[str, str]:
    found = await group_settings(service.cluster, group)
    return {one.name: one.value or "" for one in found if one.config_source == SOURCE_GROUP}


async def change(service: Service, call: Call) -> Reply:
    queue, group = _queue(call)
    await _partitions(service, queue)
    await change_group_settings(service.cluster, group, call.body["settings"])
    return Reply(body=await described(service, queue, group))


async def delete(service: Service, call: Call) -> Reply:
    queue = call.path["queue"]
    await _partitions(service, queue)
    refused = (await delete_groups(service.cluster, [queue]))[queue]
    if refused is not None and refused.error is not Error.GROUP_ID_NOT_FOUND:
        raise refused
    refused = (await delete_topics(service.cluster, [queue]))[queue]
    if refused is not None:
        raise refused
    return Reply(status=204)


async def send(service: Service, call: Call) -> Reply:
    return await append(service, call, call.path["queue"])


def _queue(call: Call) -> tuple[str, str]:
    """The queue's topic and its group."""
    queue = call.path["queue"]
    return queue, call.query.get("group") or queue


# Messages


async def take(service: Service, call: Call) -> Reply:
    queue, group = _queue(call)
    wanted = call.body
    service.locks.check_room(wanted["limit"])
    if not service.cluster.map.has_topic(queue):
        await _partitions(service, queue)
    taker: Taker = service.takers.of(group, queue, sets_up=False)
    first = await taker.take(wait_s=wanted["wait_ms"] / 1000)
    found = [] if first is None else [first]
    if first is not None and wanted["limit"] > 1:
        more = await asyncio.gather(*(taker.take() for _ in range(wanted["limit"] - 1)), return_exceptions=True)
        for one in more:
            if isinstance(one, BaseException) and not isinstance(one, ClientError):
                raise one
        found += [one for one in more if isinstance(one, Message)]
    found.sort(key=lambda one: (one.partition, one.offset))
    return Reply(body={"messages": [_locked(service, taker, one, call.query["form"]) for one in found]})


def _locked(service: Service, taker: Taker, message: Message, form: str) -> dict[str, Any]:
    body = record(message, form)
    left_ms = max(0, int((message.locked_until - service.ports.clock.monotonic()) * 1000))
    return {
        "lock": service.locks.add(taker, message),
        "lock_ms": left_ms,
        "delivery": message.delivery_count,
        **body,
    }


async def accept(service: Service, call: Call) -> Reply:
    return await _settle(service, call, "accept")


async def release(service: Service, call: Call) -> Reply:
    return await _settle(service, call, "release")


async def reject(service: Service, call: Call) -> Reply:
    return await _settle(service, call, "reject")


async def _settle(service: Service, call: Call, verb: str) -> Reply:
    queue, group = _queue(call)
    elsewhere = await service.locks.settle(queue, group, call.path["lock"], OUTCOMES[verb])
    if elsewhere is None:
        return Reply(status=204)
    target = f"/v1/queues/{queue}/locks/{call.path['lock']}/{verb}"
    return await _redirected(service, call, elsewhere, target if group == queue else f"{target}?group={quote(group)}")


async def _redirected(service: Service, call: Call, elsewhere: Elsewhere, target: str) -> Reply:
    endpoints = await service.upstream.endpoints(HTTP)
    address = endpoints.get(elsewhere.broker)
    alive = [one.node_id for one in (await metadata(service.cluster)).brokers]
    if address is None or elsewhere.broker not in alive or elsewhere.broker == service.upstream.broker_id:
        why = f"broker {elsewhere.broker} had the lock {call.path['lock']} and is gone; the message is delivered again"
        raise Problem(LOCK_ENDED, why)
    return Reply(status=307, headers={"location": f"//{address}{target}"})


# Looking


async def peek(service: Service, call: Call) -> Reply:
    queue, group = _queue(call)
    partitions = await _partitions(service, queue)
    first = await offsets_at(service.cluster, dict.fromkeys(partitions, EARLIEST))
    offsets = await share_group_offsets(service.cluster, group)
    starts = {one: max(first[one], (offsets[one].start or 0) if one in offsets else 0) for one in partitions}
    found, _ = await fetch(service, starts, call.query["limit"], 0.0)
    return Reply(body={"records": records(found, call.query["form"])})


async def dead_letters(service: Service, call: Call) -> Reply:
    _, group = _queue(call)
    topic = (await _own_settings(service, group)).get(DEAD_LETTERS)
    if not topic:
        why = f"group {group} has no dead letter topic: set {DEAD_LETTERS}"
        raise Problem(NO_QUEUE, why)
    partitions = await _partitions(service, topic)
    first = await offsets_at(service.cluster, dict.fromkeys(partitions, EARLIEST))
    found, _ = await fetch(service, first, call.query["limit"], 0.0)
    return Reply(body={"topic": topic, "records": records(found, call.query["form"])})


SEEN: Final = Object(name="SeenRecords", fields={"records": Many(of=RECORD, most=REST_RECORDS_MAX)})
DEAD: Final = Object(
    name="DeadLetters", fields={"topic": names.TOPIC_NAME, "records": Many(of=RECORD, most=REST_RECORDS_MAX)}
)


def _settling(verb: str, help: str, handler: Any) -> Operation:
    return Operation(
        id=f"{verb}Message",
        method="POST",
        path=f"/v1/queues/{{queue}}/locks/{{lock}}/{verb}",
        tag=TAG,
        help=help,
        more="May be repeated with the same lock until the lock ends. Another broker than the one that gave the lock "
        "answers with a redirect to it (`curl -L`).",
        handler=handler,
        parameters=(names.QUEUE, LOCK, OF_GROUP),
        answers={
            204: Answer(help="The decision is stored durably."),
            307: Answer(help="The broker that has the lock: repeat the request there."),
        },
        problems=("lock-ended", "outcome-unknown"),
    )


OPERATIONS: Final = (
    Operation(
        id="listQueues",
        method="GET",
        path="/v1/queues",
        tag=TAG,
        help="List queues: all share groups, and groups that are set up to be one.",
        handler=list_all,
        parameters=(names.PREFIX, names.AFTER, names.PAGE),
        answers={
            200: Answer(help="Their names.", shape=Object(fields={"queues": Many(of=Text()), "next": names.NEXT}))
        },
    ),
    Operation(
        id="createQueue",
        method="PUT",
        path="/v1/queues/{queue}",
        tag=TAG,
        help="Make a queue: a topic, and a group that begins with the first message; or change an existing one.",
        handler=create,
        parameters=(names.QUEUE,),
        body=Body(shape=NEW_QUEUE, example={"delivery_limit": 3, "dead_letters": "mails-dead"}),
        answers={
            201: Answer(help="The queue is made.", shape=QUEUE),
            200: Answer(help="It existed; its settings are as requested.", shape=QUEUE),
        },
    ),
    Operation(
        id="describeQueue",
        method="GET",
        path="/v1/queues/{queue}",
        tag=TAG,
        help="Describe a queue: how many messages wait, where its group is, dead letters, settings.",
        handler=describe,
        parameters=(names.QUEUE, OF_GROUP),
        answers={200: Answer(help="The queue.", shape=QUEUE)},
        problems=("no-such-queue",),
    ),
    Operation(
        id="changeQueue",
        method="PATCH",
        path="/v1/queues/{queue}",
        tag=TAG,
        help="Change settings of the queue's group; null resets one.",
        handler=change,
        parameters=(names.QUEUE, OF_GROUP),
        body=Body(
            shape=Object(fields={"settings": names.SETTINGS}, name="ChangedSettings"),
            example={"settings": {LOCK_MS: "60000"}},
        ),
        answers={200: Answer(help="The queue.", shape=QUEUE)},
        problems=("no-such-queue",),
    ),
    Operation(
        id="deleteQueue",
        method="DELETE",
        path="/v1/queues/{queue}",
        tag=TAG,
        help="Delete a queue: its group and its topic, with all messages. Its dead letters stay.",
        handler=delete,
        parameters=(names.QUEUE,),
        answers={204: Answer(help="The queue is deleted.")},
        problems=("no-such-queue", "group-in-use"),
    ),
    Operation(
        id="sendMessages",
        method="POST",
        path="/v1/queues/{queue}/messages",
        tag=TAG,
        help="Send messages: as appending records to the topic.",
        handler=send,
        parameters=(names.QUEUE, *PARAMETERS),
        body=BODY,
        answers={200: Answer(help="All are committed.", shape=WRITTEN)},
        problems=("no-such-topic", "too-large", "idempotency-key-reused", "idempotency-key-in-use", "outcome-unknown"),
    ),
    Operation(
        id="peekMessages",
        method="GET",
        path="/v1/queues/{queue}/messages",
        tag=TAG,
        help="Look at messages from the first unfinished one on, without locking them.",
        more="Some may be finished or locked already.",
        handler=peek,
        parameters=(names.QUEUE, OF_GROUP, names.LIMIT, names.FORM),
        answers={200: Answer(help="Messages.", shape=SEEN)},
        problems=("no-such-queue",),
    ),
    Operation(
        id="takeMessages",
        method="POST",
        path="/v1/queues/{queue}/take",
        tag=TAG,
        help="Take messages: each is locked for this client, and has a lock to settle it with.",
        handler=take,
        parameters=(names.QUEUE, OF_GROUP, names.FORM),
        body=Body(shape=TAKE, example={"limit": 1, "wait_ms": 5000}),
        answers={200: Answer(help="The messages, perhaps none.", shape=TAKEN)},
        problems=("no-such-queue", "no-such-topic", "too-many-requests"),
    ),
    _settling("accept", "Accept a message: it is processed, and never delivered again.", accept),
    _settling("release", "Release a message: it is delivered again, unless it was delivered too often.", release),
    _settling(
        "reject", "Reject a message: it cannot be processed, and goes to the dead letters if there are any.", reject
    ),
    Operation(
        id="readDeadLetters",
        method="GET",
        path="/v1/queues/{queue}/dead-letters",
        tag=TAG,
        help="Look at the dead letters of a queue. Their headers say where they come from, and why.",
        more="They are a topic like any other; `tailrace queue redrive` sends them back.",
        handler=dead_letters,
        parameters=(names.QUEUE, OF_GROUP, names.LIMIT, names.FORM),
        answers={200: Answer(help="The first ones.", shape=DEAD)},
        problems=("no-such-queue",),
    ),
)
