"""What the operations of the REST API share: the cluster, producers, and the locks and streams of clients.

None of this state is stored: when the process ends, brokers release what was locked and groups go on where
they committed; clients see a connection that breaks, and ask again, at any broker.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from tailrace.client.cluster import Cluster
from tailrace.client.producers import Producers
from tailrace.client.taking import Takers
from tailrace.doors.http.rest.kinds import BUSY
from tailrace.doors.http.rest.locks import Locks
from tailrace.doors.http.rest.once import OnceUnderWay
from tailrace.doors.http.rest.problems import Problem
from tailrace.doors.upstream import Upstream
from tailrace.model.limits import REST_STREAMS_MAX
from tailrace.ports import Ports


class Service:
    def __init__(self, upstream: Upstream, ports: Ports) -> None:
        self.upstream = upstream
        self.ports = ports
        self.locks = Locks(ports, upstream.broker_id)
        self.openapi = b""  # the document, once it was asked for
        self._once = OnceUnderWay()
        self._streams = 0

    @property
    def cluster(self) -> Cluster:
        return self.upstream.cluster

    @property
    def producers(self) -> Producers:
        return self.upstream.producers

    @property
    def takers(self) -> Takers:
        takers: Takers = self.upstream.takers
        return takers

    @contextmanager
    def lasting(self) -> Iterator[None]:
        """A stream of events is open meanwhile, or a long poll waits: each has connections of its own. BUSY if there
        are as many as there may be."""
        if self._streams >= REST_STREAMS_MAX:
            why = f"{REST_STREAMS_MAX} streams of events and long polls are open; close one, or ask another broker"
            raise Problem(BUSY, why)
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1

    @contextmanager
    def once_under_way(self, name: str, key: str) -> Iterator[None]:
        """A request with an idempotency key is under way meanwhile."""
        self._once.begin(name, key)
        try:
            yield
        finally:
            self._once.end(name)
