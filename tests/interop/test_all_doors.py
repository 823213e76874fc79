"""In by each door and out by each door: the same bytes, in the same order, on one broker and through a gateway."""

import itertools
import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tailrace.doors.client_doors import CLIENT_DOORS
from tailrace.testing import Broker
from tests.interop.doors import CLIENTS, connect, gateway, make_topic
from tests.unit.cli.program import run_tailrace

pytestmark = pytest.mark.skipif(
    not all(one.is_installed for one in CLIENT_DOORS), reason="needs the packages of all doors"
)

CELLS = list(itertools.product(CLIENTS, CLIENTS))
VALUES = [
    b"two coffees",
    b"",
    bytes(range(256)),
    "grüße ☕".encode(),
    b"\xff\xfe no text",
    b'{"json": true}',
    b"line one\r\nline two\x00",
    random.Random(7).randbytes(100_000),
]


@pytest.fixture(scope="module")
def served() -> Iterator[Broker]:
    with Broker(http_port=0, grpc_port=0, dmqp_port=0, fsync="never") as broker:
        yield broker


@pytest.fixture(scope="module")
def behind_a_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Mapping[str, str], Path]]:
    """The endpoints of a gateway in front of a broker that has no doors but Kafka's, and its data directory."""
    folder = tmp_path_factory.mktemp("gateway")
    with Broker(fsync="never") as broker, gateway(broker.bootstrap, folder) as endpoints:
        yield {"kafka": broker.bootstrap, **endpoints}, folder


@pytest.mark.parametrize(("way_in", "way_out"), CELLS)
def test_what_goes_in_by_one_door_comes_out_by_another(served: Broker, way_in: str, way_out: str) -> None:
    topic_id = CELLS.index((way_in, way_out))
    make_topic(served.bootstrap, topic_id)
    connect(way_in, served.endpoints, served.data_dir).put(topic_id, VALUES)
    assert connect(way_out, served.endpoints, served.data_dir).get(topic_id, len(VALUES)) == VALUES


@pytest.mark.parametrize(("way_in", "way_out"), CELLS)
def test_and_so_it_does_through_a_gateway(
    behind_a_gateway: tuple[Mapping[str, str], Path], way_in: str, way_out: str
) -> None:
    endpoints, data_dir = behind_a_gateway
    topic_id = CELLS.index((way_in, way_out))
    make_topic(endpoints["kafka"], topic_id)
    connect(way_in, endpoints, data_dir).put(topic_id, VALUES)
    assert connect(way_out, endpoints, data_dir).get(topic_id, len(VALUES)) == VALUES


def test_the_command_doors_counts_what_they_did(served: Broker) -> None:
    topic_id = len(CELLS)
    make_topic(served.bootstrap, topic_id)

    def requests() -> dict[str, int]:
        ran = run_tailrace("doors", "--json", "--interval", "0.1", "--bootstrap", served.bootstrap)
        assert ran.code == 0, ran.err
        rows = json.loads(ran.out)
        assert {row["door"]: row["endpoint"] for row in rows} == {
            door: address for door, address in served.endpoints.items() if door != "peer"
        }
        return {row["door"]: row["requests"] for row in rows if row["door"] != "kafka"}

    before = requests()
    for door in before:
        connect(door, served.endpoints, served.data_dir).put(topic_id, [b"one"])
    after = requests()
    assert {door: after[door] - before[door] for door in before} == {"http": 1, "grpc": 1, "dmqp": 1}
