"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources."""

import asyncio
from pathlib import Path
from typing import Any

from tailrace.model.settings import rows
from tailrace.model.topics import TOPIC_SETTINGS
from tailrace.wire.errors import Error
from tailrace.wire.messages import alter_configs, incremental_alter_configs
from tailrace.wire.messages.alter_configs import AlterConfigsRequest, AlteredResource, NewConfig
from tailrace.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribedConfig,
    DescribedResource,
    ResourceAsked,
)
from tailrace.wire.messages.incremental_alter_configs import ConfigChange, IncrementalAlterConfigsRequest
from tailrace.wire.messages.list_config_resources import ListConfigResourcesRequest
from tests.unit.doors.kafka.clustered import Clustered, with_cluster
from tests.unit.doors.kafka.served import Served, serving, versions, with_broker

TOPIC_KIND, BROKER_KIND = 2, 4
ASSIGN, CLEAR, APPEND, SUBTRACT = 0, 1, 2, 3


async def describe(
    served: Served, kind: int, name: str, *names: str, version: int = 4, **include: bool
) -> DescribedResource:
    asked = ResourceAsked(resource_type=kind, resource_name=name, config_names=names or None)
    answer = await served.call(DescribeConfigsRequest(resources=(asked,), **include), version)
    described: DescribedResource = answer.results[0]
    return described


async def shown(served: Served, kind: int, name: str, **include: bool) -> dict[str, DescribedConfig]:
    described = await describe(served, kind, name, **include)
    assert described.error_code == 0
    return {one.name: one for one in described.configs}


async def change(
    served: Served, kind: int, name: str, *changes: tuple[str, int, str | None], version: int = 1, **given: Any
) -> AlteredResource:
    configs = tuple(ConfigChange(name=one, config_operation=does, value=value) for one, does, value in changes)
    wanted = incremental_alter_configs.ResourceToAlter(resource_type=kind, resource_name=name, configs=configs)
    answer = await served.call(IncrementalAlterConfigsRequest(resources=(wanted,), **given), version)
    altered: AlteredResource = answer.resources[0]
    return altered


async def replace_all(
    served: Served, kind: int, name: str, *settings: tuple[str, str | None], version: int = 2, **given: Any
) -> AlteredResource:
    configs = tuple(NewConfig(name=one, value=value) for one, value in settings)
    wanted = alter_configs.ResourceToAlter(resource_type=kind, resource_name=name, configs=configs)
    answer = await served.call(AlterConfigsRequest(resources=(wanted,), **given), version)
    altered: AlteredResource = answer.resources[0]
    return altered


def own(served: Served, topic: str = "t") -> dict[str, str]:
    return served.node.hosted.image.topics[topic].settings


@with_broker()
async def test_every_version_shows_every_topic_setting(served: Served) -> None:
    await served.make_topic("t", retention_ms="5000")
    for version in versions(32):
        described = await describe(served, TOPIC_KIND, "t", version=version)
        values = {one.name: one for one in described.configs}
        assert list(values) == list(TOPIC_SETTINGS)
        assert (values["retention.ms"].value, values["retention.ms"].config_source) == ("5000", 1)
        assert (values["preallocate"].value, values["preallocate"].config_source) == ("false", 5)
        assert not any(one.is_sensitive or one.read_only or one.synonyms for one in described.configs)
        types = {name: values[name].config_type for name in ("preallocate", "retention.ms", "segment.bytes")}
        wide = version >= 3
        assert types == {"preallocate": 1 * wide, "retention.ms": 5 * wide, "segment.bytes": 3 * wide}


@with_broker(log_retention_ms=7000)
async def test_a_value_comes_from_the_strongest_place(served: Served) -> None:
    await served.make_topic("t")
    me = str(served.node.broker_id)
    expected = [("log.retention.ms", "7000", 4), ("log.retention.ms", "604800000", 5)]
    for kind, owner, name, value, source in (
        (BROKER_KIND, "", "log.retention.ms", "8000", 3),
        (BROKER_KIND, me, "log.retention.ms", "9000", 2),
        (TOPIC_KIND, "t", "retention.ms", "10000", 1),
    ):
        assert (await change(served, kind, owner, (name, ASSIGN, value))).error_code == 0
        expected.insert(0, (name, value, source))
        setting = (await shown(served, TOPIC_KIND, "t", include_synonyms=True))["retention.ms"]
        assert [(one.name, one.value, one.source) for one in setting.synonyms] == expected
        assert (setting.value, setting.config_source) == (value, source)
        assert served.node.hosted.find("t", 0).log.settings.retention_ms == int(value)


