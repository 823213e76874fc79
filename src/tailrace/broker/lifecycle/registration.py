"""Registering this broker with the controller: where it is found, and which feature levels it supports.

A broker registers at each start, and again
- when it finds itself fenced, or finds another incarnation of itself in the metadata;
- when what the metadata says of it is not what it would register now. A controller of an older release leaves out what
  it does not know, so this is looked at whenever the controller changes; and whenever a feature level is raised, as a
  higher level may let a broker register more.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from tailrace.broker.later_release import LaterRelease
from tailrace.cluster.brokers import Broker, endpoints_to_register, features_to_register, record_of, registered
from tailrace.cluster.records import BrokerFenced, BrokerRegistered, FeatureRaised
from tailrace.model.faults import Fault
from tailrace.model.ids import NOBODY
from tailrace.wire.errors import Error
from tailrace.wire.faults import error_of
from tailrace.wire.messages.peers.register_broker import RegisterBroker

if TYPE_CHECKING:
    from tailrace.broker.node import Node

logger: Final = logging.getLogger(__name__)

ATTEMPT_S: Final = 5.0
AGAIN_S: Final = 0.2
FINAL_ERRORS: Final = (Error.DUPLICATE_BROKER_REGISTRATION, Error.UNSUPPORTED_VERSION)


class RegistrationRefused(Exception):
    """Why the cluster refuses this broker, in a sentence for the person who started it."""


class Registration:
    def __init__(self, node: "Node") -> None:
        self._node = node
        self._once = False  # it was registered since this start
        self._again = False  # under way
        self._updating = False  # likewise

    async def register(self) -> None:
        """Done when this broker's own metadata has it registered and not fenced."""
        while not self._once:
            if self._node.failed.done():
                failure = self._node.failed.exception()
                why = f"{failure}." if isinstance(failure, LaterRelease) else "a part has failed; the log says which."
                raise RegistrationRefused(f"this broker cannot go on: {why}")
            if why := self._node.quorums.peers.incompatible:
                raise RegistrationRefused(f"the cluster does not take this broker in: {why}.")
            try:
                await self._node.calls.controller(self._request(), ATTEMPT_S)
                async with asyncio.timeout(ATTEMPT_S):  # it may have been fenced again before the answer came
                    await self._node.until(self.is_known)
                self._once = self.is_known()  # unless it was fenced in between
            except TimeoutError:
                logger.warning("registered, but this broker's own metadata does not say so yet; trying again")
            except Fault as fault:
                if error_of(fault) in FINAL_ERRORS:
                    raise RegistrationRefused(f"the cluster does not take this broker in: {fault}.") from None
                logger.warning("not registered yet, trying again: %s", fault)
                await asyncio.sleep(AGAIN_S)

    def is_known(self) -> bool:
        known = self._node.hosted.image.brokers.get(self._node.broker_id)
        return known is not None and known.incarnation == self._node.incarnation and not known.fenced

    def committed(self, record: object) -> None:
        """Register again when this record says something of this broker that is not so."""
        node = self._node
        about_us = isinstance(record, BrokerFenced | BrokerRegistered) and record.broker_id == node.broker_id
        if about_us and self._once and not (self._again or node.stopping or self.is_known()):
            self._again = True
            node.spawn(self._register_again())
        elif isinstance(record, FeatureRaised):
            self.update()

    async def _register_again(self) -> None:
        try:
            self._once = self.is_known()
            await self.register()
        finally:
            self._again = False

    def update(self) -> None:
        """The controller or a feature level has changed: register again what the metadata lacks."""
        node = self._node
        if self._once and node.controller_id != NOBODY and not (self._updating or node.stopping or self._is_current()):
            self._updating = True
            node.spawn(self._update())

    async def _update(self) -> None:
        """Until a controller has answered. One of an older release changes nothing; the next one may."""
        metadata = self._node.metadata
        try:
            while not (self._node.stopping or self._is_current()):
                epoch = metadata.epoch
                try:
                    await self._node.calls.controller(self._request(), ATTEMPT_S)
                    if metadata.epoch == epoch:
                        return
                except Fault as fault:
                    logger.info("registration could not be updated, trying again: %s", fault)
                    await asyncio.sleep(AGAIN_S)
        finally:
            self._updating = False

    def _is_current(self) -> bool:
        """Whether the metadata has all that this broker would register now."""
        image = self._node.hosted.image
        wanted = registered(record_of(self._broker(), image.level))
        return image.brokers.get(self._node.broker_id) == wanted

    def _broker(self) -> Broker:
        node = self._node
        host, port = node.peer_addresses.of(node.broker_id)
        return Broker(
            id=node.broker_id,
            directory=node.voter.directory,
            incarnation=node.incarnation,
            endpoints=node.endpoints,
            peer_host=host,
            peer_port=port,
            rack=node.settings.broker_rack or None,
            fenced=False,
            features=node.supported_features,
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
