"""A real cluster for tests, whose brokers can be killed, paused, cut apart, stopped and restarted.

    with Cluster(3) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        cluster.kill(cluster.leader_of("orders", 0))

It is a `LocalCluster` of `testing.Broker`s. Brokers are numbered from 1. `partition` cuts two brokers apart and `heal`
undoes it, without root: peers reach each other through `testing.proxy`. Connections of clients are never cut. When the
`with` block ends with an exception, that exception gets the ends of the brokers' logs as a note.
"""

import os
from collections.abc import Callable, Sequence

from tailrace.local.cluster import START_TIMEOUT_S, LocalCluster, log_of
from tailrace.local.cluster_view import ClusterView, NoView
from tailrace.local.places import ClusterFolder, Place
from tailrace.testing.broker import Broker
from tailrace.testing.proxy import Network


class Cluster(LocalCluster[Broker]):
    """So many brokers. `settings` are those of `tailrace serve`, for each of them: `Cluster(3, fsync="never")`.

    A given `data_dir` is kept, with the brokers' ports, and a cluster that is there already is started again; without
    one all data is temporary. `base_port` P puts the brokers at P, P+1, …; 0 at free ports. Without `proxied` the
    brokers' connections are direct, as fast as they can be, and cannot be cut. `racks` are the brokers' racks, in
    order. `http_port`, `grpc_port` and `dmqp_port` open client doors: P for broker 1, P+1 for broker 2, …; 0: at free
    ports, which `cluster.broker(1).endpoints["http"]` tells. `on_log` gets each line of each log, with the broker's id.
    """

    def __init__(
        self,
        brokers: int | None = 3,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        base_port: int | None = 0,
        proxied: bool = True,
        racks: Sequence[str] = (),
        on_log: Callable[[int, str], None] | None = None,
        **settings: object,
    ) -> None:
        folder = ClusterFolder(brokers, data_dir=data_dir, base_port=base_port)
        doors = folder.door_ports(settings)
        self._network: Network | None = None
        # Where brokers listen for peers when they are proxied; the ports of their places are the proxy's then.
        self._ports_behind = {place.id: folder.ports.pick() for place in folder.places} if proxied else {}

        def broker(place: Place, rack: dict[str, str]) -> Broker:
            given = settings | rack | doors[place.id] | folder.settings_of(place)
            if proxied:
                given |= {"peer_port": self._ports_behind[place.id], "advertised_peer_port": place.peer_port}
            return Broker(data_dir=place.data_dir, on_log=log_of(place.id, on_log), **given)

        in_racks: list[dict[str, str]] = [{"broker_rack": rack} for rack in racks] or [{} for _ in folder.places]
        super().__init__(folder, [broker(*one) for one in zip(folder.places, in_racks, strict=True)])

    @property
    def seats(self) -> list[Place]:
        """Each broker's data directory and ports."""
        return self.places

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Start all brokers and wait until the cluster is healthy: members first, then the brokers that join them."""
        if self._ports_behind:
            self._network = Network()
            for place in self.places:
                self._network.open_door(place.id, self._ports_behind[place.id], port=place.peer_port)
        super().start(timeout_s=timeout_s)

    def pause(self, *broker_ids: int) -> None:
        """Stop these processes from running, as a machine that hangs does: SIGSTOP."""
        for one in broker_ids:
            self.broker(one).pause()

    def resume(self, *broker_ids: int) -> None:
        for one in broker_ids:
            self.broker(one).resume()

    def partition(self, a: int, b: int, *, one_way: bool = False) -> None:
        """Let nothing pass between two brokers, or with `one_way` nothing from the first to the second."""
        if self._network is None:
            raise ValueError("the network can be cut only while the cluster runs, and is proxied")
        for one in (a, b):
            self.broker(one)  # refuses a wrong number
        self._network.cut((a, b), *([] if one_way else [(b, a)]))

    def heal(self) -> None:
        """Undo every `partition`; bytes that were held back are passed on."""
        if self._network is not None:
            self._network.heal()

    def look(self, broker_id: int, *, ask_voters: bool = True) -> ClusterView:
        """The cluster as this broker describes it; NoView when it does not answer."""
        if self.broker(broker_id).is_paused:
            raise NoView(f"broker {broker_id} is paused")
        return super().look(broker_id, ask_voters=ask_voters)

    def close(self) -> None:
        """Stop all brokers and remove what was temporary."""
        try:
            super().close()
        finally:
            if self._network is not None:
                self._network.close()
