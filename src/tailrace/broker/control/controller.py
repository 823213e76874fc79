"""This broker as the controller, while it leads the cluster's metadata.

Taking over is replaying the log to its end; losing leadership is dropping what was built. In between, twice a second:
brokers that have not fetched the metadata for `broker.session.timeout.ms` are fenced; once there are three brokers, the
metadata's voters are brought to three, one at a time, and so are the replicas of the brokers' own topics. A broker that
finds itself fenced registers again.
"""

import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from tailrace.broker.machines.leadership_term import LeadershipTerm
from tailrace.broker.machines.runtime import MachineRuntime, codec_of
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.timers import sleep_then_read
from tailrace.cluster.controller import Controller
from tailrace.cluster.feature_updates import raisable
from tailrace.cluster.features import Features
from tailrace.cluster.image import Image
from tailrace.cluster.records import RECORD_KINDS
from tailrace.model.faults import Fault, NotController, StorageFailed
from tailrace.model.ids import NOBODY, BrokerId, Id
from tailrace.model.proposal import Proposal
from tailrace.model.settings import Settings
from tailrace.model.topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tailrace.ports import Clock
from tailrace.raft.events import AddVoter, RemoveVoter
from tailrace.raft.replica import Voter

logger: Final = logging.getLogger(__name__)

LOOK_S: Final = 0.5
METADATA_VOTERS: Final = 3  # when there are as many brokers


class ControllerRole:
    def __init__(
        self,
        partition: Partition,
        image: Image,
        clock: Clock,
        settings: Settings,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        supported: Features,
    ) -> None:
        self._partition = partition
        self._supported = supported
        self._term = LeadershipTerm(
            partition,
            lambda: Controller(supported),
            codec_of(RECORD_KINDS),
            clock,
            spawn,
            level=lambda machine: machine.image.level,
            begins=self._begins,
            ends=self._ends,
        )
        self._image = image  # the committed one
        self._clock = clock
        self._settings = settings
        self._met: dict[Id, float] = {}  # when this controller first saw each life of a broker

    @property
    def controller(self) -> BrokerId | None:
        """Who is the controller, as far as known here."""
        return self._partition.leader

    @property
    def runtime(self) -> MachineRuntime[Controller] | None:
        """While this broker is the controller."""
        return self._term.runtime

    @property
    def active(self) -> MachineRuntime[Controller]:
        """The running controller; `NotController` where another broker is the controller."""
        if self._partition.offline is not None and self._partition.replica.voters == (self._partition.me,):
            raise StorageFailed(str(self._partition.offline))  # no other broker can become the controller
        if self.runtime is None:
            raise NotController("this broker is not the controller", self.controller or NOBODY)
        return self.runtime

    def leader_changed(self) -> None:
        self._term.leader_changed()

    async def _begins(self, coordinator: MachineRuntime[Controller]) -> None:
        await coordinator.write(_found)
        logger.info("this broker is the controller, in epoch %d", coordinator.epoch)
        for name, level in raisable(coordinator.machine.image, self._supported).items():
            now = coordinator.machine.image.features.get(name, 0)
            logger.info("%s is at %d; every broker supports %d: `tailrace cluster upgrade` raises it", name, now, level)

    def _ends(self) -> None:
        self._met.clear()
        logger.info("this broker is not the controller any more")

    async def watch(self) -> None:
        """Look after brokers and voters, for ever; harmless while another is the controller."""
        while True:
            await sleep_then_read(LOOK_S)
            if self.runtime is not None:
                try:
                    await self._fence_silent(self.runtime)
                    await self._widen(self.runtime)
                except Fault as fault:
                    logger.info("the cluster could not be looked after: %s", fault)
                self._look_at_voters()

    async def _fence_silent(self, coordinator: MachineRuntime[Controller]) -> None:
        heard = {one.replica: one.fetched for one in self._partition.replica.peers()}
        now = self._clock.monotonic()
        silent_since = now - self._settings.broker_session_timeout_ms / 1000
        for broker in list(coordinator.machine.image.brokers.values()):
            met = self._met.setdefault(broker.incarnation, now)  # who has just come may not have fetched yet
            seen = max(met, heard.get(Voter(broker=broker.id, directory=broker.directory), 0.0))
            if not broker.fenced and broker.id != self._partition.me.broker and seen < silent_since:
                logger.warning("broker %d is fenced: nothing was heard of it", broker.id)
                await coordinator.write(partial(_fence, broker.id))

    async def _widen(self, coordinator: MachineRuntime[Controller]) -> None:
        """Give the brokers' own topics the replicas that they lack, in one record for each partition."""
        settings = self._settings
        wanted = (
            (OFFSETS_TOPIC, settings.offsets_topic_replication_factor),
            (TRANSACTIONS_TOPIC, settings.transaction_state_log_replication_factor),
        )
        for topic, factor in wanted:
            more = coordinator.machine.widen(topic, factor).records
            if more:
                logger.info("%s: %d partitions get more replicas", topic, len(more))
                await coordinator.write(partial(_more_replicas, topic, factor))

    def _look_at_voters(self) -> None:
        voters, image = self._partition.replica.voters, self._image
        for voter in voters:
            known = image.brokers.get(voter.broker)
            if known is not None and known.directory != voter.directory and len(voters) > 1:
                self._partition.step(RemoveVoter(voter))  # its disk was replaced
                return
        # Who fetches at this moment: one that died a moment ago would cost two voters their quorum.
        there = dict.fromkeys(session.broker for session in self._partition.sessions)
        ready = [image.brokers[one] for one in image.live if one in there and one not in [two.broker for two in voters]]
        if len(voters) < METADATA_VOTERS <= len(voters) + len(ready):
            # one at a time, and refused until it has caught up
            self._partition.step(AddVoter(Voter(broker=ready[0].id, directory=ready[0].directory)))


def _found(controller: Controller) -> Proposal[None]:
    return controller.found()


def _more_replicas(topic: str, factor: int, controller: Controller) -> Proposal[None]:
    return controller.widen(topic, factor)


def _fence(broker: BrokerId, controller: Controller) -> Proposal[None]:
    return controller.fence(broker)
