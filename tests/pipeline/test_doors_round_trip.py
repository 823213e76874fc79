"""In by each door, archived, audited, deleted and replayed; out by each door: the same bytes."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailrace.cli.main import main
from tailrace.doors.client_doors import CLIENT_DOORS
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.testing import Broker
from tests.interop.doors import CLIENTS, connect, topic
from tests.pipeline.topics import make_topic, remove_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.skipif(not all(one.is_installed for one in CLIENT_DOORS), reason="needs the packages of all doors"),
]

VALUES = [b"two coffees", b"", bytes(range(256)), "grüße ☕".encode(), b"\xff\xfe no text", b"\0" * 50_000]


def test_what_was_archived_and_replayed_comes_out_by_every_door(
    spark: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = str(tmp_path / "history")
    with Broker(http_port=0, grpc_port=0, dmqp_port=0, fsync="never") as broker, Cluster(broker.bootstrap) as cluster:
        doors = {door: connect(door, broker.endpoints, broker.data_dir) for door in CLIENTS}
        for topic_id, door in enumerate(doors.values()):
            make_topic(cluster, topic(topic_id))
            door.put(topic_id, VALUES)
        names = [topic(topic_id) for topic_id in range(len(doors))]
        words = ["pipeline", "archive", "--bootstrap", broker.bootstrap, "--topics", ",".join(names), "--to", history]
        assert main([*words, "--available-now"]) == 0
        assert main(["pipeline", "audit", history, "--bootstrap", broker.bootstrap]) == 0
        assert f"complete: {len(names) * len(VALUES)} records" in capsys.readouterr().out
        for name in names:
            remove_topic(cluster, name)
            make_topic(cluster, name)
            words = ["pipeline", "replay", history, "--bootstrap", broker.bootstrap, "--topic", name, "--into", name]
            assert main([*words, "--keep-partition", "--keep-timestamp"]) == 0
        for topic_id in range(len(names)):
            got = {name: door.get(topic_id, len(VALUES)) for name, door in doors.items()}
            assert got == dict.fromkeys(doors, VALUES)
