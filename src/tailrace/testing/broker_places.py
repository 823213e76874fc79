"""Where the brokers of a cluster on this machine sit: each one's directory and ports, kept for the next start.

A broker's peers know it by its peer port, its clients by the other: a cluster that was stopped as a whole finds itself
only when both are the same again. So they stand in `cluster.json`, next to the brokers' directories.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tailrace.model.frozen import frozen
from tailrace.testing.held_ports import LOOPBACK, HeldPorts, is_free

FILE_NAME: Final = "cluster.json"
PEER_PORTS_APART: Final = 100  # the peer port of broker i is so far above its port for clients
BROKERS_MAX: Final = PEER_PORTS_APART
BROKERS_USUAL: Final = 3
USUAL_PORT: Final = 9092
PORT_MAX: Final = 65_535


class NoSeat(ValueError):
    """The ports or the directory that were asked for cannot be had."""


@frozen
class Seat:
    id: int
    data_dir: str
    kafka_port: int
    peer_port: int  # the one that peers are told

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.kafka_port}"

    @property
    def is_taken(self) -> bool:
        """Whether a broker has lived here before: then it is a member, and needs nobody to join."""
        return os.path.exists(os.path.join(self.data_dir, "meta.properties"))


def take_seats(folder: Path, count: int | None, base_port: int | None, ports: HeldPorts) -> list[Seat]:
    """As many as asked for, None: as many as there are, or three. Those that were there keep their ports.

    `base_port` is where the first broker's clients connect. None: at the usual port, when that and all that follow
    from it are free; 0, or when they are not: wherever there is room. All are held in `ports`. `NoSeat` says what
    cannot be had.
    """
    if (folder / "meta.properties").exists():
        raise NoSeat(f"{folder} holds the data of a single broker, which `tailrace serve` runs")
    kept = _load(folder)
    wanted = count or len(kept) or BROKERS_USUAL
    if wanted < len(kept):
        raise NoSeat(f"{folder} holds a cluster of {len(kept)} brokers; {wanted} would leave some of its data behind")
    if base_port and kept and kept[0].kafka_port != base_port:
        raise NoSeat(f"{folder} holds a cluster at port {kept[0].kafka_port}, not {base_port}, and has to stay there")
    if base_port is None:
        base_port = _usual_base(kept, wanted)
    seats = kept + [_new_seat(folder, broker_id, base_port, ports) for broker_id in range(len(kept) + 1, wanted + 1)]
    for seat in seats:
        ports.hold(seat.kafka_port)
        ports.hold(seat.peer_port)
    _store(folder, seats)
    return seats


def _usual_base(kept: list[Seat], wanted: int) -> int:
    base = kept[0].kafka_port if kept else USUAL_PORT
    new = [port for broker_id in range(len(kept) + 1, wanted + 1) for port in _ports(base, broker_id)]
    return base if all(map(is_free, new)) else 0


def _new_seat(folder: Path, broker_id: int, base_port: int, ports: HeldPorts) -> Seat:
    kafka_port, peer_port = _ports(base_port, broker_id) if base_port else (ports.pick(), ports.pick())
    if not 0 < peer_port <= PORT_MAX:
        raise NoSeat(f"broker {broker_id} would have the peer port {peer_port}, and the last port is {PORT_MAX}")
    return Seat(id=broker_id, data_dir=str(folder / f"broker-{broker_id}"), kafka_port=kafka_port, peer_port=peer_port)


def _ports(base_port: int, broker_id: int) -> tuple[int, int]:
    at = base_port + broker_id - 1
    return at, at + PEER_PORTS_APART


def _load(folder: Path) -> list[Seat]:
    path = folder / FILE_NAME
    try:
        return [Seat(**{**one, "data_dir": str(folder / one["data_dir"])}) for one in json.loads(path.read_text())]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, KeyError) as error:
        raise NoSeat(f"{path} cannot be read: {error}") from None


def _store(folder: Path, seats: list[Seat]) -> None:
    """With directories relative to the file, so that the whole can be moved."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = [asdict(one) | {"data_dir": os.path.relpath(one.data_dir, folder)} for one in seats]
    new = folder / f"{FILE_NAME}.new"
    new.write_text(json.dumps(kept, indent=2) + "\n")
    new.replace(folder / FILE_NAME)