@with_broker()
async def test_names_and_documentation(served: Served) -> None:
    await served.make_topic("t")
    described = await describe(
        served, TOPIC_KIND, "t", "flush.ms", "no.such", "retention.ms", include_documentation=True
    )
    assert [one.name for one in described.configs] == ["flush.ms", "retention.ms"]
    assert all(one.documentation for one in described.configs)
    assert all(one.documentation is None for one in (await describe(served, TOPIC_KIND, "t")).configs)


@with_broker()
async def test_brokers(served: Served) -> None:
    me = str(served.node.broker_id)
    values = await shown(served, BROKER_KIND, me)
    assert [name for name in rows() if name not in values] == []
    assert (values["fsync"].value, values["fsync"].config_source, values["fsync"].read_only) == ("never", 4, True)
    assert (values["log.retention.ms"].config_source, values["log.retention.ms"].read_only) == (5, False)
    assert await shown(served, BROKER_KIND, "") == {}
    await change(served, BROKER_KIND, "", ("log.retention.ms", ASSIGN, "1000"))
    for_all = await shown(served, BROKER_KIND, "")
    assert [(one.name, one.value, one.config_source) for one in for_all.values()] == [("log.retention.ms", "1000", 3)]


@with_broker(advertised_host="broker.example", log_retention_ms=90 * 60_000)
async def test_a_broker_shows_facts_under_kafkas_names(served: Served) -> None:
    me, port = str(served.node.broker_id), served.node.kafka_port
    folder, peer_port = served.node.settings.data_dir, served.node.peer_port
    start, default, number, text, several = 4, 5, 3, 2, 7
    expected = {
        "broker.id": (me, start, number),
        "node.id": (me, start, number),
        "process.roles": ("broker,controller", start, several),
        "controller.quorum.voters": (f"{me}@broker.example:{peer_port}", start, several),
        "listeners": (f"PLAINTEXT://127.0.0.1:{port}", start, several),
        "advertised.listeners": (f"PLAINTEXT://broker.example:{port}", start, several),
        "log.dir": (folder, start, text),
        "log.dirs": (folder, start, several),
        "log.retention.minutes": ("90", start, number),
        "log.roll.hours": ("168", default, number),
        "log.cleanup.policy": ("delete", default, several),
    }
    for version in versions(32):
        described = await describe(served, BROKER_KIND, me, *expected, "log.retention.hours", version=version)
        values = {one.name: one for one in described.configs}
        assert len(values) == len(described.configs), "a name is shown twice"
        kinds = {name: kind if version >= 3 else 0 for name, (_, _, kind) in expected.items()}
        assert {name: (one.value, one.config_source, one.config_type) for name, one in values.items()} == {
            name: (value, source, kinds[name]) for name, (value, source, _) in expected.items()
        }
        assert all(one.read_only for one in described.configs)


@with_cluster(2)
async def test_the_voters_of_the_metadata_have_the_controllers_role(cluster: Clustered) -> None:
    """Of two brokers only the first votes: a third makes all three voters."""
    for broker in cluster.ids:
        described = await shown(cluster[broker], BROKER_KIND, str(broker))
        assert described["process.roles"].value == ("broker,controller" if broker == 1 else "broker")
        address = f"127.0.0.1:{cluster[1].node.peer_port}"
        assert described["controller.quorum.voters"].value == f"1@{address}"


