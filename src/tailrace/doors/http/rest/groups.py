"""Consumer groups: list, describe, delete; their offsets: read, commit, reset; and consuming by group.

A group can be read in two ways. *By requests*: each reads from the committed offsets on, and the client commits with
a request of its own when it has processed the records. Nothing is kept between requests, so any broker takes them;
clients that read at the same time get the same records, and a queue is the better choice for them. *As a stream*: the
client is a member of the group (KIP-848) for as long as its connection lasts, and members share the partitions.
Records are committed when they are sent and the client's system has taken them; what was under way when a connection
breaks may be lost for a client that did not process it, so one that must see every record reads by requests.
"""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Any, Final

from tailrace.client.admin import describe_topic
from tailrace.client.cluster import Cluster
from tailrace.client.faults import ClientError, Refused
from tailrace.client.group_admin import (
    GroupDescription,
    all_committed_offsets,
    delete_groups,
    describe_group,
    list_groups,
)
from tailrace.client.group_consumer import GroupConsumer, GroupOptions
from tailrace.client.offsets import EARLIEST, LATEST, by_topic, commit_offsets, committed_offsets, offsets_at
from tailrace.client.share_admin import describe_share_group, share_group_offsets
from tailrace.doors.http.rest import names
from tailrace.doors.http.rest.consuming import BEGUN, FAREWELL, KEEP_ALIVE, KEEP_ALIVE_S, begun, event, events, fetch
from tailrace.doors.http.rest.kinds import NO_GROUP, NO_TOPIC
from tailrace.doors.http.rest.once import GROUP_PREFIX
from tailrace.doors.http.rest.operation import EVENTS, Answer, Body, Call, Events, Operation, Parameter, Reply
from tailrace.doors.http.rest.problems import Problem, problem_of
from tailrace.doors.http.rest.records import RECORD, records
from tailrace.doors.http.rest.schema import INT32_MAX, Flag, Invalid, Many, Object, Text, Whole
from tailrace.doors.http.rest.service import Service
from tailrace.doors.http.rest.topics import page
from tailrace.model.ids import PartitionName
from tailrace.model.limits import REST_OFFSETS_MAX, REST_RECORDS_MAX

TAG: Final = "groups"

LISTED: Final = Object(
    name="GroupListed", fields={"name": Text(), "type": Text(help="classic, consumer or share."), "state": Text()}
)
MEMBER: Final = Object(
    name="Member",
    fields={
        "id": Text(),
        "client": Text(),
        "host": Text(),
        "partitions": Many(of=Object(fields={"topic": names.TOPIC_NAME, "partition": names.PARTITION})),
    },
)
PLACE_OF_GROUP: Final = Object(
    name="GroupOffset",
    fields={
        "topic": names.TOPIC_NAME,
        "partition": names.PARTITION,
        "committed": Whole(nullable=True, help="Of the record that comes next; null: nothing is committed."),
        "latest": Whole(nullable=True, help="The offset of the next record to be written; null: the topic is gone."),
        "lag": Whole(nullable=True, help="How many offsets the group is behind."),
    },
)
GROUP: Final = Object(
    name="Group",
    fields={
        "name": Text(),
        "type": Text(),
        "state": Text(),
        "assignor": Text(),
        "coordinator": Whole(least=-1, most=INT32_MAX),
        "members": Many(of=MEMBER),
        "offsets": Many(of=PLACE_OF_GROUP),
    },
)
COMMITTED: Final = Object(name="GroupOffsets", fields={"offsets": Many(of=PLACE_OF_GROUP)})
TO_COMMIT: Final = Object(
    name="OffsetsToCommit", fields={"offsets": Many(of=names.OFFSET_OF, least=1, most=REST_OFFSETS_MAX)}
)
TO_RESET: Final = Object(
    name="OffsetsToReset",
    help="Exactly one of to, timestamp and shift.",
    fields={
        "topic": names.TOPIC_NAME,
        "partitions": Many(of=names.PARTITION, least=1, most=REST_OFFSETS_MAX, help="All, if not given."),
        "to": names.PLACE,
        "timestamp": Whole(help="The first record since then, in ms since 1970."),
        "shift": Whole(least=-(2**62), most=2**62, help="By this many offsets, forward or (negative) back."),
        "dry_run": Flag(help="Commit nothing, and return what would be committed."),
    },
    optional=("partitions", "to", "timestamp", "shift", "dry_run"),
    defaults={"dry_run": False},
)
READ_BY_GROUP: Final = Object(
    name="GroupRecords",
    fields={
        "records": Many(of=RECORD, most=REST_RECORDS_MAX),
        "offsets": Many(of=names.OFFSET_OF, help="What to commit when these records are processed."),
    },
)
START: Final = Parameter(
    name="start",
    shape=Text(choices=("earliest", "latest")),
    default="earliest",
    help="Where to begin in partitions of which the group has committed nothing.",
)


