"""What a topic can be told: every topic setting that Kafka documents, which of them we honour, and how.

A setting we do not honour yet is shown with its default and refused by name when somebody sets it to anything else:
never silently ignored. `TopicSettings` holds the values of one topic, its own laid over the broker's defaults.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from tailrace.model.faults import InvalidSetting, InvalidTopicName
from tailrace.model.frozen import frozen
from tailrace.model.ids import Id, TopicPartition
from tailrace.model.limits import RECORD_BATCH_MAX_BYTES, SEGMENT_MAX_BYTES, TOPIC_NAME_MAX_CHARS, MiB
from tailrace.model.settings import NEVER_MS, SettingError, Settings, parse

NAME_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
POLICIES: Final = ("delete", "compact")
METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = Id(bytes(15) + b"\x01")  # the same in every cluster, as in Kafka
METADATA_PARTITION: Final = TopicPartition(METADATA_TOPIC_ID, 0)
OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "__share_group_state", METADATA_TOPIC)
# What coordinators remember must not be forgotten by age. Segments are small: a new leader reads all of them.
INTERNAL_TOPIC_SETTINGS: Final = MappingProxyType(
    {"retention.ms": "-1", "retention.bytes": "-1", "segment.bytes": str(100 * MiB)}
)


@frozen(kw_only=False)
class TopicSetting:
    """One topic setting. `broker` is the field of `Settings` that gives its default; `None`: `default` does.

    `only` names the one value honoured today, for settings whose feature is not there yet."""

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
    """The values of a `cleanup.policy`, which is a list."""
    return [one.strip() for one in text.split(",")]


def is_compacted(policy: str) -> bool:
    """Whether a `cleanup.policy` asks for compaction, alone or not."""
    return "compact" in policies_of(policy)


def _not_yet(name: str, kind: type, default: object, help: str) -> TopicSetting:
    return TopicSetting(name, kind, default, help, only=text_of(default))


def text_of(value: object) -> str:
    """A value as clients see it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


# fmt: off
_TABLE: Final = (
    TopicSetting("cleanup.policy", str, "delete", "What happens to old records: delete removes what retention no longer keeps; compact alone keeps the last of each key whatever its age, and so far the earlier ones as well; its records must have keys.", check=_are_policies, wants="delete, compact or both, with a comma"),
    TopicSetting("compression.type", str, "producer", "The compression of stored batches.", only="producer"),
    _not_yet("compression.gzip.level", int, -1, "The level when the broker compresses with gzip."),
    _not_yet("compression.lz4.level", int, 9, "The level when the broker compresses with lz4."),
    _not_yet("compression.zstd.level", int, 3, "The level when the broker compresses with zstd."),
    _not_yet("delete.retention.ms", int, 86_400_000, "How long tombstones of a compacted topic are kept."),
    _not_yet("file.delete.delay.ms", int, 0, "How long a removed file is kept: it goes at once, where Kafka waits a minute."),
    TopicSetting("flush.messages", int, NEVER_MS, "Force to disk after so many records.", "log_flush_messages", **_at_least(1)),
    TopicSetting("flush.ms", int, NEVER_MS, "Force to disk after so long.", "log_flush_ms", **_at_least(0)),
    _not_yet("follower.replication.throttled.replicas", str, "", "Replicas whose fetching is slowed."),
    TopicSetting("index.interval.bytes", int, 4096, "Bytes of log per index entry.", "log_index_interval_bytes", **_at_least(0, 2**31 - 1)),
    _not_yet("leader.replication.throttled.replicas", str, "", "Replicas whose serving is slowed."),
    _not_yet("local.retention.bytes", int, -2, "Bytes kept here when older ones are stored remotely."),
    _not_yet("local.retention.ms", int, -2, "Time kept here when older records are stored remotely."),
    _not_yet("max.compaction.lag.ms", int, NEVER_MS, "How long a record may stay uncompacted."),
    TopicSetting("max.message.bytes", int, MiB + 12, "The largest record batch.", "message_max_bytes", **_at_least(0, RECORD_BATCH_MAX_BYTES)),
    TopicSetting("message.timestamp.after.max.ms", int, 3_600_000, "How far a timestamp may lie in the future.", "log_message_timestamp_after_max_ms", **_at_least(0)),
    TopicSetting("message.timestamp.before.max.ms", int, NEVER_MS, "How far a timestamp may lie in the past.", "log_message_timestamp_before_max_ms", **_at_least(0)),
    TopicSetting("message.timestamp.type", str, "CreateTime", "Whose time counts.", "log_message_timestamp_type", **_one_of("CreateTime", "LogAppendTime")),
    _not_yet("min.cleanable.dirty.ratio", float, 0.5, "How dirty a log is when it is compacted."),
    _not_yet("min.compaction.lag.ms", int, 0, "How long a record stays uncompacted."),
    TopicSetting("min.insync.replicas", int, 1, "How many replicas must be in sync for acks=all.", "min_insync_replicas", **_at_least(1, 100)),
    _not_yet("preallocate", bool, False, "Whether segment files are made at full size."),
    _not_yet("remote.log.copy.disable", bool, False, "Whether copying to remote storage stops."),
    _not_yet("remote.log.delete.on.disable", bool, False, "Whether remote data goes when remote storage is disabled."),
    _not_yet("remote.storage.enable", bool, False, "Whether old segments are stored remotely."),
    TopicSetting("retention.bytes", int, -1, "How many bytes of a partition are kept; -1: all.", "log_retention_bytes", **_at_least(-1)),
    TopicSetting("retention.ms", int, 604_800_000, "How long records are kept; -1: for ever.", "log_retention_ms", **_at_least(-1)),
    TopicSetting("segment.bytes", int, 1 << 30, "When a segment file is full.", "log_segment_bytes", **_at_least(1024, SEGMENT_MAX_BYTES)),
    _not_yet("segment.index.bytes", int, 10_485_760, "The size of an index file."),
    _not_yet("segment.jitter.ms", int, 0, "What is taken off segment.ms at random."),
    TopicSetting("segment.ms", int, 604_800_000, "When a segment file is old.", "log_segment_ms", **_at_least(1)),
    _not_yet("unclean.leader.election.enable", bool, False, "Whether a replica that misses records may lead. It may not."),
)
# fmt: on
TOPIC_SETTINGS: Final = {one.name: one for one in _TABLE}