@with_broker()
async def test_what_cannot_be_described(served: Served) -> None:
    for kind, name, error in (
        (TOPIC_KIND, "never", Error.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC_KIND, "b@d", Error.INVALID_TOPIC_EXCEPTION),
        (BROKER_KIND, "77", Error.INVALID_REQUEST),
        (BROKER_KIND, "me", Error.INVALID_REQUEST),
        (8, "1", Error.INVALID_REQUEST),
        (0, "", Error.INVALID_REQUEST),
    ):
        described = await describe(served, kind, name)
        assert (described.error_code, described.resource_name, described.configs) == (error, name, ())
        assert described.error_message


@with_broker()
async def test_single_settings_change(served: Served) -> None:
    await served.make_topic("t")
    for version in versions(44):
        await change(served, TOPIC_KIND, "t", ("retention.ms", ASSIGN, "1"), ("flush.ms", ASSIGN, "2"), version=version)
        assert own(served) == {"retention.ms": "1", "flush.ms": "2"}
        altered = await change(served, TOPIC_KIND, "t", ("retention.ms", CLEAR, None), version=version)
        assert (altered.error_code, altered.resource_type, altered.resource_name) == (0, TOPIC_KIND, "t")
        assert own(served) == {"flush.ms": "2"}
    await change(served, TOPIC_KIND, "t", ("cleanup.policy", APPEND, "delete"))
    await change(served, TOPIC_KIND, "t", ("cleanup.policy", APPEND, "compact"))
    assert own(served)["cleanup.policy"] == "delete,compact"
    await change(served, TOPIC_KIND, "t", ("cleanup.policy", SUBTRACT, "delete,compact"))
    assert own(served)["cleanup.policy"] == ""
    kept = served.node.hosted.find("t", 0).log.settings
    assert (kept.is_compacted, kept.retention_ms, kept.retention_bytes) == (False, -1, -1)


@with_broker()
async def test_compaction_of_brokers_changes(served: Served) -> None:
    changes = {
        "log.cleaner.threads": "2",
        "log.cleaner.dedupe.buffer.size": "33554432",
        "log.cleaner.io.max.bytes.per.second": "1.0E7",
        "log.cleaner.backoff.ms": "1000",
    }
    me = str(served.node.broker_id)
    altered = await change(served, BROKER_KIND, me, *((name, ASSIGN, value) for name, value in changes.items()))
    assert altered.error_code == 0
    effective = served.node.hosted.effective
    assert effective.log_cleaner_dedupe_buffer_size == 33_554_432
    assert effective.log_cleaner_io_max_bytes_per_second == 1e7
    assert effective.log_cleaner_backoff_ms == 1000
    assert not (await shown(served, BROKER_KIND, me))["log.cleaner.backoff.ms"].read_only


@with_broker()
async def test_changes_that_cannot_be_leave_everything(served: Served) -> None:
    await served.make_topic("t", flush_ms="2")
    good = ("retention.ms", ASSIGN, "1")
    for changes, error in (
        ([("no.such", ASSIGN, "1")], Error.INVALID_CONFIG),
        ([("segment.ms", ASSIGN, "long")], Error.INVALID_CONFIG),
        ([("cleanup.policy", ASSIGN, "shred")], Error.INVALID_CONFIG),
        ([("cleanup.policy", APPEND, "shred")], Error.INVALID_CONFIG),
        ([("min.compaction.lag.ms", ASSIGN, "2"), ("max.compaction.lag.ms", ASSIGN, "1")], Error.INVALID_CONFIG),
        ([("flush.ms", APPEND, "1")], Error.INVALID_CONFIG),
        ([("flush.ms", ASSIGN, None)], Error.INVALID_REQUEST),
        ([("flush.ms", 9, "1")], Error.INVALID_REQUEST),
        ([good], Error.INVALID_REQUEST),  # twice
    ):
        altered = await change(served, TOPIC_KIND, "t", good, *changes)
        assert (altered.error_code, bool(altered.error_message)) == (error, True)
        assert own(served) == {"flush.ms": "2"}
    for kind, name, error in (
        (TOPIC_KIND, "never", Error.UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER_KIND, "77", Error.INVALID_REQUEST),
        (16, "x", Error.INVALID_REQUEST),
    ):
        assert (await change(served, kind, name, good)).error_code == error
    read_only = await change(served, BROKER_KIND, "", ("data.dir", ASSIGN, "/"))
    assert read_only.error_code == Error.INVALID_CONFIG


