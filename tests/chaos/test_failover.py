"""Killing leaders: producers go on elsewhere, soon. How soon, `make bench` measures on a quiet machine."""

import pytest

from benchmarks.failover import Load, kill_leader
from tailrace.testing import Cluster
from tests.chaos.storm import make_topic

TOPIC = "t"
PARTITIONS = 50
RESUMED_MAX_S = 15.0  # what is promised is 3; here other tests have the same two cores


@pytest.mark.chaos
def test_producers_go_on_when_a_leader_is_killed() -> None:
    with Cluster(3, proxied=False, leader_imbalance_check_interval_seconds=1) as cluster:
        make_topic(cluster, TOPIC, PARTITIONS)
        load = Load(cluster.bootstrap, TOPIC, range(PARTITIONS), per_second=100.0)
        try:
            found = [kill_leader(cluster, one, TOPIC, load) for one in cluster.ids]
        finally:
            load.stop()
    assert load.failures == []
    assert min(one.partitions for one in found) > PARTITIONS // 4
    assert max(one.last_s for one in found) < RESUMED_MAX_S, found
