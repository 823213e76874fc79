"""Requests between brokers: most are served by the controller, some by a partition leader.

`PeerRequests` dispatches a request by its type; each part of the broker adds the handlers of the requests it serves.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from tailrace.broker.control.controller import ControllerRole
from tailrace.broker.control.controller_calls import CallPeer
from tailrace.broker.control.leader_duties import LeaderDuties
from tailrace.broker.control.topic_creation import propose_internal
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.partitions.partition import Partition
from tailrace.cluster.brokers import from_registered_features, registered
from tailrace.cluster.controller import Controller
from tailrace.cluster.membership import Joining
from tailrace.cluster.records import PartitionLed
from tailrace.model.addresses import Address
from tailrace.model.caller import Caller
from tailrace.model.faults import Fault, InvalidRequest, NotController, NotLeader, PreferredLeaderNotAvailable, TimedOut
from tailrace.model.ids import NO_BROKER, BrokerId, Id, TopicPartition
from tailrace.model.proposal import Proposal
from tailrace.ports import Clock
from tailrace.wire.faults import error_of
from tailrace.wire.messages.peers.forward import Forward, ForwardAnswer
from tailrace.wire.messages.peers.hand_over import HandedOver, HandOver, HandOverAnswer, PartitionToHandOver
from tailrace.wire.messages.peers.join_cluster import JoinCluster, JoinClusterAnswer, MetadataVoter
from tailrace.wire.messages.peers.leave_cluster import LeaveCluster, LeaveClusterAnswer
from tailrace.wire.messages.peers.make_internal_topic import MakeInternalTopic, MakeInternalTopicAnswer
from tailrace.wire.messages.peers.move_start import MoveStart, MoveStartAnswer
from tailrace.wire.messages.peers.read_metadata_end import ReadMetadataEnd, ReadMetadataEndAnswer
from tailrace.wire.messages.peers.register_broker import RegisterBroker, RegisterBrokerAnswer
from tailrace.wire.messages.peers.report_leaders import ReportLeaders, ReportLeadersAnswer
from tailrace.wire.messages.peers.take_producer_ids import TakeProducerIds, TakeProducerIdsAnswer

HANDED_OVER_WITHIN_S: Final = 3.0

Handler = Callable[[BrokerId, Any], Awaitable[object]]  # the sender, and its request
# Takes the client, API key, version and body of the request; returns the body of the response.
ServeForwarded = Callable[[Caller, int, int, bytes], Awaitable[bytes]]


class PeerRequests:
    """The handlers of requests from other brokers, by the type of the request."""

    def __init__(self) -> None:
        self._handlers: dict[type, Handler] = {}

    def add(self, handlers: Mapping[type, Handler]) -> None:
        self._handlers.update(handlers)

    async def serve(self, caller: BrokerId, request: object) -> object:
        handler = self._handlers.get(type(request))
        if handler is None:
            raise InvalidRequest(f"brokers do not serve {type(request).__name__} requests")
        return await handler(caller, request)


class ControllerRequests:
    """The requests that the controller serves."""

    def __init__(
        self,
        role: ControllerRole,
        metadata: Partition,
        peer_address: Callable[[BrokerId], tuple[str, int]],
        cluster_id: str,
        new_id: Callable[[], Id],
    ) -> None:
        self._role = role
        self._metadata = metadata
        self._peer_address = peer_address
        self._cluster_id = cluster_id
        self._new_id = new_id
        self.serve_forwarded: ServeForwarded | None = None  # set by the Kafka door

    @property
    def handlers(self) -> Mapping[type, Handler]:
        return {
            JoinCluster: self._join,
            RegisterBroker: self._register,
            LeaveCluster: self._leave,
            ReportLeaders: self._report,
            TakeProducerIds: self._take_producer_ids,
            MoveStart: self._move_start,
            MakeInternalTopic: self._make_internal_topic,
            ReadMetadataEnd: self._read_metadata_end,
            Forward: self._forwarded,
        }

    async def _register(self, caller: BrokerId, request: RegisterBroker) -> RegisterBrokerAnswer:
        await self._write(lambda controller: controller.register(registered(request)))
        return RegisterBrokerAnswer()

    async def _leave(self, caller: BrokerId, request: LeaveCluster) -> LeaveClusterAnswer:
        await self._write(partial(_leave, request))
        return LeaveClusterAnswer()

    async def _report(self, caller: BrokerId, request: ReportLeaders) -> ReportLeadersAnswer:
        await self._write(partial(_report, request))
        return ReportLeadersAnswer()

    async def _take_producer_ids(self, caller: BrokerId, request: TakeProducerIds) -> TakeProducerIdsAnswer:
        block = await self._write(lambda controller: controller.take_producer_ids(BrokerId(request.broker_id)))
        return TakeProducerIdsAnswer(first=block.start, count=len(block))

    async def _move_start(self, caller: BrokerId, request: MoveStart) -> MoveStartAnswer:
        await self._write(
            lambda controller: controller.move_start(Id(request.topic_id), request.partition, request.start)
        )
        return MoveStartAnswer()

    async def _make_internal_topic(self, caller: BrokerId, request: MakeInternalTopic) -> MakeInternalTopicAnswer:
        topic_id = await self._write(partial(propose_internal, request, self._new_id))
        return MakeInternalTopicAnswer(topic_id=topic_id)

    async def _read_metadata_end(self, caller: BrokerId, request: ReadMetadataEnd) -> ReadMetadataEndAnswer:
        await self._role.active.settled()  # makes sure that a majority still follows this controller
        return ReadMetadataEndAnswer(end=self._metadata.high_watermark)

    async def _write(self, propose: "Callable[[Controller], Proposal[Any]]") -> Any:
        return await self._role.active.write(propose)

    async def _join(self, caller: BrokerId, request: JoinCluster) -> JoinClusterAnswer:
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
            broker_id=broker_id,
            cluster_id=self._cluster_id,
            controller=self._metadata.me.broker,
            voters=self._voters(),
        )

    def _voters(self) -> tuple[MetadataVoter, ...]:
        found = []
        for voter in self._metadata.replica.voters:
            host, port = self._peer_address(voter.broker)
            found.append(
                MetadataVoter(broker_id=voter.broker, directory_id=voter.directory, peer_host=host, peer_port=port)
            )
        return tuple(found)

    async def _forwarded(self, caller: BrokerId, request: Forward) -> ForwardAnswer:
        if self.serve_forwarded is None or self._role.runtime is None:
            raise NotController("this broker is not the controller", self._role.controller or NO_BROKER)
        client = Caller(principal=request.principal)
        body = await self.serve_forwarded(client, request.api_key, request.api_version, request.body)
        return ForwardAnswer(body=body)


class LeaderHandOvers:
    """Transfers of partition leadership to a named broker, requested by a peer or by this broker itself."""

    def __init__(self, hosted: HostedPartitions, duties: LeaderDuties, call_peer: CallPeer, clock: Clock) -> None:
        self._hosted = hosted
        self._duties = duties
        self._call_peer = call_peer
        self._clock = clock

    @property
    def handlers(self) -> Mapping[type, Handler]:
        return {HandOver: self._serve}

    async def ask(self, leader: BrokerId, request: HandOver, within_s: float) -> HandOverAnswer:
        """Request a leader, which may be this broker, to hand partitions over."""
        if leader == self._hosted.me.broker:
            return await self._serve(leader, request)
        answer = await self._call_peer(leader, request, within_s)
        assert isinstance(answer, HandOverAnswer)
        return answer

    async def _serve(self, caller: BrokerId, request: HandOver) -> HandOverAnswer:
        answers = await asyncio.gather(*(self._hand_over(one) for one in request.partitions))
        return HandOverAnswer(partitions=tuple(answers))

    async def _hand_over(self, one: PartitionToHandOver) -> HandedOver:
        partition = self._hosted.here(TopicPartition(Id(one.topic_id), one.partition))
        if partition is None or not partition.leads:
            return _handed(one, NotLeader("this broker is not the leader of the partition"))
        epoch = partition.epoch
        if not self._duties.hand_over(partition, BrokerId(one.to)):
            fault = PreferredLeaderNotAvailable(f"broker {one.to} is not in the ISR of {partition.name}, or is fenced")
            return _handed(one, fault)
        deadline = self._clock.monotonic() + HANDED_OVER_WITHIN_S
        while partition.leader != one.to:
            if partition.leader is not None and partition.epoch > epoch:
                return _handed(one, NotLeader(f"broker {partition.leader} was elected instead"))
            if self._clock.monotonic() > deadline:
                return _handed(one, TimedOut(f"broker {one.to} did not take over in time"))
            await asyncio.sleep(0.01)
        return _handed(one, None)


def _handed(one: PartitionToHandOver, fault: Fault | None) -> HandedOver:
    code, message = (0, None) if fault is None else (error_of(fault), str(fault))
    return HandedOver(topic_id=one.topic_id, partition=one.partition, error_code=code, error_message=message)


def _leave(request: LeaveCluster, controller: Controller) -> "Proposal[None]":
    broker = controller.image.brokers.get(BrokerId(request.broker_id))
    if broker is None or broker.incarnation != request.incarnation_id:
        return Proposal(None)  # the broker has restarted: this request is of an earlier incarnation
    return controller.fence(broker.id)


def _report(request: ReportLeaders, controller: Controller) -> "Proposal[None]":
    reports = [
        PartitionLed(
            topic_id=one.topic_id, partition=one.partition, leader=one.leader, epoch=one.epoch, in_sync=one.in_sync
        )
        for one in request.partitions
    ]
    return controller.report_leaders(reports)
