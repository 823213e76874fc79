"""Topic names and topic settings follow Kafka's rules."""

import pytest

from tailrace.model.faults import InvalidSetting, InvalidTopicName
from tailrace.model.settings import Settings
from tailrace.model.topics import (
    INTERNAL_TOPICS,
    TOPIC_SETTINGS,
    TopicSettings,
    check_topic_name,
    check_topic_relations,
    check_topic_setting,
    default_text,
)

# The topic-level settings that Kafka 4.3 documents, with their defaults.
DOCUMENTED = {
    "cleanup.policy": "delete",
    "compression.gzip.level": "-1",
    "compression.lz4.level": "9",
    "compression.type": "producer",
    "compression.zstd.level": "3",
    "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "60000",
    "flush.messages": "9223372036854775807",
    "flush.ms": "9223372036854775807",
    "follower.replication.throttled.replicas": "",
    "index.interval.bytes": "4096",
    "leader.replication.throttled.replicas": "",
    "local.retention.bytes": "-2",
    "local.retention.ms": "-2",
    "max.compaction.lag.ms": "9223372036854775807",
    "max.message.bytes": "1048588",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "preallocate": "false",
    "remote.log.copy.disable": "false",
    "remote.log.delete.on.disable": "false",
    "remote.storage.enable": "false",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.index.bytes": "10485760",
    "segment.jitter.ms": "0",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}
# Where Tailrace behaves differently and cannot be configured, its own behaviour is shown.
OURS = DOCUMENTED | {"file.delete.delay.ms": "0"}
SUPPORTED = [
    "cleanup.policy",
    "compression.type",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "delete.retention.ms",
    "flush.messages",
    "flush.ms",
    "index.interval.bytes",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
]


def test_the_settings_and_defaults_are_kafkas_except_where_tailrace_differs() -> None:
    assert {name: default_text(one, Settings()) for name, one in TOPIC_SETTINGS.items()} == OURS


def test_every_default_may_be_set() -> None:
    for name, text in OURS.items():
        check_topic_setting(name, text)


def test_a_setting_is_supported_or_has_one_value() -> None:
    # Never silently ignored: an unsupported setting can only be set to the value that describes the behaviour.
    assert [name for name, one in TOPIC_SETTINGS.items() if one.only is None] == SUPPORTED
    assert sorted(field.replace("_", ".") for field in TopicSettings.__dataclass_fields__) == sorted(SUPPORTED)


@pytest.mark.parametrize("name", [name for name in DOCUMENTED if name not in SUPPORTED])
def test_an_unsupported_value_is_refused_by_name(name: str) -> None:
    other = {"int": "7", "float": "0.75", "bool": "true", "str": "other"}[TOPIC_SETTINGS[name].kind.__name__]
    with pytest.raises(InvalidSetting, match=f"{name}={other} is not supported"):
        check_topic_setting(name, other)


def test_the_least_lag_of_compaction_is_not_more_than_the_largest() -> None:
    check_topic_relations({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"})
    check_topic_relations({"min.compaction.lag.ms": "5"})
    with pytest.raises(
        InvalidSetting, match=r"min\.compaction\.lag\.ms=6 must not be more than max\.compaction\.lag\.ms=5"
    ):
        check_topic_relations({"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"})


def test_a_delay_before_removing_files_is_not_supported() -> None:
    with pytest.raises(InvalidSetting, match="ms=60000 is not supported; the only supported value is '0'"):
        check_topic_setting("file.delete.delay.ms", "60000")


@pytest.mark.parametrize(("name", "text"), [("preallocate", "False"), ("min.cleanable.dirty.ratio", "0.50")])
def test_the_supported_value_may_be_written_differently(name: str, text: str) -> None:
    check_topic_setting(name, text)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("retention", "1", "Unknown topic config name: retention"),
        ("retention.ms", "-2", "from -1 to"),
        ("retention.ms", "week", "whole number"),
        ("retention.ms", "", "whole number"),
        ("retention.ms", str(2**63), "from -1 to"),
        ("segment.bytes", "1023", "from 1024"),
        ("segment.bytes", str(2**31), "from 1024"),
        ("segment.ms", "0", "from 1"),
        ("min.insync.replicas", "0", "from 1"),
        ("message.timestamp.type", "createtime", "CreateTime, LogAppendTime"),
        ("min.cleanable.dirty.ratio", "half", "a number"),
        ("preallocate", "perhaps", "true or false"),
        ("cleanup.policy", "shred", "delete, compact or both"),
        ("cleanup.policy", "delete,", "delete, compact or both"),
    ],
)
def test_an_invalid_value_is_refused_with_the_allowed_ones(name: str, value: str, message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        check_topic_setting(name, value)


def test_a_topics_own_settings_override_the_brokers_defaults() -> None:
    broker = Settings(log_retention_ms=5, log_segment_bytes=2048, min_insync_replicas=2)
    values = TopicSettings.of({"retention.ms": "7", "cleanup.policy": "delete"}, broker)
    assert (values.retention_ms, values.segment_bytes, values.min_insync_replicas) == (7, 2048, 2)
    assert default_text(TOPIC_SETTINGS["retention.ms"], broker) == "5"


@pytest.mark.parametrize(
    ("policy", "kept_ms"), [("delete", 7), ("compact", -1), ("compact,delete", 7), ("compact, delete", 7)]
)
def test_a_compacted_topic_has_no_retention_limits_without_delete(policy: str, kept_ms: int) -> None:
    check_topic_setting("cleanup.policy", policy)
    values = TopicSettings.of({"cleanup.policy": policy, "retention.bytes": "7"}, Settings(log_retention_ms=7))
    assert (values.retention_ms, values.retention_bytes) == (kept_ms, kept_ms)


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "x" * 249, "__mine", *INTERNAL_TOPICS])
def test_a_valid_name(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "the empty string is not allowed"),
        (".", "is not allowed"),
        ("..", "is not allowed"),
        ("x" * 250, "longer than the max allowed length 249"),
        ("a b", "other than ASCII alphanumerics"),
        ("a/b", "other than ASCII alphanumerics"),
        ("é", "other than ASCII alphanumerics"),
        ("a\n", "other than ASCII alphanumerics"),
        ("a\0", "other than ASCII alphanumerics"),
        ("٣", "other than ASCII alphanumerics"),
    ],
)
def test_an_invalid_name(name: str, message: str) -> None:
    with pytest.raises(InvalidTopicName, match=message):
        check_topic_name(name)
