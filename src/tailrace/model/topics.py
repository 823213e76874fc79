"""The settings of a topic: every topic setting that Kafka documents, and which of them are supported.

A setting that is not supported yet is shown with its default, and setting it to another value is refused: settings are
never silently ignored. `TopicSettings` holds the values of one topic: its own, and the broker's defaults for the rest.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from tailrace.model.faults import InvalidSetting, InvalidTopicName
from tailrace.model.frozen import frozen
from tailrace.model.ids import Id, TopicPartition
from tailrace.model.limits import RECORD_BATCH_MAX_BYTES, SEGMENT_MAX_BYTES, TOPIC_NAME_MAX_CHARS, MiB
from tailrace.model.settings import (
    COMPRESSION_TYPES,
    GZIP_LEVELS,
    LZ4_LEVELS,
    NEVER_MS,
    ZSTD_LEVELS,
    SettingError,
    Settings,
    is_gzip_level,
    parse,
)

NAME_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
POLICIES: Final = ("delete", "compact")
METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = Id(bytes(15) + b"\x01")  # the same in every cluster, as in Kafka
METADATA_PARTITION: Final = TopicPartition(METADATA_TOPIC_ID, 0)
OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
SHARE_STATE_TOPIC: Final = "__share_group_state"
INTERNAL_TOPICS: Final = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC, METADATA_TOPIC)
# The state of coordinators must not be deleted by age. Small segments, because a new leader loads all of them.
INTERNAL_TOPIC_SETTINGS: Final = MappingProxyType(
    {"retention.ms": "-1", "retention.bytes": "-1", "segment.bytes": str(100 * MiB)}
)


@frozen(kw_only=False)
class TopicSetting:
    """One topic setting. `broker` is the field of `Settings` with its default; None: `default` is.

    `only` is the only supported value of a setting whose feature is not implemented.
    """

    name: str
    kind: type
    default: object
    help: str
    broker: str | None = None
    check: Callable[[Any], bool] | None = None
    wants: str = ""
    only: str | None = None


def _at_least(low: int, high: int = NEVER_MS) -> dict[str, Any]:
    return {"check": lambda value: low <= value <= high, "wants": f"from {low} to {high}"}


def _one_of(*choices: str) -> dict[str, Any]:
    return {"check": lambda value: value in choices, "wants": "one of " + ", ".join(choices)}


def _are_policies(text: str) -> bool:
    return all(one in POLICIES for one in policies_of(text))


def policies_of(text: str) -> list[str]:
    """The items of a `cleanup.policy`, which is a list, perhaps empty."""
    return [one.strip() for one in text.split(",")] if text else []


def is_compacted(policy: str) -> bool:
    """Whether a `cleanup.policy` includes compaction."""
    return "compact" in policies_of(policy)


def _unsupported(name: str, kind: type, default: object, help: str) -> TopicSetting:
    return TopicSetting(name, kind, default, help, only=text_of(default))


def text_of(value: object) -> str:
    """A value as shown to clients."""
    return str(value).lower() if isinstance(value, bool) else str(value)


# fmt: off
_TABLE: Final = (
    TopicSetting("cleanup.policy", str, "delete", "What happens to old records: delete removes segments beyond the retention limits; compact alone keeps the last record of each key regardless of retention, and requires keys. Empty: everything is kept.", check=_are_policies, wants="delete, compact or both, separated by a comma, or empty"),
    TopicSetting("compression.type", str, "producer", "The compression of stored batches: uncompressed, gzip, snappy, lz4 or zstd; a batch in another codec is compressed anew when it is appended. producer: as the producer compressed them.", "compression_type", **_one_of(*COMPRESSION_TYPES)),
    TopicSetting("compression.gzip.level", int, -1, "The compression level if the broker compresses with gzip: from 1 to 9; -1: the default of gzip.", "compression_gzip_level", check=is_gzip_level, wants=GZIP_LEVELS),
    TopicSetting("compression.lz4.level", int, 9, "The compression level if the broker compresses with lz4. As in Kafka, 9 is the fast compressor, and every other level a slower one with a better ratio.", "compression_lz4_level", **_at_least(*LZ4_LEVELS)),
    TopicSetting("compression.zstd.level", int, 3, "The compression level if the broker compresses with zstd.", "compression_zstd_level", **_at_least(*ZSTD_LEVELS)),
    TopicSetting("delete.retention.ms", int, 86_400_000, "How long tombstones of a compacted topic, and the markers of its transactions, are kept after they were compacted first.", "log_cleaner_delete_retention_ms", **_at_least(0)),
    _unsupported("file.delete.delay.ms", int, 0, "How long files are kept after deletion; Tailrace removes them at once, Kafka after a minute."),
    TopicSetting("flush.messages", int, NEVER_MS, "Sync to disk after this many records.", "log_flush_messages", **_at_least(1)),
    TopicSetting("flush.ms", int, NEVER_MS, "Sync to disk after this time.", "log_flush_ms", **_at_least(0)),
    _unsupported("follower.replication.throttled.replicas", str, "", "Replicas whose replication is throttled on the follower."),
    TopicSetting("index.interval.bytes", int, 4096, "The number of log bytes between two index entries.", "log_index_interval_bytes", **_at_least(0, 2**31 - 1)),
    _unsupported("leader.replication.throttled.replicas", str, "", "Replicas whose replication is throttled on the leader."),
    _unsupported("local.retention.bytes", int, -2, "Bytes kept on the broker if older segments are in remote storage."),
    _unsupported("local.retention.ms", int, -2, "How long records are kept on the broker if older segments are in remote storage."),
    TopicSetting("max.compaction.lag.ms", int, NEVER_MS, "The longest time that a record of a compacted topic may stay uncompacted.", "log_cleaner_max_compaction_lag_ms", **_at_least(1)),
    TopicSetting("max.message.bytes", int, MiB + 12, "The largest size of a record batch.", "message_max_bytes", **_at_least(0, RECORD_BATCH_MAX_BYTES)),
    TopicSetting("message.timestamp.after.max.ms", int, 3_600_000, "How far in the future a record's timestamp may be.", "log_message_timestamp_after_max_ms", **_at_least(0)),
    TopicSetting("message.timestamp.before.max.ms", int, NEVER_MS, "How far in the past a record's timestamp may be.", "log_message_timestamp_before_max_ms", **_at_least(0)),
    TopicSetting("message.timestamp.type", str, "CreateTime", "Whether records keep the producer's timestamp (CreateTime) or get the broker's (LogAppendTime).", "log_message_timestamp_type", **_one_of("CreateTime", "LogAppendTime")),
    TopicSetting("min.cleanable.dirty.ratio", float, 0.5, "The share of uncompacted data at which a log is compacted.", "log_cleaner_min_cleanable_ratio", **_at_least(0, 1)),
    TopicSetting("min.compaction.lag.ms", int, 0, "The shortest time that a record stays uncompacted.", "log_cleaner_min_compaction_lag_ms", **_at_least(0)),
    TopicSetting("min.insync.replicas", int, 1, "The number of in-sync replicas that acks=all requires.", "min_insync_replicas", **_at_least(1, 100)),
    _unsupported("preallocate", bool, False, "Whether segment files are created at their full size."),
    _unsupported("remote.log.copy.disable", bool, False, "Whether copying to remote storage is disabled."),
    _unsupported("remote.log.delete.on.disable", bool, False, "Whether remote data is deleted when remote storage is disabled."),
    _unsupported("remote.storage.enable", bool, False, "Whether old segments are moved to remote storage."),
    TopicSetting("retention.bytes", int, -1, "How many bytes of each partition are kept; -1: no limit.", "log_retention_bytes", **_at_least(-1)),
    TopicSetting("retention.ms", int, 604_800_000, "How long records are kept; -1: no limit.", "log_retention_ms", **_at_least(-1)),
    TopicSetting("segment.bytes", int, 1 << 30, "The size of a segment file at which a new one is started.", "log_segment_bytes", **_at_least(1024, SEGMENT_MAX_BYTES)),
    TopicSetting("segment.index.bytes", int, 10_485_760, "The size of an index file at which a new segment is started.", **_at_least(4, 2**31 - 1)),
    TopicSetting("segment.jitter.ms", int, 0, "The largest random amount that is subtracted from segment.ms, so that segments of many partitions do not end together.", **_at_least(0)),
    TopicSetting("segment.ms", int, 604_800_000, "The age of a segment file at which a new one is started.", "log_segment_ms", **_at_least(1)),
    _unsupported("unclean.leader.election.enable", bool, False, "Whether a replica that is not in sync may become leader; Tailrace never allows it."),
)
# fmt: on
TOPIC_SETTINGS: Final = {one.name: one for one in _TABLE}


@frozen
class TopicSettings:
    """The supported settings of one topic, with their values."""

    cleanup_policy: str
    compression_type: str
    compression_gzip_level: int
    compression_lz4_level: int
    compression_zstd_level: int
    retention_ms: int
    retention_bytes: int
    segment_bytes: int
    segment_ms: int
    segment_index_bytes: int
    segment_jitter_ms: int
    index_interval_bytes: int
    max_message_bytes: int
    message_timestamp_type: str
    message_timestamp_before_max_ms: int
    message_timestamp_after_max_ms: int
    min_insync_replicas: int
    flush_messages: int
    flush_ms: int
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    delete_retention_ms: int

    @property
    def is_compacted(self) -> bool:
        return is_compacted(self.cleanup_policy)

    @property
    def roll_ms(self) -> int:
        """The age at which a segment is closed. Only closed ones are compacted, so `max.compaction.lag.ms` counts."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.is_compacted else self.segment_ms

    @classmethod
    def of(cls, own: Mapping[str, str], broker: Settings) -> "TopicSettings":
        """A topic's own settings, already checked, and the broker's defaults for the rest."""
        values: dict[str, Any] = {}
        for one in cls.__dataclass_fields__:
            row = TOPIC_SETTINGS[one.replace("_", ".")]
            if row.name in own:
                values[one] = parse(row.name, row.kind, own[row.name])
            else:
                values[one] = row.default if row.broker is None else getattr(broker, row.broker)
        if "delete" not in policies_of(values["cleanup_policy"]):
            values |= {"retention_ms": -1, "retention_bytes": -1}  # the last record of a key is kept regardless of age
        return cls(**values)


