"""A broker that leads busy partitions is killed: how long until producers resume in each of them.

Twenty kills with 100 partitions on each of three brokers, with thresholds; a few with 3,000 partitions, of which 100
are busy, for information. Connections are direct.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.cases import Start
from benchmarks.failover import HEALTHY_WITHIN_S, Failover, Load, kill_leader
from benchmarks.outcomes import Outcome, Threshold
from tailrace.testing import Cluster

BROKERS: Final = 3
TOPIC: Final = "busy"
FEW: Final = 100
FEW_KILLS: Final = 20
MANY: Final = 3_000
MANY_KILLS: Final = 3
BUSY: Final = 100
PER_SECOND: Final = 300.0  # records, over all busy partitions


def failover(_: Start, folder: Path) -> Iterator[Outcome]:
    found = killed(folder / "few", FEW, FEW_KILLS)
    yield outcome("a partition", FEW, [one.median_s for one in found], at_most=1.0)
    yield outcome("the last of them", FEW, [max(one.last_s for one in found)], at_most=3.0)
    found = killed(folder / "many", MANY, MANY_KILLS)
    yield outcome("a partition", MANY, [one.median_s for one in found])
    yield outcome("the last of them", MANY, [max(one.last_s for one in found)])


def outcome(who: str, partitions: int, seconds: list[float], *, at_most: float | None = None) -> Outcome:
    worst = ", worst kill" if len(seconds) == 1 else ""
    return Outcome(
        name=f"leader killed, {partitions:,} partitions: until {who} goes on{worst}",
        fsync="always",
        acks="all",
        unit="s",
        rounds=tuple(seconds),
        threshold=None if at_most is None else Threshold(of="value", at_most=at_most),
    )


def killed(folder: Path, partitions: int, kills: int) -> list[Failover]:
    # Preferred leaders are elected every second, so that the next kill need not wait long.
    with Cluster(BROKERS, data_dir=folder, proxied=False, leader_imbalance_check_interval_seconds=1) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, partitions, BROKERS)])[TOPIC].result(HEALTHY_WITHIN_S)
        cluster.wait_until_healthy(HEALTHY_WITHIN_S)
        load = Load(cluster.bootstrap, TOPIC, range(0, partitions, partitions // BUSY), per_second=PER_SECOND)
        try:
            return [kill_leader(cluster, cluster.ids[one % BROKERS], TOPIC, load) for one in range(kills)]
        finally:
            load.stop()
