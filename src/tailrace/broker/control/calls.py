"""What brokers ask of each other, and how it is served: most of it by the controller, some by a partition's leader."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tailrace.broker.peers import Unreachable
from tailrace.cluster.brokers import (
    KAFKA_LISTENER,
    Broker,
    from_registered_endpoints,
    from_registered_features,
)
from tailrace.cluster.controller import Controller, NewTopic
from tailrace.cluster.membership import Joining
from tailrace.cluster.records import PartitionLed
from tailrace.model.addresses import Address
from tailrace.model.faults import (
    InvalidRequest,
    NotController,
    NotLeader,
    PreferredLeaderNotAvailable,
    RefusedElsewhere,
    TimedOut,
)
from tailrace.model.ids import NOBODY, BrokerId, Id, TopicPartition
from tailrace.model.proposal import Proposal
from tailrace.model.topics import INTERNAL_TOPIC_SETTINGS
from tailrace.wire.errors import Error
from tailrace.wire.messages.peers.forward import Forward, ForwardAnswer
from tailrace.wire.messages.peers.hand_over import HandedOver, HandOver, HandOverAnswer, PartitionToHandOver
from tailrace.wire.messages.peers.join_cluster import JoinCluster, JoinClusterAnswer, MetadataVoter
from tailrace.wire.messages.peers.leave_cluster import LeaveCluster, LeaveClusterAnswer
from tailrace.wire.messages.peers.make_internal_topic import MakeInternalTopic, MakeInternalTopicAnswer
from tailrace.wire.messages.peers.move_start import MoveStart, MoveStartAnswer
from tailrace.wire.messages.peers.register_broker import RegisterBroker, RegisterBrokerAnswer
from tailrace.wire.messages.peers.report_leaders import ReportLeaders, ReportLeadersAnswer
from tailrace.wire.messages.peers.take_part import TakePart
from tailrace.wire.messages.peers.take_producer_ids import TakeProducerIds, TakeProducerIdsAnswer
from tailrace.wire.messages.peers.write_markers import WriteMarkers

if TYPE_CHECKING:
    from tailrace.broker.node import Node

ASK_AGAIN_S: Final = 0.1
LOOK_S: Final = 0.25  # for another controller, while one is asked
CONTROLLER_TIMEOUT_S: Final = 10.0
HANDED_OVER_WITHIN_S: Final = 3.0

ServeForwarded = Callable[[int, int, bytes], Awaitable[bytes]]  # API key, version, body of the request -> of the answer


class PeerCalls:
    def __init__(self, node: "Node") -> None:
        self._node = node
        self.serve_forwarded: ServeForwarded | None = None  # what the Kafka door does with a client's request

    # Asking

    async def controller(self, request: object, timeout_s: float = CONTROLLER_TIMEOUT_S) -> Any:
        """Ask the controller, whoever that is, until it answers."""
        clock = self._node.ports.clock
        deadline = clock.monotonic() + timeout_s
        while True:
            try:
                return await self._ask(request, max(0.1, deadline - clock.monotonic()))
            except (NotController, NotLeader, Unreachable) as error:
                if self._in_vain():
                    raise NotController(
                        "this broker is the only one that could be the controller, and cannot"
                    ) from error
                if clock.monotonic() + ASK_AGAIN_S >= deadline:
                    raise TimedOut(f"the controller could not be reached: {error}") from error
            await asyncio.sleep(ASK_AGAIN_S)

    def _in_vain(self) -> bool:
        """Whether nobody will be the controller in this life: the only voter is here, and will not lead again."""
        metadata = self._node.metadata
        gone = metadata.offline is not None or metadata.replica.retired
        return gone and metadata.replica.voters == (metadata.me,)

    async def _ask(self, request: object, timeout_s: float) -> Any:
        node, controller = self._node, self._node.controller_id
        if controller == NOBODY:
            raise NotController("nobody is known to be the controller")
        if controller == node.broker_id:
            return await self.serve(controller, request)
        answer = await self._ask_while_it_leads(controller, request, timeout_s)
        if answer.error_code == Error.NOT_CONTROLLER or answer.error_code == Error.NOT_LEADER_OR_FOLLOWER:
            raise NotController(f"broker {controller} is not the controller", BrokerId(answer.controller))
        if answer.error_code:
            raise RefusedElsewhere(answer.error_message or "", answer.error_code)
        return answer

    async def _ask_while_it_leads(self, controller: BrokerId, request: object, timeout_s: float) -> Any:
        """A controller that stands still is not waited for once another is known."""
        call = self._node.quorums.peers.call(controller, request, timeout_s)
        task = asyncio.get_running_loop().create_task(call)
        try:
            while True:
                try:
                    async with asyncio.timeout(LOOK_S):
                        return await asyncio.shield(task)
                except TimeoutError:
                    if self._node.controller_id not in (controller, NOBODY):
                        raise Unreachable(f"broker {controller} is not the controller any more") from None
        finally:
            task.cancel()

    # Serving

    async def serve(self, caller: BrokerId, request: object) -> object:
        match request:
            case JoinCluster():
                return await self._join(request)
            case RegisterBroker():
                await self._write(lambda controller: controller.register(_broker(request)))
                return RegisterBrokerAnswer()
            case LeaveCluster():
                await self._write(partial(_leave, request))
                return LeaveClusterAnswer()
            case ReportLeaders():
                await self._write(partial(_report, request))
                return ReportLeadersAnswer()
            case TakeProducerIds():
                block = await self._write(lambda controller: controller.take_producer_ids(BrokerId(request.broker_id)))
                return TakeProducerIdsAnswer(first=block.start, count=len(block))
            case MoveStart():
                await self._write(
                    lambda controller: controller.move_start(Id(request.topic_id), request.partition, request.start)
                )
                return MoveStartAnswer()
            case Forward():
                return await self._forwarded(request)
            case HandOver():
                return await self._hand_over(request)
            case WriteMarkers():
                return await self._node.marker_writing.serve(caller, request)
            case MakeInternalTopic():
                topic_id = await self._write(partial(_make_internal, request, self._node.ports.random.new_id))
                return MakeInternalTopicAnswer(topic_id=topic_id)
            case TakePart():
                return await self._node.transaction_coordinator.membership.serve(request)
        raise InvalidRequest(f"{type(request).__name__} is nothing that a broker serves")

    async def _write(self, propose: "Callable[[Controller], Proposal[Any]]") -> Any:
        return await self._node.controller.write(propose)

    async def _join(self, request: JoinCluster) -> JoinClusterAnswer:
        node = self._node
        joining = Joining(
            directory=Id(request.directory_id),
            wanted=None if request.broker_id < 0 else BrokerId(request.broker_id),
            incarnation=Id(request.incarnation_id),
            peer=Address(request.peer_host, request.peer_port),
            rack=request.rack,
            features=from_registered_features(request.features),
        )
        broker_id = await self._write(lambda controller: controller.join(joining))
        return JoinClusterAnswer(
            broker_id=broker_id, cluster_id=node.meta.cluster_id, controller=node.broker_id, voters=self._voters()
        )

    def _voters(self) -> tuple[MetadataVoter, ...]:
        node = self._node
        found = []
        for voter in node.metadata.replica.voters:
            host, port = node.peer_addresses.of(voter.broker)
            found.append(
                MetadataVoter(broker_id=voter.broker, directory_id=voter.directory, peer_host=host, peer_port=port)
            )
        return tuple(found)

    async def _forwarded(self, request: Forward) -> ForwardAnswer:
        if self.serve_forwarded is None or not self._node.is_controller:
            raise NotController("this broker is not the controller", self._node.controller_id)
        body = await self.serve_forwarded(request.api_key, request.api_version, request.body)
        return ForwardAnswer(body=body)

    async def _hand_over(self, request: HandOver) -> HandOverAnswer:
        answers = await asyncio.gather(*(self._hand_over_one(one) for one in request.partitions))
        return HandOverAnswer(partitions=tuple(answers))

    async def _hand_over_one(self, one: PartitionToHandOver) -> HandedOver:
        topic_id, partition_id = Id(one.topic_id), one.partition
        partition = self._node.hosted.here(TopicPartition(topic_id, partition_id))
        if partition is None or not partition.leads:
            return _handed(one, Error.NOT_LEADER_OR_FOLLOWER, "this broker does not lead it")
        epoch = partition.epoch
        if not self._node.leader_duties.hand_over(partition, BrokerId(one.to)):
            fault = PreferredLeaderNotAvailable(f"broker {one.to} does not keep up with {partition.name}")
            return _handed(one, Error.PREFERRED_LEADER_NOT_AVAILABLE, str(fault))
        clock = self._node.ports.clock
        deadline = clock.monotonic() + HANDED_OVER_WITHIN_S
        while partition.leader != one.to:
            if partition.leader is not None and partition.epoch > epoch:
                return _handed(one, Error.NOT_LEADER_OR_FOLLOWER, f"broker {partition.leader} was elected instead")
            if clock.monotonic() > deadline:
                return _handed(one, Error.REQUEST_TIMED_OUT, f"broker {one.to} did not take over in time")
            await asyncio.sleep(0.01)
        return _handed(one, Error.NONE, None)


def _broker(request: RegisterBroker) -> Broker:
    endpoints = from_registered_endpoints(request.endpoints, request.host, request.kafka_port)
    return Broker(
        id=BrokerId(request.broker_id),
        directory=Id(request.directory_id),
        incarnation=Id(request.incarnation_id),
        endpoints=endpoints,
        peer_host=request.peer_host,
        peer_port=request.peer_port,
        rack=request.rack,
        fenced=KAFKA_LISTENER not in endpoints,
        features=from_registered_features(request.features),
    )


def _handed(one: PartitionToHandOver, code: Error, message: str | None) -> HandedOver:
    return HandedOver(topic_id=one.topic_id, partition=one.partition, error_code=code, error_message=message)


def _leave(request: LeaveCluster, controller: Controller) -> "Proposal[None]":
    broker = controller.image.brokers.get(BrokerId(request.broker_id))
    if broker is None or broker.incarnation != request.incarnation_id:
        return Proposal(None)  # another life of it is there already
    return controller.fence(broker.id)


def _make_internal(request: MakeInternalTopic, new_id: Callable[[], Id], controller: Controller) -> "Proposal[Id]":
    if (there := controller.image.topics.get(request.name)) is not None:
        return Proposal(there.id)
    wanted = NewTopic(
        name=request.name,
        partitions=request.partitions,
        replication_factor=request.replication_factor,
        settings=INTERNAL_TOPIC_SETTINGS,
        internal=True,
    )
    made = controller.create_topic(wanted, new_id)
    return Proposal(made.answer.id, made.records)


def _report(request: ReportLeaders, controller: Controller) -> "Proposal[None]":
    reports = [
        PartitionLed(
            topic_id=one.topic_id, partition=one.partition, leader=one.leader, epoch=one.epoch, in_sync=one.in_sync
        )
        for one in request.partitions
    ]
    return controller.report_leaders(reports)
