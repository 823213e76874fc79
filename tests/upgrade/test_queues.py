"""Share groups while brokers are restarted: a queue in use loses nothing, and repeats nothing that was accepted."""

from pathlib import Path
from typing import Final

from tailrace.testing import Cluster
from tests.chaos.storm import make_topic
from tests.upgrade.queue_load import QUEUE, QueueLoad
from tests.upgrade.under_load import until

PARTITIONS: Final = 6
HEALTHY_WITHIN_S: Final = 60.0


def get_on(load: QueueLoad) -> None:
    """Wait until more was accepted."""
    wanted = len(load.accepted) + 50
    until(lambda: len(load.accepted) >= wanted or bool(load.complaints), f"{wanted} messages are accepted")


def test_a_queue_in_use_while_brokers_restart_one_by_one(tmp_path: Path) -> None:
    with Cluster(3, data_dir=tmp_path, proxied=False) as cluster:
        make_topic(cluster, QUEUE, PARTITIONS)
        load = QueueLoad(cluster.bootstrap)
        try:
            get_on(load)
            for broker in cluster.ids:
                cluster.restart(broker)
                cluster.wait_until_healthy(HEALTHY_WITHIN_S)
                get_on(load)
        finally:
            load.stop()
        assert load.broken_promises() == []
