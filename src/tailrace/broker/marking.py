"""Markers on their way from a coordinator of transactions to the leaders of partitions, and what leaders do with them.

A coordinator asks by `Marking.send`, whether the leader is another broker or this one: it waits for an answer either
way. Each marker is answered for itself, when the high watermark has passed it; one whose partition has lost its
majority is given up after a moment, so that it does not hold up those beside it, and is to be sent again.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tailrace.model.faults import Fault
from tailrace.model.ids import BrokerId, Id
from tailrace.wire.errors import Error
from tailrace.wire.faults import error_of
from tailrace.wire.messages.peers.write_markers import Marker, WriteMarkers, WriteMarkersAnswer
from tailrace.wire.messages.write_txn_markers import MarkerToWrite

if TYPE_CHECKING:
    from tailrace.broker.node import Node

marker_timeout_s: Final = 10.0
committed_within_s: Final = 0.5  # where there is a majority it takes milliseconds

AnyMarker = Marker | MarkerToWrite


class Marking:
    def __init__(self, node: "Node") -> None:
        self._node = node

    async def send(
        self, broker: BrokerId, markers: Sequence[Marker], timeout_s: float = marker_timeout_s
    ) -> list[list[Error]]:
        """Have a broker write markers; for each a code for each of its partitions. `Unreachable` when nobody knows."""
        request = WriteMarkers(markers=tuple(markers))
        if broker == self._node.broker_id:
            answer = await self.serve(request)
        else:
            answer = await self._node.quorums.peers.call(broker, request, timeout_s)
        if answer.error_code:
            return [[Error(answer.error_code)] * len(marker.partitions) for marker in markers]
        codes = iter(answer.codes)
        return [[Error(next(codes)) for _ in marker.partitions] for marker in markers]

    async def serve(self, request: WriteMarkers) -> WriteMarkersAnswer:
        writes = [
            self.write(Id(place.topic_id), place.partition, marker, committed_within_s)
            for marker in request.markers
            for place in marker.partitions
        ]
        return WriteMarkersAnswer(codes=tuple(await asyncio.gather(*writes)))

    async def write(self, topic: str | Id, number: int, marker: AnyMarker, within_s: float) -> Error:
        """Write a marker to a partition that this broker leads; what became of it."""
        try:
            partition = self._node.replicas.find(topic, number)
            async with asyncio.timeout(within_s):
                await partition.write_marker(
                    marker.producer_id,
                    marker.producer_epoch,
                    marker.coordinator_epoch,
                    marker.committed,
                    transaction_version=marker.transaction_version,
                )
        except Fault as fault:
            return error_of(fault)
        except TimeoutError:
            return Error.REQUEST_TIMED_OUT
        return Error.NONE
