"""Joining a cluster: find its controller by bootstrap addresses, and get a broker id and the metadata voters from it.

The addresses are those of the brokers' Kafka listeners; one broker that answers is enough. DescribeCluster, with a
tagged field of Tailrace's own, returns the peer addresses of the brokers; the join request goes to a peer port. Failed
attempts are repeated until a deadline, because all brokers of a cluster are often started at once.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from tailrace import __version__
from tailrace.broker.certificates import Certificates
from tailrace.broker.peers import Refused, call_once
from tailrace.client.connection import Connection
from tailrace.cluster.brokers import features_to_register
from tailrace.cluster.features import METADATA_VERSION, Features, level_range
from tailrace.log.directory.meta import FirstVoter, Meta
from tailrace.model.addresses import Address, parse_addresses
from tailrace.model.frozen import frozen
from tailrace.model.ids import BrokerId, Id
from tailrace.model.listeners import KAFKA_LISTENER, PEER_LISTENER
from tailrace.model.settings import Settings
from tailrace.ports import Ports
from tailrace.wire.faults import fault_of
from tailrace.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tailrace.wire.messages.peers.hello import PeerHello
from tailrace.wire.messages.peers.join_cluster import JoinCluster, JoinClusterAnswer
from tailrace.wire.primitives import WireError

logger: Final = logging.getLogger(__name__)

RETRY_S: Final = 0.25
ANSWER_WITHIN_S: Final = 5.0
CHECK_WITHIN_S: Final = 1.0
DESCRIBE_CLUSTER_VERSION: Final = 2


class CannotJoin(Exception):
    """The broker cannot join the cluster; the message tells its operator why."""


@frozen
class Joiner:
    ports: Ports
    settings: Settings
    certificates: Certificates
    directory: Id
    incarnation: Id
    advertised_host: str
    features: Features  # the levels that this broker supports

    async def join(self) -> Meta:
        addresses = parse_addresses(self.settings.join)
        clock = self.ports.clock
        within_s = self.settings.join_timeout_ms / 1000
        deadline = clock.monotonic() + within_s
        reported = ""
        while True:
            problem = ""
            for address in addresses:
                try:
                    return await self._join_at(address)
                except (TimeoutError, OSError, WireError) as error:
                    problem = f"{address}: {str(error) or 'no answer'}"
            if clock.monotonic() > deadline:
                raise CannotJoin(
                    f"the cluster could not be joined within {within_s:g} s: {problem}.\n"
                    "--join takes the Kafka listener addresses of running brokers."
                )
            if problem != reported:
                logger.warning("joining the cluster failed, retrying: %s", problem)
                reported = problem
            await asyncio.sleep(RETRY_S)

    async def check(self, meta: Meta) -> None:
        """A broker that is a member already was started with --join: refuse addresses of another cluster."""
        for address in parse_addresses(self.settings.join):
            try:
                answer = await self._describe(address, CHECK_WITHIN_S)
            except (TimeoutError, OSError, WireError):
                continue  # not an error: perhaps the whole cluster is starting
            if answer.cluster_id != meta.cluster_id:
                raise CannotJoin(
                    f"{self.settings.data_dir} belongs to cluster {meta.cluster_id}, the broker at {address} to "
                    f"{answer.cluster_id}.\nLeave out --join, or choose another directory with --data-dir."
                )
            return

    async def _join_at(self, address: Address) -> Meta:
        """Send the join request to the brokers that the broker at `address` lists, the controller first."""
        last: OSError = ConnectionError("the broker lists no peer addresses")
        for peer in await self._peers_known_at(address):
            try:
                answer = await self._ask(peer)
            except Refused as refused:
                raise CannotJoin(f"the cluster at {address} refuses this broker: {refused.why}.") from None
            except OSError as error:
                last = error
                continue
            fault = fault_of(answer.error_code, answer.error_message or "")
            if fault is None:
                return self._meta(answer)
            if not fault.retry:
                raise CannotJoin(f"the cluster at {address} refuses this broker: {fault}.")
            last = ConnectionError(str(fault))
        raise last

    async def _peers_known_at(self, address: Address) -> Sequence[Address]:
        answer = await self._describe(address, ANSWER_WITHIN_S)
        brokers = sorted(answer.brokers, key=lambda broker: broker.broker_id != answer.controller_id)
        return [Address(broker.peer_host, broker.peer_port) for broker in brokers if broker.peer_port > 0]

    async def _describe(self, address: Address, within_s: float) -> DescribeClusterResponse:
        net = self.certificates.net(KAFKA_LISTENER)
        async with asyncio.timeout(within_s):
            client = await Connection.connect(net, address.host, address.port, "tailrace-joiner")
            try:
                answer = await client.call(DescribeClusterRequest(peers=True), DESCRIBE_CLUSTER_VERSION)
            finally:
                client.close()
        assert isinstance(answer, DescribeClusterResponse)
        return answer

    async def _ask(self, peer: Address) -> JoinClusterAnswer:
        levels = level_range(self.features, METADATA_VERSION)
        hello = PeerHello(
            cluster_id="",
            broker_id=-1,
            directory_id=self.directory,
            release=__version__,
            first_level=levels.first,
            last_level=levels.last,
        )
        request = JoinCluster(
            directory_id=self.directory,
            broker_id=self.settings.broker_id,
            incarnation_id=self.incarnation,
            peer_host=self.advertised_host,
            peer_port=0,  # sent with the registration
            rack=self.settings.broker_rack or None,
            features=features_to_register(self.features),
        )
        net = self.certificates.net(PEER_LISTENER)
        answer = await call_once(net, peer.host, peer.port, hello, request, ANSWER_WITHIN_S)
        assert isinstance(answer, JoinClusterAnswer)
        return answer

    def _meta(self, answer: JoinClusterAnswer) -> Meta:
        voters = tuple(
            FirstVoter(BrokerId(voter.broker_id), Id(voter.directory_id), voter.peer_host, voter.peer_port)
            for voter in answer.voters
        )
        return Meta(
            cluster_id=answer.cluster_id,
            broker_id=BrokerId(answer.broker_id),
            directory_id=self.directory,
            voters=voters,
        )