def default_text(row: TopicSetting, broker: Settings) -> str:
    """The value that DescribeConfigs shows for a topic without its own."""
    return text_of(row.default if row.broker is None else getattr(broker, row.broker))


def check_topic_setting(name: str, value: str) -> None:
    """Raise `InvalidSetting` if a topic cannot have this setting or value."""
    row = TOPIC_SETTINGS.get(name)
    if row is None:
        raise InvalidSetting(f"Unknown topic config name: {name}")
    try:
        parsed = parse(name, row.kind, value)
    except SettingError as error:
        raise InvalidSetting(str(error)) from None
    if row.only is not None and parsed != parse(name, row.kind, row.only):
        raise InvalidSetting(f"{name}={value} is not supported; the only supported value is {row.only!r}")
    if row.check is not None and not row.check(parsed):
        raise InvalidSetting(f"{name}={value}: it must be {row.wants}")


def check_topic_relations(own: Mapping[str, str]) -> None:
    """Raise `InvalidSetting` if a topic cannot have all these settings, which are valid one by one."""
    least, most = own.get("min.compaction.lag.ms"), own.get("max.compaction.lag.ms")
    if least is not None and most is not None and int(least) > int(most):
        raise InvalidSetting(f"min.compaction.lag.ms={least} must not be more than max.compaction.lag.ms={most}")


def check_topic_name(name: str) -> None:
    """Raise `InvalidTopicName`, with Kafka's messages, if a topic cannot have this name."""
    if not name:
        raise InvalidTopicName("Topic name is invalid: the empty string is not allowed")
    if len(name) > TOPIC_NAME_MAX_CHARS:
        raise InvalidTopicName(
            f"Topic name is invalid: the length of {name!r} is longer than the max allowed length {TOPIC_NAME_MAX_CHARS}"
        )
    if name in (".", ".."):
        raise InvalidTopicName(f"Topic name is invalid: {name!r} is not allowed")
    if not NAME_LETTERS.issuperset(name):
        raise InvalidTopicName(
            f"Topic name is invalid: {name!r} contains one or more characters "
            "other than ASCII alphanumerics, '.', '_' and '-'"
        )
