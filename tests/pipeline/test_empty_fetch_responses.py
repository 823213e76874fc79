"""Answers to Fetch that bring no record below the end: what is made of them depends on the topic. No Spark."""

import pytest

from tailrace.pipeline.failure import NoBrokerAvailable
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.fetching import OffsetRange, fetch
from tailrace.testing import Broker
from tests.pipeline.damaging_proxy import Harm, damaging, emptied
from tests.pipeline.topics import make_topic, numbered, write


def ends(broker: Broker, cluster: Cluster, topic: str, harm: Harm, policy: str = "delete") -> list[int]:
    """Where each of two batches ends, as far as they are read."""
    make_topic(cluster, topic, policy=policy)
    for number in range(2):
        write(cluster, topic, numbered(10, 100 * number))
    wanted = OffsetRange(partition=TopicPartition(topic, 0), start=0, end=20)
    with damaging(broker.bootstrap, harm) as bootstrap, Cluster(bootstrap, retry_timeout_s=0.5) as behind:
        return [visible.end for visible in fetch(behind, wanted, committed=True, max_bytes=1)]


def test_a_broker_that_holds_a_client_back_is_asked_again(broker: Broker, cluster: Cluster, topic: str) -> None:
    assert ends(broker, cluster, topic, emptied(b"value 10", of_topics=True, times=2)) == [10, 20]


def test_a_range_that_is_not_there_is_not_taken_for_read(broker: Broker, cluster: Cluster, topic: str) -> None:
    with pytest.raises(NoBrokerAvailable, match=r"has no record from offset 10 on, and ends at 20 or later; given up"):
        ends(broker, cluster, topic, emptied(b"value 10"))


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_compaction_may_have_left_nothing(broker: Broker, cluster: Cluster, topic: str, policy: str) -> None:
    assert ends(broker, cluster, topic, emptied(b"value 10"), policy) == [10]