@with_broker()
async def test_settings_are_replaced(served: Served) -> None:
    await served.make_topic("t", flush_ms="2")
    for version in versions(33):
        altered = await replace_all(served, TOPIC_KIND, "t", ("retention.ms", str(version)), version=version)
        assert altered.error_code == 0
        assert own(served) == {"retention.ms": str(version)}
    for settings, error in (
        ([("flush.ms", None)], Error.INVALID_REQUEST),
        ([("flush.ms", "1"), ("flush.ms", "1")], Error.INVALID_REQUEST),
        ([("flush.ms", "x")], Error.INVALID_CONFIG),
    ):
        assert (await replace_all(served, TOPIC_KIND, "t", *settings)).error_code == error
    unknown = await replace_all(served, TOPIC_KIND, "never", ("flush.ms", "1"))
    assert unknown.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert own(served) == {"retention.ms": "2"}
    assert (await replace_all(served, TOPIC_KIND, "t")).error_code == 0
    assert own(served) == {}
    assert (await replace_all(served, BROKER_KIND, "", ("log.retention.ms", "77"))).error_code == 0
    assert served.node.hosted.find("t", 0).log.settings.retention_ms == 77


@with_broker()
async def test_validate_only_changes_nothing(served: Served) -> None:
    await served.make_topic("t", flush_ms="2")
    assert (await change(served, TOPIC_KIND, "t", ("flush.ms", ASSIGN, "3"), validate_only=True)).error_code == 0
    bad = await change(served, TOPIC_KIND, "t", ("flush.ms", ASSIGN, "x"), validate_only=True)
    assert bad.error_code == Error.INVALID_CONFIG
    assert (await replace_all(served, TOPIC_KIND, "t", validate_only=True)).error_code == 0
    assert own(served) == {"flush.ms": "2"}


@with_broker()
async def test_a_resource_named_twice_is_answered_once(served: Served) -> None:
    await served.make_topic("t")
    await served.make_topic("u")
    one = alter_configs.ResourceToAlter(
        resource_type=TOPIC_KIND, resource_name="t", configs=(NewConfig(name="flush.ms", value="1"),)
    )
    other = alter_configs.ResourceToAlter(resource_type=TOPIC_KIND, resource_name="u", configs=one.configs)
    answer = await served.call(AlterConfigsRequest(resources=(one, other, one)), 2)
    assert [(one.resource_name, one.error_code) for one in answer.resources] == [
        ("u", 0),
        ("t", Error.INVALID_REQUEST),
    ]
    assert (own(served, "t"), own(served, "u")) == ({}, {"flush.ms": "1"})


def test_settings_outlive_a_restart(tmp_path: Path) -> None:
    async def first() -> None:
        async with serving(tmp_path) as served:
            await served.make_topic("t", flush_ms="2")
            await change(served, BROKER_KIND, "", ("log.retention.ms", ASSIGN, "1234"))

    async def second() -> tuple[int, int]:
        async with serving(tmp_path) as served:
            settings = served.node.hosted.find("t", 0).log.settings
            return settings.flush_ms, settings.retention_ms

    asyncio.run(first())
    assert asyncio.run(second()) == (2, 1234)


@with_broker()
async def test_what_has_settings(served: Served) -> None:
    await served.make_topic("t")

    async def listed(version: int, *kinds: int) -> list[tuple[int, str]]:
        answer = await served.call(ListConfigResourcesRequest(resource_types=kinds), version)
        assert answer.error_code == 0
        return [(one.resource_type, one.resource_name) for one in answer.config_resources]

    me = str(served.node.broker_id)
    assert await listed(0) == []
    assert await listed(1) == [(TOPIC_KIND, "t"), (BROKER_KIND, me)]
    assert await listed(1, BROKER_KIND) == [(BROKER_KIND, me)]
    assert await listed(1, 16, TOPIC_KIND) == [(TOPIC_KIND, "t")]
    refused = await served.call(ListConfigResourcesRequest(resource_types=(99,)), 1)
    assert refused.error_code == Error.UNSUPPORTED_VERSION
