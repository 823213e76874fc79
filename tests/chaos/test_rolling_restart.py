"""All brokers are stopped and started, one after the other, as for an upgrade: clients do not notice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.testing import Cluster
from tests.chaos import verdict
from tests.chaos.monkey import wait_for_progress
from tests.chaos.readers import Companion, complaints_of, read_back
from tests.chaos.storm import make_topic
from tests.chaos.writers import Writer

pytestmark = pytest.mark.chaos

TOPIC = "t"
PARTITIONS = 12
SETTLED_WITHIN_S = 60.0


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3, proxied=False) as cluster:
        make_topic(cluster, TOPIC, PARTITIONS)
        yield cluster


def restart_one_by_one(cluster: Cluster) -> None:
    for one in cluster.ids:
        cluster.restart(one)
        cluster.wait_until_healthy(SETTLED_WITHIN_S)


def test_under_load_no_client_sees_an_error(cluster: Cluster, tmp_path: Path) -> None:
    writers = [
        Writer(number, cluster.bootstrap, TOPIC, PARTITIONS, per_second=200.0, folder=tmp_path) for number in range(2)
    ]
    companion = Companion(cluster.bootstrap, TOPIC, PARTITIONS)
    try:
        wait_for_progress(writers, SETTLED_WITHIN_S)
        restart_one_by_one(cluster)
        wait_for_progress(writers, SETTLED_WITHIN_S)
    finally:
        for writer in writers:
            writer.stop(SETTLED_WITHIN_S)
        companion.stop()
    again = read_back(cluster.bootstrap, TOPIC, PARTITIONS, SETTLED_WITHIN_S)
    companion.reader.reach(again.ends_read, SETTLED_WITHIN_S)
    companion.reader.close()
    assert [one for writer in writers for one in writer.complaints] == []
    assert complaints_of([again, companion.reader]) == []
    assert list(verdict.about_promises(writers, again.found)) == []
    assert list(verdict.about_what_was_seen(companion.reader.found, again.found)) == []


def test_when_idle_no_offset_changes(cluster: Cluster, tmp_path: Path) -> None:
    writer = Writer(0, cluster.bootstrap, TOPIC, PARTITIONS, per_second=500.0, folder=tmp_path)
    wait_for_progress([writer], SETTLED_WITHIN_S)
    writer.stop(SETTLED_WITHIN_S)
    before = read_back(cluster.bootstrap, TOPIC, PARTITIONS, SETTLED_WITHIN_S)
    assert [found.offsets[0] for found in before.found] == [0] * PARTITIONS
    assert before.ends_read == writer.sent  # nothing but records
    restart_one_by_one(cluster)
    after = read_back(cluster.bootstrap, TOPIC, PARTITIONS, SETTLED_WITHIN_S)
    assert after.ends_read == before.ends_read
    assert list(verdict.about_promises([writer], after.found)) == []
