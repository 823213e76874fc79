"""`tailrace.testing.broker_places`: where brokers sit, and that they sit there again."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tailrace.testing.broker_places import NoSeat, Seat, take_seats
from tailrace.testing.held_ports import HeldPorts

Take = Callable[[Path, int | None, int | None], list[Seat]]


@pytest.fixture
def take() -> Iterator[Take]:
    """`take_seats`, with ports that are given up after the test."""
    ports = HeldPorts()
    yield partial(take_seats, ports=ports)
    ports.close()


def lived_in(seat: Seat) -> Seat:
    Path(seat.data_dir).mkdir(parents=True)
    (Path(seat.data_dir) / "meta.properties").touch()
    return seat


def test_a_base_port_decides_all_ports(take: Take, tmp_path: Path) -> None:
    seats = take(tmp_path, 3, 20_000)
    assert [(one.id, one.kafka_port, one.peer_port) for one in seats] == [
        (1, 20_000, 20_100),
        (2, 20_001, 20_101),
        (3, 20_002, 20_102),
    ]
    assert [Path(one.data_dir).name for one in seats] == ["broker-1", "broker-2", "broker-3"]


@pytest.mark.parametrize("base_port", [0, None])
def test_they_sit_in_the_same_places_again_also_when_all_moved(
    take: Take, tmp_path: Path, base_port: int | None
) -> None:
    before = take(tmp_path / "old", 3, 0)
    (tmp_path / "old").rename(tmp_path / "new")
    after = take(tmp_path / "new", None, base_port)
    assert [(one.kafka_port, one.peer_port) for one in after] == [(one.kafka_port, one.peer_port) for one in before]
    assert after[2].data_dir == str(tmp_path / "new" / "broker-3")


def test_more_can_come_and_those_who_sat_stay(take: Take, tmp_path: Path) -> None:
    two = take(tmp_path, 2, 0)
    three = take(tmp_path, 3, 0)
    assert three[:2] == two
    assert len({port for one in three for port in (one.kafka_port, one.peer_port)}) == 6


def test_who_has_lived_there_is_a_member(take: Take, tmp_path: Path) -> None:
    first, second = take(tmp_path, 2, 0)
    lived_in(first)
    assert (first.is_taken, second.is_taken) == (True, False)


def test_three_when_nobody_says(take: Take, tmp_path: Path) -> None:
    assert len(take(tmp_path, None, 0)) == 3


def test_what_cannot_be_had_is_said(take: Take, tmp_path: Path) -> None:
    take(tmp_path, 3, 20_000)
    with pytest.raises(NoSeat, match="holds a cluster of 3 brokers; 2 would"):
        take(tmp_path, 2, None)
    with pytest.raises(NoSeat, match="at port 20000, not 30000"):
        take(tmp_path, 3, 30_000)
    with pytest.raises(NoSeat, match="peer port 65536"):
        take(tmp_path / "other", 3, 65_434)
    (tmp_path / "cluster.json").write_text("[{}]")
    with pytest.raises(NoSeat, match=r"cluster\.json cannot be read"):
        take(tmp_path, 3, None)
    (tmp_path / "meta.properties").touch()
    with pytest.raises(NoSeat, match="a single broker"):
        take(tmp_path, 3, None)
