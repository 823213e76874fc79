"""What a broker can be told, in one table. `setting_rows` says what a row is.

What is told counts in rising order: default, YAML file, environment, flag. Unknown names and bad values are refused,
with the nearest right name.

A person may say yes, on or 1 for true; a Kafka client, whose texts go through `parse` alone, may not: as with Kafka.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import Field, fields
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Literal

from tailrace.model.addresses import are_addresses
from tailrace.model.frozen import frozen
from tailrace.model.limits import (
    FETCH_ANSWER_MAX_BYTES,
    FRAME_MAX_BYTES,
    RECORD_BATCH_MAX_BYTES,
    SEGMENT_MAX_BYTES,
    GiB,
    MiB,
)
from tailrace.model.setting_rows import (
    VARIABLE_PREFIX,
    Row,
    SettingError,
    between,
    check,
    kind_of,
    one_of,
    parse,
    row,
    setting,
    variable_name,
    yaml_name,
)

__all__ = [
    "NEVER_MS",
    "Fsync",
    "Row",
    "SettingError",
    "Settings",
    "check",
    "kind_of",
    "load",
    "parse",
    "row",
    "rows",
    "variable_name",
    "yaml_name",
]

Fsync = Literal["always", "interval", "never"]
HOUR_MS: Final = 3600 * 1000
DAY_MS: Final = 24 * HOUR_MS
NEVER_MS: Final = 2**63 - 1
ASSIGNORS: Final = ("uniform", "range")
# What Kubernetes puts into every container's environment when there is a Service named `tailrace`.
INJECTED_VARIABLE: Final = re.compile(r"TAILRACE_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_[0-9]+_TCP(_.+)?)?)")
TRUTH_WORDS: Final = MappingProxyType({"yes": True, "on": True, "1": True, "no": False, "off": False, "0": False})


def are_assignors(text: str) -> bool:
    names = text.split(",")
    return all(one in ASSIGNORS for one in names) and len(dict.fromkeys(names)) == len(names)


@frozen
class Settings:
    # fmt: off
    broker_id: int = setting("broker.id", -1, "This broker's number; -1 takes the one in the data directory, or 1.", flag="--broker-id", **between(-1, 2**31 - 1))
    data_dir: str = setting("data.dir", "./tailrace-data", "Where the logs live.", flag="--data-dir", check=bool, wants="a path")
    host: str = setting("host", "127.0.0.1", "The address to listen on; 0.0.0.0 for all.", flag="--host")
    kafka_port: int = setting("kafka.port", 9092, "The port of the Kafka door; 0 picks a free one.", flag="--kafka-port", **between(0, 65535))
    advertised_host: str = setting("advertised.host", "", "The name clients are told to connect to; empty: the host.", flag="--advertised-host")
    broker_rack: str = setting("broker.rack", "", "Which rack or machine this broker stands in.", flag="--rack")
    join: str = setting("join", "", "Brokers of the cluster to join, by their client addresses, with commas; empty: a cluster of one's own.", flag="--join", check=are_addresses, wants="HOST:PORT, with commas between several")
    join_timeout_ms: int = setting("join.timeout.ms", 30_000, "How long a broker that is to join a cluster tries, before it gives up.", **between(1, HOUR_MS))
    peer_port: int = setting("peer.port", 0, "The port where other brokers connect; 0 picks a free one, and keeps it.", flag="--peer-port", **between(0, 65535))
    advertised_peer_port: int = setting("advertised.peer.port", 0, "The port that other brokers are told to connect to; 0: the peer port itself.", **between(0, 65535))
    log_level: str = setting("log.level", "info", "How much goes to standard error.", flag="--log-level", **one_of("debug", "info", "warning", "error"))

    fsync: Fsync = setting("fsync", "always", "When bytes are forced to the disk: always (before they count), interval, never.", flag="--fsync", **one_of("always", "interval", "never"))
    fsync_interval_ms: int = setting("fsync.interval.ms", 1000, "How often, with fsync interval.", **between(1, NEVER_MS))
    log_checkpoint_interval_ms: int = setting("log.flush.offset.checkpoint.interval.ms", 60_000, "How often recovery points are written down; a crash rescans what came after.", **between(100, NEVER_MS))
    log_retention_check_interval_ms: int = setting("log.retention.check.interval.ms", 300_000, "How often old segments are looked for.", **between(1, NEVER_MS))

    auto_create_topics_enable: bool = setting("auto.create.topics.enable", True, "Make a topic when a client asks for one that is not there.")
    delete_topic_enable: bool = setting("delete.topic.enable", True, "Allow topics to be deleted.")
    num_partitions: int = setting("num.partitions", 1, "Partitions of a topic when nobody says.", **between(1, 10_000))
    default_replication_factor: int = setting("default.replication.factor", -1, "Replicas of a partition when nobody says; -1: three, or as many as there are brokers.", check=lambda value: value == -1 or 1 <= value <= 100, wants="-1 or from 1 to 100")
    min_insync_replicas: int = setting("min.insync.replicas", 1, "How many replicas must be in sync for acks=all.", **between(1, 100))

    broker_session_timeout_ms: int = setting("broker.session.timeout.ms", 3000, "How long a broker may be silent before it is fenced: it leads nothing then, and gets no new replicas.", **between(100, HOUR_MS))
    controlled_shutdown_enable: bool = setting("controlled.shutdown.enable", True, "Hand leadership over before a stop.")
    auto_leader_rebalance_enable: bool = setting("auto.leader.rebalance.enable", True, "Give leadership back to the preferred leader when it has returned and caught up.")
    leader_imbalance_check_interval_seconds: int = setting("leader.imbalance.check.interval.seconds", 5, "How often that is looked for.", **between(1, 86_400))
    controller_quorum_fetch_timeout_ms: int = setting("controller.quorum.fetch.timeout.ms", 2000, "How long a follower waits for its leader before it looks for another; for every partition, not only the metadata's.", **between(100, HOUR_MS))
    controller_quorum_election_timeout_ms: int = setting("controller.quorum.election.timeout.ms", 1000, "How long an election may take before another begins; for every partition, not only the metadata's.", **between(50, HOUR_MS))
    replica_lag_time_max_ms: int = setting("replica.lag.time.max.ms", 30_000, "A follower that has not caught up for this long is not in sync.", **between(100, NEVER_MS))
    replica_fetch_wait_max_ms: int = setting("replica.fetch.wait.max.ms", 500, "How long a leader keeps a follower's fetch when there is no news; at most half of controller.quorum.fetch.timeout.ms, broker.session.timeout.ms and replica.lag.time.max.ms.", **between(1, HOUR_MS))
    replica_fetch_max_bytes: int = setting("replica.fetch.max.bytes", MiB, "The most one partition gives to one fetch of a follower; a larger batch is sent all the same.", **between(1024, FETCH_ANSWER_MAX_BYTES))
    replica_fetch_response_max_bytes: int = setting("replica.fetch.response.max.bytes", 10 * MiB, "The most one fetch of a follower gets in all.", **between(1024, FETCH_ANSWER_MAX_BYTES))

    log_retention_ms: int = setting("log.retention.ms", 7 * DAY_MS, "How long records are kept; -1: for ever.", **between(-1, NEVER_MS))
    log_retention_bytes: int = setting("log.retention.bytes", -1, "How many bytes of a partition are kept; -1: all.", **between(-1, NEVER_MS))
    log_segment_bytes: int = setting("log.segment.bytes", GiB, "When a segment file is full.", **between(1024, SEGMENT_MAX_BYTES))
    log_segment_ms: int = setting("log.roll.ms", 7 * DAY_MS, "When a segment file is old.", **between(1, NEVER_MS))
    log_index_interval_bytes: int = setting("log.index.interval.bytes", 4096, "Bytes of log per index entry.", **between(0, 2**31 - 1))
    log_flush_messages: int = setting("log.flush.interval.messages", NEVER_MS, "Force to disk after so many records, whatever fsync says.", **between(1, NEVER_MS))
    log_flush_ms: int = setting("log.flush.interval.ms", NEVER_MS, "Force to disk after so long, whatever fsync says.", **between(0, NEVER_MS))
    log_message_timestamp_type: str = setting("log.message.timestamp.type", "CreateTime", "Whose time counts: the producer's or the broker's.", **one_of("CreateTime", "LogAppendTime"))
    log_message_timestamp_before_max_ms: int = setting("log.message.timestamp.before.max.ms", NEVER_MS, "How far a timestamp may lie in the past.", **between(0, NEVER_MS))
    log_message_timestamp_after_max_ms: int = setting("log.message.timestamp.after.max.ms", 3_600_000, "How far a timestamp may lie in the future.", **between(0, NEVER_MS))
    message_max_bytes: int = setting("message.max.bytes", MiB + 12, "The largest record batch.", **between(0, RECORD_BATCH_MAX_BYTES))

    offsets_topic_num_partitions: int = setting("offsets.topic.num.partitions", 12, "Partitions of __consumer_offsets, which keeps what groups have read; fixed when the first group comes. Each is led, and its groups coordinated, by one broker.", **between(1, 10_000))
    offsets_topic_replication_factor: int = setting("offsets.topic.replication.factor", -1, "Their replicas; -1: three, or as many as there are brokers.", check=lambda value: value == -1 or 1 <= value <= 100, wants="-1 or from 1 to 100")
    offsets_retention_minutes: int = setting("offsets.retention.minutes", 7 * 24 * 60, "How long a group's offsets are kept after its last member went, or after the last commit where it never had one.", **between(1, 2**31 - 1))
    offsets_retention_check_interval_ms: int = setting("offsets.retention.check.interval.ms", 600_000, "How often old offsets are looked for.", **between(1, NEVER_MS))
    offset_metadata_max_bytes: int = setting("offset.metadata.max.bytes", 4096, "The longest note that a client may keep beside an offset.", **between(0, MiB))
    group_initial_rebalance_delay_ms: int = setting("group.initial.rebalance.delay.ms", 3000, "How long a group that begins waits for more members to come.", **between(0, HOUR_MS))
    group_min_session_timeout_ms: int = setting("group.min.session.timeout.ms", 6000, "The shortest session.timeout.ms a member may ask for.", **between(1, 2**31 - 1))
    group_max_session_timeout_ms: int = setting("group.max.session.timeout.ms", 1_800_000, "The longest.", **between(1, 2**31 - 1))
    group_max_size: int = setting("group.max.size", 2**31 - 1, "How many members a group may have.", **between(1, 2**31 - 1))

    group_consumer_session_timeout_ms: int = setting("group.consumer.session.timeout.ms", 45_000, "How long a member of the consumer protocol (KIP-848) may be silent.", **between(1, 2**31 - 1))
    group_consumer_heartbeat_interval_ms: int = setting("group.consumer.heartbeat.interval.ms", 5000, "How often such a member is told to be heard of; less than the session.", **between(1, 2**31 - 1))
    group_consumer_max_size: int = setting("group.consumer.max.size", 2**31 - 1, "How many members a group of that protocol may have.", **between(1, 2**31 - 1))
    group_consumer_assignors: str = setting("group.consumer.assignors", "uniform,range", "How work can be shared out; the first is taken where members have no wish.", check=are_assignors, wants="uniform, range or both, with a comma")
    group_consumer_migration_policy: str = setting("group.consumer.migration.policy", "bidirectional", "Whether a group changes its protocol while members run: upgrade lets members of the consumer protocol into a classic group, downgrade makes it classic again when the last of them goes.", **one_of("bidirectional", "upgrade", "downgrade", "disabled"))

    transaction_state_log_num_partitions: int = setting("transaction.state.log.num.partitions", 12, "Partitions of __transaction_state, which keeps transactions; fixed when the first transactional producer comes. Each is led, and its transactions coordinated, by one broker.", **between(1, 10_000))
    transaction_state_log_replication_factor: int = setting("transaction.state.log.replication.factor", -1, "Their replicas; -1: three, or as many as there are brokers.", check=lambda value: value == -1 or 1 <= value <= 100, wants="-1 or from 1 to 100")
    transaction_max_timeout_ms: int = setting("transaction.max.timeout.ms", 900_000, "The longest transaction.timeout.ms a producer may ask for; after its own, an open transaction is aborted.", **between(1, 2**31 - 1))
    transactional_id_expiration_ms: int = setting("transactional.id.expiration.ms", 7 * DAY_MS, "How long a transactional id is remembered after its last transaction.", **between(1, NEVER_MS))
    transaction_remove_expired_interval_ms: int = setting("transaction.remove.expired.transaction.cleanup.interval.ms", HOUR_MS, "How often unused transactional ids are looked for.", **between(1, NEVER_MS))

    producer_id_expiration_ms: int = setting("producer.id.expiration.ms", DAY_MS, "After how long an idle producer's sequence numbers are forgotten.", **between(1, NEVER_MS))
    socket_request_max_bytes: int = setting("socket.request.max.bytes", FRAME_MAX_BYTES, "The largest request.", **between(1024, FRAME_MAX_BYTES))
    fetch_partition_max_bytes: int = setting("fetch.partition.max.bytes", MiB, "The most one partition gives to one fetch. More makes answers queue in the socket and is slower, unless the network is slow.", **between(1024, FETCH_ANSWER_MAX_BYTES))
    max_connections: int = setting("max.connections", 10_000, "How many clients may be connected at once.", **between(1, 1_000_000))
    connections_max_idle_ms: int = setting("connections.max.idle.ms", 600_000, "After how long a silent connection is closed.", **between(1000, NEVER_MS))
    # fmt: on

    def __post_init__(self) -> None:
        for one in fields(self):
            check(row(one), getattr(self, one.name))
        check_relations(self)


def check_relations(settings: Settings) -> None:
    _check_waits(settings)
    beat_ms, session_ms = settings.group_consumer_heartbeat_interval_ms, settings.group_consumer_session_timeout_ms
    if beat_ms >= session_ms:
        raise SettingError(
            f"group.consumer.heartbeat.interval.ms={beat_ms} and group.consumer.session.timeout.ms={session_ms}: "
            "the first must be less than the second"
        )


def _check_waits(settings: Settings) -> None:
    """A follower whose fetch is kept too long would take its leader for dead, or be taken for dead itself."""
    wait_ms = settings.replica_fetch_wait_max_ms
    for name in ("controller.quorum.fetch.timeout.ms", "broker.session.timeout.ms", "replica.lag.time.max.ms"):
        other_ms = getattr(settings, rows()[name].name)
        if 2 * wait_ms > other_ms:
            raise SettingError(
                f"replica.fetch.wait.max.ms={wait_ms} and {name}={other_ms}: "
                f"the wait must be at most half of the other, {other_ms // 2}"
            )


@cache
def rows() -> "Mapping[str, Field[Any]]":
    """Every setting by its Kafka name."""
    return MappingProxyType({row(one).name: one for one in fields(Settings)})


def load(
    yaml: Mapping[str, object], environment: Mapping[str, str], flags: Mapping[str, object], *, file: str = ""
) -> Settings:
    """Settings from a YAML file's top level, `TAILRACE_…` variables and flags, each stronger than the one before.

    `file` is the name of the YAML file, for messages.
    """
    by_yaml_name = {yaml_name(name): one for name, one in rows().items()}
    by_variable = {variable_name(name): one for name, one in rows().items()}
    variables = {
        key: value
        for key, value in environment.items()
        if key.startswith(VARIABLE_PREFIX) and not INJECTED_VARIABLE.fullmatch(key)
    }
    flags_given = {key: value for key, value in flags.items() if value is not None}
    values = {
        **_parsed(yaml, by_yaml_name, file),
        **_parsed(variables, by_variable, "the environment"),
        **_parsed(flags_given, by_yaml_name, ""),
    }
    return Settings(**values)


def _parsed(given: Mapping[str, object], table: "Mapping[str, Field[Any]]", source: str) -> dict[str, Any]:
    """What one source says, by field of `Settings`; a name it does not know is answered with the nearest it does."""
    values: dict[str, Any] = {}
    where = f" in {source}" if source else ""
    for key, value in given.items():
        if key not in table:
            near = difflib.get_close_matches(str(key), table, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise SettingError(f"there is no setting {key!r}{where and f', found{where}'}{hint}")
        one = table[key]
        try:
            values[one.name] = _parsed_for_people(one, value)
            check(row(one), values[one.name])
        except SettingError as error:
            raise SettingError(f"{error}{where and f' ({key}{where})'}") from None
    return values


def _parsed_for_people(one: "Field[Any]", given: object) -> object:
    kind = kind_of(one)
    if kind is bool and (truth := TRUTH_WORDS.get(str(given).strip().lower())) is not None:
        return truth
    return parse(row(one).name, kind, given)
