"""A real cluster for tests: one process for each broker, all in the hands of the test.

    with Cluster(3) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        cluster.kill(cluster.leader_of("orders", 0))

Brokers are numbered from 1. They are killed, paused, stopped and restarted by number, any of them at once; `partition`
cuts two of them apart and `heal` undoes it, without root: peers reach each other through `testing.proxy`. What brokers
say to clients is never cut. When the block ends with an exception, that carries the ends of the brokers' logs.
"""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from tailrace.testing.broker import STOP_TIMEOUT_S, Broker, BrokerFailed
from tailrace.testing.broker_log import last_lines
from tailrace.testing.broker_places import Seat, take_seats
from tailrace.testing.cluster_view import ClusterView, NoView, look
from tailrace.testing.held_ports import HeldPorts
from tailrace.testing.proxy import Network

START_TIMEOUT_S: Final = 60.0  # several processes that start at once share the machine
HEALTHY_TIMEOUT_S: Final = 30.0
LOOK_AGAIN_S: Final = 0.05


class Cluster:
    """So many brokers. `settings` are those of `tailrace serve`, for each of them: `Cluster(3, fsync="never")`.

    Without `data_dir` all data is temporary; a given one is kept, with its ports, and a cluster that is there already
    is started again. `base_port` P puts the brokers at P, P+1, …; 0 at free ports. Without `proxied` the
    brokers' connections are direct, as fast as they can be, and cannot be cut. `racks` name where each broker stands.
    `on_log` gets each line of each log.
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
        self._folder = tempfile.TemporaryDirectory(prefix="tailrace-", ignore_cleanup_errors=True)
        self.data_dir = Path(self._folder.name if data_dir is None else data_dir)
        self._ports = HeldPorts()
        self.seats = take_seats(self.data_dir, brokers, base_port, self._ports)
        self._ports_behind = {seat.id: self._ports.pick() for seat in self.seats} if proxied else {}
        self._network: Network | None = None
        stands = [{"broker_rack": rack} for rack in racks] or [{} for _ in self.seats]
        self.brokers = [
            self._broker(seat, settings | stand, on_log) for seat, stand in zip(self.seats, stands, strict=True)
        ]

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException as error:
            self._close_after(error)
            raise
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is None:
            self.close()
        else:
            self._close_after(error)

    def __repr__(self) -> str:
        return f"<Cluster of {len(self.brokers)} at {self.bootstrap}, data in {self.data_dir}>"

    @property
    def bootstrap(self) -> str:
        """Every broker's address, whether it runs or not."""
        return ",".join(seat.address for seat in self.seats)

    @property
    def ids(self) -> list[int]:
        return [seat.id for seat in self.seats]

    def broker(self, broker_id: int) -> Broker:
        if broker_id not in self.ids:
            raise ValueError(f"there is no broker {broker_id}; there are {', '.join(map(str, self.ids))}")
        return self.brokers[broker_id - 1]

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Start all brokers: members together, then those who join. Without members the first begins alone."""
        self._open_doors()
        members = self._members()
        self._start(members, timeout_s)
        self._start([one for one in self.ids if one not in members], timeout_s)
        self.wait_until_healthy(timeout_s)

    def kill(self, *broker_ids: int) -> None:
        """End them at once, as a crash would: SIGKILL."""
        for one in broker_ids:
            self.broker(one).kill()

    def pause(self, *broker_ids: int) -> None:
        """Let them stand still, as a machine that hangs does: SIGSTOP."""
        for one in broker_ids:
            self.broker(one).pause()

    def resume(self, *broker_ids: int) -> None:
        for one in broker_ids:
            self.broker(one).resume()

    def stop(self, *broker_ids: int, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Ask them to stop, all at the same time, and wait until they have."""
        for one in broker_ids:
            self.broker(one).ask_to_stop()
        deadline = time.monotonic() + timeout_s
        failures = []
        for one in broker_ids:
            try:
                self.broker(one).wait_until_stopped(timeout_s=max(0.0, deadline - time.monotonic()))
            except BrokerFailed as error:
                failures.append(f"broker {one}: {error}")
        if failures:
            raise BrokerFailed("\n".join(failures))

    def restart(self, *broker_ids: int, timeout_s: float = START_TIMEOUT_S) -> None:
        """Stop those of them that run, and start them all on their data, at the same addresses.

        A broker is ready only when it has heard from a controller: after a majority was killed, name them together.
        """
        self.stop(*broker_ids)
        self._start(list(broker_ids), timeout_s)

    def partition(self, a: int, b: int, *, one_way: bool = False) -> None:
        """Let nothing pass between two brokers, or with `one_way` nothing from the first to the second."""
        if self._network is None:
            raise ValueError("the network can be cut only while the cluster runs, and is proxied")
        for one in (a, b):
            self.broker(one)  # a wrong number shows here
        self._network.cut((a, b), *([] if one_way else [(b, a)]))

    def heal(self) -> None:
        """Undo every `partition`; what waited goes on."""
        if self._network is not None:
            self._network.heal()

    def look(self, broker_id: int, *, ask_voters: bool = True) -> ClusterView:
        """The cluster as this broker sees it; NoView when it does not answer."""
        broker = self.broker(broker_id)
        if broker.is_paused or not broker.is_running:
            raise NoView(f"broker {broker_id} {'is paused' if broker.is_paused else 'does not run'}")
        host, _, port = self.seats[broker_id - 1].address.rpartition(":")
        return look(host, int(port), ask_voters=ask_voters)

    def wait_until_healthy(self, timeout_s: float = HEALTHY_TIMEOUT_S) -> None:
        """Wait until every broker says: all are up, every partition is led, and all its replicas are in sync."""
        deadline = time.monotonic() + timeout_s
        while unwell := self._unwell():
            if time.monotonic() > deadline:
                raise BrokerFailed(f"the cluster was not healthy within {timeout_s:g} s: {unwell}")
            time.sleep(LOOK_AGAIN_S)

    def leader_of(self, topic: str, partition: int, *, timeout_s: float = HEALTHY_TIMEOUT_S) -> int:
        """Who leads a partition, by the word of whoever knows the latest epoch; waits while nobody does."""
        deadline = time.monotonic() + timeout_s
        while (leader := self._latest_leader(topic, partition)) is None:
            if time.monotonic() > deadline:
                raise BrokerFailed(f"nobody led partition {partition} of {topic} within {timeout_s:g} s")
            time.sleep(LOOK_AGAIN_S)
        return leader

    def close(self) -> None:
        """Stop all brokers and remove what was temporary."""
        try:
            self.stop(*self.ids)
        finally:
            if self._network is not None:
                self._network.close()
            for one in self.brokers:
                one.close()
            self._ports.close()
            self._folder.cleanup()

    def logs(self) -> str:
        """The last lines of each broker's log."""
        return "\n".join(f"broker {one.id}:{last_lines(self.broker(one.id).log)}" for one in self.seats)

    def _close_after(self, error: BaseException) -> None:
        """Something went wrong already: that is the news, not what comes of closing."""
        error.add_note(self.logs())
        try:
            self.close()
        except BrokerFailed as another:
            error.add_note(str(another))

    def _broker(self, seat: Seat, settings: dict[str, object], on_log: Callable[[int, str], None] | None) -> Broker:
        own: dict[str, object] = {"broker_id": seat.id, "kafka_port": seat.kafka_port, "peer_port": seat.peer_port}
        if self._ports_behind:
            own |= {"peer_port": self._ports_behind[seat.id], "advertised_peer_port": seat.peer_port}
        if seat.id not in self._members():
            own["join"] = ",".join(one.address for one in self.seats if one is not seat)
        return Broker(
            data_dir=seat.data_dir,
            on_log=None if on_log is None else lambda line: on_log(seat.id, line),
            **settings | own,
        )

    def _members(self) -> list[int]:
        """Who needs nobody to join: those who have been here before, or else the first, which begins the cluster."""
        return [seat.id for seat in self.seats if seat.is_taken] or self.ids[:1]

    def _open_doors(self) -> None:
        if self._ports_behind:
            self._network = Network()
            for seat in self.seats:
                self._network.open_door(seat.id, self._ports_behind[seat.id], port=seat.peer_port)

    def _start(self, broker_ids: list[int], timeout_s: float) -> None:
        for one in broker_ids:
            self.broker(one).launch()
        deadline = time.monotonic() + timeout_s
        for one in broker_ids:
            try:
                self.broker(one).wait_until_ready(timeout_s=max(0.0, deadline - time.monotonic()))
            except BrokerFailed as error:
                raise BrokerFailed(f"broker {one}: {error}") from None

    def _unwell(self) -> str:
        for one in self.ids:
            try:
                unwell = self.look(one).why_unwell(len(self.ids))
            except NoView as error:
                return f"broker {one} does not answer ({error})"
            if unwell:
                return f"broker {one} says: {unwell}"
        return ""

    def _latest_leader(self, topic: str, partition: int) -> int | None:
        known = []
        for one in self.ids:
            with suppress(NoView):
                known.append(self.look(one, ask_voters=False).partition(topic, partition))
        told = [one for one in known if one is not None]
        return max(told, key=lambda one: one.leader_epoch).leader if told else None