async def list_all(service: Service, call: Call) -> Reply:
    wanted = call.query["type"]
    found = {
        one.group_id: one
        for one in await list_groups(service.cluster)
        if (wanted is None or one.group_type.lower() == wanted)
        and (call.query["internal"] or not one.group_id.startswith(GROUP_PREFIX))
    }
    some, after = page(list(found), call)
    groups = [{"name": name, "type": found[name].group_type.lower(), "state": found[name].group_state} for name in some]
    return Reply(body={"groups": groups, "next": after})


async def describe(service: Service, call: Call) -> Reply:
    name, cluster = call.path["group"], service.cluster
    committed: Mapping[PartitionName, int] = {}
    try:
        found = await describe_group(cluster, name)
        committed = await all_committed_offsets(cluster, name)
    except Refused as refused:
        found = await describe_share_group(cluster, name)
        if found is None:
            raise refused from None
    if found is None:
        found = await describe_share_group(cluster, name)
    if found is None:
        raise Problem(NO_GROUP, f"there is no group {name}")
    if found.type == "share":
        starts = await share_group_offsets(cluster, name)
        committed = {one: at.start for one, at in starts.items() if at.start is not None}
    return Reply(body=_described(found) | {"offsets": await _places(cluster, committed)})


def _described(found: GroupDescription) -> dict[str, Any]:
    members = [
        {
            "id": one.id,
            "client": one.client_id,
            "host": one.host,
            "partitions": [{"topic": part.topic, "partition": part.partition} for part in sorted(one.partitions)],
        }
        for one in found.members
    ]
    return {
        "name": found.id,
        "type": found.type,
        "state": found.state,
        "assignor": found.assignor,
        "coordinator": found.coordinator,
        "members": members,
    }


async def _places(cluster: Cluster, committed: Mapping[PartitionName, int | None]) -> list[dict[str, Any]]:
    ends: dict[PartitionName, int] = {}
    for ones in by_topic(committed).values():
        try:
            ends |= await offsets_at(cluster, dict.fromkeys(ones, LATEST), committed=True)
        except Refused:
            continue  # the topic is gone
    found = []
    for one in sorted(committed):
        offset, end = committed[one], ends.get(one)
        lag = None if offset is None or end is None else max(0, end - offset)
        found.append({"topic": one.topic, "partition": one.partition, "committed": offset, "latest": end, "lag": lag})
    return found


async def delete(service: Service, call: Call) -> Reply:
    name = call.path["group"]
    refused = (await delete_groups(service.cluster, [name]))[name]
    if refused is not None:
        raise refused
    return Reply(status=204)


async def read_offsets(service: Service, call: Call) -> Reply:
    committed = await all_committed_offsets(service.cluster, call.path["group"])
    topic = call.query["topic"]
    wanted = {one: at for one, at in committed.items() if topic is None or one.topic == topic}
    return Reply(body={"offsets": await _places(service.cluster, wanted)})


async def commit(service: Service, call: Call) -> Reply:
    offsets: dict[PartitionName, int] = {}
    for number, one in enumerate(call.body["offsets"]):
        place = PartitionName(one["topic"], one["partition"])
        if place in offsets:
            raise Invalid(f"/offsets/{number}", f"{place.topic}-{place.partition} is named twice")
        offsets[place] = one["offset"]
    await commit_offsets(service.cluster, call.path["group"], offsets)
    return Reply(body={"offsets": await _places(service.cluster, offsets)})


