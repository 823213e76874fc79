"""Calls of group coordinators to the leaders of partitions that share groups read, here or on another broker."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from tailrace.broker.control.controller_calls import CallPeer
from tailrace.broker.control.peer_requests import Handler
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.metadata.leaders import Leaders
from tailrace.broker.peers import Unreachable
from tailrace.model.faults import NotLeader, UnknownTopicId
from tailrace.model.ids import NO_BROKER, BrokerId, Id, TopicPartition, show_id
from tailrace.wire.faults import fault_of
from tailrace.wire.messages.peers.initialize_share_partition import (
    InitializeSharePartition,
    InitializeSharePartitionAnswer,
)
from tailrace.wire.messages.peers.read_log_ends import PartitionToRead, ReadLogEnds, ReadLogEndsAnswer

ANSWERED_WITHIN_S: Final = 10.0
ENDS_WITHIN_S: Final = 3.0
UNKNOWN_END: Final = -1

# Takes group, topic id, partition, state epoch, start offset (-1: by the group's reset policy) and metadata end.
Initialize = Callable[[str, Id, int, int, int, int], Awaitable[None]]


class LeaderCalls:
    def __init__(
        self, hosted: HostedPartitions, leaders: Leaders, call_peer: CallPeer, initialize_here: Initialize
    ) -> None:
        """`initialize_here` serves the partitions that this broker leads."""
        self._hosted = hosted
        self._leaders = leaders
        self._call_peer = call_peer
        self.initialize_here = initialize_here

    # Asking

    async def initialize(
        self, group: str, topic_id: Id, partition: int, state_epoch: int, start_offset: int, metadata_end: int
    ) -> None:
        """Let the partition's leader store where a share group starts to read; returns when that is durable."""
        request = InitializeSharePartition(
            group=group,
            topic_id=topic_id,
            partition=partition,
            state_epoch=state_epoch,
            start_offset=start_offset,
            metadata_end=metadata_end,
        )
        leader = self._leader(TopicPartition(topic_id, partition))
        if leader == self._hosted.me.broker:
            await self._initialize(leader, request)
            return
        try:
            answer: InitializeSharePartitionAnswer = await self._call_peer(leader, request, ANSWERED_WITHIN_S)
        except Unreachable as error:
            raise NotLeader(f"the leader, broker {leader}, is unreachable: {error}") from error
        fault = fault_of(answer.error_code, answer.error_message or "")
        if fault is not None:
            raise fault

    async def log_ends(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """The high watermarks of partitions; those that cannot be found out are missing."""
        by_leader: dict[BrokerId, list[TopicPartition]] = {}
        for one in partitions:
            try:
                by_leader.setdefault(self._leader(one), []).append(one)
            except (NotLeader, UnknownTopicId):
                continue
        answers = await asyncio.gather(*(self._ends_at(leader, some) for leader, some in by_leader.items()))
        return {one: end for ends in answers for one, end in ends.items() if end != UNKNOWN_END}

    async def _ends_at(self, leader: BrokerId, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        wanted = tuple(PartitionToRead(topic_id=one.topic_id, partition=one.partition) for one in partitions)
        request = ReadLogEnds(partitions=wanted)
        try:
            if leader == self._hosted.me.broker:
                answer = await self._read_ends(leader, request)
            else:
                answer = await self._call_peer(leader, request, ENDS_WITHIN_S)
        except Unreachable:
            return {}
        is_complete = not answer.error_code and len(answer.ends) == len(partitions)
        return dict(zip(partitions, answer.ends, strict=True)) if is_complete else {}

    def _leader(self, place: TopicPartition) -> BrokerId:
        topic = self._hosted.image.topics_by_id.get(place.topic_id)
        if topic is None or place.partition >= len(topic.partitions):
            raise UnknownTopicId(f"there is no partition {show_id(place.topic_id)}-{place.partition}")
        leader, _ = self._leaders.led_by(topic, place.partition)
        if leader == NO_BROKER:
            raise NotLeader(f"{topic.name}-{place.partition} has no leader")
        return leader

    # Answering

    @property
    def handlers(self) -> Mapping[type, Handler]:
        return {InitializeSharePartition: self._initialize, ReadLogEnds: self._read_ends}

    async def _initialize(self, caller: BrokerId, request: InitializeSharePartition) -> InitializeSharePartitionAnswer:
        await self.initialize_here(
            request.group,
            Id(request.topic_id),
            request.partition,
            request.state_epoch,
            request.start_offset,
            request.metadata_end,
        )
        return InitializeSharePartitionAnswer()

    async def _read_ends(self, caller: BrokerId, request: ReadLogEnds) -> ReadLogEndsAnswer:
        places = (TopicPartition(Id(one.topic_id), one.partition) for one in request.partitions)
        return ReadLogEndsAnswer(ends=tuple(self._end(one) for one in places))

    def _end(self, place: TopicPartition) -> int:
        partition = self._hosted.here(place)
        return partition.high_watermark if partition is not None and partition.leads else UNKNOWN_END
