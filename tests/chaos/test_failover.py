"""Killing whoever leads most: producers go on elsewhere, soon. How soon, `make bench` measures on a quiet machine."""

import pytest

from benchmarks.failover import Load, kill_a_leader
from tailrace.testing import Cluster
from tests.chaos.storm import make_topic

topic = "t"
partitions = 50
kills = 3
resumed_max_s = 15.0  # what is promised is 3; here other tests have the same two cores


@pytest.mark.chaos
def test_producers_go_on_when_a_leader_is_killed() -> None:
    with Cluster(3, proxied=False) as cluster:
        make_topic(cluster, topic, partitions)
        load = Load(cluster.bootstrap, topic, partitions, per_second=100.0)
        load.wait_until_busy()
        try:
            found = [kill_a_leader(cluster, topic, load) for _ in range(kills)]
        finally:
            load.stop()
    assert load.failures == []
    assert min(one.partitions for one in found) > partitions // 4
    assert max(one.last_s for one in found) < resumed_max_s, found
