"""A broker dies that leads busy partitions: how long until producers go on, in each of them.

Twenty kills with 100 partitions on each of three brokers, against thresholds; a few with 3,000, of which 100 are busy,
to be seen. Connections are direct.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.cases import Start
from benchmarks.failover import Failover, Load, healthy_within_s, kill_leader
from benchmarks.outcomes import Outcome, Threshold
from tailrace.testing import Cluster

brokers: Final = 3
topic: Final = "busy"
few: Final = 100
few_kills: Final = 20
many: Final = 3_000
many_kills: Final = 3
busy: Final = 100
per_second: Final = 300.0  # records, over all busy partitions


def failover(_: Start, folder: Path) -> Iterator[Outcome]:
    found = killed(folder / "few", few, few_kills)
    yield outcome("a partition", few, [one.median_s for one in found], at_most=1.0)
    yield outcome("the last of them", few, [max(one.last_s for one in found)], at_most=3.0)
    found = killed(folder / "many", many, many_kills)
    yield outcome("a partition", many, [one.median_s for one in found])
    yield outcome("the last of them", many, [max(one.last_s for one in found)])


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
    # Leadership goes back soon, so that the next kill is not long in coming.
    with Cluster(brokers, data_dir=folder, proxied=False, leader_imbalance_check_interval_seconds=1) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(topic, partitions, brokers)])[topic].result(healthy_within_s)
        cluster.wait_until_healthy(healthy_within_s)
        load = Load(cluster.bootstrap, topic, range(0, partitions, partitions // busy), per_second=per_second)
        try:
            return [kill_leader(cluster, cluster.ids[one % brokers], topic, load) for one in range(kills)]
        finally:
            load.stop()
