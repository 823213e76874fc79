"""Kafka's own client, for Java: `java/Calls.java` and `java/Member.java`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Literal

from benchmarks.jars import KAFKA_VERSION
from tests.interop import toolchains
from tests.interop.client import CURRENT
from tests.interop.drivers.java_transactions import JavaTransactions
from tests.interop.drivers.program import Groups, ProgramReader, ShareGroups, Topics, Writer
from tests.interop.messages import Reading, Received
from tests.interop.shapes import ClusterShape, QuorumShape, Setting


class Java(Writer, Topics, Groups, ShareGroups, JavaTransactions):
    name = "Java"
    tools = ("java", "javac", "mvn")
    also = CURRENT | {"TLS", "renews locks", "single records", "workers"}

    @classmethod
    def command(cls) -> list[str]:
        return toolchains.java("Calls")

    @classmethod
    def member_command(cls) -> list[str]:
        return toolchains.java("Member")

    @classmethod
    def share_member_command(cls) -> list[str]:
        return toolchains.java("ShareMember")

    @classmethod
    def release(cls) -> str:
        return KAFKA_VERSION

    def consume_near(self, topic: str, count: int, rack: str) -> tuple[list[Received], int]:
        number = self.ask("open", topic=topic, partition=0, rack=rack, **asdict(Reading()))
        received = ProgramReader(self, number).take(count)
        replica = self.ask("near", reader=number)
        self.ask("close", reader=number)
        return received, replica if replica >= 0 else self.describe_topic(topic).leaders[0]

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> int:
        return int(self.ask("offset_at", topic=topic, timestamp_ms=timestamp_ms, partition=partition))

    def list_offset(self, topic: str, spec: Literal["earliest", "latest", "max_timestamp"], partition: int = 0) -> int:
        return int(self.ask("list_offset", topic=topic, spec=spec, partition=partition))

    def create_assigned(self, topic: str, replicas: Sequence[Sequence[int]]) -> None:
        self.ask("create_assigned", topic=topic, replicas=[list(brokers) for brokers in replicas])

    def delete_topic_by_id(self, topic_id: str) -> None:
        self.ask("delete_topic_by_id", topic_id=topic_id)

    def describe_topic_by_id(self, topic_id: str) -> str:
        return str(self.ask("describe_topic_by_id", topic_id=topic_id))

    def describe_pages(self, topics: Sequence[str], page: int) -> list[tuple[str, int]]:
        found = self.ask("describe_pages", topics=list(topics), page=page)
        return sorted((topic, partition) for topic, partition in found)

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        return int(self.ask("delete_records", topic=topic, before=before, partition=partition))

    def topic_settings(self, topic: str) -> dict[str, Setting]:
        return {name: Setting(**one) for name, one in self.ask("topic_settings", topic=topic).items()}

    def broker_settings(self, broker: int) -> dict[str, Setting]:
        return {name: Setting(**one) for name, one in self.ask("broker_settings", broker=str(broker)).items()}

    def change_settings(self, topic: str, changes: Mapping[str, str | None], *, validate_only: bool = False) -> None:
        self.ask("change_settings", topic=topic, changes=dict(changes), validate_only=validate_only)

    def group_settings(self, group: str) -> dict[str, Setting]:
        return {name: Setting(**one) for name, one in self.ask("group_settings", group=group).items()}

    def change_group_settings(self, group: str, changes: Mapping[str, str | None]) -> None:
        self.ask("change_group_settings", group=group, changes=dict(changes))

    def describe_cluster(self) -> ClusterShape:
        found = self.ask("describe_cluster")
        brokers = tuple((number, host, port) for number, host, port in found["brokers"])
        return ClusterShape(cluster_id=found["cluster_id"], controller=found["controller"], brokers=brokers)

    def describe_quorum(self) -> QuorumShape:
        found = self.ask("describe_quorum")
        return QuorumShape(leader=found["leader"], voters=tuple(found["voters"]), observers=tuple(found["observers"]))

    def stored_bytes(self, topic: str) -> int:
        return int(self.ask("stored_bytes", topic=topic))

    def features(self) -> dict[str, tuple[int, int, int]]:
        return {name: (first, last, level) for name, (first, last, level) in self.ask("features").items()}

    def raise_feature(self, name: str, level: int, *, validate_only: bool = False) -> None:
        self.ask("raise_feature", name=name, level=level, validate_only=validate_only)

    def configured(self) -> dict[str, list[str]]:
        return dict(self.ask("configured"))

    def elect_preferred(self, topic: str, partition: int = 0) -> None:
        self.ask("elect_preferred", topic=topic, partition=partition)
