"""Topics: list, create, describe, change, delete; their settings; the offsets of their partitions."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Final

from tailrace.client.admin import (
    change_topic_settings,
    create_partitions,
    create_topics,
    delete_topics,
    describe_topic,
    list_topics,
    topic_settings,
)
from tailrace.client.offsets import EARLIEST, LATEST, offsets_at
from tailrace.client.topic_facts import PartitionFacts, topic_facts
from tailrace.doors.http.rest import names
from tailrace.doors.http.rest.operation import Answer, Body, Call, Operation, Parameter, Reply
from tailrace.doors.http.rest.schema import INT32_MAX, Flag, Many, Mapped, Object, Text, Whole
from tailrace.doors.http.rest.service import Service
from tailrace.model.ids import PartitionName, show_id
from tailrace.model.limits import PARTITIONS_PER_TOPIC_MAX, REST_PAGE_MAX
from tailrace.wire.messages.create_topics import NewTopic, NewTopicConfig
from tailrace.wire.messages.describe_configs import DescribedConfig
from tailrace.wire.messages.metadata import TopicMetadata

TAG: Final = "topics"
SOURCES: Final = {1: "topic", 2: "broker", 3: "broker", 4: "broker", 5: "default", 6: "broker", 8: "group"}

TOPIC_LISTED: Final = Object(
    name="TopicListed",
    fields={
        "name": names.TOPIC_NAME,
        "id": Text(),
        "partitions": Whole(most=INT32_MAX),
        "replication_factor": Whole(most=INT32_MAX),
        "internal": Flag(),
    },
)
PARTITION: Final = Object(
    name="Partition",
    fields={
        "partition": names.PARTITION,
        "leader": Whole(most=INT32_MAX, nullable=True, help="The broker that leads it; null: none at the moment."),
        "replicas": Many(of=Whole(most=INT32_MAX)),
        "in_sync": Many(of=Whole(most=INT32_MAX)),
        "earliest": Whole(nullable=True, help="The first offset; null: no broker answers."),
        "latest": Whole(nullable=True, help="The offset of the next record; null: no broker answers."),
    },
)
TOPIC: Final = Object(
    name="Topic",
    fields={
        "name": names.TOPIC_NAME,
        "id": Text(),
        "internal": Flag(),
        "partitions": Many(of=PARTITION),
        "settings": Mapped(of=Text(), help="The settings that the topic has of its own."),
    },
)
NEW_TOPIC: Final = Object(
    name="NewTopic",
    fields={
        "name": names.TOPIC_NAME,
        "partitions": Whole(least=1, most=PARTITIONS_PER_TOPIC_MAX, help="As the broker is set, if not given."),
        "replication_factor": Whole(least=1, most=100, help="As the broker is set, if not given."),
        "settings": names.SET_SETTINGS,
    },
    optional=("partitions", "replication_factor", "settings"),
    defaults={"settings": {}},
)
SETTING: Final = Object(
    name="Setting",
    fields={
        "name": Text(),
        "value": Text(nullable=True),
        "source": Text(choices=("topic", "group", "broker", "default"), help="Where it is set."),
        "read_only": Flag(),
        "help": Text(nullable=True),
    },
)
SETTINGS: Final = Object(name="Settings", fields={"settings": Many(of=SETTING)})
CHANGED_SETTINGS: Final = Object(fields={"settings": names.SETTINGS}, name="ChangedSettings")
OFFSETS: Final = Object(
    name="Offsets",
    fields={
        "offsets": Many(
            of=Object(
                fields={
                    "partition": names.PARTITION,
                    "earliest": names.OFFSET,
                    "latest": names.OFFSET,
                    "at": Whole(nullable=True, help="The first record at or after `timestamp`; null: there is none."),
                },
                optional=("at",),
            )
        )
    },
)


def page(found: Sequence[str], call: Call) -> tuple[list[str], str | None]:
    """The names of one page, and where the next one begins."""
    wanted = sorted(name for name in found if name.startswith(call.query["prefix"]))
    begin = bisect_right(wanted, call.query["after"])
    limit = call.query.get("limit") or REST_PAGE_MAX
    some = wanted[begin : begin + limit]
    return some, some[-1] if begin + limit < len(wanted) else None


async def list_all(service: Service, call: Call) -> Reply:
    found = {
        one.name: one
        for one in await list_topics(service.cluster)
        if one.name is not None and (call.query["internal"] or not one.is_internal)
    }
    some, after = page(list(found), call)
    return Reply(body={"topics": [_listed(found[name]) for name in some], "next": after})


def _listed(one: TopicMetadata) -> dict[str, Any]:
    return {
        "name": one.name,
        "id": show_id(one.topic_id),
        "partitions": len(one.partitions),
        "replication_factor": max((len(part.replicas) for part in one.partitions), default=0),
        "internal": one.is_internal,
    }


async def create(service: Service, call: Call) -> Reply:
    wanted = call.body
    name = wanted["name"]
    new = NewTopic(
        name=name,
        num_partitions=wanted.get("partitions", -1),
        replication_factor=wanted.get("replication_factor", -1),
        configs=tuple(NewTopicConfig(name=one, value=value) for one, value in wanted["settings"].items()),
    )
    refused = (await create_topics(service.cluster, [new]))[name]
    if refused is not None:
        raise refused
    body = await described(service, name)
    return Reply(status=201, body=body, headers={"location": f"/v1/topics/{name}"})


async def described(service: Service, name: str) -> dict[str, Any]:
    found = await topic_facts(service.cluster, name, committed=True)
    return {**found._asdict(), "partitions": [_described(one) for one in found.partitions]}


def _described(one: PartitionFacts) -> dict[str, Any]:
    return {
        "partition": one.partition,
        "leader": one.leader,
        "replicas": one.replicas,
        "in_sync": one.in_sync,
        "earliest": one.first_offset,
        "latest": one.end_offset,
    }


async def describe(service: Service, call: Call) -> Reply:
    return Reply(body=await described(service, call.path["topic"]))


async def change(service: Service, call: Call) -> Reply:
    name = call.path["topic"]
    await create_partitions(service.cluster, name, call.body["partitions"])
    return Reply(body=await described(service, name))


async def delete(service: Service, call: Call) -> Reply:
    name = call.path["topic"]
    refused = (await delete_topics(service.cluster, [name]))[name]
    if refused is not None:
        raise refused
    return Reply(status=204)


def shown_settings(found: Sequence[DescribedConfig]) -> dict[str, Any]:
    return {
        "settings": [
            {
                "name": one.name,
                "value": one.value,
                "source": SOURCES.get(one.config_source, "default"),
                "read_only": one.read_only,
                "help": one.documentation,
            }
            for one in sorted(found, key=lambda one: one.name)
        ]
    }


async def read_settings(service: Service, call: Call) -> Reply:
    return Reply(body=shown_settings(await topic_settings(service.cluster, call.path["topic"])))


async def change_settings(service: Service, call: Call) -> Reply:
    name = call.path["topic"]
    await change_topic_settings(service.cluster, name, call.body["settings"])
    return Reply(body=shown_settings(await topic_settings(service.cluster, name)))


async def read_offsets(service: Service, call: Call) -> Reply:
    name = call.path["topic"]
    found = await describe_topic(service.cluster, name)
    partitions = sorted(PartitionName(name, one.partition) for one in found.partitions)
    first = await offsets_at(service.cluster, dict.fromkeys(partitions, EARLIEST))
    end = await offsets_at(service.cluster, dict.fromkeys(partitions, LATEST), committed=True)
    rows: list[dict[str, Any]] = [
        {"partition": one.partition, "earliest": first[one], "latest": end[one]} for one in partitions
    ]
    if call.query["timestamp"] is not None:
        times = dict.fromkeys(partitions, call.query["timestamp"])
        found_at = await offsets_at(service.cluster, times, committed=True)
        for row, one in zip(rows, partitions, strict=True):
            row["at"] = found_at[one] if found_at[one] >= 0 else None
    return Reply(body={"offsets": rows})


OPERATIONS: Final = (
    Operation(
        id="listTopics",
        method="GET",
        path="/v1/topics",
        tag=TAG,
        help="List topics.",
        handler=list_all,
        parameters=(names.PREFIX, names.AFTER, names.PAGE, names.INTERNAL),
        answers={
            200: Answer(
                help="Topics by name.", shape=Object(fields={"topics": Many(of=TOPIC_LISTED), "next": names.NEXT})
            )
        },
    ),
    Operation(
        id="createTopic",
        method="POST",
        path="/v1/topics",
        tag=TAG,
        help="Create a topic.",
        handler=create,
        body=Body(shape=NEW_TOPIC, example={"name": "orders", "partitions": 3}),
        answers={201: Answer(help="The topic is created.", shape=TOPIC)},
        problems=("already-exists",),
    ),
    Operation(
        id="describeTopic",
        method="GET",
        path="/v1/topics/{topic}",
        tag=TAG,
        help="Describe a topic: its partitions, offsets and own settings.",
        handler=describe,
        parameters=(names.TOPIC,),
        answers={200: Answer(help="The topic.", shape=TOPIC)},
        problems=("no-such-topic",),
    ),
    Operation(
        id="changeTopic",
        method="PATCH",
        path="/v1/topics/{topic}",
        tag=TAG,
        help="Give a topic more partitions.",
        handler=change,
        parameters=(names.TOPIC,),
        body=Body(
            shape=Object(fields={"partitions": Whole(least=1, most=PARTITIONS_PER_TOPIC_MAX)}),
            example={"partitions": 6},
        ),
        answers={200: Answer(help="The topic.", shape=TOPIC)},
        problems=("no-such-topic",),
    ),
    Operation(
        id="deleteTopic",
        method="DELETE",
        path="/v1/topics/{topic}",
        tag=TAG,
        help="Delete a topic and all its records.",
        handler=delete,
        parameters=(names.TOPIC,),
        answers={204: Answer(help="The topic is deleted.")},
        problems=("no-such-topic",),
    ),
    Operation(
        id="readTopicSettings",
        method="GET",
        path="/v1/topics/{topic}/settings",
        tag=TAG,
        help="Read all settings of a topic, with the defaults.",
        handler=read_settings,
        parameters=(names.TOPIC,),
        answers={200: Answer(help="All settings.", shape=SETTINGS)},
        problems=("no-such-topic",),
    ),
    Operation(
        id="changeTopicSettings",
        method="PATCH",
        path="/v1/topics/{topic}/settings",
        tag=TAG,
        help="Change settings of a topic; null resets one to its default.",
        handler=change_settings,
        parameters=(names.TOPIC,),
        body=Body(shape=CHANGED_SETTINGS, example={"settings": {"retention.ms": "3600000"}}),
        answers={200: Answer(help="All settings.", shape=SETTINGS)},
        problems=("no-such-topic",),
    ),
    Operation(
        id="readTopicOffsets",
        method="GET",
        path="/v1/topics/{topic}/offsets",
        tag=TAG,
        help="Read the first and the next offset of each partition, and offsets by time.",
        handler=read_offsets,
        parameters=(
            names.TOPIC,
            Parameter(name="timestamp", shape=Whole(), help="In ms since 1970: look up the first record since then."),
        ),
        answers={200: Answer(help="The offsets.", shape=OFFSETS)},
        problems=("no-such-topic",),
    ),
)
