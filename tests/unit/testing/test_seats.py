"""`tailrace.testing.seats`: where brokers sit, and that they sit there again."""

import socket
from pathlib import Path

import pytest

from tailrace.testing.seats import NoSeat, Seat, free_port, free_ports, is_free, take_seats


def lived_in(seat: Seat) -> Seat:
    Path(seat.data_dir).mkdir(parents=True)
    (Path(seat.data_dir) / "meta.properties").touch()
    return seat


def test_a_base_port_decides_all_ports(tmp_path: Path) -> None:
    seats = take_seats(tmp_path, 3, 20_000)
    assert [(one.id, one.kafka_port, one.peer_port) for one in seats] == [
        (1, 20_000, 20_100),
        (2, 20_001, 20_101),
        (3, 20_002, 20_102),
    ]
    assert [Path(one.data_dir).name for one in seats] == ["broker-1", "broker-2", "broker-3"]


@pytest.mark.parametrize("base_port", [0, None])
def test_they_sit_in_the_same_places_again_also_when_all_moved(tmp_path: Path, base_port: int | None) -> None:
    before = take_seats(tmp_path / "old", 3, 0)
    (tmp_path / "old").rename(tmp_path / "new")
    after = take_seats(tmp_path / "new", None, base_port)
    assert [(one.kafka_port, one.peer_port) for one in after] == [(one.kafka_port, one.peer_port) for one in before]
    assert after[2].data_dir == str(tmp_path / "new" / "broker-3")


def test_more_can_come_and_those_who_sat_stay(tmp_path: Path) -> None:
    two = take_seats(tmp_path, 2, 0)
    three = take_seats(tmp_path, 3, 0)
    assert three[:2] == two
    assert len({port for one in three for port in (one.kafka_port, one.peer_port)}) == 6


def test_who_has_lived_there_is_a_member(tmp_path: Path) -> None:
    first, second = take_seats(tmp_path, 2, 0)
    lived_in(first)
    assert (first.is_taken, second.is_taken) == (True, False)


def test_three_when_nobody_says(tmp_path: Path) -> None:
    assert len(take_seats(tmp_path, None, 0)) == 3


def test_what_cannot_be_had_is_said(tmp_path: Path) -> None:
    take_seats(tmp_path, 3, 20_000)
    with pytest.raises(NoSeat, match="holds a cluster of 3 brokers; 2 would"):
        take_seats(tmp_path, 2, None)
    with pytest.raises(NoSeat, match="at port 20000, not 30000"):
        take_seats(tmp_path, 3, 30_000)
    with pytest.raises(NoSeat, match="peer port 65536"):
        take_seats(tmp_path / "other", 3, 65_434)
    (tmp_path / "cluster.json").write_text("[{}]")
    with pytest.raises(NoSeat, match=r"cluster\.json cannot be read"):
        take_seats(tmp_path, 3, None)
    (tmp_path / "meta.properties").touch()
    with pytest.raises(NoSeat, match="a single broker"):
        take_seats(tmp_path, 3, None)


def test_a_free_port_is_free_and_not_one_that_the_system_gives_away() -> None:
    with socket.socket() as given:
        given.bind(("127.0.0.1", 0))
        assert not is_free(given.getsockname()[1])
    port = free_port()
    assert is_free(port)
    assert port in free_ports
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert port < first or first < free_ports.start
