"""The settings of a broker, in one table. `setting_rows` defines what a row is.

A setting's value comes from, in rising precedence: its default, the YAML file, the environment, a flag. Unknown names
and invalid values are refused, an unknown name with the nearest known one.

In files, variables and flags, yes, on and 1 stand for true as well. Values from Kafka clients go through `parse` alone,
which accepts only true and false, as Kafka does.
"""

import re
from collections.abc import Mapping
from dataclasses import Field, fields
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Literal

from tailrace.model.addresses import are_addresses
from tailrace.model.dmqp_topics import is_topic_table
from tailrace.model.frozen import frozen
from tailrace.model.limits import (
    FETCH_ANSWER_MAX_BYTES,
    FRAME_MAX_BYTES,
    RECORD_BATCH_MAX_BYTES,
    SEGMENT_MAX_BYTES,
    GiB,
    MiB,
)
from tailrace.model.listeners import is_protocol_map
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
    "CLOSED",
    "COMPRESSION_TYPES",
    "GZIP_LEVELS",
    "LZ4_LEVELS",
    "NEVER_MS",
    "ZSTD_LEVELS",
    "Fsync",
    "Row",
    "SettingError",
    "Settings",
    "check",
    "is_gzip_level",
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
CLOSED: Final = -1  # the port of a client door that is not asked for
ASSIGNORS: Final = ("uniform", "range")
COMPRESSION_TYPES: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
GZIP_LEVELS: Final = "-1 or from 1 to 9"
LZ4_LEVELS: Final = (1, 17)
ZSTD_LEVELS: Final = (-(2**17), 22)
# Variables that Kubernetes sets in every container if there is a Service named `tailrace`.
INJECTED_VARIABLE: Final = re.compile(r"TAILRACE_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_[0-9]+_TCP(_.+)?)?)")
TRUTH_WORDS: Final = MappingProxyType({"yes": True, "on": True, "1": True, "no": False, "off": False, "0": False})


def are_assignors(text: str) -> bool:
    names = text.split(",")
    return all(one in ASSIGNORS for one in names) and len(dict.fromkeys(names)) == len(names)


def is_gzip_level(level: int) -> bool:
    return level == -1 or 1 <= level <= 9


