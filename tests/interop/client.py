"""The words in which features are written: what any client may offer, whichever way it spells it.

`Client` is the widest interface; a driver overrides what its client can do, and a feature is tried only with drivers
that override all it uses (`feature.py`). `Refused` is a broker's refusal as the client surfaced it: its error code.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from tests.interop.messages import AS_USUAL, Message, Reader, Reading, Received, Sending
from tests.interop.shapes import (
    ONE_PARTITION,
    ClusterShape,
    GroupShape,
    QuorumShape,
    Setting,
    ShareGroupShape,
    ShareOffset,
    TopicPlan,
    TopicShape,
    TransactionShape,
)

if TYPE_CHECKING:
    from tests.interop.member import Member
    from tests.interop.share_member import Mode, ShareMember
    from tests.interop.transactor import Transactor

DEADLINE_S = 15.0
# Part of `also` of every driver but kcat's and kafkajs's.
BASICS = frozenset({"any bytes", "empty is not null", "error when lost", "static members", "timestamps"})
# What the clients can do that follow Kafka closely: its own and librdkafka's.
CURRENT = BASICS | {
    "asks the next coordinator again",
    "consumer protocol",
    "cooperative-sticky",
    "default counts",
    "describing creates nothing",
    "error when a name is bad",
    "follows a topic made again",
    "leaves for a while",
    "null headers",
    "topic ids",
}


class Code(IntEnum):
    """Kafka's error codes that clients are shown here."""

    OFFSET_OUT_OF_RANGE = 1
    UNKNOWN_TOPIC_OR_PARTITION = 3
    MESSAGE_TOO_LARGE = 10
    INVALID_TOPIC_EXCEPTION = 17
    INVALID_TIMESTAMP = 32
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_CONFIG = 40
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    INVALID_RECORD_STATE = 121


class Refused(Exception):
    """The broker said no, and the client passed it on. `code` is Kafka's, or the client's own (negative)."""

    def __init__(self, code: int, text: str = "") -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


class TlsOptions(NamedTuple):
    """PEM files for a client's TLS connections."""

    truststore: str
    keystore: str = ""  # private key and certificate of the client, for mutual TLS

    @property
    def of_librdkafka(self) -> dict[str, str]:
        """librdkafka's settings."""
        own = {"ssl.key.location": self.keystore, "ssl.certificate.location": self.keystore} if self.keystore else {}
        return {"security.protocol": "SSL", "ssl.ca.location": self.truststore, **own}

    def properties_file(self) -> str:
        """The path of a file with the settings of Kafka's own clients, beside the files that it names."""
        stores = [("truststore", self.truststore), *([("keystore", self.keystore)] if self.keystore else [])]
        lines = [f"ssl.{store}.type=PEM\nssl.{store}.location={path}\n" for store, path in stores]
        path = Path(self.keystore or self.truststore).with_suffix(".properties")
        path.write_text("security.protocol=SSL\n" + "".join(lines))
        return str(path)


