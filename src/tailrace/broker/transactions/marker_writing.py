"""Markers on their way from a coordinator of transactions to the leaders of partitions, and what leaders do with them.

A coordinator asks by `Marking.send`, whether the leader is another broker or this one: it waits for an answer either
way. Each marker is answered for itself, when the high watermark has passed it; one whose partition has lost its
majority is given up after a moment, so that it does not hold up those beside it, and is to be sent again.

Producers of transactions v1 have the same epoch in their next transaction, which a late marker would end. So what a
coordinator has given up is not done any more, however late it comes: one request to a broker is under way at a time,
and one with a lower number than the last is refused, as is one for a leader that was another since.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from tailrace.broker.control.controller_calls import CallPeer
from tailrace.broker.control.peer_requests import Handler
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.partitions.partition import Partition
from tailrace.model.faults import Fault, InvalidRequest, InvalidTopicName, TimedOut
from tailrace.model.ids import NO_EPOCH, NO_ID, BrokerId, Id
from tailrace.model.topics import OFFSETS_TOPIC
from tailrace.wire.faults import error_of, fault_of
from tailrace.wire.messages.peers.write_markers import Marker, WriteMarkers, WriteMarkersAnswer
from tailrace.wire.messages.write_txn_markers import MarkerToWrite

MARKER_TIMEOUT_S: Final = 10.0
COMMITTED_WITHIN_S: Final = 0.5  # where there is a majority it takes milliseconds

AnyMarker = Marker | MarkerToWrite


class MarkerWriting:
    def __init__(self, hosted: HostedPartitions, incarnation: Id, call_peer: CallPeer) -> None:
        self._hosted = hosted
        self._incarnation = incarnation
        self._call_peer = call_peer
        self._number = 0  # of the last request sent
        self._heard: dict[BrokerId, tuple[Id, int]] = {}  # the life of each sender, and the number of its last request

    async def send(
        self, broker: BrokerId, markers: Sequence[Marker], timeout_s: float = MARKER_TIMEOUT_S
    ) -> list[list[Fault | None]]:
        """Have a broker write markers; for each of its partitions a fault, or None. `Unreachable` when nobody knows."""
        self._number += 1
        request = WriteMarkers(life=self._incarnation, number=self._number, markers=tuple(markers))
        if broker == self._hosted.me.broker:
            answer = await self.serve(broker, request)
        else:
            answer = await self._call_peer(broker, request, timeout_s)
        if answer.error_code:
            fault = fault_of(answer.error_code, answer.error_message or "")
            return [[fault] * len(marker.partitions) for marker in markers]
        codes = iter(answer.codes)
        return [[fault_of(next(codes)) for _ in marker.partitions] for marker in markers]

    @property
    def handlers(self) -> Mapping[type, Handler]:
        return {WriteMarkers: self.serve}

    async def serve(self, caller: BrokerId, request: WriteMarkers) -> WriteMarkersAnswer:
        life, number = self._heard.get(caller, (NO_ID, 0))
        if life == request.life and request.number <= number:
            raise InvalidRequest(f"markers {request.number} come after {number}: broker {caller} has given them up")
        self._heard[caller] = Id(request.life), request.number
        writes = [
            self.write(Id(place.topic_id), place.partition, marker, COMMITTED_WITHIN_S, place.leader_epoch)
            for marker in request.markers
            for place in marker.partitions
        ]
        faults = await asyncio.gather(*writes)
        return WriteMarkersAnswer(codes=tuple(0 if fault is None else error_of(fault) for fault in faults))

    async def write(
        self, topic: str | Id, number: int, marker: AnyMarker, within_s: float, leader_epoch: int = NO_EPOCH
    ) -> Fault | None:
        """Write a marker to a partition that this broker leads, in that epoch if it is known; what became of it."""
        try:
            partition = self._hosted.find(topic, number)
            _require_takes_part(partition)
            partition.require_epoch(leader_epoch)
            async with asyncio.timeout(within_s):
                await partition.write_marker(
                    marker.producer_id,
                    marker.producer_epoch,
                    marker.coordinator_epoch,
                    marker.committed,
                    transaction_version=marker.transaction_version,
                )
        except Fault as fault:
            return fault
        except TimeoutError:
            return TimedOut(f"the marker was not committed within {within_s} s")
        return None


def _require_takes_part(partition: Partition) -> None:
    """Of the broker's own topics only one: where transactions are kept, a marker would be no record of theirs."""
    if partition.is_internal and partition.name.rpartition("-")[0] != OFFSETS_TOPIC:
        raise InvalidTopicName(f"{partition.name} takes no part in transactions")