async def reset(service: Service, call: Call) -> Reply:
    body, group, cluster = call.body, call.path["group"], service.cluster
    given = [name for name in ("to", "timestamp", "shift") if name in body]
    if len(given) != 1:
        raise Invalid("", f"give exactly one of to, timestamp and shift, not {' and '.join(given) or 'none'}")
    partitions = await partitions_of(cluster, body["topic"], body.get("partitions"))
    first = await offsets_at(cluster, dict.fromkeys(partitions, EARLIEST))
    end = await offsets_at(cluster, dict.fromkeys(partitions, LATEST), committed=True)
    before = await committed_offsets(cluster, group, partitions)
    wanted = await _targets(cluster, body, partitions, first, end, before)
    offsets = {one: min(max(wanted[one], first[one]), end[one]) for one in partitions}
    if not body["dry_run"]:
        await commit_offsets(cluster, group, offsets)
    return Reply(body={"offsets": await _places(cluster, offsets)})


async def _targets(
    cluster: Cluster,
    body: Mapping[str, Any],
    partitions: Sequence[PartitionName],
    first: Mapping[PartitionName, int],
    end: Mapping[PartitionName, int],
    before: Mapping[PartitionName, int],
) -> Mapping[PartitionName, int]:
    if "timestamp" in body:
        found = await offsets_at(cluster, dict.fromkeys(partitions, body["timestamp"]), committed=True)
        return {one: found[one] if found[one] >= 0 else end[one] for one in partitions}
    if "shift" in body:
        return {one: before.get(one, first[one]) + body["shift"] for one in partitions}
    if body["to"] == "earliest":
        return first
    return end if body["to"] == "latest" else dict.fromkeys(partitions, body["to"])


async def partitions_of(cluster: Cluster, topic: str, numbers: Iterable[int] | None = None) -> list[PartitionName]:
    """The partitions of a topic, or those of them that are named."""
    described = await describe_topic(cluster, topic)
    there = sorted(PartitionName(topic, one.partition) for one in described.partitions)
    if numbers is None:
        return there
    wanted = sorted(dict.fromkeys(PartitionName(topic, one) for one in numbers))
    missing = [one.partition for one in wanted if one not in there]
    if missing:
        raise Problem(NO_TOPIC, f"{topic} has {len(there)} partitions, so no partition {missing[0]}")
    return wanted


async def read(service: Service, call: Call) -> Reply:
    topic, group, query, cluster = call.path["topic"], call.path["group"], call.query, service.cluster
    partitions = await partitions_of(cluster, topic)
    committed = await committed_offsets(cluster, group, partitions, stable=True)
    missing = [one for one in partitions if one not in committed]
    where = EARLIEST if query["start"] == "earliest" else LATEST
    first = await offsets_at(cluster, dict.fromkeys(partitions, EARLIEST))
    starts = committed | await offsets_at(cluster, dict.fromkeys(missing, where), committed=True)
    starts = {one: max(offset, first[one]) for one, offset in starts.items()}  # what was deleted cannot be read
    found, after = await fetch(service, starts, query["limit"], query["wait_ms"] / 1000)
    moved = {one: at for one, at in after.items() if at != committed.get(one, -1)}
    offsets = [{"topic": one.topic, "partition": one.partition, "offset": moved[one]} for one in sorted(moved)]
    return Reply(body={"records": records(found, query["form"]), "offsets": offsets})


async def stream(service: Service, call: Call) -> Events:
    topic, query = call.path["topic"], call.query
    await partitions_of(service.cluster, topic)
    return Events(chunks=await begun(_streamed(service, call.path["group"], topic, query["form"])), farewell=FAREWELL)


async def _streamed(service: Service, group: str, topic: str, form: str) -> AsyncGenerator[bytes, None]:
    with service.lasting():
        yield BEGUN
        yield b"retry: 1000\n\n"
        async with GroupConsumer(service.cluster, group, [topic], GroupOptions(commit_interval_s=1.0)) as consumer:
            try:
                while True:
                    # This poll comes when the client's system has taken what was sent before: that counts as processed.
                    found = await consumer.poll(REST_RECORDS_MAX, KEEP_ALIVE_S)
                    yield events(found, {}, form) if found else KEEP_ALIVE
            except ClientError as error:
                problem = problem_of(error)
                assert problem is not None
                yield event(problem.document(), name="error")


