"""Several brokers as processes of this machine, started, watched and stopped as one cluster.

    with local_cluster(3, data_dir="cluster") as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap})

Brokers are numbered from 1. The first start founds a cluster with broker 1, which the others join; later starts find
the members in the data directory. When the `with` block ends with an exception, that exception gets the ends of the
brokers' logs as a note.
"""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Generic, Self, TypeVar

from tailrace.local.broker import STOP_TIMEOUT_S, BrokerFailed, LocalBroker
from tailrace.local.cluster_view import ClusterView, NoView, look
from tailrace.local.held_ports import LOOPBACK
from tailrace.local.own_tls import tls_to_own_brokers
from tailrace.local.places import ClusterFolder, Place
from tailrace.local.process_log import last_lines

START_TIMEOUT_S: Final = 60.0  # several processes that start at once share the machine
HEALTHY_TIMEOUT_S: Final = 30.0
LOOK_AGAIN_S: Final = 0.05

AnyBroker = TypeVar("AnyBroker", bound=LocalBroker)


class LocalCluster(Generic[AnyBroker]):
    """One broker for each place, in that order."""

    def __init__(self, folder: ClusterFolder, brokers: Sequence[AnyBroker]) -> None:
        self._folder = folder
        self.places = folder.places
        self.data_dir = folder.path
        self.brokers = list(brokers)

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
        return f"<{type(self).__name__} of {len(self.brokers)} at {self.bootstrap}, data in {self.data_dir}>"

    @property
    def bootstrap(self) -> str:
        """The address of every broker, running or not."""
        return ",".join(place.address for place in self.places)

    def endpoints(self, listener: str) -> str:
        """The addresses of this listener on the brokers that have started with it, separated by commas."""
        return ",".join(one.endpoints[listener] for one in self.brokers if listener in one.endpoints)

    @property
    def ids(self) -> list[int]:
        return [place.id for place in self.places]

    def broker(self, broker_id: int) -> AnyBroker:
        if broker_id not in self.ids:
            raise ValueError(f"there is no broker {broker_id}; there are {', '.join(map(str, self.ids))}")
        return self.brokers[broker_id - 1]

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Start all brokers and wait until the cluster is healthy: members first, then the brokers that join them."""
        members = self._folder.member_ids()
        self._start(members, timeout_s)
        self._start([one for one in self.ids if one not in members], timeout_s)
        self.wait_until_healthy(timeout_s)

    def kill(self, *broker_ids: int) -> None:
        """End these brokers at once, as a crash does: SIGKILL."""
        for one in broker_ids:
            self.broker(one).kill()

    def stop(self, *broker_ids: int, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Ask these brokers to stop, all at the same time, and wait until they have."""
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
        """Stop those of these brokers that run, and start them all on their data, at the same addresses.

        A broker is ready only when it has reached a controller: after a majority was killed, restart them together.
        """
        self.stop(*broker_ids)
        self._start(list(broker_ids), timeout_s)

    def look(self, broker_id: int, *, ask_voters: bool = True) -> ClusterView:
        """The cluster as this broker describes it; NoView when it does not answer."""
        if not self.broker(broker_id).is_running:
            raise NoView(f"broker {broker_id} is not running")
        tls = tls_to_own_brokers(self.broker(broker_id).settings)
        return look(LOOPBACK, self.places[broker_id - 1].kafka_port, ask_voters=ask_voters, tls=tls)

    def wait_until_healthy(self, timeout_s: float = HEALTHY_TIMEOUT_S) -> None:
        """Wait until every broker reports that all brokers are up and each partition has a leader and a full ISR."""
        deadline = time.monotonic() + timeout_s
        while unwell := self._unwell():
            if time.monotonic() > deadline:
                raise BrokerFailed(f"the cluster was not healthy within {timeout_s:g} s: {unwell}")
            time.sleep(LOOK_AGAIN_S)

    def leader_of(self, topic: str, partition: int, *, timeout_s: float = HEALTHY_TIMEOUT_S) -> int:
        """The leader of a partition, in the latest epoch that any broker knows; waits while there is none."""
        deadline = time.monotonic() + timeout_s
        while (leader := self._latest_leader(topic, partition)) is None:
            if time.monotonic() > deadline:
                raise BrokerFailed(f"partition {partition} of {topic} had no leader within {timeout_s:g} s")
            time.sleep(LOOK_AGAIN_S)
        return leader

    def close(self) -> None:
        """Stop all brokers and remove what was temporary."""
        try:
            self.stop(*self.ids)
        finally:
            for one in self.brokers:
                one.close()
            self._folder.close()

    def logs(self) -> str:
        """The last lines of each broker's log."""
        return "\n".join(f"broker {one}:{last_lines(self.broker(one).log)}" for one in self.ids)

    def _close_after(self, error: BaseException) -> None:
        """Close; a failure to do so becomes a note on the error that came first."""
        error.add_note(self.logs())
        try:
            self.close()
        except BrokerFailed as another:
            error.add_note(str(another))

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
                return f"broker {one} reports: {unwell}"
        return ""

    def _latest_leader(self, topic: str, partition: int) -> int | None:
        known = []
        for one in self.ids:
            with suppress(NoView):
                known.append(self.look(one, ask_voters=False).partition(topic, partition))
        found = [one for one in known if one is not None]
        return max(found, key=lambda one: one.leader_epoch).leader if found else None


def local_cluster(
    brokers: int | None = None,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    base_port: int | None = None,
    on_log: Callable[[int, str], None] | None = None,
    **settings: object,
) -> LocalCluster[LocalBroker]:
    """A cluster that is not started yet. `settings` are those of `tailrace serve`, the same for all brokers.

    `brokers`, `data_dir` and `base_port` are those of `ClusterFolder` and `assign_places`. `on_log` gets each line of
    each broker's log, with the broker's id. Ports of client doors (`http_port`) are those of broker 1.
    """
    folder = ClusterFolder(brokers, data_dir=data_dir, base_port=base_port)
    doors = folder.door_ports(settings)

    def broker(place: Place) -> LocalBroker:
        given = settings | doors[place.id] | folder.settings_of(place)
        return LocalBroker(data_dir=place.data_dir, on_log=log_of(place.id, on_log), **given)

    return LocalCluster(folder, [broker(place) for place in folder.places])


def log_of(broker_id: int, on_log: Callable[[int, str], None] | None) -> Callable[[str], None] | None:
    """What gets the lines of one broker's log."""
    return None if on_log is None else lambda line: on_log(broker_id, line)
