"""The controller: the role of the broker that leads the metadata log.

A new controller replays the metadata log to its end; one that loses leadership drops the state it had built. While it
leads, twice a second:
- it fences brokers that have not fetched the metadata log for `broker.session.timeout.ms` (a fenced broker that is
  alive registers again);
- once the cluster has three brokers, it raises the voters of the metadata log to three, one at a time, and gives the
  internal topics their missing replicas.
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
from tailrace.model.ids import NO_BROKER, BrokerId, Id
from tailrace.model.proposal import Proposal
from tailrace.model.settings import Settings
from tailrace.model.topics import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from tailrace.ports import Clock
from tailrace.raft.events import AddVoter, RemoveVoter
from tailrace.raft.replica import Voter

logger: Final = logging.getLogger(__name__)

UPKEEP_INTERVAL_S: Final = 0.5
METADATA_VOTERS: Final = 3  # as soon as the cluster has as many brokers


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
        self._image = image  # the committed metadata
        self._clock = clock
        self._settings = settings
        self._first_seen: dict[Id, float] = {}  # when this controller first saw each incarnation of a broker

    @property
    def controller(self) -> BrokerId | None:
        """The controller, as far as this broker knows."""
        return self._partition.leader

    @property
    def runtime(self) -> MachineRuntime[Controller] | None:
        """The running controller; None while another broker is the controller."""
        return self._term.runtime

    @property
    def active(self) -> MachineRuntime[Controller]:
        """The running controller; `NotController` where another broker is the controller."""
        if self._partition.offline is not None and self._partition.replica.voters == (self._partition.me,):
            raise StorageFailed(str(self._partition.offline))  # no other broker can become the controller
        if self.runtime is None:
            raise NotController("this broker is not the controller", self.controller or NO_BROKER)
        return self.runtime

    def leader_changed(self) -> None:
        self._term.leader_changed()

    async def _begins(self, coordinator: MachineRuntime[Controller]) -> None:
        await coordinator.write(_found)
        logger.info("this broker became the controller, in epoch %d", coordinator.epoch)
        for name, level in raisable(coordinator.machine.image, self._supported).items():
            now = coordinator.machine.image.features.get(name, 0)
            logger.info(
                "%s is at level %d, every broker supports %d: `tailrace cluster upgrade` raises it", name, now, level
            )

    def _ends(self) -> None:
        self._first_seen.clear()
        logger.info("this broker is no longer the controller")

    async def watch(self) -> None:
        """Fence silent brokers, add replicas and voters, in an endless loop; idle while another broker is the
        controller."""
        while True:
            await sleep_then_read(UPKEEP_INTERVAL_S)
            if self.runtime is not None:
                try:
                    await self._fence_silent(self.runtime)
                    await self._add_internal_replicas(self.runtime)
                except Fault as fault:
                    logger.info("controller upkeep failed, retrying in %g s: %s", UPKEEP_INTERVAL_S, fault)
                self._adjust_voters()

    async def _fence_silent(self, coordinator: MachineRuntime[Controller]) -> None:
        fetched = {one.replica: one.fetched for one in self._partition.replica.peers()}
        now = self._clock.monotonic()
        silent_since = now - self._settings.broker_session_timeout_ms / 1000
        for broker in list(coordinator.machine.image.brokers.values()):
            first_seen = self._first_seen.setdefault(broker.incarnation, now)  # a new one may not have fetched yet
            seen = max(first_seen, fetched.get(Voter(broker=broker.id, directory=broker.directory), 0.0))
            if not broker.fenced and broker.id != self._partition.me.broker and seen < silent_since:
                logger.warning(
                    "broker %d is fenced: it has not fetched the metadata log for %d ms (broker.session.timeout.ms)",
                    broker.id,
                    self._settings.broker_session_timeout_ms,
                )
                await coordinator.write(partial(_fence, broker.id))

    async def _add_internal_replicas(self, coordinator: MachineRuntime[Controller]) -> None:
        """Raise the internal topics to their replication factor, in one record per partition."""
        settings = self._settings
        wanted = (
            (OFFSETS_TOPIC, settings.offsets_topic_replication_factor),
            (TRANSACTIONS_TOPIC, settings.transaction_state_log_replication_factor),
            (SHARE_STATE_TOPIC, settings.share_coordinator_state_topic_replication_factor),
        )
        for topic, factor in wanted:
            more = coordinator.machine.widen(topic, factor).records
            if more:
                logger.info("%s: adding replicas to %d partitions", topic, len(more))
                await coordinator.write(partial(_more_replicas, topic, factor))

    def _adjust_voters(self) -> None:
        """Remove a metadata voter whose disk was replaced; add voters up to `METADATA_VOTERS`. One change a turn."""
        voters, image = self._partition.replica.voters, self._image
        for voter in voters:
            known = image.brokers.get(voter.broker)
            if known is not None and known.directory != voter.directory and len(voters) > 1:
                self._partition.member.step(RemoveVoter(voter))  # its disk was replaced
                return
        # Only brokers that fetch now: adding one that has just died would leave two voters without a quorum.
        fetching = dict.fromkeys(session.broker for session in self._partition.member.sessions)
        voting = [voter.broker for voter in voters]
        ready = [image.brokers[one] for one in image.live if one in fetching and one not in voting]
        if len(voters) < METADATA_VOTERS <= len(voters) + len(ready):
            # One at a time; the replica refuses a voter that has not caught up.
            self._partition.member.step(AddVoter(Voter(broker=ready[0].id, directory=ready[0].directory)))


def _found(controller: Controller) -> Proposal[None]:
    return controller.found()


def _more_replicas(topic: str, factor: int, controller: Controller) -> Proposal[None]:
    return controller.widen(topic, factor)


def _fence(broker: BrokerId, controller: Controller) -> Proposal[None]:
    return controller.fence(broker)
