"""Becoming a member of a cluster: find it by clients' addresses, ask its controller for an id, write that down.

DescribeCluster, with a tag of our own, tells where peers are reached; the rest goes over their port. Any address of any
broker will do, and what fails is tried again for a while: clusters are often started all at once.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from tailrace import __version__
from tailrace.broker.peers import Refused, call_once
from tailrace.cluster.brokers import features_to_register
from tailrace.cluster.features import METADATA_VERSION, Features, level_range
from tailrace.log.directory.meta import FirstVoter, Meta
from tailrace.model.addresses import Address, parse_addresses
from tailrace.model.frozen import frozen
from tailrace.model.ids import BrokerId, Id
from tailrace.model.settings import Settings
from tailrace.ports import Ports
from tailrace.wire.client import WireClient
from tailrace.wire.errors import Error
from tailrace.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tailrace.wire.messages.peers.hello import PeerHello
from tailrace.wire.messages.peers.join_cluster import JoinCluster, JoinClusterAnswer
from tailrace.wire.primitives import WireError

logger: Final = logging.getLogger(__name__)

TRY_AGAIN_S: Final = 0.25
ANSWER_WITHIN_S: Final = 5.0
KNOWN_WITHIN_S: Final = 1.0
DESCRIBE_CLUSTER_VERSION: Final = 2


class CannotJoin(Exception):
    """Why a broker is not taken in, in a sentence for the person who started it."""


@frozen
class Joiner:
    ports: Ports
    settings: Settings
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
                    "--join takes the client addresses of brokers that run."
                )
            if problem != reported:
                logger.warning("not joined yet, trying again: %s", problem)
                reported = problem
            await asyncio.sleep(TRY_AGAIN_S)

    async def check(self, meta: Meta) -> None:
        """A member was told to join: it needs nobody, but brokers of another cluster are not who it takes them for."""
        for address in parse_addresses(self.settings.join):
            try:
                answer = await self._describe(address, KNOWN_WITHIN_S)
            except (TimeoutError, OSError, WireError):
                continue  # perhaps the whole cluster starts
            if answer.cluster_id != meta.cluster_id:
                raise CannotJoin(
                    f"{self.settings.data_dir} belongs to cluster {meta.cluster_id}, the broker at {address} to "
                    f"{answer.cluster_id}.\nLeave out --join, or give this broker another place with --data-dir."
                )
            return

    async def _join_at(self, address: Address) -> Meta:
        """Ask the peers that the broker at `address` knows, its controller first."""
        last: OSError = ConnectionError("it knows no peers")
        for peer in await self._peers_known_at(address):
            try:
                answer = await self._ask(peer)
            except Refused as refused:
                raise CannotJoin(f"the cluster at {address} does not take this broker in: {refused.why}.") from None
            except OSError as error:
                last = error
                continue
            if answer.error_code == Error.NONE:
                return self._meta(answer)
            if not Error(answer.error_code).retriable:
                raise CannotJoin(f"the cluster at {address} does not take this broker in: {answer.error_message}.")
            last = ConnectionError(answer.error_message or Error(answer.error_code).name)
        raise last

    async def _peers_known_at(self, address: Address) -> Sequence[Address]:
        answer = await self._describe(address, ANSWER_WITHIN_S)
        brokers = sorted(answer.brokers, key=lambda broker: broker.broker_id != answer.controller_id)
        return [Address(broker.peer_host, broker.peer_port) for broker in brokers if broker.peer_port > 0]

    async def _describe(self, address: Address, within_s: float) -> DescribeClusterResponse:
        async with asyncio.timeout(within_s):
            client = await WireClient.connect(self.ports.net, address.host, address.port, "tailrace-joiner")
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
            peer_port=0,  # told when it registers
            rack=self.settings.broker_rack or None,
            features=features_to_register(self.features),
        )
        answer = await call_once(self.ports.net, peer.host, peer.port, hello, request, ANSWER_WITHIN_S)
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
