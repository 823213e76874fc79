"""The way to the brokers of the own cluster, for doors that are clients of the log.

To the broker of this process a client connects in memory, to the others through the client lane of their peer port, as
soon as the cluster's level allows it; anywhere else by a plain connection. The Kafka door serves the connections that
come through memory and through this broker's own client lane (`serve_clients_with`).
"""

import asyncio
from collections.abc import Callable
from typing import Final

from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.peers import Peers
from tailrace.cluster.brokers import Endpoints
from tailrace.cluster.features import CLIENT_LANE_LEVEL
from tailrace.model.addresses import Address
from tailrace.model.ids import BrokerId
from tailrace.model.listeners import KAFKA_LISTENER
from tailrace.ports import Listener, Net, Tls, TlsFiles
from tailrace.ports.memory import connect_in_memory
from tailrace.ports.net import Factory, P


class ClusterNet:
    """A `Net` that knows the brokers of this cluster by the addresses of their Kafka listeners."""

    def __init__(
        self, net: Net, peers: Peers, hosted: HostedPartitions, me: BrokerId, own_endpoints: Callable[[], Endpoints]
    ) -> None:
        self._net = net
        self._peers = peers
        self._hosted = hosted
        self.broker_id: Final = me
        self._own_endpoints = own_endpoints
        self._serve_client: Callable[[], asyncio.BaseProtocol] | None = None

    def own_address(self) -> Address:
        """The address of this broker's Kafka listener."""
        return self._own_endpoints()[KAFKA_LISTENER]

    def endpoints(self, listener: str) -> dict[BrokerId, Address]:
        """Where clients reach this listener, by broker; brokers that are down or do not have it are left out."""
        found = {
            one.id: one.endpoints[listener]
            for one in self._hosted.image.brokers.values()
            if listener in one.endpoints and not one.fenced
        }
        if listener in self._own_endpoints():
            found[self.broker_id] = self._own_endpoints()[listener]
        return found

    def serve_clients_with(self, serve: Callable[[], asyncio.BaseProtocol]) -> None:
        """Serve connections in memory, and those of other brokers' clients, with the protocols that `serve` makes."""
        self._serve_client = serve
        self._peers.serve_clients_with(serve)

    def load_tls(self, files: TlsFiles) -> Tls:
        return self._net.load_tls(files)

    async def listen(self, factory: Factory, host: str, port: int, tls: Tls | None = None) -> Listener:
        return await self._net.listen(factory, host, port, tls)

    async def connect(self, factory: Callable[[], P], host: str, port: int, tls: Tls | None = None) -> P:
        broker = self._broker_at(Address(host, port))
        if broker == self.broker_id and self._serve_client is not None:
            return connect_in_memory(factory, self._serve_client)
        if broker is not None and broker != self.broker_id and self._hosted.image.level >= CLIENT_LANE_LEVEL:
            return await self._peers.connect_client(broker, factory)
        return await self._net.connect(factory, host, port, tls)

    def _broker_at(self, address: Address) -> BrokerId | None:
        if self._own_endpoints().get(KAFKA_LISTENER) == address:
            return self.broker_id
        brokers = self._hosted.image.brokers.values()
        return next((one.id for one in brokers if one.endpoints.get(KAFKA_LISTENER) == address), None)
