"""Where the other brokers are, as far as this one ever heard, and who votes on the metadata.

Peers are needed before anything can be committed, so their addresses are taken from the whole metadata log, committed
or not: they are hints, and whoever answers there has to say who it is. Who votes is kept in `meta.properties`: should
this broker's copy of the metadata be damaged, it must not take itself for the only voter.
"""

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tailrace.broker.machines.runtime import codec_of, replay_batches
from tailrace.cluster.records import RECORD_KINDS, BrokerRegistered
from tailrace.log.directory.meta import FirstVoter, store_meta
from tailrace.model.ids import BrokerId

if TYPE_CHECKING:
    from tailrace.broker.node import Node

logger: Final = logging.getLogger(__name__)


class PeerAddresses:
    def __init__(self, node: "Node") -> None:
        self._node = node
        self._storing = asyncio.Lock()

    async def recall(self) -> None:
        """Know whoever the last life knew."""
        node, log = self._node, self._node.metadata.log
        for voter in node.meta.voters:
            if voter.host and voter.broker_id != node.broker_id:
                node.quorums.peers.know(voter.broker_id, voter.host, voter.port)
        offset, end = log.start, log.end
        while offset < end and (log.voter_sets or node.metadata.replica.voters != (node.voter,)):
            offset = await replay_batches(node.metadata, offset, end, codec_of(RECORD_KINDS).decode, self.heard)

    def heard(self, record: object) -> None:
        if isinstance(record, BrokerRegistered) and record.peer_port > 0 and record.broker_id != self._node.broker_id:
            self._node.quorums.peers.know(BrokerId(record.broker_id), record.peer_host, record.peer_port)

    def of(self, broker: BrokerId) -> tuple[str, int]:
        """Where peers reach a broker; nowhere while that is not known."""
        node = self._node
        if broker == node.broker_id:
            return node.advertised_host, node.settings.advertised_peer_port or node.peer_port
        known = node.hosted.image.brokers.get(broker)
        return ("", 0) if known is None else (known.peer_host, known.peer_port)

    def keep_voters(self) -> None:
        node = self._node
        voters = tuple(
            FirstVoter(voter.broker, voter.directory, *self.of(voter.broker)) for voter in node.metadata.replica.voters
        )
        if voters != node.meta.voters:
            node.meta = replace(node.meta, voters=voters)
            node.spawn(self._store())

    async def _store(self) -> None:
        try:
            async with self._storing:
                await store_meta(self._node.ports.disk, self._node.settings.data_dir, self._node.meta)
        except OSError as error:
            logger.error("who votes on the metadata could not be written down: %s", error)
