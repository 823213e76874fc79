"""CreateTopics: create topics; with validate_only, only check whether that is possible. Each topic has its own result.

-1 as number of partitions or replication factor means the broker's default. With a manual assignment both must be -1.
"""

from collections.abc import Mapping
from typing import Final

from tailrace.cluster.controller import NewTopic, TopicCreated
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.configs.setting_values import source_number
from tailrace.doors.kafka.request_limits import repeated
from tailrace.model.faults import Fault, InvalidReplicaAssignment, InvalidRequest, InvalidSetting
from tailrace.model.ids import NO_ID
from tailrace.wire.faults import error_of
from tailrace.wire.messages import create_topics as wire
from tailrace.wire.messages.create_topics import (
    CreatedTopic,
    CreatedTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

FIRST_WITH_SETTINGS: Final = 5
BY_DEFAULT: Final = -1


async def create_topics(request: CreateTopicsRequest, call: Call) -> CreateTopicsResponse:
    twice = repeated(topic.name for topic in request.topics)
    topics = [topic for topic in request.topics if topic.name not in twice]
    wanted = [_wanted(call, topic) for topic in topics]
    within_s = max(request.timeout_ms, 0) / 1000
    answers = await call.services.topics.create(
        call.caller, wanted, validate_only=request.validate_only, within_s=within_s
    )
    echo = SettingsEcho(call)
    created = [
        _refused(topic.name, answer)
        if isinstance(answer, Fault)
        else _created(answer, echo.of(answer.settings), request.validate_only)
        for topic, answer in zip(topics, answers, strict=True)
    ]
    fault = InvalidRequest("Duplicate topic name.")
    return CreateTopicsResponse(topics=(*created, *(_refused(name, fault) for name in twice)))


def _wanted(call: Call, topic: wire.NewTopic) -> NewTopic | Fault:
    try:
        if topic.assignments:
            return _assigned(topic)
        partitions, replicas = topic.num_partitions, topic.replication_factor
        return NewTopic(
            name=topic.name,
            partitions=call.services.topics.default_partitions if partitions == BY_DEFAULT else partitions,
            replication_factor=call.services.topics.default_replication_factor if replicas == BY_DEFAULT else replicas,
            settings=_settings(topic),
        )
    except Fault as fault:
        return fault


def _assigned(topic: wire.NewTopic) -> NewTopic:
    if topic.num_partitions != BY_DEFAULT or topic.replication_factor != BY_DEFAULT:
        raise InvalidRequest("with a replica assignment, num.partitions and replication.factor must be -1")
    if twice := repeated(one.partition for one in topic.assignments):
        raise InvalidReplicaAssignment(f"the replicas of partition {next(iter(twice))} are assigned twice")
    return NewTopic(
        name=topic.name,
        partitions=BY_DEFAULT,
        replication_factor=BY_DEFAULT,
        assignment={one.partition: one.broker_ids for one in topic.assignments},
        settings=_settings(topic),
    )


def _settings(topic: wire.NewTopic) -> dict[str, str]:
    if twice := repeated(one.name for one in topic.configs):
        raise InvalidSetting(f"{next(iter(twice))} is set twice")
    settings = {}
    for one in topic.configs:
        if one.value is None:
            raise InvalidSetting(f"Null value not supported for topic configs: {one.name}")
        settings[one.name] = one.value
    return settings


class SettingsEcho:
    """The settings of new topics in the response. Topics without own settings share one encoding of the defaults."""

    def __init__(self, call: Call) -> None:
        self._admin = call.services.admin
        self._shown = call.version >= FIRST_WITH_SETTINGS
        self._defaults: tuple[CreatedTopicConfig, ...] = ()

    def of(self, own: Mapping[str, str]) -> tuple[CreatedTopicConfig, ...]:
        if not self._shown:
            return ()
        if own:
            return self._all(own)
        self._defaults = self._defaults or self._all(own)
        return self._defaults

    def _all(self, own: Mapping[str, str]) -> tuple[CreatedTopicConfig, ...]:
        return tuple(
            CreatedTopicConfig(
                name=one.name,
                value=one.values[0].value,
                read_only=one.read_only,
                config_source=source_number(one.values[0].source),
            )
            for one in self._admin.topic_settings(own)
        )


def _created(answer: TopicCreated, settings: tuple[CreatedTopicConfig, ...], validate_only: bool) -> CreatedTopic:
    return CreatedTopic(
        name=answer.name,
        topic_id=NO_ID if validate_only else answer.id,
        num_partitions=answer.partitions,
        replication_factor=answer.replication_factor,
        configs=settings,
    )


def _refused(name: str, fault: Fault) -> CreatedTopic:
    return CreatedTopic(name=name, error_code=error_of(fault), error_message=str(fault))
