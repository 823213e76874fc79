"""Telling the cluster where this broker is found, at each start, and again whenever it was taken for gone."""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from tailrace.cluster.records import BrokerFenced, BrokerRegistered
from tailrace.model.faults import Fault
from tailrace.wire.errors import Error
from tailrace.wire.faults import error_of
from tailrace.wire.messages.peers.register_broker import RegisterBroker

if TYPE_CHECKING:
    from tailrace.broker.node import Node

logger: Final = logging.getLogger(__name__)

ATTEMPT_S: Final = 5.0
AGAIN_S: Final = 0.2


class RegistrationRefused(Exception):
    """Why the cluster refuses this broker, in a sentence for the person who started it."""


class Registration:
    def __init__(self, node: "Node") -> None:
        self._node = node
        self._once = False  # it was known in this life
        self._again = False  # under way

    async def register(self) -> None:
        """Done when this broker's own metadata says where it is."""
        while not self._once:
            if self._node.failed.done():
                raise RegistrationRefused("a part of the broker has failed; the log says which.")
            try:
                await self._node.calls.controller(self._request(), ATTEMPT_S)
                async with asyncio.timeout(ATTEMPT_S):  # we may have been taken for gone again before we heard of it
                    await self._node.progress.until(self.is_known)
                self._once = self.is_known()  # unless we were taken for gone in between
            except TimeoutError:
                logger.warning("registered, but it is not known here yet; trying again")
            except Fault as fault:
                if error_of(fault) is Error.DUPLICATE_BROKER_REGISTRATION:
                    raise RegistrationRefused(f"the cluster does not take this broker in: {fault}.") from None
                logger.warning("not registered yet, trying again: %s", fault)
                await asyncio.sleep(AGAIN_S)

    def is_known(self) -> bool:
        known = self._node.hosted.image.brokers.get(self._node.broker_id)
        return known is not None and known.incarnation == self._node.incarnation and not known.fenced

    def committed(self, record: object) -> None:
        """When others think that this broker is gone, or another life of it is there: say that it is here."""
        node = self._node
        about_us = isinstance(record, BrokerFenced | BrokerRegistered) and record.broker_id == node.broker_id
        if about_us and self._once and not (self._again or node.stopping or self.is_known()):
            self._again = True
            node.spawn(self._register_again())

    async def _register_again(self) -> None:
        try:
            self._once = self.is_known()
            await self.register()
        finally:
            self._again = False

    def _request(self) -> RegisterBroker:
        node = self._node
        host, port = node.peer_addresses.of(node.broker_id)
        return RegisterBroker(
            broker_id=node.broker_id,
            directory_id=node.voter.directory,
            incarnation_id=node.incarnation,
            host=node.advertised_host,
            kafka_port=node.kafka_port,
            peer_host=host,
            peer_port=port,
            rack=node.settings.broker_rack or None,
        )
