"""The data directory and the ports of each broker of a local cluster, kept for the next start.

Peers know a broker by its peer port, clients by its Kafka port. The brokers of a cluster that was stopped as a whole
find each other again only at the same ports, so `cluster.json`, beside the brokers' data directories, records them.
"""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tailrace.local.held_ports import LOOPBACK, HeldPorts, is_free
from tailrace.model.frozen import frozen
from tailrace.model.settings import CLOSED, yaml_name

FILE_NAME: Final = "cluster.json"
PEER_PORTS_APART: Final = 100  # a broker's peer port is its Kafka port plus this
BROKERS_MAX: Final = PEER_PORTS_APART
BROKERS_DEFAULT: Final = 3
KAFKA_PORT_DEFAULT: Final = 9092
PORT_MAX: Final = 65_535

# Settings that differ from broker to broker of a local cluster: a caller gives all others, and the same to all brokers.
# The ports of client doors are given for the first broker; broker n gets the n-th port from there.
DOOR_SETTINGS: Final = ("http.port", "grpc.port", "dmqp.port")
PLACE_SETTINGS: Final = ("broker.id", "kafka.port", "peer.port", "advertised.peer.port", "join", "data.dir")


class PlaceError(ValueError):
    """The brokers or ports asked for do not fit the data directory, or there is no such port."""


@frozen
class Place:
    id: int
    data_dir: str
    kafka_port: int
    peer_port: int  # the one that is advertised to peers

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.kafka_port}"

    @property
    def is_member(self) -> bool:
        """Whether the data directory belongs to a broker that is in a cluster already: it starts without `join`."""
        return os.path.exists(os.path.join(self.data_dir, "meta.properties"))


class ClusterFolder:
    """The folder of a cluster's data, with the places of its brokers, whose ports are reserved until `close`.

    A given `data_dir` is kept, and so are the places of a cluster that is there already. Without one the folder is
    temporary, and `close` removes it.
    """

    def __init__(self, brokers: int | None, *, data_dir: str | os.PathLike[str] | None, base_port: int | None) -> None:
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if data_dir is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="tailrace-", ignore_cleanup_errors=True)
            data_dir = self._temporary.name
        self.path = Path(data_dir)
        self.ports = HeldPorts()
        try:
            self.places = assign_places(self.path, brokers, base_port, self.ports)
        except BaseException:
            self.close()
            raise

    def settings_of(self, place: Place) -> dict[str, object]:
        """What makes a broker the one of this place, beside its data directory; spelled as in YAML."""
        own = {"broker_id": place.id, "kafka_port": place.kafka_port, "peer_port": place.peer_port}
        if place.id in self.member_ids():
            return {**own}
        return {**own, "join": ",".join(one.address for one in self.places if one is not place)}

    def door_ports(self, settings: Mapping[str, object]) -> dict[int, dict[str, object]]:
        """As `door_ports` below, for all places of this folder."""
        return door_ports(self.places, settings, self.ports)

    def member_ids(self) -> list[int]:
        """Brokers that start without `join`: members of the cluster, or the first broker, which founds it."""
        return [one.id for one in self.places if one.is_member] or [self.places[0].id]

    def close(self) -> None:
        self.ports.close()
        if self._temporary is not None:
            self._temporary.cleanup()


def door_ports(
    places: Sequence[Place], settings: Mapping[str, object], ports: HeldPorts
) -> dict[int, dict[str, object]]:
    """The ports of each broker's client doors, as settings, by broker: from the port in `settings` on; 0: free ones.

    All are reserved in `ports`. `PlaceError` if they do not fit.
    """
    taken = {one.kafka_port: "kafka_port" for one in places} | {one.peer_port: "peer_port" for one in places}
    found: dict[int, dict[str, object]] = {place.id: {} for place in places}
    for name in (yaml_name(one) for one in DOOR_SETTINGS):
        first = int(str(settings.get(name, CLOSED)))
        for place in places if first != CLOSED else ():
            port = first + place.id - 1 if first else ports.pick()
            if port > PORT_MAX:
                raise PlaceError(f"broker {place.id} would have the {name} {port}, and the last port is {PORT_MAX}")
            if port in taken:
                raise PlaceError(
                    f"broker {place.id} would have the {name} {port}, which is a {taken[port]} of this cluster already"
                )
            taken[port] = name
            ports.hold(port)
            found[place.id][name] = port
    return found


def assign_places(folder: Path, count: int | None, base_port: int | None, ports: HeldPorts) -> list[Place]:
    """Places for `count` brokers; None: for those that are in `cluster.json`, or three. Recorded places stay the same.

    `base_port` is the Kafka port of the first broker, and decides all others. None: 9092, if all ports that follow
    from it are free; 0, or if they are not: free ports. All ports are reserved in `ports`. `PlaceError` says what does
    not fit.
    """
    if (folder / "meta.properties").exists():
        raise PlaceError(f"{folder} holds the data of a single broker, which `tailrace serve` runs")
    kept = _load(folder)
    wanted = count or len(kept) or BROKERS_DEFAULT
    if wanted < len(kept):
        raise PlaceError(f"{folder} holds a cluster of {len(kept)} brokers; {wanted} would leave some of its data out")
    if base_port and kept and kept[0].kafka_port != base_port:
        raise PlaceError(f"{folder} holds a cluster at port {kept[0].kafka_port}, which cannot move to {base_port}")
    if base_port is None:
        base_port = _default_base_port(kept, wanted)
    places = kept + [_new_place(folder, broker_id, base_port, ports) for broker_id in range(len(kept) + 1, wanted + 1)]
    for place in places:
        ports.hold(place.kafka_port)
        ports.hold(place.peer_port)
    _store(folder, places)
    return places


def _default_base_port(kept: list[Place], wanted: int) -> int:
    base = kept[0].kafka_port if kept else KAFKA_PORT_DEFAULT
    new = [port for broker_id in range(len(kept) + 1, wanted + 1) for port in _ports(base, broker_id)]
    return base if all(map(is_free, new)) else 0


def _new_place(folder: Path, broker_id: int, base_port: int, ports: HeldPorts) -> Place:
    kafka_port, peer_port = _ports(base_port, broker_id) if base_port else (ports.pick(), ports.pick())
    if not 0 < peer_port <= PORT_MAX:
        raise PlaceError(f"broker {broker_id} would have the peer port {peer_port}, and the last port is {PORT_MAX}")
    return Place(id=broker_id, data_dir=str(folder / f"broker-{broker_id}"), kafka_port=kafka_port, peer_port=peer_port)


def _ports(base_port: int, broker_id: int) -> tuple[int, int]:
    kafka_port = base_port + broker_id - 1
    return kafka_port, kafka_port + PEER_PORTS_APART


def _load(folder: Path) -> list[Place]:
    path = folder / FILE_NAME
    try:
        return [Place(**{**one, "data_dir": str(folder / one["data_dir"])}) for one in json.loads(path.read_text())]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, KeyError) as error:
        raise PlaceError(f"{path} cannot be read: {error}") from None


def _store(folder: Path, places: list[Place]) -> None:
    """Data directories are recorded relative to the file, so that the whole cluster can be moved."""
    folder.mkdir(parents=True, exist_ok=True)
    recorded = [asdict(one) | {"data_dir": os.path.relpath(one.data_dir, folder)} for one in places]
    new = folder / f"{FILE_NAME}.new"
    new.write_text(json.dumps(recorded, indent=2) + "\n")
    new.replace(folder / FILE_NAME)
