"""Registration of this broker with the controller: its addresses, and the feature levels it supports.

A broker registers at each start, and again
- when the metadata says that it is fenced, or holds another incarnation of it;
- when its registration in the metadata differs from what it would register now. A controller of an older release drops
  fields that it does not know, so this is checked whenever the controller changes; and whenever a feature level is
  raised, as a higher level may allow further fields.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from tailrace.broker.background import BackgroundTasks
from tailrace.broker.control.controller_calls import ControllerCalls
from tailrace.broker.later_release import LaterRelease
from tailrace.broker.metadata.progress import MetadataProgress
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.peers import Peers
from tailrace.cluster.brokers import (
    Broker,
    Endpoints,
    endpoints_to_register,
    features_to_register,
    record_of,
    registered,
)
from tailrace.cluster.features import Features
from tailrace.cluster.image import Image
from tailrace.cluster.records import BrokerFenced, BrokerRegistered, FeatureRaised
from tailrace.model.addresses import Address
from tailrace.model.faults import DuplicateBroker, Fault, UnsupportedVersion
from tailrace.model.frozen import frozen
from tailrace.model.ids import Id
from tailrace.raft.voters import Voter
from tailrace.wire.messages.peers.register_broker import RegisterBroker

logger: Final = logging.getLogger(__name__)

ATTEMPT_S: Final = 5.0
RETRY_S: Final = 0.2


class RegistrationRefused(Exception):
    """The cluster refuses this broker; the message tells its operator why."""


@frozen
class OwnRegistration:
    """What this broker registers, besides its endpoints."""

    voter: Voter
    incarnation: Id
    peer_address: Callable[[], Address]
    rack: str | None
    features: Features


class Registration:
    def __init__(
        self,
        own: OwnRegistration,
        metadata: Partition,
        image: Image,
        progress: MetadataProgress,
        controller: ControllerCalls,
        peers: Peers,
        background: BackgroundTasks,
    ) -> None:
        self._own = own
        self._metadata = metadata
        self._image = image
        self._progress = progress
        self._controller = controller
        self._peers = peers
        self._background = background
        self.endpoints: Endpoints = {}  # where clients reach this broker, by the names of its listeners
        self._is_registered = False  # in this run; False again while it registers after being fenced
        self._registering_again = False
        self._updating = False

    async def register(self, endpoints: Endpoints) -> None:
        """Returns when this broker's own copy of the metadata says that it is registered and not fenced."""
        self.endpoints = endpoints
        await self._register()

    async def _register(self) -> None:
        while not self._is_registered:
            if self._background.failed.done():
                failure = self._background.failed.exception()
                why = f"{failure}." if isinstance(failure, LaterRelease) else "a background task failed; see the log."
                raise RegistrationRefused(f"this broker stops: {why}")
            if why := self._peers.incompatible:
                raise RegistrationRefused(f"the cluster refuses this broker: {why}.")
            try:
                await self._controller.ask(self._request(), ATTEMPT_S)
                async with asyncio.timeout(ATTEMPT_S):  # it may have been fenced again before the answer arrived
                    await self._progress.until(self.is_known)
                self._is_registered = self.is_known()  # False if it was fenced in between
            except TimeoutError:
                logger.warning("registered, but this broker's metadata does not have the registration yet; retrying")
            except Fault as fault:
                if isinstance(fault, DuplicateBroker | UnsupportedVersion):
                    raise RegistrationRefused(f"the cluster refuses this broker: {fault}.") from None
                logger.warning("registration failed, retrying: %s", fault)
                await asyncio.sleep(RETRY_S)

    def is_known(self) -> bool:
        """Whether the metadata holds this incarnation of the broker, not fenced."""
        known = self._image.brokers.get(self._own.voter.broker)
        return known is not None and known.incarnation == self._own.incarnation and not known.fenced

    def committed(self, record: object) -> None:
        """A metadata record was committed: register again if it fences this broker or replaces its incarnation."""
        me, background = self._own.voter.broker, self._background
        about_us = isinstance(record, BrokerFenced | BrokerRegistered) and record.broker_id == me
        if about_us and self._is_registered and not (self._registering_again or background.stopping or self.is_known()):
            self._registering_again = True
            background.spawn(self._register_again())
        elif isinstance(record, FeatureRaised):
            self.update()

    async def _register_again(self) -> None:
        try:
            self._is_registered = self.is_known()
            await self._register()
        finally:
            self._registering_again = False

    def update(self) -> None:
        """The controller or a feature level has changed: register again if the metadata lacks fields."""
        background = self._background
        is_due = self._is_registered and self._metadata.leader is not None
        if is_due and not (self._updating or background.stopping or self._is_current()):
            self._updating = True
            background.spawn(self._update())

    async def _update(self) -> None:
        """Register until a controller has answered. One of an older release changes nothing; the next one may."""
        metadata = self._metadata
        try:
            while not (self._background.stopping or self._is_current()):
                epoch = metadata.epoch
                try:
                    await self._controller.ask(self._request(), ATTEMPT_S)
                    if metadata.epoch == epoch:
                        return
                except Fault as fault:
                    logger.info("cannot update the registration, retrying: %s", fault)
                    await asyncio.sleep(RETRY_S)
        finally:
            self._updating = False

    def _is_current(self) -> bool:
        """Whether the registration in the metadata is what this broker would register now."""
        wanted = registered(record_of(self._broker(), self._image.level))
        return self._image.brokers.get(self._own.voter.broker) == wanted

    def _broker(self) -> Broker:
        own, peer = self._own, self._own.peer_address()
        return Broker(
            id=own.voter.broker,
            directory=own.voter.directory,
            incarnation=own.incarnation,
            endpoints=self.endpoints,
            peer_host=peer.host,
            peer_port=peer.port,
            rack=own.rack,
            fenced=False,
            features=own.features,
        )

    def _request(self) -> RegisterBroker:
        broker = self._broker()
        return RegisterBroker(
            broker_id=broker.id,
            directory_id=broker.directory,
            incarnation_id=broker.incarnation,
            host=broker.host,
            kafka_port=broker.kafka_port,
            endpoints=endpoints_to_register(broker.endpoints),
            peer_host=broker.peer_host,
            peer_port=broker.peer_port,
            rack=broker.rack,
            features=features_to_register(broker.features),
        )
