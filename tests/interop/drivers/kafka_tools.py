"""Kafka's own command-line tools, as the classes that its scripts start (`bin/kafka-topics.sh` and the like)."""

import subprocess

from benchmarks.jars import KAFKA_VERSION
from tests.interop import toolchains
from tests.interop.client import DEADLINE_S, TlsOptions
from tests.interop.drivers.program import Toolchain

CLASSES = {
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "share-consumer-perf-test": "org.apache.kafka.tools.ShareConsumerPerformance",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
}


class ToolFailed(Exception):
    """A tool ended with an error; the text is all that it said."""


class KafkaTools(Toolchain):
    name = "Kafka's tools"
    tools = ("java", "javac", "mvn")
    also = frozenset({"TLS", "command line"})

    def __init__(self, bootstrap: str, tls: TlsOptions | None = None) -> None:
        super().__init__(bootstrap, tls)
        toolchains.java("")  # fetched now, or missing

    @classmethod
    def release(cls) -> str:
        return KAFKA_VERSION

    def run(self, tool: str, *arguments: str, given: str = "") -> str:
        """What it prints."""
        command = [*toolchains.java(CLASSES[tool]), *self._where(tool), *arguments]
        ran = subprocess.run(command, input=given, capture_output=True, text=True, timeout=4 * DEADLINE_S, check=False)
        if ran.returncode:
            raise ToolFailed(ran.stdout + ran.stderr)
        return ran.stdout

    def _where(self, tool: str) -> list[str]:
        secured = [] if self.tls is None else ["--command-config", self.tls.properties_file()]
        return [] if tool == "cluster" else ["--bootstrap-server", self.bootstrap, *secured]