class Client:
    """What a client may offer. A driver overrides what it has; `also` names what has no method of its own."""

    name: ClassVar[str]
    also: ClassVar[frozenset[str]] = frozenset()
    toolchain: ClassVar[bool] = False  # needs one that pip does not bring: tried by `make interop` only

    def __init__(self, bootstrap: str, tls: TlsOptions | None = None) -> None:
        """With `tls`, if the driver offers "TLS", all connections use TLS."""
        self.bootstrap = bootstrap
        self.tls = tls

    @classmethod
    def offers(cls, what: str) -> bool:
        return what in cls.also or getattr(cls, what, None) is not getattr(Client, what, None)

    @classmethod
    def version(cls) -> str | None:
        """The version that runs here; None when it is not installed."""
        raise NotImplementedError

    @classmethod
    def why_missing(cls) -> str:
        """What a reader of the test's report should do, when it is not installed."""
        return f"{cls.name} is not installed here (Debian: apt-get install {cls.name})"

    def close(self) -> None:
        """Let go of connections."""

    def produce(
        self, topic: str, messages: Sequence[Message], sending: Sending = AS_USUAL, partition: int = 0
    ) -> list[int]:
        """Send in order, wait for all; the offsets where the client tells them, else an empty list."""
        raise NotImplementedError

    def reader(self, topic: str, reading: Reading, partition: int = 0) -> AbstractContextManager[Reader]:
        raise NotImplementedError

    def consume(self, topic: str, count: int, *, start: int = 0, partition: int = 0) -> list[Received]:
        with self.reader(topic, Reading(start=start), partition) as reader:
            return reader.take(count)

    def write_keyed(self, topic: str, keys: Sequence[str]) -> None:
        """Send messages that have keys, to the partitions that the client takes for them; wait for all."""
        raise NotImplementedError

    def consume_near(self, topic: str, count: int, rack: str) -> tuple[list[Received], int]:
        """Read as somebody in a rack; the records, and the broker that gave them."""
        raise NotImplementedError

    def member(self, topic: str, group: str, strategy: str = "range", instance: str = "") -> "Member":
        """A process that subscribes, as a member of a group."""
        raise NotImplementedError

    def transactor(self, name: str, timeout_ms: int = 60_000) -> "AbstractContextManager[Transactor]":
        """A transactional producer under a name."""
        raise NotImplementedError

    def list_transactions(self) -> dict[str, str]:
        """All transactional ids, and their states."""
        raise NotImplementedError

    def describe_transaction(self, name: str) -> TransactionShape:
        raise NotImplementedError

    def open_on(self, topic: str, partition: int = 0) -> dict[int, int]:
        """The producers that have a transaction open on a partition, and where each began."""
        raise NotImplementedError

    def fence(self, name: str) -> None:
        """End what a producer of this transactional id has open, and let it write no more."""
        raise NotImplementedError

    def list_groups(self) -> dict[str, str]:
        """All groups, and their states, where the client tells them."""
        raise NotImplementedError

    def describe_group(self, group: str) -> GroupShape:
        raise NotImplementedError

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """How far a group has read each partition."""
        raise NotImplementedError

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Let a group that nobody is in go on elsewhere."""
        raise NotImplementedError

    def delete_group(self, group: str) -> None:
        raise NotImplementedError

    def share_member(self, topic: str, group: str, mode: "Mode" = "implicit") -> "ShareMember":
        """A process that subscribes, as a member of a share group."""
        raise NotImplementedError

    def group_settings(self, group: str) -> dict[str, Setting]:
        raise NotImplementedError

    def change_group_settings(self, group: str, changes: Mapping[str, str | None]) -> None:
        """Change only what is named; None goes back to the default."""
        raise NotImplementedError

    def list_share_groups(self) -> dict[str, str]:
        """All share groups, and their states."""
        raise NotImplementedError

    def describe_share_group(self, group: str) -> ShareGroupShape:
        raise NotImplementedError

    def share_offsets(self, group: str, topic: str) -> dict[int, ShareOffset]:
        """How far a share group is with each partition."""
        raise NotImplementedError

    def alter_share_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Let a share group without members start elsewhere."""
        raise NotImplementedError

    def delete_share_offsets(self, group: str, topic: str) -> None:
        raise NotImplementedError

    def delete_share_group(self, group: str) -> None:
        raise NotImplementedError

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> int:
        """The first offset at or after a time; -1 when there is none."""
        raise NotImplementedError

    def watermarks(self, topic: str, partition: int = 0) -> tuple[int, int]:
        """The first offset and the next one, as a consumer is told."""
        raise NotImplementedError

    def list_offset(self, topic: str, spec: Literal["earliest", "latest", "max_timestamp"], partition: int = 0) -> int:
        raise NotImplementedError

    def create_topic(self, topic: str, plan: TopicPlan = ONE_PARTITION, *, validate_only: bool = False) -> None:
        raise NotImplementedError

    def create_assigned(self, topic: str, replicas: Sequence[Sequence[int]]) -> None:
        raise NotImplementedError

    def delete_topic(self, topic: str) -> None:
        raise NotImplementedError

    def delete_topic_by_id(self, topic_id: str) -> None:
        raise NotImplementedError

    def list_topics(self) -> list[str]:
        raise NotImplementedError

    def describe_topic(self, topic: str) -> TopicShape:
        raise NotImplementedError

    def describe_topic_by_id(self, topic_id: str) -> str:
        """The name behind an id."""
        raise NotImplementedError

    def describe_pages(self, topics: Sequence[str], page: int) -> list[tuple[str, int]]:
        """(topic, partition) of each, asked for `page` partitions at a time."""
        raise NotImplementedError

    def create_partitions(self, topic: str, total: int, *, validate_only: bool = False) -> None:
        raise NotImplementedError

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        """Delete what lies before an offset (-1: everything); the new first offset."""
        raise NotImplementedError

    def topic_settings(self, topic: str) -> dict[str, Setting]:
        raise NotImplementedError

    def broker_settings(self, broker: int) -> dict[str, Setting]:
        raise NotImplementedError

    def change_settings(self, topic: str, changes: Mapping[str, str | None], *, validate_only: bool = False) -> None:
        """Change only what is named; None goes back to the default (IncrementalAlterConfigs)."""
        raise NotImplementedError

    def replace_settings(self, topic: str, settings: Mapping[str, str]) -> None:
        """These and no others (AlterConfigs)."""
        raise NotImplementedError

    def describe_cluster(self) -> ClusterShape:
        raise NotImplementedError

    def stored_bytes(self, topic: str) -> int:
        """What the broker's log directories hold of a topic."""
        raise NotImplementedError

    def configured(self) -> dict[str, list[str]]:
        """The names of resources that have settings, by kind."""
        raise NotImplementedError

    def features(self) -> dict[str, tuple[int, int, int]]:
        """Of each feature, the first and last level that the broker supports, and the one in force."""
        raise NotImplementedError

    def raise_feature(self, name: str, level: int, *, validate_only: bool = False) -> None:
        raise NotImplementedError

    def describe_quorum(self) -> QuorumShape:
        raise NotImplementedError

    def elect_preferred(self, topic: str, partition: int = 0) -> None:
        """Let the first replica lead."""
        raise NotImplementedError
