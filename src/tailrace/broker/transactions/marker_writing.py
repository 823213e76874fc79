"""WriteMarkers between brokers: the coordinator's side sends transaction markers, the leader's side writes them.

A coordinator calls `MarkerWriting.send`, whether the leader is another broker or this one, and waits for the answer.
Each marker has its own result, known when the high watermark has passed it. A marker whose partition has lost its
majority times out after `COMMITTED_WITHIN_S`, so that it does not delay the others, and has to be sent again. All
markers of a request are appended in one turn of the loop: those of one partition share an fsync, and one wait.

With transactions v1 a producer uses the same epoch in its next transaction, which a late marker would end. So a request
that the coordinator has given up must not be carried out later: only one request per broker is in flight, and a request
with a number lower than the last one is refused, as is one for an earlier leader epoch of the partition.
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
COMMITTED_WITHIN_S: Final = 0.5  # takes milliseconds if there is a majority

AnyMarker = Marker | MarkerToWrite


class MarkerWriting:
    def __init__(self, hosted: HostedPartitions, incarnation: Id, call_peer: CallPeer) -> None:
        self._hosted = hosted
        self._incarnation = incarnation
        self._call_peer = call_peer
        self._number = 0  # of the last request sent
        self._received: dict[BrokerId, tuple[Id, int]] = {}  # incarnation and last request number of each sender

    async def send(
        self, broker: BrokerId, markers: Sequence[Marker], timeout_s: float = MARKER_TIMEOUT_S
    ) -> list[list[Fault | None]]:
        """Send markers to a broker; per marker and partition a fault, or None. After `Unreachable` nothing is known."""
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
        incarnation, number = self._received.get(caller, (NO_ID, 0))
        if incarnation == request.life and request.number <= number:
            raise InvalidRequest(
                f"WriteMarkers {request.number} arrived after {number}: broker {caller} has given it up"
            )
        self._received[caller] = Id(request.life), request.number
        appended = [
            self._append(Id(place.topic_id), place.partition, marker, place.leader_epoch)
            for marker in request.markers
            for place in marker.partitions
        ]
        partitions = list(dict.fromkeys(one for one in appended if isinstance(one, Partition)))
        waits = await asyncio.gather(*(_committed(partition, COMMITTED_WITHIN_S) for partition in partitions))
        outcomes = dict(zip(partitions, waits, strict=True))
        faults = [outcomes[one] if isinstance(one, Partition) else one for one in appended]
        return WriteMarkersAnswer(codes=tuple(0 if fault is None else error_of(fault) for fault in faults))

    async def write(self, topic: str | Id, number: int, marker: AnyMarker, within_s: float) -> Fault | None:
        """Write a marker to a partition that this broker leads; its fault, or None."""
        appended = self._append(topic, number, marker, NO_EPOCH)
        return await _committed(appended, within_s) if isinstance(appended, Partition) else appended

    def _append(self, topic: str | Id, number: int, marker: AnyMarker, leader_epoch: int) -> Partition | Fault:
        """Append a marker to a partition that this broker leads, in `leader_epoch` if given; the partition."""
        try:
            partition = self._hosted.find(topic, number)
            _require_takes_part(partition)
            partition.require_epoch(leader_epoch)
            partition.append_marker(
                marker.producer_id,
                marker.producer_epoch,
                marker.coordinator_epoch,
                marker.committed,
                transaction_version=marker.transaction_version,
            )
        except Fault as fault:
            return fault.with_traceback(None)
        return partition


async def _committed(partition: Partition, within_s: float) -> Fault | None:
    """Wait until everything in the log is committed; the fault if it is not."""
    try:
        async with asyncio.timeout(within_s):
            await partition.committed()
    except Fault as fault:
        return fault.with_traceback(None)
    except TimeoutError:
        return TimedOut(f"the marker was not committed within {within_s} s")
    return None


def _require_takes_part(partition: Partition) -> None:
    """Of the internal topics only `__consumer_offsets` has transactions: a marker in another would break its replay."""
    if partition.is_internal and partition.name.rpartition("-")[0] != OFFSETS_TOPIC:
        raise InvalidTopicName(f"{partition.name} cannot be part of a transaction")
