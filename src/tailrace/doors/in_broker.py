"""The client doors in the process of a broker: their upstream is the cluster that the broker belongs to.

The broker serves their requests as those of a client that has not authenticated, with its permissions.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from tailrace.doors.broker_host import Host
from tailrace.doors.door import ClientDoor
from tailrace.doors.upstream import Upstream, driver_for
from tailrace.model.addresses import Address
from tailrace.model.ids import BrokerId
from tailrace.model.settings import Settings
from tailrace.ports import Net, Ports, Tls


class BrokerHost:
    def __init__(self, broker: Host, request_stop: Callable[[], None]) -> None:
        """`request_stop` stops the broker, as a signal does."""
        self._broker = broker
        net = broker.services.cluster_net
        self.upstream = Upstream(
            driver_for(broker.ports, net),
            lambda: [net.own_address()],
            self._endpoints,
            broker_id=net.broker_id,
            request_stop=request_stop,
        )

    @property
    def ports(self) -> Ports:
        return self._broker.ports

    @property
    def settings(self) -> Settings:
        return self._broker.settings

    @property
    def advertised_host(self) -> str:
        return self._broker.advertised_host

    def net(self, listener: str) -> Net:
        return self._broker.net(listener)

    def tls(self, listener: str) -> Tls | None:
        return self._broker.tls(listener)

    def add_certificates(self, listener: str, tls: Tls) -> None:
        self._broker.add_certificates(listener, tls)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._broker.spawn(work)

    def show(self, doors: Sequence[ClientDoor]) -> None:
        """Show what these doors have done among the facts of the broker, for `tailrace doors`."""
        for door in doors:
            self._broker.services.admin.show_door(door.listener_name, partial(asdict, door.counters))

    async def _endpoints(self, listener: str) -> Mapping[BrokerId, Address]:
        return self._broker.services.cluster_net.endpoints(listener)
