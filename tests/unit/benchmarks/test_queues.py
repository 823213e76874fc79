"""The load of queues takes every message once, and what it counts is accepted."""

import asyncio
from pathlib import Path

import pytest

from benchmarks.connection import create_topic
from benchmarks.share_load import Kind, ShareWork, new_cluster, perform
from tailrace.client.group_admin import list_groups
from tailrace.client.share_admin import share_group_offsets
from tailrace.model.ids import PartitionName
from tailrace.testing import Broker

FILLED = 5_000


def work(broker: Broker, kind: Kind, messages: int, *, workers: int = 1, one_by_one: bool = False) -> ShareWork:
    host, port, pid = "127.0.0.1", broker.port, broker.pid
    return ShareWork(
        kind=kind, host=host, port=port, pid=pid, topic="t", messages=messages, workers=workers, one_by_one=one_by_one
    )


def accepted(broker: Broker) -> int:
    """Where the only group of the broker starts: all before that is accepted."""

    async def ask() -> int:
        cluster = new_cluster(work(broker, "client", 0))
        (group,) = await list_groups(cluster)
        offsets = await share_group_offsets(cluster, group.group_id)
        cluster.close()
        return offsets[PartitionName("t", 0)].start or 0

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("kind", "workers", "one_by_one", "messages"),
    [
        ("client", 2, False, 2_000),
        ("client", 2, True, 20),
        ("wire", 2, False, 2_000),
        ("wire", 2, True, 50),
        ("librdkafka", 1, False, 2_000),
    ],
)
def test_what_is_counted_is_accepted(kind: Kind, workers: int, one_by_one: bool, messages: int, tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path / "data", fsync="never") as broker:
        create_topic("127.0.0.1", broker.port, "t")
        assert perform(work(broker, "fill", FILLED, one_by_one=one_by_one)).messages == FILLED
        run = perform(work(broker, kind, messages, workers=workers, one_by_one=one_by_one))
        assert messages <= run.messages <= FILLED
        assert run.messages <= accepted(broker) <= FILLED


@pytest.mark.parametrize("kind", ["read-client", "read-librdkafka"])
def test_the_plain_consumers_read_all(kind: Kind, tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path / "data", fsync="never") as broker:
        create_topic("127.0.0.1", broker.port, "t")
        perform(work(broker, "fill", FILLED))
        assert perform(work(broker, kind, 2_000)).messages >= 2_000