@frozen
class Settings:
    # fmt: off
    broker_id: int = setting("broker.id", -1, "The broker id; -1: the id stored in the data directory, or 1 if there is none.", flag="--broker-id", **between(-1, 2**31 - 1))
    data_dir: str = setting("data.dir", "./tailrace-data", "The directory for the logs.", flag="--data-dir", check=bool, wants="a path")
    host: str = setting("host", "127.0.0.1", "The address to listen on; 0.0.0.0: all addresses.", flag="--host")
    kafka_port: int = setting("kafka.port", 9092, "The port for Kafka clients; 0: any free port.", flag="--kafka-port", **between(0, 65535))
    http_port: int = setting("http.port", CLOSED, "The port for HTTP clients; 0: any free port; -1: not served.", flag="--http-port", **between(CLOSED, 65535))
    grpc_port: int = setting("grpc.port", CLOSED, "The port for gRPC clients; 0: any free port; -1: not served.", flag="--grpc-port", **between(CLOSED, 65535))
    grpc_reflection_enable: bool = setting("grpc.reflection.enable", False, "Let tools like grpcurl ask the gRPC door which services it has.")
    dmqp_port: int = setting("dmqp.port", CLOSED, "The port for DMQP clients; 0: any free port; -1: not served.", flag="--dmqp-port", **between(CLOSED, 65535))
    insecure: bool = setting("insecure", False, "Let the doors for HTTP, gRPC and DMQP listen on an address that is not a loopback address. They ask for no login: every client that reaches them can read and write every topic.", flag="--insecure")
    advertised_host: str = setting("advertised.host", "", "The host name that clients and other brokers connect to; empty: the value of host.", flag="--advertised-host")
    broker_rack: str = setting("broker.rack", "", "The rack of this broker; replicas of a partition are spread over racks.", flag="--rack")
    join: str = setting("join", "", "The client addresses of brokers of the cluster to join, separated by commas; empty: start a new cluster.", flag="--join", check=are_addresses, wants="HOST:PORT, several separated by commas")
    join_timeout_ms: int = setting("join.timeout.ms", 30_000, "How long a broker tries to join a cluster before it gives up.", **between(1, HOUR_MS))
    peer_port: int = setting("peer.port", 0, "The port for connections from other brokers; 0: any free port, which is kept across restarts.", flag="--peer-port", **between(0, 65535))
    advertised_peer_port: int = setting("advertised.peer.port", 0, "The port that other brokers connect to; 0: the peer port.", **between(0, 65535))
    listener_security_protocol_map: str = setting("listener.security.protocol.map", "kafka:PLAINTEXT,peer:PLAINTEXT", "Whether a listener uses TLS: kafka is the listener for Kafka clients, peer the one for other brokers, http and grpc are those of these doors. kafka:SSL,peer:SSL uses TLS for the first two, http:SSL for HTTPS. DMQP has dmqp.security.protocol.", check=is_protocol_map, wants="LISTENER:PROTOCOL pairs separated by commas, with the listeners kafka, peer, http and grpc and the protocols PLAINTEXT and SSL")
    ssl_keystore_location: str = setting("ssl.keystore.location", "", "A PEM file with this broker's private key, its certificate and the certificate's chain; needed by listeners with TLS. A changed file is loaded without a restart.")
    ssl_key_password: str = setting("ssl.key.password", "", "The password of the private key; empty: the key is not encrypted.", secret=True)
    ssl_truststore_location: str = setting("ssl.truststore.location", "", "A PEM file with the certificates of trusted authorities, for certificates of clients and of other brokers; needed for peer:SSL and for ssl.client.auth. Empty: a broker that joins through a Kafka listener with TLS trusts the authorities of the operating system.")
    ssl_client_auth: str = setting("ssl.client.auth", "none", "Whether clients must show a certificate: none (not asked for), requested (checked if shown; gRPC does not ask), required. Other brokers always must.", **one_of("none", "requested", "required"))
    ssl_endpoint_identification_algorithm: str = setting("ssl.endpoint.identification.algorithm", "https", "https: the certificate of another broker must be for the host name that this broker connects to; empty: it need not.", check=lambda value: value in ("https", ""), wants="https or empty")
    log_level: str = setting("log.level", "info", "The lowest level of messages that are logged, to standard error.", flag="--log-level", **one_of("debug", "info", "warning", "error"))

    dmqp_header_order: str = setting("dmqp.header.order", "documented", "The order of the last four bytes of a DMQP header: documented (method, topic id, status, unused), or program (unused, method, topic id, status), as the original C program has them.", **one_of("documented", "program"))
    dmqp_security_protocol: str = setting("dmqp.security.protocol", "SSL", "Whether the DMQP listener uses TLS: SSL or PLAINTEXT. With SSL and without ssl.keystore.location the broker makes a certificate of its own at the first start, in data.dir.", **one_of("SSL", "PLAINTEXT"))
    dmqp_shards: int = setting("dmqp.shards", 3, "The number of shards (partitions) of a topic that the DMQP listener creates.", **between(1, 10_000))
    dmqp_topics: str = setting("dmqp.topics", "", "Which topics the topic ids of DMQP stand for, as in 3=orders,4=mails; an id that is not named is the topic dmqp-ID.", check=is_topic_table, wants="ID=TOPIC pairs separated by commas, with ids from 0 to 255, none repeated")
    dmqp_socket_timeout_ms: int = setting("dmqp.socket.timeout.ms", 30_000, "How long the DMQP listener waits for the rest of a request, for the first one of a connection, or for a client to read a response.", **between(100, HOUR_MS))
    dmqp_trim_delay_ms: int = setting("dmqp.trim.delay.ms", 7 * DAY_MS, "How long a message of a DMQP topic is kept at least; then it is deleted once all groups with a position on the topic are past it.", **between(0, NEVER_MS))

    fsync: Fsync = setting("fsync", "always", "When data is synced to disk: always (before it is acknowledged), at an interval, or never by the broker.", flag="--fsync", **one_of("always", "interval", "never"))
    fsync_interval_ms: int = setting("fsync.interval.ms", 1000, "How often data is synced to disk with fsync=interval.", **between(1, NEVER_MS))
    log_checkpoint_interval_ms: int = setting("log.flush.offset.checkpoint.interval.ms", 60_000, "How often recovery points are written; after a crash, the log is checked from there.", **between(100, NEVER_MS))
    log_checkpoint_interval_bytes: int = setting("log.flush.offset.checkpoint.interval.bytes", 256 * MiB, "After how many appended bytes recovery points are written, even if the interval has not passed; each batch counts as 4 KiB more than it has. So a start after a crash checks little more than this.", **between(MiB, NEVER_MS))
    log_retention_check_interval_ms: int = setting("log.retention.check.interval.ms", 300_000, "How often the broker looks for segments to delete.", **between(1, NEVER_MS))

    auto_create_topics_enable: bool = setting("auto.create.topics.enable", True, "Create a topic when a client requests one that does not exist.")
    delete_topic_enable: bool = setting("delete.topic.enable", True, "Allow deleting topics.")
    num_partitions: int = setting("num.partitions", 1, "The number of partitions of a topic that is created without one.", **between(1, 10_000))
    default_replication_factor: int = setting("default.replication.factor", -1, "The replication factor of a topic that is created without one; -1: three, or the number of brokers if it is less.", check=lambda value: value == -1 or 1 <= value <= 100, wants="-1 or from 1 to 100")
    min_insync_replicas: int = setting("min.insync.replicas", 1, "The number of in-sync replicas that acks=all requires.", **between(1, 100))

    broker_session_timeout_ms: int = setting("broker.session.timeout.ms", 3000, "A broker without a heartbeat for this long is fenced: it leads no partitions and gets no new replicas.", **between(100, HOUR_MS))
    controlled_shutdown_enable: bool = setting("controlled.shutdown.enable", True, "Hand over the leadership of partitions before a stop.")
    auto_leader_rebalance_enable: bool = setting("auto.leader.rebalance.enable", True, "Return leadership to the preferred leader when it is in sync again.")
    leader_imbalance_check_interval_seconds: int = setting("leader.imbalance.check.interval.seconds", 5, "How often the broker looks for partitions not led by their preferred leader.", **between(1, 86_400))
    controller_quorum_fetch_timeout_ms: int = setting("controller.quorum.fetch.timeout.ms", 2000, "A follower that cannot fetch from its leader for this long starts an election; applies to every partition, not only to the metadata.", **between(100, HOUR_MS))
    controller_quorum_election_timeout_ms: int = setting("controller.quorum.election.timeout.ms", 1000, "How long an election may take before the next one starts; applies to every partition, not only to the metadata.", **between(50, HOUR_MS))
    replica_lag_time_max_ms: int = setting("replica.lag.time.max.ms", 30_000, "A follower that has not caught up for this long is removed from the ISR.", **between(100, NEVER_MS))
    replica_fetch_wait_max_ms: int = setting("replica.fetch.wait.max.ms", 500, "How long a leader holds a follower's fetch when there is no new data; at most half of controller.quorum.fetch.timeout.ms, broker.session.timeout.ms and replica.lag.time.max.ms.", **between(1, HOUR_MS))
    replica_fetch_max_bytes: int = setting("replica.fetch.max.bytes", MiB, "The most bytes of one partition in one fetch of a follower; a larger batch is sent anyway.", **between(1024, FETCH_ANSWER_MAX_BYTES))
    replica_fetch_response_max_bytes: int = setting("replica.fetch.response.max.bytes", 10 * MiB, "The most bytes in one fetch of a follower.", **between(1024, FETCH_ANSWER_MAX_BYTES))

    log_retention_ms: int = setting("log.retention.ms", 7 * DAY_MS, "How long records are kept; -1: no limit.", **between(-1, NEVER_MS))
    log_retention_bytes: int = setting("log.retention.bytes", -1, "How many bytes of each partition are kept; -1: no limit.", **between(-1, NEVER_MS))
    log_segment_bytes: int = setting("log.segment.bytes", GiB, "The size of a segment file at which a new one is started.", **between(1024, SEGMENT_MAX_BYTES))
    log_segment_ms: int = setting("log.roll.ms", 7 * DAY_MS, "The age of a segment file at which a new one is started.", **between(1, NEVER_MS))
    log_index_interval_bytes: int = setting("log.index.interval.bytes", 4096, "The number of log bytes between two index entries.", **between(0, 2**31 - 1))
    log_flush_messages: int = setting("log.flush.interval.messages", NEVER_MS, "Sync to disk after this many records, whatever fsync is set to.", **between(1, NEVER_MS))
    log_flush_ms: int = setting("log.flush.interval.ms", NEVER_MS, "Sync to disk after this time, whatever fsync is set to.", **between(0, NEVER_MS))
    log_message_timestamp_type: str = setting("log.message.timestamp.type", "CreateTime", "Whether records keep the producer's timestamp (CreateTime) or get the broker's (LogAppendTime).", **one_of("CreateTime", "LogAppendTime"))
    log_message_timestamp_before_max_ms: int = setting("log.message.timestamp.before.max.ms", NEVER_MS, "How far in the past a record's timestamp may be.", **between(0, NEVER_MS))
    log_message_timestamp_after_max_ms: int = setting("log.message.timestamp.after.max.ms", 3_600_000, "How far in the future a record's timestamp may be.", **between(0, NEVER_MS))
    log_cleaner_enable: bool = setting("log.cleaner.enable", True, "Compact the logs of topics with cleanup.policy=compact.")
    log_cleaner_threads: int = setting("log.cleaner.threads", 1, "The number of logs that are compacted at the same time; always 1, larger values are accepted.", **between(1, 1000))
    log_cleaner_dedupe_buffer_size: int = setting("log.cleaner.dedupe.buffer.size", 128 * MiB, "The most bytes of memory that the keys of a log may take while it is compacted; with more keys it takes several passes.", **between(MiB, 2**40))
    log_cleaner_io_max_bytes_per_second: float = setting("log.cleaner.io.max.bytes.per.second", 1.7976931348623157e308, "How many bytes compaction may read and write in a second.", check=lambda value: value > 0, wants="more than 0")
    log_cleaner_backoff_ms: int = setting("log.cleaner.backoff.ms", 15_000, "How long compaction waits before it looks for work again, when there is none.", **between(1, NEVER_MS))
    log_cleaner_delete_retention_ms: int = setting("log.cleaner.delete.retention.ms", DAY_MS, "How long tombstones of compacted topics, and the markers of their transactions, are kept after they were compacted first.", **between(0, NEVER_MS))
    log_cleaner_min_cleanable_ratio: float = setting("log.cleaner.min.cleanable.ratio", 0.5, "The share of uncompacted data at which a log is compacted.", **between(0, 1))
    log_cleaner_min_compaction_lag_ms: int = setting("log.cleaner.min.compaction.lag.ms", 0, "The shortest time that a record of a compacted topic stays uncompacted.", **between(0, NEVER_MS))
    log_cleaner_max_compaction_lag_ms: int = setting("log.cleaner.max.compaction.lag.ms", NEVER_MS, "The longest time that a record of a compacted topic may stay uncompacted.", **between(1, NEVER_MS))
    log_scrub_enable: bool = setting("log.scrub.enable", True, "Check the checksums of all stored batches in the background, also of those that no client reads.")
    log_scrub_interval_ms: int = setting("log.scrub.interval.ms", 7 * DAY_MS, "How often everything is checked.", **between(100, NEVER_MS))
    log_scrub_max_bytes_per_second: int = setting("log.scrub.max.bytes.per.second", 4 * MiB, "How many bytes the check reads in a second.", **between(1024, NEVER_MS))
    message_max_bytes: int = setting("message.max.bytes", MiB + 12, "The largest size of a record batch.", **between(0, RECORD_BATCH_MAX_BYTES))

    compression_type: str = setting("compression.type", "producer", "The compression of stored batches: uncompressed, gzip, snappy, lz4 or zstd; a batch in another codec is compressed anew when it is appended. producer: as the producer compressed them.", **one_of(*COMPRESSION_TYPES))
    compression_gzip_level: int = setting("compression.gzip.level", -1, "The compression level if the broker compresses with gzip: from 1 to 9; -1: the default of gzip.", check=is_gzip_level, wants=GZIP_LEVELS)
    compression_lz4_level: int = setting("compression.lz4.level", 9, "The compression level if the broker compresses with lz4. As in Kafka, 9 is the fast compressor, and every other level a slower one with a better ratio.", **between(*LZ4_LEVELS))
    compression_zstd_level: int = setting("compression.zstd.level", 3, "The compression level if the broker compresses with zstd.", **between(*ZSTD_LEVELS))

    offsets_topic_num_partitions: int = setting("offsets.topic.num.partitions", 12, "The number of partitions of __consumer_offsets, which stores groups and their offsets; fixed when the first group is created. The leader of a partition coordinates its groups.", **between(1, 10_000))
    offsets_topic_replication_factor: int = setting("offsets.topic.replication.factor", -1, "The replication factor of __consumer_offsets; -1: three, or the number of brokers if it is less.", check=lambda value: value == -1 or 1 <= value <= 100, wants="-1 or from 1 to 100")
    offsets_retention_minutes: int = setting("offsets.retention.minutes", 7 * 24 * 60, "How long a group's offsets are kept after its last member left, or after the last commit if it never had members.", **between(1, 2**31 - 1))
    offsets_retention_check_interval_ms: int = setting("offsets.retention.check.interval.ms", 600_000, "How often the broker looks for expired offsets.", **between(1, NEVER_MS))
    offset_metadata_max_bytes: int = setting("offset.metadata.max.bytes", 4096, "The longest metadata string that a client may commit with an offset.", **between(0, MiB))
    group_initial_rebalance_delay_ms: int = setting("group.initial.rebalance.delay.ms", 3000, "How long a new group waits for more members before its first rebalance.", **between(0, HOUR_MS))
    group_min_session_timeout_ms: int = setting("group.min.session.timeout.ms", 6000, "The shortest session.timeout.ms that a member may request.", **between(1, 2**31 - 1))
    group_max_session_timeout_ms: int = setting("group.max.session.timeout.ms", 1_800_000, "The longest session.timeout.ms that a member may request.", **between(1, 2**31 - 1))
    group_max_size: int = setting("group.max.size", 2**31 - 1, "The largest number of members of a group.", **between(1, 2**31 - 1))

    group_consumer_session_timeout_ms: int = setting("group.consumer.session.timeout.ms", 45_000, "A member of the consumer protocol (KIP-848) without a heartbeat for this long is removed from its group.", **between(1, 2**31 - 1))
    group_consumer_heartbeat_interval_ms: int = setting("group.consumer.heartbeat.interval.ms", 5000, "The heartbeat interval of members of the consumer protocol; must be less than group.consumer.session.timeout.ms.", **between(1, 2**31 - 1))
    group_consumer_max_size: int = setting("group.consumer.max.size", 2**31 - 1, "The largest number of members of a group of the consumer protocol.", **between(1, 2**31 - 1))
    group_consumer_assignors: str = setting("group.consumer.assignors", "uniform,range", "The server-side assignors; the first one is used if the members do not request one.", check=are_assignors, wants="uniform, range or both, separated by a comma")
    group_consumer_migration_policy: str = setting("group.consumer.migration.policy", "bidirectional", "Whether a group may change its protocol while it has members: upgrade lets members of the consumer protocol join a classic group, downgrade converts it to a classic group when the last of them leaves.", **one_of("bidirectional", "upgrade", "downgrade", "disabled"))

    group_share_session_timeout_ms: int = setting("group.share.session.timeout.ms", 45_000, "A member of a share group (KIP-932) without a heartbeat for this long is removed from its group.", **between(1, 2**31 - 1))
    group_share_heartbeat_interval_ms: int = setting("group.share.heartbeat.interval.ms", 5000, "The heartbeat interval of members of share groups; must be less than group.share.session.timeout.ms.", **between(1, 2**31 - 1))
    group_share_max_size: int = setting("group.share.max.size", 200, "The largest number of members of a share group.", **between(1, 1000))
    group_share_max_share_sessions: int = setting("group.share.max.share.sessions", 2000, "The largest number of share sessions, one for each member that fetches from this broker.", **between(1, 10_000))
    group_share_record_lock_duration_ms: int = setting("group.share.record.lock.duration.ms", 30_000, "How long a record that was delivered to a member of a share group is locked for that member; then it may be delivered again.", **between(1000, HOUR_MS))
    group_share_delivery_count_limit: int = setting("group.share.delivery.count.limit", 5, "How often a record is delivered to a share group before it is given up; 0: as often as it takes.", check=lambda value: value == 0 or 2 <= value <= 25, wants="0 or from 2 to 25")
    group_share_partition_max_record_locks: int = setting("group.share.partition.max.record.locks", 2000, "The largest number of records of one partition that are locked for members of a share group.", **between(1, 10_000))
    group_share_initialize_retry_interval_ms: int = setting("group.share.initialize.retry.interval.ms", 30_000, "The longest time between two attempts to initialize the state of a share group's partition.", **between(1, HOUR_MS))

    transaction_state_log_num_partitions: int = setting("transaction.state.log.num.partitions", 12, "The number of partitions of __transaction_state, which stores transactions; fixed when the first transactional producer starts. The leader of a partition coordinates its transactions.", **between(1, 10_000))
    transaction_state_log_replication_factor: int = setting("transaction.state.log.replication.factor", -1, "The replication factor of __transaction_state; -1: three, or the number of brokers if it is less.", check=lambda value: value == -1 or 1 <= value <= 100, wants="-1 or from 1 to 100")
    transaction_max_timeout_ms: int = setting("transaction.max.timeout.ms", 900_000, "The longest transaction.timeout.ms that a producer may request; a transaction is aborted after its producer's timeout.", **between(1, 2**31 - 1))
    transactional_id_expiration_ms: int = setting("transactional.id.expiration.ms", 7 * DAY_MS, "How long a transactional id is kept after its last transaction.", **between(1, NEVER_MS))
    transaction_remove_expired_interval_ms: int = setting("transaction.remove.expired.transaction.cleanup.interval.ms", HOUR_MS, "How often the broker looks for expired transactional ids.", **between(1, NEVER_MS))

    share_coordinator_state_topic_num_partitions: int = setting("share.coordinator.state.topic.num.partitions", 12, "The number of partitions of __share_group_state, which stores what share groups have done with records; fixed when the first share group is created. The leader of a partition is the share coordinator of its share partitions.", **between(1, 10_000))
    share_coordinator_state_topic_replication_factor: int = setting("share.coordinator.state.topic.replication.factor", -1, "The replication factor of __share_group_state; -1: three, or the number of brokers if it is less.", check=lambda value: value == -1 or 1 <= value <= 100, wants="-1 or from 1 to 100")

    producer_id_expiration_ms: int = setting("producer.id.expiration.ms", DAY_MS, "How long the sequence numbers of an idle producer are kept.", **between(1, NEVER_MS))
    socket_request_max_bytes: int = setting("socket.request.max.bytes", FRAME_MAX_BYTES, "The largest size of a request.", **between(1024, FRAME_MAX_BYTES))
    fetch_partition_max_bytes: int = setting("fetch.partition.max.bytes", MiB, "The most bytes of one partition in one fetch. Larger values make responses queue in the socket, which is slower unless the network is slow.", **between(1024, FETCH_ANSWER_MAX_BYTES))
    max_connections: int = setting("max.connections", 10_000, "The largest number of client connections.", **between(1, 1_000_000))
    connections_max_idle_ms: int = setting("connections.max.idle.ms", 600_000, "A client connection without a request for this long is closed.", **between(1000, NEVER_MS))
    # fmt: on

    def __post_init__(self) -> None:
        for one in fields(self):
            check(row(one), getattr(self, one.name))
        check_relations(self)

    @property
    def host_for_clients(self) -> str:
        """The host name that clients and other brokers use to reach this process."""
        if self.advertised_host:
            return self.advertised_host
        return "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host