OPERATIONS: Final = (
    Operation(
        id="listGroups",
        method="GET",
        path="/v1/groups",
        tag=TAG,
        help="List groups.",
        handler=list_all,
        parameters=(
            Parameter(
                name="type", shape=Text(choices=("classic", "consumer", "share")), help="Only groups of this type."
            ),
            names.PREFIX,
            names.AFTER,
            names.PAGE,
            names.INTERNAL,
        ),
        answers={
            200: Answer(help="Groups by name.", shape=Object(fields={"groups": Many(of=LISTED), "next": names.NEXT}))
        },
    ),
    Operation(
        id="describeGroup",
        method="GET",
        path="/v1/groups/{group}",
        tag=TAG,
        help="Describe a group: its members, offsets and lag.",
        handler=describe,
        parameters=(names.GROUP,),
        answers={200: Answer(help="The group.", shape=GROUP)},
        problems=("no-such-group",),
    ),
    Operation(
        id="deleteGroup",
        method="DELETE",
        path="/v1/groups/{group}",
        tag=TAG,
        help="Delete a group without members, and its offsets.",
        handler=delete,
        parameters=(names.GROUP,),
        answers={204: Answer(help="The group is deleted.")},
        problems=("no-such-group", "group-in-use"),
    ),
    Operation(
        id="readGroupOffsets",
        method="GET",
        path="/v1/groups/{group}/offsets",
        tag=TAG,
        help="Read the committed offsets of a group, and its lag.",
        handler=read_offsets,
        parameters=(names.GROUP, Parameter(name="topic", shape=names.TOPIC_NAME, help="Only of this topic.")),
        answers={200: Answer(help="The offsets, none if the group has committed nothing.", shape=COMMITTED)},
    ),
    Operation(
        id="commitOffsets",
        method="POST",
        path="/v1/groups/{group}/offsets",
        tag=TAG,
        help="Commit offsets of a group that has no members.",
        more="The group is created if it does not exist. The offset is that of the record that comes next.",
        handler=commit,
        parameters=(names.GROUP,),
        body=Body(shape=TO_COMMIT, example={"offsets": [{"topic": "orders", "partition": 0, "offset": 3}]}),
        answers={200: Answer(help="The offsets that were committed.", shape=COMMITTED)},
        problems=("no-such-topic", "group-in-use"),
    ),
    Operation(
        id="resetOffsets",
        method="POST",
        path="/v1/groups/{group}/offsets/reset",
        tag=TAG,
        help="Set the offsets of a group without members to a position or a time, or move them by a number of records.",
        handler=reset,
        parameters=(names.GROUP,),
        body=Body(shape=TO_RESET, example={"topic": "orders", "to": "earliest"}),
        answers={200: Answer(help="The offsets that are, or would be, committed.", shape=COMMITTED)},
        problems=("no-such-topic", "group-in-use"),
    ),
    Operation(
        id="readByGroup",
        method="GET",
        path="/v1/groups/{group}/topics/{topic}/records",
        tag=TAG,
        help="Read the records after the committed offsets of a group.",
        more="Commit `offsets` of the answer when the records are processed. Until then they are read again.",
        handler=read,
        parameters=(names.GROUP, names.TOPIC, names.LIMIT, names.WAIT, START, names.FORM),
        answers={200: Answer(help="The records, perhaps none, and what to commit.", shape=READ_BY_GROUP)},
        problems=("no-such-topic", "too-many-requests"),
    ),
    Operation(
        id="streamByGroup",
        method="GET",
        path="/v1/groups/{group}/topics/{topic}/stream",
        tag=TAG,
        help="Follow a topic as a member of a group, as server-sent events.",
        more="Members share the partitions. What the client's system has taken is committed every second; records that "
        "were under way when a connection breaks may come again, or be lost for a client that did not process them.",
        handler=stream,
        parameters=(names.GROUP, names.TOPIC, names.FORM),
        answers={200: Answer(help="Events: each `data` is a record.", content_type=EVENTS, shape=RECORD)},
        problems=("no-such-topic", "too-many-requests"),
    ),
)
