"""A cluster of three is upgraded from 0.1.0 to the tree at hand, broker by broker and under load, and then raised."""

from pathlib import Path
from typing import Final

import pytest

from tailrace.client import BlockingQueue
from tailrace.client.faults import Refused
from tailrace.testing import Broker, BrokerFailed, Cluster
from tailrace.wire.errors import Error
from tests.chaos.storm import make_topic
from tests.unit.cli.program import Ran, run_tailrace
from tests.upgrade.queue_load import QUEUE, QueueLoad
from tests.upgrade.releases import make_new, make_old, old_cluster, run_old
from tests.upgrade.stored_records import kinds_in, unreadable_to
from tests.upgrade.under_load import under_load, until

HEALTHY_WITHIN_S: Final = 60.0
TOLD_WITHIN_S: Final = 30.0
Declared = dict[str, dict[str, int]]  # see conftest

REFUSED: Final = "supports metadata.version 1, the cluster is at metadata.version 4: start it with tailrace >= 0.2.0"


def upgrade(cluster: Cluster, *brokers: int) -> None:
    """Restart brokers with the tree at hand, one after the other."""
    for one in brokers:
        make_new(cluster.broker(one))
        cluster.restart(one)
        cluster.wait_until_healthy(HEALTHY_WITHIN_S)


def raise_level(cluster: Cluster, asked: int, *flags: str) -> Ran:
    return run_tailrace("cluster", "upgrade", *flags, bootstrap=cluster.broker(asked).bootstrap)


def new_records(cluster: Cluster, declared: Declared) -> list[object]:
    """Records that a broker of 0.1.0 could not read, and in whose logs they are."""
    known = declared["records"]
    return [(one.data_dir.name, kind) for one in cluster.brokers for kind in unreadable_to(known, one.data_dir)]


def test_no_client_notices_an_upgrade_and_the_raise_after_it(
    old_source: Path, declared: Declared, tmp_path: Path
) -> None:
    assert run_old(old_source, "-m", "tailrace", "--version") == "tailrace 0.1.0\n"
    with old_cluster(old_source) as cluster:
        with under_load(cluster, tmp_path) as load:
            upgrade(cluster, 2)
            load.get_on()
            mixed = raise_level(cluster, 2)
            assert (mixed.code, "nothing was raised: " in mixed.err) == (1, True)
            upgrade(cluster, 1, 3)
            load.get_on()
            assert new_records(cluster, declared) == [], "nothing is raised unasked"
            dry = raise_level(cluster, 1)
            assert (dry.code, dry.err) == (0, "")
            assert "metadata.version is at level 1; the newest level that this broker supports is 4." in dry.out
            assert new_records(cluster, declared) == []
            make_topic(cluster, QUEUE, 3)
            for broker in cluster.ids:
                refuse_share_groups(cluster, broker)
            assert new_records(cluster, declared) == []
            cluster.stop(3)  # fenced, and ready
            done = raise_level(cluster, 2, "--yes")
            assert (done.code, done.err) == (0, "")
            assert "metadata.version is at level 4 now" in done.out
            refuse_an_old_member(cluster, old_source, 3)
            refuse_an_old_joiner(cluster, old_source, tmp_path / "joiner")
            upgrade(cluster, 3)
            use_a_queue(cluster)
        assert ("BrokerRegistered", 1) in kinds_in(cluster.broker(3).data_dir)


def refuse_share_groups(cluster: Cluster, number: int) -> None:
    """Below their level, a worker is told so."""
    with BlockingQueue(cluster.broker(number).bootstrap, QUEUE) as queue:
        with pytest.raises(Refused, match=r"metadata\.version 3") as refused:
            queue.receive(TOLD_WITHIN_S)
        assert refused.value.error is Error.UNSUPPORTED_VERSION


def use_a_queue(cluster: Cluster) -> None:
    load = QueueLoad(cluster.bootstrap)
    until(lambda: len(load.accepted) >= 100 or bool(load.complaints), "messages are accepted")
    load.stop()
    assert load.broken_promises() == []


def refuse_an_old_member(cluster: Cluster, old_source: Path, number: int) -> None:
    """A broker that comes back after the raise with 0.1.0: its own log says why no other broker talks to it."""
    broker = cluster.broker(number)
    make_old(old_source, broker)
    before = len(broker.log)
    broker.launch()
    wanted = f"UNSUPPORTED_VERSION: broker {number} (tailrace 0.1.0) {REFUSED}"
    until(lambda: wanted in broker.log[before:], f"{wanted} in the log", lambda: broker.log[before:])
    broker.stop()


def refuse_an_old_joiner(cluster: Cluster, old_source: Path, folder: Path) -> None:
    """A new broker of 0.1.0 is not taken in; it ends and prints why."""
    joiner = Broker(data_dir=folder, join=cluster.bootstrap)
    make_old(old_source, joiner)
    with pytest.raises(BrokerFailed, match="did not start: exit code 1") as refused:
        joiner.start(timeout_s=TOLD_WITHIN_S)
    assert f"the broker that asks to join (tailrace 0.1.0) {REFUSED}" in str(refused.value)
    assert "Traceback" not in str(refused.value)