def check_relations(settings: Settings) -> None:
    _check_waits(settings)
    if "SSL" in settings.listener_security_protocol_map and not settings.ssl_keystore_location:
        raise SettingError(
            f"listener.security.protocol.map={settings.listener_security_protocol_map} needs ssl.keystore.location: "
            "a PEM file with a private key and its certificate"
        )
    asks_for_certificates = "peer:SSL" in settings.listener_security_protocol_map or settings.ssl_client_auth != "none"
    if asks_for_certificates and not settings.ssl_truststore_location:
        raise SettingError(
            "certificates of clients and other brokers need ssl.truststore.location, a PEM file with the authorities "
            "that may issue them: every public authority would do otherwise"
        )
    _check_heartbeats(
        "consumer", settings.group_consumer_heartbeat_interval_ms, settings.group_consumer_session_timeout_ms
    )
    _check_heartbeats("share", settings.group_share_heartbeat_interval_ms, settings.group_share_session_timeout_ms)


def _check_heartbeats(kind: str, interval_ms: int, session_ms: int) -> None:
    if interval_ms >= session_ms:
        raise SettingError(
            f"group.{kind}.heartbeat.interval.ms={interval_ms} must be less than "
            f"group.{kind}.session.timeout.ms={session_ms}"
        )


def _check_waits(settings: Settings) -> None:
    """A follower whose fetch is held too long would start an election, or be fenced or removed from the ISR itself."""
    wait_ms = settings.replica_fetch_wait_max_ms
    for name in ("controller.quorum.fetch.timeout.ms", "broker.session.timeout.ms", "replica.lag.time.max.ms"):
        other_ms = getattr(settings, rows()[name].name)
        if 2 * wait_ms > other_ms:
            raise SettingError(
                f"replica.fetch.wait.max.ms={wait_ms} must be at most half of {name}={other_ms}: at most {other_ms // 2}"
            )


@cache
def rows() -> "Mapping[str, Field[Any]]":
    """Every setting by its Kafka name."""
    return MappingProxyType({row(one).name: one for one in fields(Settings)})


def load(
    yaml: Mapping[str, object], environment: Mapping[str, str], flags: Mapping[str, object], *, file: str = ""
) -> Settings:
    """Settings from the top level of a YAML file, `TAILRACE_…` variables and flags, in rising precedence.

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
    """The values of one source, by field of `Settings`; the error for an unknown name has the nearest known one."""
    values: dict[str, Any] = {}
    where = f" in {source}" if source else ""
    for key, value in given.items():
        if key not in table:
            import difflib  # only to explain a mistake

            near = difflib.get_close_matches(str(key), table, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise SettingError(f"unknown setting {key!r}{where}{hint}")
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
