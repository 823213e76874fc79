"""`tailrace.local.places`: the data directories and ports of brokers, the same at the next start."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tailrace.local.held_ports import HeldPorts
from tailrace.local.places import ClusterFolder, Place, PlaceError, assign_places, door_ports

Assign = Callable[[Path, int | None, int | None], list[Place]]


@pytest.fixture
def assign() -> Iterator[Assign]:
    """`assign_places`, with ports that are released after the test."""
    ports = HeldPorts()
    yield partial(assign_places, ports=ports)
    ports.close()


def test_a_base_port_decides_all_ports(assign: Assign, tmp_path: Path) -> None:
    places = assign(tmp_path, 3, 20_000)
    assert [(one.id, one.kafka_port, one.peer_port) for one in places] == [
        (1, 20_000, 20_100),
        (2, 20_001, 20_101),
        (3, 20_002, 20_102),
    ]
    assert [Path(one.data_dir).name for one in places] == ["broker-1", "broker-2", "broker-3"]


@pytest.mark.parametrize("base_port", [0, None])
def test_places_stay_the_same_also_when_the_folder_is_moved(
    assign: Assign, tmp_path: Path, base_port: int | None
) -> None:
    before = assign(tmp_path / "old", 3, 0)
    (tmp_path / "old").rename(tmp_path / "new")
    after = assign(tmp_path / "new", None, base_port)
    assert [(one.kafka_port, one.peer_port) for one in after] == [(one.kafka_port, one.peer_port) for one in before]
    assert after[2].data_dir == str(tmp_path / "new" / "broker-3")


def test_more_brokers_can_be_added_and_the_others_keep_their_places(assign: Assign, tmp_path: Path) -> None:
    two = assign(tmp_path, 2, 0)
    three = assign(tmp_path, 3, 0)
    assert three[:2] == two
    assert len({port for one in three for port in (one.kafka_port, one.peer_port)}) == 6


def test_doors_are_at_consecutive_ports_or_free_ones(tmp_path: Path) -> None:
    folder = ClusterFolder(3, data_dir=tmp_path, base_port=20_000)
    assert folder.door_ports({"http_port": "8001", "dmqp_port": -1}) == {
        1: {"http_port": 8001},
        2: {"http_port": 8002},
        3: {"http_port": 8003},
    }
    picked = folder.door_ports({"http_port": 0, "grpc_port": 0})
    assert len({port for ports in picked.values() for port in ports.values()}) == 6
    folder.close()


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"http_port": 19_999}, "broker 2 would have the http_port 20000, which is a kafka_port"),
        ({"grpc_port": 20_101}, "broker 1 would have the grpc_port 20101, which is a peer_port"),
        ({"http_port": 8001, "dmqp_port": 8000}, "broker 2 would have the dmqp_port 8001, which is a http_port"),
        ({"http_port": 65_534}, "broker 3 would have the http_port 65536, and the last port is 65535"),
    ],
)
def test_ports_of_doors_that_others_have_are_refused(
    assign: Assign, tmp_path: Path, settings: dict[str, object], why: str
) -> None:
    ports = HeldPorts()
    with pytest.raises(PlaceError, match=why):
        door_ports(assign(tmp_path, 3, 20_000), settings, ports)
    ports.close()


def test_members_start_without_join_and_others_join_them(tmp_path: Path) -> None:
    folder = ClusterFolder(3, data_dir=tmp_path, base_port=0)
    first, second, third = folder.places
    assert folder.member_ids() == [1]  # it founds the cluster
    assert folder.settings_of(second)["join"] == f"{first.address},{third.address}"
    Path(second.data_dir).mkdir(parents=True)
    (Path(second.data_dir) / "meta.properties").touch()
    assert folder.member_ids() == [2]
    assert "join" not in folder.settings_of(second)
    assert folder.settings_of(third) == {
        "broker_id": 3,
        "kafka_port": third.kafka_port,
        "peer_port": third.peer_port,
        "join": f"{first.address},{second.address}",
    }
    folder.close()
    assert (tmp_path / "cluster.json").is_file()


def test_three_by_default(assign: Assign, tmp_path: Path) -> None:
    assert len(assign(tmp_path, None, 0)) == 3


def test_what_does_not_fit_is_refused(assign: Assign, tmp_path: Path) -> None:
    assign(tmp_path, 3, 20_000)
    with pytest.raises(PlaceError, match="holds a cluster of 3 brokers; 2 would"):
        assign(tmp_path, 2, None)
    with pytest.raises(PlaceError, match="at port 20000, which cannot move to 30000"):
        assign(tmp_path, 3, 30_000)
    with pytest.raises(PlaceError, match="peer port 65536"):
        assign(tmp_path / "other", 3, 65_434)
    (tmp_path / "cluster.json").write_text("[{}]")
    with pytest.raises(PlaceError, match=r"cluster\.json cannot be read"):
        assign(tmp_path, 3, None)
    (tmp_path / "meta.properties").touch()
    with pytest.raises(PlaceError, match="a single broker"):
        assign(tmp_path, 3, None)
