"""The peer addresses of the other brokers, and the voters of the metadata.

Peers are needed before anything can be committed, so their addresses are taken from the whole metadata log, committed
or not. They are only hints: the hello checks which broker answers. The voters are kept in `meta.properties`, so that a
broker whose copy of the metadata is damaged does not believe itself to be the only voter.
"""

import logging
from collections.abc import Callable
from typing import Final

from tailrace.broker.background import Spawn
from tailrace.broker.machines.runtime import codec_of, replay_batches
from tailrace.broker.metadata.meta_file import MetaFile
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.peers import Peers
from tailrace.cluster.image import Image
from tailrace.cluster.records import RECORD_KINDS, BrokerRegistered
from tailrace.log.directory.meta import FirstVoter
from tailrace.model.addresses import Address
from tailrace.model.ids import BrokerId

logger: Final = logging.getLogger(__name__)


class PeerAddresses:
    def __init__(
        self, meta: MetaFile, peers: Peers, metadata: Partition, image: Image, own: Callable[[], Address], spawn: Spawn
    ) -> None:
        self._meta = meta
        self._peers = peers
        self._metadata = metadata
        self._image = image
        self._own = own
        self._spawn = spawn

    async def recall(self) -> None:
        """Load the addresses that the previous run knew."""
        me, log = self._metadata.me, self._metadata.log
        for voter in self._meta.meta.voters:
            if voter.host and voter.broker_id != me.broker:
                self._peers.know(voter.broker_id, voter.host, voter.port)
        offset, end = log.start, log.end
        while offset < end and (log.voter_sets or self._metadata.replica.voters != (me,)):
            offset = await replay_batches(self._metadata, offset, end, codec_of(RECORD_KINDS).decode, self.heard)

    def heard(self, record: object) -> None:
        me = self._metadata.me.broker
        if isinstance(record, BrokerRegistered) and record.peer_port > 0 and record.broker_id != me:
            self._peers.know(BrokerId(record.broker_id), record.peer_host, record.peer_port)

    def of(self, broker: BrokerId) -> tuple[str, int]:
        """The peer address of a broker; ("", 0) if it is not known."""
        if broker == self._metadata.me.broker:
            return self._own()
        known = self._image.brokers.get(broker)
        return ("", 0) if known is None else (known.peer_host, known.peer_port)

    def keep_voters(self) -> None:
        """Store the voters of the metadata in `meta.properties`, if they have changed."""
        voters = tuple(
            FirstVoter(voter.broker, voter.directory, *self.of(voter.broker)) for voter in self._metadata.replica.voters
        )
        if voters != self._meta.meta.voters:
            self._meta.change(voters=voters)
            self._spawn(self._store())

    async def _store(self) -> None:
        try:
            await self._meta.store()
        except OSError as error:
            logger.error("cannot write the voters of the metadata to meta.properties: %s", error)