@frozen
class TopicSettings:
    """The values in force for one topic, of those that code asks for."""

    cleanup_policy: str
    retention_ms: int
    retention_bytes: int
    segment_bytes: int
    segment_ms: int
    index_interval_bytes: int
    max_message_bytes: int
    message_timestamp_type: str
    message_timestamp_before_max_ms: int
    message_timestamp_after_max_ms: int
    min_insync_replicas: int
    flush_messages: int
    flush_ms: int

    @classmethod
    def of(cls, own: Mapping[str, str], broker: Settings) -> "TopicSettings":
        """A topic's own settings, already checked, over the broker's defaults."""
        values: dict[str, Any] = {}
        for one in cls.__dataclass_fields__:
            row = TOPIC_SETTINGS[one.replace("_", ".")]
            if row.name in own:
                values[one] = parse(row.name, row.kind, own[row.name])
            else:
                values[one] = row.default if row.broker is None else getattr(broker, row.broker)
        if "delete" not in policies_of(values["cleanup_policy"]):
            values |= {"retention_ms": -1, "retention_bytes": -1}  # of a key's last value, age says nothing
        return cls(**values)


def default_text(row: TopicSetting, broker: Settings) -> str:
    """What DescribeConfigs shows where a topic says nothing."""
    return text_of(row.default if row.broker is None else getattr(broker, row.broker))


def check_topic_setting(name: str, value: str) -> None:
    """Whether a topic may be told this; `InvalidSetting` says why not."""
    row = TOPIC_SETTINGS.get(name)
    if row is None:
        raise InvalidSetting(f"there is no topic setting {name}")
    try:
        parsed = parse(name, row.kind, value)
    except SettingError as error:
        raise InvalidSetting(str(error)) from None
    if row.only is not None and parsed != parse(name, row.kind, row.only):
        raise InvalidSetting(f"{name}={value} would not be honoured yet; only {row.only!r} can be set")
    if row.check is not None and not row.check(parsed):
        raise InvalidSetting(f"{name}={value}: it must be {row.wants}")


def check_topic_name(name: str) -> None:
    """Whether a topic may be called this; `InvalidTopicName` says why not."""
    if not name:
        raise InvalidTopicName("a topic needs a name")
    if len(name) > TOPIC_NAME_MAX_CHARS:
        raise InvalidTopicName(f"a topic name has at most {TOPIC_NAME_MAX_CHARS} characters, this one {len(name)}")
    if name in (".", ".."):
        raise InvalidTopicName(f"{name!r} cannot be a topic name")
    if not NAME_LETTERS.issuperset(name):
        raise InvalidTopicName(f"{name!r}: a topic name is made of letters, digits, '.', '_' and '-'")
